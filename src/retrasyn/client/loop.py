"""The loop of one device: fetch a round, draw, wait for a fix, report, send until settled.

Everything privacy-critical is in `retrasyn.device`; this module only does timing and sending.
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
from retrasyn.wire.frames import decode_ack, encode_heartbeat
from retrasyn.wire.keys import CuratorKeys, follow
from retrasyn.wire.statuses import Reaction

log = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 100, 5_000  # milliseconds
Hear = Callable[[bytes, bytes], Reaction]
"""Returns the reaction to an acknowledgement of a frame."""
Keep = Callable[[CuratorKeys], None]
"""Stores the curator's keys, so that a restart knows them."""


@dataclass(frozen=True, slots=True)
class Fate:
    """Outcome of sending a frame: the last status received, and the device's reaction to it.

    A reaction that is still "resend" when time is up means that no final answer came in time.
    """

    status: str  # empty if there was no answer
    reaction: Reaction = "resend"


def send(
    server: CuratorClient,
    frame: bytes,
    hear: Hear,
    clock: LoopClock,
    *,
    until: int,
    what: str,
) -> Fate:
    """Send a frame, retrying with growing pauses, until it is settled or `until` has passed.

    `until` is in milliseconds since 1970. An answer that `hear` ignores is as good as none.
    """
    wait, fate, warned = _FIRST_WAIT, Fate(""), False
    while True:
        pause: float = wait
        try:
            answered = server.send(frame)
            status, reaction = decode_ack(answered.body).status, hear(answered.body, frame)
            if reaction == "ignore" and not warned:
                warned = True
                log.warning("%s: who answered (%s) cannot prove to be the curator", what, status)
            elif reaction != "ignore":
                fate = Fate(status, reaction)
                if reaction != "resend":
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
    """Return the heartbeat of a round, or None if the manifest requires none.

    With presence "count", a heartbeat says only that a device shares; with "flags", also whether
    it starts or stops; with "hidden", there are no heartbeats.
    """
    if kind == ABSENT or manifest.presence == "hidden":
        return None
    if manifest.presence == "count":
        if kind == QUITTING:
            return None
        kind = MOVING
    beat = Heartbeat(kind=kind, t=t, manifest=id_, device=reporter.device)
    return encode_heartbeat(beat, reporter.key)


_MOMENT = 200  # milliseconds before closing at which a report must be made
Decision = Drawn | Answer | Refusal
Step = Callable[["_Part", int], None]
"""An action within a round, called with the deadline for completing it."""


@dataclass(frozen=True, slots=True)
class Told:
    """Summary of a round for the device's owner, without position, bits or name."""

    t: int
    words: str
    sent: bool = False

    def __str__(self) -> str:
        name = f"round {self.t}"
        return self.words if self.words.startswith(f"{name} ") else f"{name}: {self.words}"


@dataclass(slots=True)
class _Part:
    """State of a device within one round."""

    opened: Opened
    decision: Decision
    _: KW_ONLY
    sharing: bool
    settled: bool = False  # whether the heartbeat is settled
    told: Told = field(init=False)

    def __post_init__(self) -> None:
        self.told = Told(self.opened.t, "")


@dataclass(slots=True)
class Loop:
    """Runs a reporter and a tracker through the rounds of a campaign."""

    server: CuratorClient
    reporter: Reporter = field(repr=False)
    manifest: Manifest
    id: bytes  # manifest id
    fixes: FixSource = field(repr=False)
    clock: LoopClock = field(repr=False)
    words: Words = field(default=system_bytes, repr=False)
    keep: Keep = field(default=lambda _keys: None, repr=False)
    _rounds: RoundFollower = field(init=False, repr=False)
    _tracker: Tracker = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rounds = RoundFollower(
            self.server, self.manifest, self.id, self.clock, self.reporter.trusts
        )
        self._tracker = Tracker(self.manifest, self.words)

    def run(self, rounds: int | None = None) -> Iterator[Told]:
        """Take part in rounds while the owner shares, and in one more to announce the end.

        With hidden presence, absent devices send null reports, so the loop continues after sharing
        ends until `rounds` is reached. It ends at once if the clock is stopped.
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
        """Carry out a round's actions, at instants that do not depend on the position."""
        now = self.clock.now()
        if sharing:  # presence only; the position comes later
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
        """Return the actions of a round with their instants.

        The position is read in the middle of the round, or earlier at the drawn instant. So the
        time between two readings exceeds that between their rounds by at most half a period, and
        a ledger that rounds uptime to whole rounds agrees with one that counts rounds.
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
        """Draw whether to report; a round of another campaign may end the loop."""
        try:
            if self.manifest.sampling == "curator" and not any(
                self.server.asked(opened.t, [self.reporter.device])
            ):
                return Refusal(7, "not for this device")
        except ServerError as fault:
            return Refusal(7, f"nobody says whether it is for this device: {fault}")
        drawn = self.reporter.draw(opened.envelope, self.clock.now(), self._tracker)
        if isinstance(drawn, Refusal) and drawn.rule == 1 and self._follow():
            return self.reporter.draw(opened.envelope, self.clock.now(), self._tracker)
        return drawn

    def _follow(self) -> bool:
        """Look whether the curator has a new key, signed by the one known; True if it has."""
        known = self.reporter.curator or CuratorKeys(self.manifest.key)
        try:
            newest, _ = follow(known, self.server.keys(), self.reporter.verify)
        except (ServerError, WireError) as fault:
            log.warning("no new key of the curator: %s", fault)
            return False
        if newest == known:
            return False
        self.keep(newest)
        self.reporter.curator = newest
        log.warning("the curator has a new key, signed by the one before")
        return True

    def _sample(self, part: _Part, _until: int) -> None:
        """Read the position once, and make the report if this device was drawn."""
        now = self.clock.now()
        if part.sharing:
            fix = self.fixes.at(now.wall, period=self.manifest.period)
            self._tracker.observe(part.opened.t, fix, boot=now.boot)
        if isinstance(part.decision, Drawn):
            part.decision = self.reporter.report(part.opened.envelope, now, self._tracker)

    def _report(self, part: _Part, _until: int) -> None:
        """Send the report, made now or before a restart, and record the outcome."""
        t = part.opened.t
        if isinstance(part.decision, Refusal):
            part.told = Told(t, part.decision.reason)
        elif isinstance(part.decision, Answer):
            what, close = f"report of round {t}", part.opened.close
            fate = self._send(what, part.decision.frame, until=close)
            part.told = Told(t, f"reported, {fate.status or 'nobody answered'}", sent=True)

    def _beat(self, part: _Part, until: int) -> None:
        """Send the heartbeat, if the campaign counts presence."""
        t, kind = part.opened.t, self._tracker.kind(part.opened.t)
        frame = heartbeat_of(self.manifest, self.id, self.reporter, kind=kind, t=t)
        fate = None
        if frame is not None:
            fate = self._send(f"heartbeat of round {t}", frame, until=until)
        part.settled = fate is None or fate.reaction != "resend"

    def _send(self, what: str, frame: bytes, *, until: int) -> Fate:
        fate = send(self.server, frame, self._hear, self.clock, until=until, what=what)
        log.info("%s: %s", what, fate.status or "nobody answered")
        if fate.reaction == "enrol":
            raise ServerError(
                f"{self.server.url} does not know this device any more; leave (retrasyn device "
                "leave --force), then enrol again with a new link"
            )
        return fate

    def _hear(self, ack: bytes, frame: bytes) -> Reaction:
        return self.reporter.hear(ack, frame, self.clock.now())
