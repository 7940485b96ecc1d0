"""A malicious curator against one device: attacks on real reporters and ledgers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from retrasyn.device import Answer, Instant, MemoryStore, Reporter, Tracker
from retrasyn.messages import MICRO, Manifest, Question, Round
from retrasyn.oracles.threshold import WORD, noise_threshold
from retrasyn.wire import decode_report, encode_manifest, encode_round, manifest_id, round_hash
from retrasyn.wire.canonical import seal
from retrasyn.wire.frames import question_of

Trouble = Literal["none", "restart", "wipe", "another campaign"]
FIRST_AT = 2
"""The real round at the window's first position; the two before it are known to the curator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a timestamp's round that the curator may send."""

    share: Fraction = Fraction(1)  # of the manifest's epsilon
    grace: int = 5


HONEST = Version()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The curator's move in one real round."""

    sends: tuple[Version, ...] = ()
    shift: int = 0  # rounds by which the device's wall clock runs ahead
    trouble: Trouble = "none"  # what happens to the device before the rounds are sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A named attack, and its move in each real round, given the window."""

    name: str
    about: str
    move: Callable[[int, int], Move]
    role: Literal["cell", "faster"] | None = None  # what is reported in place of the transition


def _every_round(*sends: Version) -> Callable[[int, int], Move]:
    """Send the same versions in every round whose state depends on the window."""
    return lambda real, window: Move(sends=sends * _depends(real, window))


def _edges(real: int, window: int) -> Move:
    return Move(sends=(HONEST,) * (real in (FIRST_AT, FIRST_AT + window)))


def _inside(real: int, window: int) -> Move:
    """Ask in every round whose cell is in the window."""
    return Move(sends=(HONEST,) * (FIRST_AT <= real < FIRST_AT + window))


def _small_coin(real: int, window: int) -> Move:
    return Move(sends=(Version(share=Fraction(1, window)),) * _depends(real, window))


def _clock(real: int, window: int) -> Move:
    ahead = (window + 2) * max(real - FIRST_AT, 0)
    return Move(sends=(HONEST,) * _depends(real, window), shift=ahead)


def _after(trouble: Trouble) -> Callable[[int, int], Move]:
    """Cause trouble once the device has reported, and keep asking."""

    def move(real: int, window: int) -> Move:
        happens = trouble if real == FIRST_AT + 1 else "none"
        return Move(sends=(HONEST,) * _depends(real, window), trouble=happens)

    return move


def _depends(real: int, window: int) -> bool:
    """Tell whether the state of a real round depends on the window; w + 1 of them do."""
    return FIRST_AT <= real <= FIRST_AT + window


_TOO_MUCH = Version(share=Fraction(2))
_OTHERWISE = Version(grace=6)
ATTACKS = (
    Attack(name="edges", about="asks at both ends of the window", move=_edges),
    Attack(name="always", about="asks in every round", move=_every_round(HONEST)),
    Attack(name="cells", about="asks for the cell in every round", move=_inside, role="cell"),
    Attack(
        name="speeds",
        about="asks in every round how far it moved",
        move=_every_round(HONEST),
        role="faster",
    ),
    Attack(name="repeats", about="sends every round twice", move=_every_round(HONEST, HONEST)),
    Attack(name="versions", about="sends two versions", move=_every_round(HONEST, _OTHERWISE)),
    Attack(name="ceiling", about="tries twice epsilon", move=_every_round(_TOO_MUCH, HONEST)),
    Attack(name="small coin", about="asks for a part of epsilon each time", move=_small_coin),
    Attack(name="clock", about="sets the wall clock forward by windows", move=_clock),
    Attack(name="restart", about="restarts the device", move=_after("restart")),
    Attack(name="wipe", about="wipes the ledger", move=_after("wipe")),
    Attack(name="campaign", about="begins another campaign", move=_after("another campaign")),
)


_SIDE = 3
_PERIOD = 60
_KNOWN, _ONE, _OTHER = (0.5, 0.5), (1.5, 0.5), (1.5, 1.5)  # neighbours of one another
_BETWEEN = 400
"""Thousandths of the box's side: farther than from the known place to one, nearer than to other."""
_DEVICE, _KEY = bytes(16), bytes(32)
_SIGNATURE = bytes(64)  # the curator owns the key, so signatures do not constrain it


@dataclass(slots=True)
class Run:
    """What one run revealed about a device."""

    score: float = 0.0  # log-likelihood ratio of the first person to the second
    reports: int = 0
    spent: int = 0  # micro-nats


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One real round as seen by a device."""

    real: int
    t: int  # by its own wall clock
    now: Instant
    sends: tuple[Version, ...]
    trouble: Trouble


class LyingCampaign:
    """A manifest and the chain of its rounds, as the malicious curator sends them."""

    def __init__(self, manifest: Manifest) -> None:
        text = encode_manifest(manifest)
        self.manifest = manifest
        self.envelope = seal(text, _SIGNATURE)
        self._id = manifest_id(text)
        self._previous = round_hash(text)

    def put(self, t: int, sends: tuple[Version, ...]) -> Iterator[bytes]:
        """Yield the versions of a round; the chain continues from the one a device would accept."""
        taken = HONEST if HONEST in sends else sends[0] if sends else None
        before = self._previous
        for version in sends:
            text = encode_round(self._round(t, version, before))
            if version == taken:
                self._previous = round_hash(text)
            yield seal(text, _SIGNATURE)

    def _round(self, t: int, version: Version, previous: bytes) -> Round:
        opens = self.manifest.epoch + t * self.manifest.period
        return Round(
            manifest=self._id,
            t=t,
            open=opens,
            close=opens + self.manifest.period,
            grace=version.grace,
            epsilon=int(self.manifest.epsilon * version.share),
            portion=WORD,
            previous=previous,
        )


@dataclass(slots=True)
class Game:
    """One attack, and everything that is the same in all its runs."""

    manifest: Manifest
    attack: Attack
    moments: tuple[Moment, ...] = field(init=False)
    answers: dict[Question, tuple[list[int], list[int]]] = field(init=False)
    """What each person would truly say, by real round."""
    prepared: MemoryStore = field(init=False)  # of a device whose initial quarantine is over

    def __post_init__(self) -> None:
        if self.attack.role is not None:  # all but one in a million devices have this role
            self.manifest = _in_role(self.manifest, self.attack.role)
        self.moments = tuple(self._moments())
        self.answers = {
            question: (self._answers_of(0, question), self._answers_of(1, question))
            for question in self.manifest.questions
        }
        self.prepared = MemoryStore()
        _reporter(self.prepared).pin(LyingCampaign(self.manifest).envelope, Instant(wall=0, boot=0))

    def run(self, person: int) -> Run:
        """Attack a fresh device that belongs to one of the two persons."""
        campaign, run = LyingCampaign(self.manifest), Run()
        store = MemoryStore(self.prepared.memory)
        reporter, tracker = _reporter(store), Tracker(self.manifest)
        for moment in self.moments:
            if moment.trouble != "none":
                store = MemoryStore() if moment.trouble == "wipe" else store
                reporter, tracker = _reporter(store), Tracker(self.manifest)
            if moment.trouble in ("wipe", "another campaign"):
                other = moment.trouble == "another campaign"
                campaign = LyingCampaign(
                    replace(self.manifest, name="another") if other else self.manifest
                )
                reporter.pin(campaign.envelope, moment.now)
            tracker.observe(moment.t, self._place(person, moment.real), boot=moment.now.boot)
            frames = set()
            for envelope in campaign.put(moment.t, moment.sends):
                answer = reporter.answer(envelope, moment.now, tracker)
                if isinstance(answer, Answer):
                    frames.add(answer.frame)  # the same bytes again reveal nothing new
            for frame in frames:
                self._score(frame, moment.real, run)
        return run

    def _score(self, frame: bytes, real: int, run: Run) -> None:
        """Add the log-likelihood ratio of one report."""
        report = decode_report(frame, _KEY, oracle=self.manifest.oracle)
        question = question_of(report.question, self.manifest)
        first, second = (
            _supports(report.bits, answers[real], question) for answers in self.answers[question]
        )
        noise = noise_threshold(report.epsilon)
        run.score += math.log((WORD - noise) / noise) * (first - second)
        run.reports += 1
        run.spent += report.epsilon

    def _moments(self) -> Iterator[Moment]:
        """Yield the rounds of a run; real time advances whatever the wall clock says."""
        window = self.manifest.window
        start = window + 2  # the initial quarantine is over
        booted = 0
        for real in range(FIRST_AT + window + 2):
            move = self.attack.move(real, window)
            booted = start + real if move.trouble == "restart" else booted
            t = start + real + move.shift
            yield Moment(
                real=real,
                t=t,
                now=Instant(wall=_milliseconds(t), boot=_milliseconds(start + real - booted)),
                sends=move.sends,
                trouble=move.trouble,
            )

    def _answers_of(self, person: int, question: Question) -> list[int]:
        """Return a person's true answer in each real round; the curator knows both candidates."""
        tracker, answers = Tracker(self.manifest), []
        for moment in self.moments:
            if moment.trouble != "none":
                tracker = Tracker(self.manifest)
            tracker.observe(moment.t, self._place(person, moment.real), boot=moment.now.boot)
            answers.append(tracker.answer(question, moment.t))
        return answers

    def _place(self, person: int, real: int) -> tuple[float, float]:
        if FIRST_AT <= real < FIRST_AT + self.manifest.window:
            return (_ONE, _OTHER)[person]
        return _KNOWN


def manifest_of(unit: Literal["position", "transition"], *, window: int, epsilon: int) -> Manifest:
    """Return the manifest of an audited campaign."""
    return Manifest(
        name="audited",
        key=bytes(32),
        box=(0, 0, _SIDE * MICRO, _SIDE * MICRO),
        side=_SIDE,
        state_order=1,
        n_states=(3 * _SIDE - 2) ** 2 + 2 * _SIDE**2,
        period=_PERIOD,
        epoch=0,
        window=window,
        unit=unit,
        gap=window + (unit == "position"),
        epsilon=epsilon,
        division="budget",
        sampling="curator",
        oracle="oue",
        presence="count",
        jump="clamp",
        size_source="counted",
        strata=("transition",),
        other_shares=(),
        ages=(),
        lifetime_cap=1000 * epsilon,
        retention=0,
    )


def _in_role(manifest: Manifest, role: Literal["cell", "faster"]) -> Manifest:
    """Return the manifest of devices that report something in place of their transition."""
    manifest = replace(manifest, strata=("transition", role), other_shares=(MICRO - 1,))
    if role == "cell":
        return manifest
    return replace(manifest, speeds=(_BETWEEN,), public_map=bytes(32))


def _supports(bits: bytes, answer: int, question: Question) -> int:
    """Return 1 if a report speaks for an answer, else 0."""
    number = int.from_bytes(bits, "little")
    if question.binary:
        return number if answer == 0 else 1 - number
    return number >> answer & 1


def _reporter(store: MemoryStore) -> Reporter:
    return Reporter(device=_DEVICE, key=_KEY, store=store, verify=lambda *_: True)


def _milliseconds(rounds: int) -> int:
    return rounds * _PERIOD * 1000 + 1
