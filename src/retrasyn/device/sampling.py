"""Rule 7: phase or coin, and what is answered. Reads presence, never a place."""

from dataclasses import dataclass

from retrasyn.device.memory import Lots
from retrasyn.messages import ABSENT, ENTERING, MICRO, MOVING, QUITTING, Manifest, Question, Round
from retrasyn.randomness.entropy import Words, draw

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
    """Who answers what, from the pinned manifest and the device's own lots."""

    manifest: Manifest
    lots: Lots

    @property
    def in_second_role(self) -> bool:
        """Whether the device answers about ages or presence instead of states."""
        return self.lots.role * MICRO < self.manifest.other_share * WORD

    @property
    def cycle(self) -> int:
        """Rounds from one slot of this device to its next."""
        older = self.in_second_role and "older" in self.manifest.strata
        return self.manifest.gap * (AGE_CYCLE if older else 1)

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
        if self.in_second_role:
            return self._second_question(kind, words)
        if manifest.presence == "flags":
            return _BY_KIND.get(kind, Question(about="move"))
        moves_only = manifest.n_states == (3 * manifest.side - 2) ** 2
        if moves_only and kind != MOVING and manifest.presence != "hidden":
            return None
        return Question()

    def _second_question(self, kind: int, words: Words) -> Question | None:
        """Return what a device answers that is not asked about its state."""
        if self.manifest.strata[-1] == "present":
            return Question(about="present")
        if kind == QUITTING:
            return None
        place = draw_word(words) % len(self.manifest.ages)
        return Question(about="older", threshold=self.manifest.ages[place])
