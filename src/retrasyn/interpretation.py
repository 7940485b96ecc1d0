"""Where the paper, its authors' program and safety differ: one field per question.

`SAFE` is what we run. `AUTHORS` (`faithful`) answers as the authors' published program does,
except that windows are always counted by timestamp. Where a question has an answer "as printed"
that works, it can be chosen among the settings. `docs/deviations.md` explains every row.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from retrasyn.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """How ambiguous points of the paper are read: one field per question."""

    unit: Literal["position", "transition"] = "position"
    """What a window protects: w positions (gap w + 1) or w transitions (gap w)."""
    ledger: Literal["user", "stream"] = "user"
    """Whose spending is counted: the person's, or each stream's on its own."""
    jump: Literal["split", "clamp", "authors"] = "split"
    """A step to no neighbour: end and begin, the nearest neighbour, or as the authors run it."""
    size_target: Literal["active", "active-and-quitting"] = "active"
    """How many synthetic points a timestamp gets."""
    length_scale: Literal["released", "data"] | float = "released"
    """Lambda of Eq. 8: from what was released, the raw mean (marked), or a public number."""
    deviation: Literal["absolute", "signed"] = "absolute"
    """Eq. 9: sum of absolute differences, or signed as printed."""
    deviation_terms: Literal["kappa", "kappa-plus-one"] = "kappa"
    """Eq. 9 and 10: the last kappa terms, or kappa + 1 terms over kappa as printed."""
    ratio_floor: float = 0.5
    """Eq. 10: lower bound of (1 - ratio); 0 as printed."""
    unselected: Literal["scaled", "kept"] = "scaled"
    """Eq. 7: unselected states scaled by the sum of the clipped estimates, or kept as printed."""
    quit: Literal["renormalised", "plain"] = "renormalised"
    """Eq. 8: the capped weight renormalised with the moves, or taken as the probability."""
    warm_up: int = 2
    """How many first collections take the portion 1/w and replace the whole model."""
    surplus: Literal["cell-before", "newest-cell"] = "cell-before"
    """Which cell weighs a stream that is ended because there are too many."""
    negatives: Literal["clipped"] = "clipped"
    """Negative estimates become zero before selection."""
    no_entering_mass: Literal["last"] = "last"
    """Without entering mass the last distribution that had some is used, uniform before any."""
    empty_cell: Literal["stay"] = "stay"
    """A stream in a cell nobody was seen to leave stays."""

    def __post_init__(self) -> None:
        scale = self.length_scale
        if not isinstance(scale, str) and not (2 <= scale <= 1000):  # noqa: PLR2004
            raise SettingError(
                f"length scale {scale} is outside 2..1000; give a public number in it or 'released'"
            )
        if not 0 <= self.ratio_floor <= 1:
            raise SettingError(f"ratio_floor {self.ratio_floor} is outside 0..1")
        if self.warm_up < 1:
            raise SettingError(f"warm_up {self.warm_up} is below 1: the model must start somewhere")

    @staticmethod
    def parse_length_scale(text: str) -> str | float:
        """Parse a length scale given as a word or a number."""
        if text in ("released", "data"):
            return text
        try:
            return float(text)
        except ValueError:
            raise SettingError(
                f"length scale {text!r} is neither released, data nor a number"
            ) from None

    def gap(self, window: int) -> int:
        """Return how many timestamps must pass between two full-budget reports of one key."""
        return window + 1 if self.unit == "position" else window

    def answer(self, **answers: Any) -> "Interpretation":
        """Return a copy with some answers changed; unknown answers are an error."""
        hints = get_type_hints(type(self))
        for name, value in answers.items():
            _check_choice(name, value, hints[name])
        return dataclasses.replace(self, **answers)


def _check_choice(name: str, value: Any, hint: Any) -> None:
    """Reject a value that is not among a field's choices."""
    if not isinstance(value, str):
        return
    parts = get_args(hint) if get_origin(hint) is not Literal else (hint,)
    choices = [c for part in parts if get_origin(part) is Literal for c in get_args(part)]
    if value not in choices:
        raise SettingError(f"{name}={value!r} is not one of {', '.join(choices)}")


SAFE = Interpretation()
"""The default interpretation, which guarantees w-event privacy for persons."""
AUTHORS = Interpretation(
    unit="transition",
    ledger="stream",
    jump="authors",
    size_target="active-and-quitting",
    length_scale="data",
)
"""The interpretation of the authors' program (`faithful`); it may spend more than epsilon."""
