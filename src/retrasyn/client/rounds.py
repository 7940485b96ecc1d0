"""Determines the current round by the device's own clock, and waits for new rounds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from retrasyn.client.curator_client import CuratorClient
from retrasyn.device import Instant, read_clocks
from retrasyn.errors import ConsentError, ServerError, WireError
from retrasyn.messages import Manifest
from retrasyn.wire.canonical import unseal
from retrasyn.wire.texts import decode_round, manifest_id

_SLICE = 0.5  # seconds: short sleeps, because the wall clock may be changed


class LoopClock(Protocol):
    """The clock used by a loop."""

    def now(self) -> Instant:
        """Return the current time of all clocks."""
        ...  # pragma: no cover - a protocol has no body

    def wait_until(self, wall: float) -> bool:
        """Wait until `wall` (milliseconds since 1970); False if stopped before."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(slots=True)
class RealClock:
    """The clocks of this machine; setting `stopped` ends every wait."""

    stopped: threading.Event = field(default_factory=threading.Event)

    def now(self) -> Instant:
        """Return the current time of all clocks."""
        return read_clocks()

    def wait_until(self, wall: float) -> bool:
        """Wait until `wall` in short sleeps; False if stopped before."""
        while not self.stopped.is_set():
            left = (wall - read_clocks().wall) / 1000
            if left <= 0:
                return True
            self.stopped.wait(min(left, _SLICE))
        return False


log = logging.getLogger(__name__)
_POLL, _SLOWEST_POLL = 50, 2_000  # milliseconds between two polls for the round
_OK = 200


@dataclass(frozen=True, slots=True)
class Opened:
    """A fetched round, whose signature is not yet verified (the reporter does that)."""

    t: int
    envelope: bytes = field(repr=False)
    close: int  # milliseconds since 1970


Trusts = Callable[[str, bytes, bytes, Instant], bool]
"""Tells whether the curator signed something: kind, text, signature and the time now."""


@dataclass(slots=True)
class RoundFollower:
    """Waits for rounds of the campaign the owner agreed to."""

    server: CuratorClient
    manifest: Manifest
    id: bytes  # manifest id
    clock: LoopClock = field(repr=False)
    trusts: Trusts = field(repr=False)
    _warned: bool = field(default=False, init=False)

    def own(self) -> int:
        """Return the current round by this device's clock."""
        return (self.clock.now().wall // 1000 - self.manifest.epoch) // self.manifest.period

    def opening(self, t: int) -> int:
        """Return when a round opens, in milliseconds since 1970."""
        return (self.manifest.epoch + t * self.manifest.period) * 1000

    def after(self, last: int) -> Opened | None:
        """Wait for a round after `last`; None if stopped."""
        if not self.clock.wait_until(self.opening(max(self.own(), last + 1))):
            return None
        poll = _POLL
        while True:
            try:
                found = self._fetch(last)
            except (ServerError, WireError) as fault:
                level = logging.DEBUG if poll == self._slowest else logging.WARNING
                log.log(level, "no round yet: %s", fault)  # repeats go to the debug level
                found = None
            if found is not None:
                return found
            if not self.clock.wait_until(self.clock.now().wall + poll):
                return None
            poll = min(2 * poll, self._slowest)

    @property
    def _slowest(self) -> int:
        return min(_SLOWEST_POLL, self.manifest.period * 100)

    def check_campaign(self) -> None:
        """Raise if the curator has another campaign now; what others say changes nothing."""
        text, signature = unseal(self.server.campaign())
        proven = self.trusts("manifest", text, signature, self.clock.now())
        if proven and manifest_id(text) != self.id:
            raise ConsentError(
                f"the campaign at {self.server.url} is not the one you agreed to any more; see "
                "what it promises now and agree with: retrasyn device accept"
            )

    def _fetch(self, last: int) -> Opened | None:
        """Fetch the round once; None unless it is current by both clocks."""
        answered = self.server.current_round()
        if answered.code != _OK:
            return None
        asked = decode_round(unseal(answered.body)[0])
        if asked.manifest != self.id:
            self.check_campaign()
            return None
        own = self.own()
        if asked.t == own and asked.t > last:
            close = min(asked.close * 1000, self.opening(own + 1))
            return Opened(asked.t, answered.body, close)
        if abs(asked.t - own) > 1 and not self._warned:
            self._warned = True
            log.warning(
                "this device's clock shows round %d, the curator's %d: set the clock", own, asked.t
            )
        return None
