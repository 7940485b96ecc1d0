"""Turns a round into report bytes or a reasoned refusal; does no input or output.

Of the eleven device rules, 1 to 8 are in `rules.py` and 9 to 11 are here.
"""

from dataclasses import InitVar, dataclass, field, replace
from typing import Protocol

from retrasyn.device import rules
from retrasyn.device.clock import Instant
from retrasyn.device.ledger import MILLI, LedgerEntry, kept
from retrasyn.device.memory import REASONS, Head, LedgerStore, MemoryCache
from retrasyn.device.rules import Case, Sampling, draw_lots, draw_word
from retrasyn.errors import WireError
from retrasyn.messages import Manifest, Question, Report
from retrasyn.oracles.registry import row_for
from retrasyn.randomness.words import Words, system_bytes
from retrasyn.wire.canonical import unseal
from retrasyn.wire.frames import (
    MIN_KEY_BYTES,
    acked_part,
    decode_ack,
    encode_report,
    is_tagged,
    n_answers,
    question_code,
)
from retrasyn.wire.keys import CuratorKeys, Verify
from retrasyn.wire.layout import DEVICE_BYTES, TAG_BYTES
from retrasyn.wire.statuses import REACTIONS, Reaction
from retrasyn.wire.texts import decode_manifest, decode_round, round_hash


class Whereabouts(Protocol):
    """What a reporter needs to know from a tracker."""

    def kind(self, t: int) -> int:
        """Return whether the device enters, moves, quits or is absent."""
        ...  # pragma: no cover - a protocol has no body

    def sampled(self, t: int) -> int | None:
        """Return what the boot-time clock showed when the position of t was taken."""
        ...  # pragma: no cover - a protocol has no body

    def answer(self, question: Question, t: int) -> int:
        """Return the true answer at t, or -1."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a round gets no answer: the number of the rule and what it found."""

    rule: int
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes to send at a given instant; they are stored, and identical whenever asked for."""

    frame: bytes = field(repr=False)
    send_at: int  # milliseconds since 1970


@dataclass(frozen=True, slots=True)
class Drawn:
    """The decision to answer a round, at an instant drawn before any position is read."""

    t: int
    send_at: int  # milliseconds since 1970
    question: Question = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """What owners may see of their own device."""

    campaign: str  # empty if no manifest is pinned
    quarantine: str  # why the device is silent; empty if it is not
    rounds_left: int  # of quarantine
    spent: int  # micro-nats, in all its life
    lifetime_cap: int  # micro-nats
    stopped: bool  # whether the cap leaves no room for another report


@dataclass(slots=True)
class Reporter:
    """One device. Its whole memory is in its store, and every report passes every rule."""

    device: bytes = field(repr=False)  # id, 16 bytes
    key: bytes = field(repr=False)  # agreed on with the curator at enrolment, for tags
    store: InitVar[LedgerStore]
    verify: Verify = field(repr=False)
    words: Words = field(default=system_bytes, repr=False)
    curator: CuratorKeys | None = None  # known from the link; otherwise the pinned manifest's key
    _cache: MemoryCache = field(init=False, repr=False)
    _drawn: tuple[Drawn, bytes] | None = field(default=None, init=False, repr=False)

    def __post_init__(self, store: LedgerStore) -> None:
        if len(self.device) != DEVICE_BYTES or len(self.key) < MIN_KEY_BYTES:
            raise WireError(
                f"a device id has {DEVICE_BYTES} bytes and a key at least {MIN_KEY_BYTES}, not "
                f"{len(self.device)} and {len(self.key)}; draw both at random"
            )
        self._cache = MemoryCache(store)

    def pin(self, envelope: bytes, now: Instant) -> Manifest:
        """Pin a manifest the owner has agreed to.

        A new one means quarantine, until the longer of both windows has passed. Pinning the same
        manifest again changes nothing. A campaign that was pinned keeps its public map.
        """
        text, signature = unseal(envelope)
        manifest = decode_manifest(text)
        curator, seconds = self.curator or CuratorKeys(manifest.key), now.wall // MILLI
        if not curator.signed("manifest", text, signature, verify=self.verify, now=seconds):
            raise WireError(
                f"manifest {manifest.name!r} is not signed by the curator's key; refuse it"
            )
        if text != self._cache.remember(now).pinned:
            if reason := rules.check_map(self._cache.pinned, manifest):
                raise WireError(reason)
            self._cache.silence(text, now, reason=REASONS[self._cache.lost])
        return manifest

    def quarantine(self, reason: str, now: Instant) -> None:
        """Stop reporting for a window, for instance because the device has to enrol again."""
        text = self._cache.remember(now).pinned
        if self._cache.pinned is not None:
            self._cache.silence(text, now, reason=reason)

    def trusts(self, kind: str, text: bytes, signature: bytes, now: Instant) -> bool:
        """Tell whether the curator signed something, by the keys that this device knows."""
        self._cache.remember(now)
        curator, pinned = self.curator, self._cache.pinned
        if curator is None and pinned is not None:
            curator = CuratorKeys(pinned.manifest.key)
        return curator is not None and curator.signed(
            kind, text, signature, verify=self.verify, now=now.wall // MILLI
        )

    def hear(self, ack: bytes, frame: bytes, now: Instant) -> Reaction:
        """Return how to react to an acknowledgement of a frame; one not proven is ignored."""
        heard = decode_ack(ack)
        if len(heard.proof) == TAG_BYTES:
            proven = is_tagged(heard, frame, self.key)
        else:  # the curator shares no key with a device it does not know
            proven = self.trusts("ack", acked_part(heard.status, frame), heard.proof, now)
        if not proven:
            return "ignore"
        reaction = REACTIONS[heard.status]
        if reaction == "enrol":
            self.quarantine("the curator does not know this device", now)
        return reaction

    def status(self, now: Instant) -> DeviceStatus:
        """Return what the owner may see."""
        memory, pinned = self._cache.remember(now), self._cache.pinned
        left = 0 if pinned is None else rules.quarantine_left(memory, pinned, pinned.round_at(now))
        return DeviceStatus(
            campaign="" if pinned is None else pinned.manifest.name,
            quarantine=memory.quarantine.reason if left else "",
            rounds_left=left,
            spent=memory.spent,
            lifetime_cap=0 if pinned is None else pinned.manifest.lifetime_cap,
            stopped=pinned is not None and rules.has_stopped(memory, pinned.manifest),
        )

    def answer(self, envelope: bytes, now: Instant, whereabouts: Whereabouts) -> Answer | Refusal:
        """Draw and report at once, if the position is already known."""
        drawn = self.draw(envelope, now, whereabouts)
        return self.report(envelope, now, whereabouts) if isinstance(drawn, Drawn) else drawn

    def draw(
        self, envelope: bytes, now: Instant, whereabouts: Whereabouts
    ) -> Drawn | Answer | Refusal:
        """Decide on a round by rules 1 to 7; reads presence but no position."""
        case = self._open(envelope, now)
        if not isinstance(case, Case):
            return case
        for number, rule in rules.BEFORE_DECIDING:
            if reason := rule(case):
                return Refusal(number, reason)
        return self._decide(case, whereabouts.kind(case.asked.t))

    def report(self, envelope: bytes, now: Instant, whereabouts: Whereabouts) -> Answer | Refusal:
        """Answer the round that was drawn by rules 8 to 11, at its send instant or before."""
        case = self._open(envelope, now)
        if not isinstance(case, Case):
            return case
        if self._drawn is None or self._drawn[1] != case.digest:
            return Refusal(5, f"round {case.asked.t} was not drawn since this device started")
        drawn, _ = self._drawn
        self._drawn = None
        wish = rules.wish_for(case, drawn.question, _sampled(case, whereabouts))
        if reason := rules.check_budget(case, wish):
            return Refusal(8, reason)
        return Answer(self._make(case, wish, drawn.question, whereabouts), drawn.send_at)

    def _open(self, envelope: bytes, now: Instant) -> Case | Answer | Refusal:
        """Verify and read a round by rules 1 to 3; what was made before is sent again (4)."""
        memory, pinned = self._cache.remember(now), self._cache.pinned
        if pinned is None:
            why = REASONS[self._cache.lost]
            return Refusal(1, f"no manifest is pinned ({why}); show it to the owner and pin it")
        try:
            text, signature = unseal(envelope)
            if not self.trusts("round", text, signature, now):
                return Refusal(1, "the round is not signed by the curator's key")
            asked = decode_round(text)
        except WireError as fault:
            return Refusal(1, str(fault))
        case = Case(pinned=pinned, asked=asked, digest=round_hash(text), memory=memory, now=now)
        for number, rule in rules.BEFORE_RESENDING:
            if reason := rule(case):
                return Refusal(number, reason)
        return Answer(memory.frame, now.wall) if rules.made_before(case) else case

    def _decide(self, case: Case, kind: int) -> Drawn | Refusal:
        """Rule 7: phase or coin, decided and stored before any position is read."""
        t, memory = case.asked.t, case.memory
        lots = memory.lots or draw_lots(self.words)
        sampling = Sampling(case.manifest, lots)
        chosen = sampling.chosen(case.asked, self.words)
        question = sampling.question(kind, self.words)
        span = case.asked.close * MILLI - case.now.wall
        send_at = case.now.wall + draw_word(self.words) % span
        head = Head(manifest=case.pinned.id, t=t, digest=case.digest)
        self._drawn = None
        self._cache.save(replace(memory, lots=lots, heads=memory.with_head(head)))
        if not chosen:
            return Refusal(7, f"round {t} is not for this device")
        if question is None:
            return Refusal(7, f"round {t} asks nothing of this device now")
        drawn = Drawn(t, send_at, question)
        self._drawn = drawn, case.digest
        return drawn

    def _make(
        self, case: Case, wish: LedgerEntry, question: Question, whereabouts: Whereabouts
    ) -> bytes:
        """Rules 9 to 11: perturb the state and store entry and bytes, once for each t."""
        manifest, memory = case.manifest, case.memory
        n = n_answers(question, manifest)
        row, truth = row_for(question, manifest.oracle), whereabouts.answer(question, wish.t)
        report = Report(
            question=question_code(question, manifest),
            n_answers=n,
            t=wish.t,
            epsilon=wish.epsilon,
            manifest=case.pinned.id,
            device=self.device,
            bits=row.report(truth, n, epsilon=wish.epsilon, words=self.words),
        )
        frame = encode_report(report, self.key, oracle=manifest.oracle)
        furthest = replace(wish, lookback=max((1, *manifest.ages)))
        entries = (*kept(memory.entries, furthest), wish)
        total = memory.spent + wish.epsilon
        self._cache.save(replace(memory, entries=entries, frame=frame, spent=total))
        return frame


def _sampled(case: Case, whereabouts: Whereabouts) -> int:
    """Return what the odometer showed when the position was taken; now, if none was."""
    boot = whereabouts.sampled(case.asked.t)
    if boot is None or boot > case.now.boot:
        return case.uptime
    return max(case.uptime - (case.now.boot - boot), 0)
