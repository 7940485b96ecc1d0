"""Kinds of field in a manifest or a round, and what the fields of a manifest owe each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrasyn.errors import WireError
from retrasyn.messages import Manifest

STRATA = (
    ("transition",),
    ("transition", "older"),
    ("transition", "present"),
    ("move", "enter", "quit"),
)
"""What may be asked together: of everybody alike, with a second role, or by kind of state."""


@dataclass(frozen=True, slots=True)
class Field:
    """How a value is written and read; both raise on anything else than the rule says."""

    rule: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def whole(low: int, high: int) -> Field:
    """Return a whole number within bounds."""

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    return Field(f"a whole number in {low}..{high}", check, check)


def numbers(fewest: int, most: int, low: int, high: int) -> Field:
    """Return a list of whole numbers."""
    each = whole(low, high)

    def write(value: Any) -> list[int]:
        if type(value) is not tuple or not fewest <= len(value) <= most:
            raise ValueError
        return [each.write(item) for item in value]

    def read(value: Any) -> tuple[int, ...]:
        if type(value) is not list:
            raise ValueError
        return tuple(write(tuple(value)))

    return Field(f"{fewest} to {most} numbers, each {each.rule}", write, read)


def choice(*options: str) -> Field:
    """Return one of some words."""

    def check(value: Any) -> str:
        if type(value) is not str or value not in options:
            raise ValueError
        return value

    return Field(f"one of {', '.join(options)}", check, check)


def names(*options: str) -> Field:
    """Return a list of words, each one of some."""
    each = choice(*options)

    def write(value: Any) -> list[str]:
        if type(value) is not tuple:
            raise ValueError
        return [each.write(item) for item in value]

    def read(value: Any) -> tuple[str, ...]:
        if type(value) is not list:
            raise ValueError
        return tuple(write(tuple(value)))

    return Field(f"a list, each {each.rule}", write, read)


def name(longest: int) -> Field:
    """Return a short printable text."""

    def check(value: Any) -> str:
        if type(value) is not str or not 1 <= len(value) <= longest or not value.isprintable():
            raise ValueError
        value.encode()  # a lone surrogate has no bytes
        return value

    return Field(f"a printable text of 1 to {longest} characters", check, check)


def hexadecimal(size: int) -> Field:
    """Return bytes, written as lower-case digits."""

    def write(value: Any) -> str:
        if type(value) is not bytes or len(value) != size:
            raise ValueError
        return value.hex()

    def read(value: Any) -> bytes:
        if write(bytes.fromhex(value)) != value:
            raise ValueError
        return bytes.fromhex(value)

    return Field(f"{size} bytes as lower-case hexadecimal digits", write, read)


def digits(low: int, high: int) -> Field:
    """Return a whole number too large for JSON, written as a decimal text."""
    inside = whole(low, high)

    def write(value: Any) -> str:
        return str(inside.write(value))

    def read(value: Any) -> int:
        if type(value) is not str or write(int(value)) != value:
            raise ValueError
        return int(value)

    return Field(f"the decimal text of {inside.rule}", write, read)


def check_manifest(manifest: Manifest) -> None:
    """Refuse a manifest whose fields contradict each other."""
    n_moves, n_ends = (3 * manifest.side - 2) ** 2, 2 * manifest.side**2
    x0, y0, x1, y1 = manifest.box
    older = "older" in manifest.strata
    rules = {
        "the box must have its lower-left corner first": x0 < x1 and y0 < y1,
        f"n_states must be {n_moves + n_ends}, or {n_moves} without entering and quitting": (
            manifest.n_states in (n_moves, n_moves + n_ends)
        ),
        "gap must be window + 1 for positions and window for transitions": (
            manifest.gap == manifest.window + (manifest.unit == "position")
        ),
        "strata must be asked together as the documents list them": manifest.strata in STRATA,
        "flags go with move, enter and quit, and only they do": (
            (manifest.presence == "flags") == (manifest.strata[:1] == ("move",))
        ),
        "without entering and quitting nobody can be asked about them": (
            manifest.n_states > n_moves or manifest.strata == ("transition",)
        ),
        "hidden presence goes with an estimated size and no ages": (
            (manifest.presence == "hidden") == (manifest.size_source == "estimated")
            and not (manifest.presence == "hidden" and older)
        ),
        "a second role needs a share, and a share a second role": (
            (manifest.other_share > 0) == (manifest.strata[1:] in (("older",), ("present",)))
        ),
        "ages must ascend up to twice the gap, and be there iff older is asked": (
            list(manifest.ages) == sorted(set(manifest.ages))
            and bool(manifest.ages) == older
            and max(manifest.ages, default=0) <= 2 * manifest.gap
        ),
        "lifetime_cap must allow at least one report": manifest.lifetime_cap >= manifest.epsilon,
    }
    for rule, kept in rules.items():
        if not kept:
            raise WireError(f"manifest {manifest.name!r}: {rule}; correct it")
