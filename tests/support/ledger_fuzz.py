"""One device in the hands of a malicious curator, a bad clock and a bad disk.

`play(seed)` lives through a few windows of mischief and returns everything that left the device.
`worst(life)` recounts it without reading any ledger: by round number, and by real time.
"""

import itertools
import random
from dataclasses import dataclass, field, replace
from typing import Any

from retrasyn.device import Answer, Instant, Reporter, Tracker
from retrasyn.device.memory import DeviceMemory, Lost, read_memory, write_memory
from retrasyn.device.store import Witness
from retrasyn.messages import MICRO, SPEEDS, Manifest
from retrasyn.wire import decode_report, encode_round
from retrasyn.wire.frames import question_of
from support.campaigns import DEVICE, DEVICE_KEY, EPOCH, Campaign, manifest_of, sign, verify

N_STEPS = 70
SPEED_ROLE: dict[str, Any] = {"speeds": SPEEDS, "public_map": bytes(32)}
TAP: list[bytes] = []
"""Where a seeded bug puts bytes that it sends before they are durable."""


class PowerCut(BaseException):
    """The device dies here."""


@dataclass
class Disk:
    """What survives a power cut: a row, and a witness beside it."""

    row: tuple[bytes, int, str] | None = None
    witness: Witness | None = None
    names: random.Random = field(default_factory=lambda: random.Random(0))
    cut_at: int = -1  # steps until the power fails: before the row, after it, after the witness

    def step(self) -> None:
        if self.cut_at == 0:
            self.cut_at = -1
            raise PowerCut
        self.cut_at -= self.cut_at > 0


@dataclass
class DiskStore:
    """The order of writes of the real store, without its files."""

    disk: Disk
    name: bytes = b""
    counter: int = 0

    def load(self) -> DeviceMemory | Lost:
        self.name = b""
        if self.disk.row is None:
            return Lost("missing")
        name, counter, text = self.disk.row
        if text == "damaged":
            return Lost("corrupt")
        memory = read_memory(text)
        witness = self.disk.witness
        if witness is None or not witness.vouches_for(name, counter):
            return Lost("rolled back", memory.spent)
        self.name, self.counter = name, counter
        self.disk.witness = Witness(name, counter)
        return memory

    def save(self, memory: DeviceMemory) -> None:
        self.disk.step()
        if not self.name:
            self.name, self.counter = self.disk.names.randbytes(16), 0
        self.counter += 1
        self.disk.row = self.name, self.counter, write_memory(memory)
        self.disk.step()
        self.disk.witness = Witness(self.name, self.counter)
        self.disk.step()


@dataclass(frozen=True)
class Sent:
    """One report that left the device, and what it read."""

    campaign: int
    life: int  # counts how often the ledger was lost
    t: int
    lookback: int
    epsilon: int
    first: float  # real milliseconds of the earliest and the latest position it read
    last: float


@dataclass
class Life:
    """The device, its surroundings, and what was sent."""

    random: random.Random
    campaigns: list[Campaign]
    disk: Disk = field(default_factory=Disk)
    real: float = 0.0
    wall_ahead: float = 0.0
    booted: float = 0.0
    pinned: int = 0
    lives: int = 0
    sent: list[Sent] = field(default_factory=list)
    frames: set[bytes] = field(default_factory=set)
    copies: list[tuple[bytes, int, str] | None] = field(default_factory=list)
    seen: list[tuple[int, float, float]] = field(default_factory=list)  # t, first and last read
    made: dict[bytes, tuple[int, float, float]] = field(default_factory=dict)  # not yet sent

    @property
    def now(self) -> Instant:
        wall = EPOCH * 1000 + self.real + self.wall_ahead
        return Instant(wall=int(wall), boot=int(self.real - self.booted))

    @property
    def campaign(self) -> Campaign:
        return self.campaigns[self.pinned]

    def own_t(self) -> int:
        manifest = self.campaign.manifest
        return (self.now.wall // 1000 - manifest.epoch) // manifest.period

    def start(self) -> None:
        """Start the process; the app pins the manifest again if the device has forgotten it."""
        self.disk.cut_at = -1
        self.reporter = Reporter(
            device=DEVICE,
            key=DEVICE_KEY,
            store=DiskStore(self.disk),
            verify=verify,
            words=self.random.randbytes,
        )
        self.pin()

    def pin(self) -> None:
        self.tracker = Tracker(self.campaign.manifest, words=self.random.randbytes)
        self.seen.clear()
        try:
            self.reporter.pin(self.campaign.envelope, self.now)
        except PowerCut:
            self.start()

    def observe(self) -> None:
        t = self.own_t()
        self.tracker.observe(
            t, (self.random.random() * 6, self.random.random() * 6), boot=self.now.boot
        )
        if self.tracker._t != t:
            return
        linked = self.tracker._before is not None and self.seen
        before = [entry for entry in self.seen if entry[0] < t]
        first = before[-1][2] if linked and before else self.real
        self.seen = [*before[-3:], (t, first, self.real)]

    def give(self, envelope: bytes) -> None:
        """Let the device answer, die in the middle of it, or both."""
        try:
            answer = self.reporter.answer(envelope, self.now, self.tracker)
        except PowerCut:
            self.keep_what_was_made()
            self.start()
            answer = None
        for frame in [*TAP, *([answer.frame] if isinstance(answer, Answer) else [])]:
            self.note(frame)
        TAP.clear()
        if isinstance(answer, Answer) and self.random.random() < 0.2:
            failed = getattr(self.reporter, "send_failed", None)
            if failed is not None:  # only a seeded bug reacts
                failed(self.now)

    def keep_what_was_made(self) -> None:
        """Remember what bytes read that are on disk and may be sent after the restart."""
        memory = None if self.disk.row is None else read_memory(self.disk.row[2])
        if memory is not None and memory.frame and memory.entries:
            read = self.read_at(memory.entries[-1].t)
            self.made.setdefault(memory.frame, read)

    def read_at(self, t: int) -> tuple[int, float, float]:
        return next((entry for entry in self.seen if entry[0] == t), (t, self.real, self.real))

    def note(self, frame: bytes) -> None:
        if frame in self.frames:
            return
        self.frames.add(frame)
        number = self.pinned
        manifest = self.campaigns[number].manifest
        report = decode_report(frame, DEVICE_KEY, oracle=manifest.oracle)
        lookback = question_of(report.question, manifest).lookback
        _, first, last = self.made.get(frame) or self.read_at(report.t)
        if lookback > 1:
            first = last - lookback * manifest.period * 1000
        self.sent.append(Sent(number, self.lives, report.t, lookback, report.epsilon, first, last))

    def forget(self) -> None:
        """Count one more life and start again: what was spent is not on disk any more."""
        self.lives += 1
        self.start()


def campaigns_of(dice: random.Random) -> list[Campaign]:
    """Return two campaigns of one device, both with one epsilon."""
    shapes = [
        {"strata": ("transition",)},
        {"strata": ("transition",), "unit": "transition"},
        {"strata": ("transition", "older"), "other_shares": (500_000,), "ages": (2, 4)},
        {"strata": ("move", "enter", "quit"), "presence": "flags"},
        {"strata": ("transition", "cell"), "other_shares": (500_000,)},
        {
            "strata": ("transition", "older", "cell"),
            "other_shares": (300_000, 400_000),
            "ages": (2, 4),
        },
        {"strata": ("transition", "faster"), "other_shares": (500_000,), **SPEED_ROLE},
        {
            "strata": ("transition", "older", "faster", "cell"),
            "other_shares": (200_000, 300_000, 200_000),
            "ages": (2, 4),
            **SPEED_ROLE,
        },
    ]
    made = []
    cap = dice.choice((1000, 1000, 5)) * MICRO
    for number in range(2):
        shape: dict[str, Any] = dict(dice.choice(shapes))
        manifest = manifest_of(
            name=f"campaign {number}",
            window=dice.randint(2, 4),
            period=dice.choice((60, 60, 90)),
            sampling=dice.choice(("phase", "self", "curator", "curator")),
            side=2,
            lifetime_cap=cap,
            **shape,
        )
        made.append(Campaign(manifest))
    return made


def play(seed: int, n_steps: int = N_STEPS) -> Life:
    """Live through some steps of mischief."""
    dice = random.Random(seed)
    life = Life(dice, campaigns_of(dice))
    life.real = 500 * 60_000.0 + dice.random() * 60_000
    life.start()
    moves, weights = list(MISCHIEF), list(MISCHIEF.values())
    for _ in range(n_steps):
        honest_round(life)
        if dice.random() < 0.35:
            dice.choices(moves, weights)[0](life)
    return life


def honest_round(life: Life) -> None:
    period = life.campaign.manifest.period * 1000
    life.real += period * (1 + life.random.uniform(-0.2, 0.2))
    if life.random.random() < 0.9:
        life.observe()
    epsilon = life.campaign.manifest.epsilon
    if life.random.random() < 0.3:
        epsilon //= life.random.randint(2, 4)
    life.give(life.campaign.ask(max(life.own_t(), 0), epsilon=epsilon))


def replay(life: Life) -> None:
    for envelope in life.random.sample(list(life.campaign.rounds.values()), 1):
        life.give(envelope)


def false_t(life: Life) -> None:
    """Ask for another round than the current one, or the current one once more, otherwise."""
    t = max(life.own_t() + life.random.randint(-3, 3), 0)
    asked = life.campaign.round_of(t, grace=life.random.randint(0, 9))
    life.give(sign("round", encode_round(asked)))


def false_epsilon(life: Life) -> None:
    life.real += life.campaign.manifest.period * 1000
    life.observe()
    t = max(life.own_t(), 0)
    epsilon = life.random.choice((2 * MICRO, 1_000_001, MICRO, 500_000))
    life.give(sign("round", encode_round(life.campaign.round_of(t, epsilon=epsilon))))


def false_window(life: Life) -> None:
    """Show rounds of a manifest with a shorter window, which nobody pinned."""
    shorter = Campaign(
        replace(
            life.campaign.manifest,
            window=1,
            gap=1 + (life.campaign.manifest.unit == "position"),
            ages=(),
            strata=("transition",),
            presence="count",
            other_shares=(),
            speeds=(),
            public_map=b"",
        )
    )
    life.give(shorter.ask(max(life.own_t(), 0)))


def clock_jump(life: Life) -> None:
    rounds = life.random.choice((-3, -1, -0.5, 0.4, 0.9, 1, 3, 5, 9))
    life.wall_ahead += rounds * life.campaign.manifest.period * 1000
    if life.random.random() < 0.7:
        life.observe()
    life.give(life.campaign.ask(max(life.own_t(), 0)))


def crash(life: Life) -> None:
    """Cut the power within the next answers, wherever that is."""
    life.disk.cut_at = life.random.randint(0, 6)


def restart(life: Life) -> None:
    life.start()


def wipe(life: Life) -> None:
    which = life.random.randint(0, 2)
    if which != 1:
        life.disk.row = None
    if which != 0:
        life.disk.witness = None
    life.forget()


def damage(life: Life) -> None:
    if life.disk.row is not None:
        life.disk.row = (*life.disk.row[:2], "damaged")
        life.forget()


def keep_copy(life: Life) -> None:
    life.copies.append(life.disk.row)


def roll_back(life: Life) -> None:
    if life.copies:
        old = life.random.choice(life.copies)
        if old != life.disk.row:
            life.disk.row = old
            life.forget()


def reboot(life: Life) -> None:
    life.real += life.random.choice((0, 5_000, 60_000, 600_000))
    life.booted = life.real
    life.real += life.random.choice((1_000, 30_000))
    life.start()


def change_campaign(life: Life) -> None:
    life.pinned = 1 - life.pinned
    life.pin()


MISCHIEF = {
    replay: 4,
    false_t: 4,
    false_epsilon: 4,
    false_window: 2,
    clock_jump: 6,
    crash: 4,
    restart: 1,
    wipe: 1,
    damage: 1,
    keep_copy: 4,
    roll_back: 3,
    reboot: 2,
    change_campaign: 1,
}


def overspent(life: Life) -> list[str]:
    """Return every window that holds more than epsilon, counted from what was sent alone."""
    faults = []
    for number, campaign in enumerate(life.campaigns):
        manifest = campaign.manifest
        own = [sent for sent in life.sent if sent.campaign == number]
        faults += _by_round(own, manifest) + _by_time(own, manifest)
    faults += _between(life.sent, [campaign.manifest for campaign in life.campaigns])
    spent = max(c.manifest.lifetime_cap for c in life.campaigns)
    for _, group in itertools.groupby(life.sent, key=lambda sent: sent.life):
        if sum(sent.epsilon for sent in group) > spent:
            faults.append("the lifetime cap")
    return faults


def _by_round(reports: list[Sent], manifest: Manifest) -> list[str]:
    """Count by round number. A wiped device cannot know old numbers: real time covers that."""
    faults = []
    unit = manifest.unit == "transition"
    for life in {sent.life for sent in reports}:
        own = [sent for sent in reports if sent.life == life]
        for first in {t for sent in own for t in range(sent.t - 12, sent.t + 1)}:
            last = first + manifest.window - 1
            total = sum(
                sent.epsilon
                for sent in own
                if first <= sent.t and last >= sent.t - sent.lookback + unit
            )
            if total > manifest.epsilon:
                faults.append(f"rounds {first}..{last} of life {life}: {total}")
    return faults


def _by_time(reports: list[Sent], manifest: Manifest) -> list[str]:
    """Count by real time: w positions, one period apart, span w - 1 periods."""
    if manifest.unit == "transition":
        return []
    faults = []
    span = (manifest.window - 1) * manifest.period * 1000
    for begin in {edge for sent in reports for edge in (sent.first, sent.last, sent.last - span)}:
        total = sum(
            sent.epsilon for sent in reports if sent.first <= begin + span and sent.last >= begin
        )
        if total > manifest.epsilon:
            faults.append(f"real time from {begin:.0f} ms: {total}")
    return faults


def _between(reports: list[Sent], manifests: list[Manifest]) -> list[str]:
    """Reports of two campaigns are as far apart as the longer of both windows.

    A device that lost its ledger in between knows the window of the later campaign only.
    """
    spans = [manifest.window * manifest.period * 1000 for manifest in manifests]
    return [
        f"campaigns {one.campaign} and {two.campaign}: {two.last - one.last:.0f} ms"
        for one, two in itertools.pairwise(reports)
        if one.campaign != two.campaign
        and two.last - one.last < (max(spans) if one.life == two.life else spans[two.campaign])
    ]
