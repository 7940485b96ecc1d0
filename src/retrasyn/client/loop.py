"""One device, round after round: fetch, draw, wait for a fix, report, send until it is settled.

All that protects its owner stands in `retrasyn.device`; here are only clocks, waiting and sending.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from retrasyn.client.clock import Clock
from retrasyn.client.fixes import Fixes
from retrasyn.client.http import Server
from retrasyn.client.presence import heartbeat_of
from retrasyn.client.rounds import Opened, Rounds
from retrasyn.client.sending import Fate, Hear, send
from retrasyn.device import Answer, Drawn, Refusal, Reporter, Tracker
from retrasyn.device.reactions import Reaction
from retrasyn.device.sampling import draw_word
from retrasyn.errors import ServerError
from retrasyn.messages import Manifest
from retrasyn.randomness.entropy import Words, system_bytes

log = logging.getLogger(__name__)
_MOMENT = 200  # milliseconds before closing by which a report is made
Decision = Drawn | Answer | Refusal


@dataclass(frozen=True, slots=True)
class Told:
    """What a device did about a round, in words for its owner: no place, no bits, no name."""

    t: int
    words: str
    sent: bool = False

    def __str__(self) -> str:
        return f"round {self.t}: {self.words}"


@dataclass(slots=True)
class Loop:
    """Drives a reporter and a tracker by a clock."""

    server: Server
    reporter: Reporter = field(repr=False)
    manifest: Manifest
    id: bytes  # of the manifest
    fixes: Fixes = field(repr=False)
    clock: Clock = field(repr=False)
    words: Words = field(default=system_bytes, repr=False)
    _rounds: Rounds = field(init=False, repr=False)
    _tracker: Tracker = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rounds = Rounds(self.server, self.manifest, self.id, self.clock)
        self._tracker = Tracker(self.manifest, self.words)

    def run(self, rounds: int | None = None) -> Iterator[Told]:
        """Take part in rounds while the owner shares; one round more then says that it is over.

        Told to stop by the clock, it ends without one.
        """
        n, last, sharing = 0, -1, True
        while sharing:
            sharing = self.fixes.next_round() and (rounds is None or n < rounds)
            if not sharing and not n:
                return
            opened = self._rounds.after(last)
            told = None if opened is None else self._take_part(opened, sharing=sharing)
            if opened is None or told is None:
                return
            yield told
            n, last = n + 1, opened.t

    def _take_part(self, opened: Opened, *, sharing: bool) -> Told | None:
        """Do what is due in a round, at instants none of which depends on a place."""
        t, now = opened.t, self.clock.now()
        if sharing:  # presence; the place comes later
            self._tracker.observe(t, None, boot=now.boot)
        else:
            self._tracker.stop(t, boot=now.boot)
        decision = self._decide(opened)
        span = max(opened.close - now.wall, 1)
        sample_at = max(self._rounds.opening(t) + self.manifest.period * 500, now.wall)
        if isinstance(decision, Drawn):
            sample_at = max(min(decision.send_at, opened.close - min(_MOMENT, span // 4)), now.wall)
        elif isinstance(decision, Answer):
            sample_at = now.wall
        beat_at = now.wall + draw_word(self.words) % max(span * 3 // 4, 1)
        told = Told(t, decision.reason if isinstance(decision, Refusal) else "")
        settled = False
        if beat_at < sample_at:
            if not self.clock.wait_until(beat_at):
                return None
            settled = self._beat(opened, until=sample_at)
        if not self.clock.wait_until(sample_at):
            return None
        told = self._sample(opened, decision, sharing=sharing) or told
        if not settled and self.clock.wait_until(min(beat_at, opened.close)):
            self._beat(opened, until=opened.close)
        return told

    def _decide(self, opened: Opened) -> Decision:
        """Draw; a round of another campaign than the pinned one may end everything."""
        try:
            if self.manifest.sampling == "curator" and not any(
                self.server.asked(opened.t, [self.reporter.device])
            ):
                return Refusal(7, "not for this device")
        except ServerError as fault:
            return Refusal(7, f"nobody says whether it is for this device: {fault}")
        return self.reporter.draw(opened.envelope, self.clock.now(), self._tracker)

    def _sample(self, opened: Opened, decision: Decision, *, sharing: bool) -> Told | None:
        """Read the place, once; report it if the round is ours."""
        t, now = opened.t, self.clock.now()
        if sharing:
            fix = self.fixes.at(now.wall, period=self.manifest.period)
            self._tracker.observe(t, fix, boot=now.boot)
        if isinstance(decision, Refusal):
            return None
        answer: Answer | Refusal
        if isinstance(decision, Answer):
            answer = decision
        else:
            answer = self.reporter.report(opened.envelope, now, self._tracker)
        if isinstance(answer, Refusal):
            return Told(t, answer.reason)
        fate = self._send(f"report of round {t}", answer.frame, self._hear, until=opened.close)
        return Told(t, f"reported, {fate.status or 'nobody answered'}", sent=True)

    def _beat(self, opened: Opened, *, until: int) -> bool:
        """Say that this device shares, where that is counted; tell whether it is settled."""
        t, kind = opened.t, self._tracker.kind(opened.t)
        frame = heartbeat_of(self.manifest, self.id, self.reporter, kind=kind, t=t)
        if frame is None:
            return True
        return self._send(f"heartbeat of round {t}", frame, None, until=until).reaction != "resend"

    def _send(self, what: str, frame: bytes, hear: Hear | None, *, until: int) -> Fate:
        fate = send(self.server, frame, hear, self.clock, until=until, what=what)
        log.info("%s: %s", what, fate.status or "nobody answered")
        if fate.reaction == "enrol":
            self.reporter.quarantine("the curator does not know this device", self.clock.now())
            raise ServerError(
                f"{self.server.url} does not know this device any more; leave (retrasyn device "
                "leave), then enrol again with a new link"
            )
        return fate

    def _hear(self, ack: bytes) -> Reaction:
        return self.reporter.hear(ack, self.clock.now())
