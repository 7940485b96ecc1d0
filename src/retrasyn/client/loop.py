"""The loop of one device: fetch a round, draw, wait for a fix, report, send until settled.

All that protects its owner stands in `retrasyn.device`; here are only clocks, waiting and sending.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise

from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.fixes import FixSource
from retrasyn.client.rounds import LoopClock, Opened, RoundFollower
from retrasyn.device import Answer, Drawn, Refusal, Reporter, Tracker
from retrasyn.device.rules import draw_word
from retrasyn.errors import ServerError, WireError
from retrasyn.messages import ABSENT, MOVING, QUITTING, Heartbeat, Manifest
from retrasyn.randomness.words import Words, system_bytes
from retrasyn.wire.frames import decode_ack, encode_heartbeat, report_digest
from retrasyn.wire.statuses import REACTIONS, Reaction

log = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 100, 5_000  # milliseconds
Hear = Callable[[bytes], Reaction]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a frame: the last status heard, and what a device does about it.

    What is still to be sent again when there is no time left was not heard in time.
    """

    status: str  # empty if nobody answered
    reaction: Reaction = "resend"


def send(
    server: CuratorClient,
    frame: bytes,
    hear: Hear | None,
    clock: LoopClock,
    *,
    until: int,
    what: str,
) -> Fate:
    """Send the same bytes again, with growing pauses, until they are settled or `until` is past.

    `until` has milliseconds since 1970. Frames without a listener are judged by their status alone.
    """
    wait, fate = _FIRST_WAIT, Fate("")
    while True:
        pause: float = wait
        try:
            answered = server.send(frame)
            ack = decode_ack(answered.body)
            if ack.digest == report_digest(frame):
                fate = Fate(
                    ack.status, REACTIONS[ack.status] if hear is None else hear(answered.body)
                )
                if fate.reaction != "resend":
                    return fate
            if answered.retry_after is not None:
                pause = max(wait, answered.retry_after * 1000)
        except (ServerError, WireError) as fault:
            log.info("%s not sent yet: %s", what, fault)
        wait = min(2 * wait, _LONGEST_WAIT)
        again = clock.now().wall + pause
        if again >= until or not clock.wait_until(again):
            return fate


def heartbeat_of(
    manifest: Manifest, id_: bytes, reporter: Reporter, *, kind: int, t: int
) -> bytes | None:
    """Return the heartbeat of a round, None where the manifest wants none.

    Where presence is counted, those who share say so, and no more; where it is flagged, also
    whether they start or stop; where it is hidden, nobody says anything.
    """
    if kind == ABSENT or manifest.presence == "hidden":
        return None
    if manifest.presence == "count":
        if kind == QUITTING:
            return None
        kind = MOVING
    beat = Heartbeat(kind=kind, t=t, manifest=id_, device=reporter.device)
    return encode_heartbeat(beat, reporter.key)


_MOMENT = 200  # milliseconds before closing by which a report is made
Decision = Drawn | Answer | Refusal
Step = Callable[["_Part", int], None]
"""Does one thing in a round, and must be done with it by an instant."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a device did about a round, in words for its owner: no place, no bits, no name."""

    t: int
    words: str
    sent: bool = False

    def __str__(self) -> str:
        name = f"round {self.t}"
        return self.words if self.words.startswith(f"{name} ") else f"{name}: {self.words}"


@dataclass(slots=True)
class _Part:
    """What a device does in one round."""

    opened: Opened
    decision: Decision
    _: KW_ONLY
    sharing: bool
    settled: bool = False  # whether the heartbeat needs no further care
    told: Told = field(init=False)

    def __post_init__(self) -> None:
        self.told = Told(self.opened.t, "")


@dataclass(slots=True)
class Loop:
    """Drives a reporter and a tracker by a clock."""

    server: CuratorClient
    reporter: Reporter = field(repr=False)
    manifest: Manifest
    id: bytes  # of the manifest
    fixes: FixSource = field(repr=False)
    clock: LoopClock = field(repr=False)
    words: Words = field(default=system_bytes, repr=False)
    _rounds: RoundFollower = field(init=False, repr=False)
    _tracker: Tracker = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rounds = RoundFollower(self.server, self.manifest, self.id, self.clock)
        self._tracker = Tracker(self.manifest, self.words)

    def run(self, rounds: int | None = None) -> Iterator[Told]:
        """Take part in rounds while the owner shares; one round more then says that it is over.

        Where presence is hidden, the absent report null: so it goes on when sharing has ended, for
        as many rounds as are asked for. Told to stop by the clock, it ends at once.
        """
        n, last, over = 0, -1, False
        while not over:
            wanted = rounds is None or n < rounds
            sharing = wanted and self.fixes.next_round()
            over = not (sharing or (wanted and self.manifest.presence == "hidden"))
            if over and not n:
                return
            opened = self._rounds.after(last)
            told = None if opened is None else self._take_part(opened, sharing=sharing)
            if opened is None or told is None:
                return
            yield told
            n, last = n + 1, opened.t

    def _take_part(self, opened: Opened, *, sharing: bool) -> Told | None:
        """Do what is due in a round, at instants none of which depends on a place."""
        now = self.clock.now()
        if sharing:  # presence; the place comes later
            self._tracker.observe(opened.t, None, boot=now.boot)
        else:
            self._tracker.stop(opened.t, boot=now.boot)
        part = _Part(opened, self._decide(opened), sharing=sharing)
        due = self._due(part, now.wall)
        for (instant, step), (following, _) in pairwise([*due, (opened.close, self._beat)]):
            if not self.clock.wait_until(instant):
                return None
            step(part, following)
        if not part.settled:
            self._beat(part, opened.close)
        return part.told

    def _due(self, part: _Part, now: int) -> list[tuple[int, Step]]:
        """Return what is to be done when.

        The place is read in the middle of the round, or at the drawn instant if that is before.
        So two readings never lie further apart than rounds do and half a period, and a ledger that
        counts uptime in whole rounds, to the nearest, agrees with one that counts rounds.
        """
        close, span = part.opened.close, max(part.opened.close - now, 1)
        middle = self._rounds.opening(part.opened.t) + self.manifest.period * 500
        send_at = now
        if isinstance(part.decision, Drawn):
            send_at = min(part.decision.send_at, close - min(_MOMENT, span // 4))
        drawn = isinstance(part.decision, Drawn)
        sample_at = max(min(middle, send_at) if drawn else middle, now)
        beat_at = now + draw_word(self.words) % max(span * 3 // 4, 1)
        steps: list[tuple[int, Step]] = [
            (sample_at, self._sample),
            (max(send_at, sample_at) if drawn else now, self._report),
            (beat_at, self._beat),
        ]
        return sorted(steps, key=lambda step: step[0])

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

    def _sample(self, part: _Part, _until: int) -> None:
        """Read the place, once; make the report if the round is ours."""
        now = self.clock.now()
        if part.sharing:
            fix = self.fixes.at(now.wall, period=self.manifest.period)
            self._tracker.observe(part.opened.t, fix, boot=now.boot)
        if isinstance(part.decision, Drawn):
            part.decision = self.reporter.report(part.opened.envelope, now, self._tracker)

    def _report(self, part: _Part, _until: int) -> None:
        """Send what was made, now or before a restart, and say what became of it."""
        t = part.opened.t
        if isinstance(part.decision, Refusal):
            part.told = Told(t, part.decision.reason)
        elif isinstance(part.decision, Answer):
            what, close = f"report of round {t}", part.opened.close
            fate = self._send(what, part.decision.frame, self._hear, until=close)
            part.told = Told(t, f"reported, {fate.status or 'nobody answered'}", sent=True)

    def _beat(self, part: _Part, until: int) -> None:
        """Say that this device shares, where that is counted."""
        t, kind = part.opened.t, self._tracker.kind(part.opened.t)
        frame = heartbeat_of(self.manifest, self.id, self.reporter, kind=kind, t=t)
        fate = None
        if frame is not None:
            fate = self._send(f"heartbeat of round {t}", frame, None, until=until)
        part.settled = fate is None or fate.reaction != "resend"

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
