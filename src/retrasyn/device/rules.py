"""Device rules 1 to 8: whether a round gets an answer, and which one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from retrasyn.device import ledger
from retrasyn.device.clock import Instant
from retrasyn.device.ledger import MILLI, LedgerEntry
from retrasyn.device.memory import DeviceMemory, Lots, Pinned
from retrasyn.messages import (
    ABSENT,
    ENTERING,
    MICRO,
    MOVING,
    QUITTING,
    Manifest,
    Question,
    Round,
    Topic,
)
from retrasyn.randomness.words import Words, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One round that a device has to decide on."""

    pinned: Pinned
    asked: Round
    digest: bytes  # hash of the round
    memory: DeviceMemory
    now: Instant

    @property
    def manifest(self) -> Manifest:
        """The pinned manifest."""
        return self.pinned.manifest

    @property
    def uptime(self) -> int:
        """The current reading of the odometer."""
        return self.memory.odometer.total


def check_map(pinned: Pinned | None, new: Manifest) -> str | None:
    """Before a manifest is pinned: the campaign of the pinned one keeps its public map."""
    if pinned is None:
        return None
    old = pinned.manifest
    same = (old.name, old.key, old.epoch) == (new.name, new.key, new.epoch)
    if same and old.public_map != new.public_map:
        return (
            f"manifest {new.name!r} names another public map than the pinned one; refuse it: a "
            "campaign with another map is a new one, with another name or epoch"
        )
    return None


def check_chain(case: Case) -> str | None:
    """Rule 1, after the signature: manifest id and chain."""
    asked, head = case.asked, case.memory.head_of(case.pinned.id)
    if asked.manifest != case.pinned.id:
        return "the round belongs to another manifest than the pinned one"
    if asked.t == 0 and asked.previous != case.pinned.digest:
        return "the first round does not follow from the manifest"
    if head is None:
        return None
    if asked.t == head.t and case.digest != head.digest:
        return f"there are two different rounds {asked.t}"
    if asked.t == head.t + 1 and asked.previous != head.digest:
        return f"round {asked.t} does not follow from round {head.t} as this device saw it"
    return None


def check_current(case: Case) -> str | None:
    """Rule 2: t is the device's own current round, and the round is open."""
    own = case.pinned.round_at(case.now)
    if case.asked.t != own:
        return f"round {case.asked.t} is not the current one by this device's clock, which is {own}"
    if case.now.wall >= case.asked.close * MILLI:
        return f"round {case.asked.t} is closed"
    return None


def check_as_pinned(case: Case) -> str | None:
    """Rule 3: epsilon within the pinned ceiling; instants as the pinned period has them.

    Window, gap and number of states are read from the pinned manifest and nowhere else.
    """
    asked, manifest = case.asked, case.manifest
    if asked.epsilon > manifest.epsilon:
        return (
            f"epsilon_t={asked.epsilon / MICRO:.9g} is above the pinned "
            f"epsilon={manifest.epsilon / MICRO:.9g}"
        )
    opens = manifest.epoch + asked.t * manifest.period
    if asked.open != opens or asked.close > opens + manifest.period:
        return f"round {asked.t} opens or closes otherwise than the pinned period says"
    return None


def made_before(case: Case) -> bool:
    """Rule 4: an entry for t exists, so its bytes are sent again."""
    newest = case.memory.entries[-1:]
    return any((e.manifest, e.t) == (case.pinned.id, case.asked.t) for e in newest)


def check_newer(case: Case) -> str | None:
    """Rule 5: t is newer than any before, and no coin was flipped for it."""
    head = case.memory.head_of(case.pinned.id)
    if head is not None and case.asked.t <= head.t:
        return f"round {head.t} was decided on already; this device does not go back"
    return None


def quarantine_left(memory: DeviceMemory, pinned: Pinned, t: int) -> int:
    """Return the remaining rounds of quarantine, by round number or uptime, whichever is more."""
    quarantine = memory.quarantine
    round_time = pinned.manifest.period * MILLI
    by_uptime = (memory.odometer.total - quarantine.uptime) // round_time
    return max(quarantine.rounds - min(t - quarantine.t, by_uptime), 0)


def check_quarantine(case: Case) -> str | None:
    """Rule 6: quarantine is over."""
    left = quarantine_left(case.memory, case.pinned, case.asked.t)
    if not left:
        return None
    return f"quarantine ({case.memory.quarantine.reason}), rounds left: {left}"


BEFORE_RESENDING: tuple[tuple[int, Callable[[Case], str | None]], ...] = (
    (1, check_chain),
    (2, check_current),
    (3, check_as_pinned),
)
BEFORE_DECIDING: tuple[tuple[int, Callable[[Case], str | None]], ...] = (
    (5, check_newer),
    (6, check_quarantine),
)


def wish_for(case: Case, question: Question, uptime: int) -> LedgerEntry:
    """Return the entry that a report would make."""
    return LedgerEntry(
        manifest=case.pinned.id,
        t=case.asked.t,
        uptime=uptime,
        epsilon=case.asked.epsilon,
        lookback=question.lookback,
        gap=case.manifest.gap,
        period=case.manifest.period,
    )


def check_budget(case: Case, wish: LedgerEntry) -> str | None:
    """Rule 8: spend within the rest, plus epsilon_t, stays within epsilon; and the lifetime cap.

    What was spent before a quarantine is unknown, so its beginning counts as all of epsilon.
    """
    epsilon, memory = case.manifest.epsilon, case.memory
    total = ledger.spent((_unknown(case, wish), *memory.entries), wish)
    if total + wish.epsilon > epsilon:
        return (
            f"epsilon_t={wish.epsilon / MICRO:.9g} would bring the last {wish.rest} rounds to "
            f"{(total + wish.epsilon) / MICRO:.9g}, above epsilon={epsilon / MICRO:.9g}"
        )
    if memory.spent + wish.epsilon > case.manifest.lifetime_cap:
        return f"the lifetime cap of {case.manifest.lifetime_cap / MICRO:.9g} is reached"
    return None


def has_stopped(memory: DeviceMemory, manifest: Manifest) -> bool:
    """Tell whether the lifetime cap leaves no room for what rounds of this division ask."""
    least = manifest.epsilon if manifest.division == "population" else 1
    return memory.spent + least > manifest.lifetime_cap


def _unknown(case: Case, wish: LedgerEntry) -> LedgerEntry:
    """Return what may have been spent just before the last quarantine began: all there is."""
    began, whole = case.memory.quarantine, case.manifest.epsilon
    return replace(wish, t=began.t, uptime=began.uptime, epsilon=whole, lookback=1)


WORD = 1 << 64
AGE_CYCLE = 3
"""Gaps between two reports about ages: they look back over up to two."""
_BY_KIND = {ENTERING: Question(about="enter"), QUITTING: Question(about="quit")}


def draw_word(words: Words) -> int:
    """Return a fresh 64-bit word."""
    return int.from_bytes(draw(words, 8), "little")


def draw_lots(words: Words) -> Lots:
    """Draw a slot and a role, to be kept until the next quarantine."""
    return Lots(phase=draw_word(words), role=draw_word(words))


@dataclass(frozen=True, slots=True)
class Sampling:
    """Whether a device answers and what, by the pinned manifest and its own lots."""

    manifest: Manifest
    lots: Lots

    @property
    def role(self) -> Topic | None:
        """What the device answers for life in the place of its state; None if its state."""
        share = 0
        for about, more in zip(self.manifest.other_strata, self.manifest.other_shares, strict=True):
            share += more
            if self.lots.role * MICRO < share * WORD:
                return about
        return None

    @property
    def cycle(self) -> int:
        """Rounds from one slot of this device to its next."""
        return self.manifest.gap * (AGE_CYCLE if self.role == "older" else 1)

    def chosen(self, asked: Round, words: Words) -> bool:
        """Tell whether this device answers; a coin, where there is one, is flipped here."""
        if self.manifest.sampling == "phase":
            return asked.t % self.cycle == self.lots.phase % self.cycle
        if self.manifest.sampling == "self":
            return draw_word(words) < asked.portion
        return True  # the curator asked this device, and the ledger says how often it may

    def question(self, kind: int, words: Words) -> Question | None:
        """Return what a device of this presence answers; None if it has no part in the round."""
        manifest = self.manifest
        if kind == ABSENT and manifest.presence != "hidden":
            return None
        if self.role is not None:
            return self._question_of_role(self.role, kind, words)
        if manifest.presence == "flags":
            return _BY_KIND.get(kind, Question(about="move"))
        moves_only = manifest.n_states == (3 * manifest.side - 2) ** 2
        if moves_only and kind != MOVING and manifest.presence != "hidden":
            return None
        return Question()

    def _question_of_role(self, role: Topic, kind: int, words: Words) -> Question | None:
        """Return what a device answers that is not asked about its state.

        Its threshold is drawn here, before any position is read.
        """
        if kind == QUITTING and self.manifest.presence != "hidden":
            return None
        if role == "faster" and kind != MOVING:
            return None
        thresholds = self.manifest.thresholds(role)
        place = draw_word(words) % len(thresholds) if len(thresholds) > 1 else 0
        return Question(about=role, threshold=thresholds[place])
