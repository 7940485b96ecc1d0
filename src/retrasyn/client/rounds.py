"""Which round it is, by the device's own clock, and waiting for an instant of it."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Protocol

from retrasyn.client.curator_client import CuratorClient
from retrasyn.device import Instant, read_clocks
from retrasyn.errors import ConsentError, ServerError, WireError
from retrasyn.messages import Manifest
from retrasyn.wire.canonical import unseal
from retrasyn.wire.texts import decode_round, manifest_id

_SLICE = 0.5  # seconds: a wall clock that is set must not leave anybody waiting for hours


class LoopClock(Protocol):
    """The clock a loop goes by."""

    def now(self) -> Instant:
        """Return what the clocks show."""
        ...  # pragma: no cover - a protocol has no body

    def wait_until(self, wall: float) -> bool:
        """Wait for an instant in milliseconds since 1970; False if told to stop before."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(slots=True)
class RealClock:
    """The clocks of this machine; setting `stopped` ends every wait."""

    stopped: threading.Event = field(default_factory=threading.Event)

    def now(self) -> Instant:
        """Return what the clocks show."""
        return read_clocks()

    def wait_until(self, wall: float) -> bool:
        """Wait for an instant, a little at a time."""
        while not self.stopped.is_set():
            left = (wall - read_clocks().wall) / 1000
            if left <= 0:
                return True
            self.stopped.wait(min(left, _SLICE))
        return False


log = logging.getLogger(__name__)
_POLL, _SLOWEST_POLL = 50, 2_000  # milliseconds between two questions for the round
_OK = 200


@dataclass(frozen=True, slots=True)
class Opened:
    """A round as it was fetched; its signature is for the reporter to check."""

    t: int
    envelope: bytes = field(repr=False)
    close: int  # milliseconds since 1970


@dataclass(slots=True)
class RoundFollower:
    """Waits for rounds of the campaign the owner agreed to."""

    server: CuratorClient
    manifest: Manifest
    id: bytes  # of the manifest
    clock: LoopClock = field(repr=False)
    _warned: bool = field(default=False, init=False)

    def own(self) -> int:
        """Return the round that this device's clock says it is."""
        return (self.clock.now().wall // 1000 - self.manifest.epoch) // self.manifest.period

    def opening(self, t: int) -> int:
        """Return when a round opens, in milliseconds since 1970."""
        return (self.manifest.epoch + t * self.manifest.period) * 1000

    def after(self, last: int) -> Opened | None:
        """Wait for a round newer than the last; None if told to stop."""
        if not self.clock.wait_until(self.opening(max(self.own(), last + 1))):
            return None
        poll = _POLL
        while True:
            try:
                found = self._fetch(last)
            except (ServerError, WireError) as fault:
                level = logging.DEBUG if poll == self._slowest else logging.WARNING
                log.log(level, "no round yet: %s", fault)  # not again and again
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
        """Stop where the campaign is not the one the owner agreed to."""
        text, _ = unseal(self.server.campaign())
        if manifest_id(text) != self.id:
            raise ConsentError(
                f"the campaign at {self.server.url} is not the one you agreed to any more; see "
                "what it promises now and agree with: retrasyn device accept"
            )

    def _fetch(self, last: int) -> Opened | None:
        """Ask once for the round that is current by both clocks."""
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
