"""Two clocks: the wall clock, which anybody may set, and the uptime, which nobody can.

The wall clock says which round it is. The odometer adds up the boot-time clock over all boots; time
switched off never counts, so it never runs ahead of real time.
"""

import time
from dataclasses import dataclass

_MILLI = 1_000_000  # nanoseconds
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # counts sleep where it can


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """What the device's clocks show at one moment, in milliseconds."""

    wall: int  # since 1970
    boot: int  # since the device was switched on


def read_clocks() -> Instant:
    """Read the clocks of this machine.

    >>> read_clocks().boot <= read_clocks().boot
    True
    """
    return Instant(wall=time.time_ns() // _MILLI, boot=time.clock_gettime_ns(_BOOT_CLOCK) // _MILLI)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odometer:
    """Uptime over all boots, and where the boot-time clock stood when it was last read.

    >>> odometer = Odometer(total=100, boot=40).advance(60)
    >>> odometer.total, odometer.advance(5).total
    (120, 125)
    """

    total: int = 0
    boot: int = 0

    def advance(self, boot: int) -> "Odometer":
        """Return the odometer at a later reading of the boot-time clock.

        A clock that went back was started anew, and all it shows is uptime since. A restart that
        goes unnoticed, because the new clock has passed the old reading, only counts too little.
        """
        gone = boot - self.boot if boot >= self.boot else boot
        return Odometer(total=self.total + gone, boot=boot)
