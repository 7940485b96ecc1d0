"""What a device has spent, and how much of it a new report must count (pure accounting).

A report at t that looks back over L timestamps rests `gap + L - 1` rounds after any other
(`docs/proofs/lookback.md`). What was spent within that rest counts, by round number or by uptime,
whichever remembers more. Uptime is compared in whole rounds, rounded to the nearest: compared
exactly, jitter would make half of all reports wait for another window.
"""

from collections.abc import Iterable
from dataclasses import dataclass

MILLI = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One report that was made, or is about to be. Entries are never taken back."""

    manifest: bytes
    t: int
    uptime: int  # milliseconds of the odometer when the position was taken
    epsilon: int  # micro-nats
    lookback: int
    gap: int  # of its manifest, in rounds
    period: int  # of its manifest, in seconds

    @property
    def rest(self) -> int:
        """Rounds before it in which spending counts."""
        return self.gap + self.lookback - 1


def counts(entry: LedgerEntry, wish: LedgerEntry) -> bool:
    """Tell whether an entry lies within the rest of a wished-for report.

    >>> old = LedgerEntry(
    ...     manifest=b"m", t=7, uptime=70_000, epsilon=1, lookback=1, gap=3, period=10
    ... )
    >>> from dataclasses import replace
    >>> counts(old, replace(old, t=10, uptime=96_000)), counts(old, replace(old, t=9, uptime=10**6))
    (False, True)
    >>> counts(old, replace(old, t=10, uptime=94_000))
    True
    """
    elapsed = wish.uptime - entry.uptime
    round_time = wish.period * MILLI
    if entry.manifest == wish.manifest:
        recent = elapsed + round_time // 2 < wish.rest * round_time
        return recent or wish.t - entry.t < wish.rest
    # Round numbers of two campaigns have nothing in common. The longer of both rests counts.
    older_rest = entry.gap * entry.period * MILLI + (wish.lookback - 1) * round_time
    return elapsed < max(wish.rest * round_time, older_rest)


def spent(entries: Iterable[LedgerEntry], wish: LedgerEntry) -> int:
    """Return how much a wished-for report must count, in micro-nats."""
    return sum(entry.epsilon for entry in entries if counts(entry, wish))


def kept(entries: tuple[LedgerEntry, ...], wish: LedgerEntry) -> tuple[LedgerEntry, ...]:
    """Return the entries that this report or a later one may have to count.

    The wish carries the longest lookback of its manifest. Neither round numbers nor uptime go
    back, so what does not count now never will again.
    """
    return tuple(entry for entry in entries if counts(entry, wish))
