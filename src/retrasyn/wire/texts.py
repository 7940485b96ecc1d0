"""Manifest and round as canonical JSON, their identity and their chain.

A manifest's id is the first 8 bytes of the SHA-256 of its text. A round names the hash of the round
before; the first names the hash of the manifest.
"""

import functools
import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from retrasyn.errors import WireError
from retrasyn.messages import MICRO, Manifest, Round
from retrasyn.oracles.registry import ORACLES
from retrasyn.wire.canonical import MAX_WHOLE, read_canonical, write_canonical
from retrasyn.wire.layout import ID_BYTES

OTHERS = ("older", "present", "faster", "cell")
"""What a share of the devices answers for life, in the place of their state."""
_WITHOUT_CELLS = (
    ("transition",),
    ("transition", "older"),
    ("transition", "present"),
    ("transition", "faster"),
    ("transition", "older", "faster"),
    ("move", "enter", "quit"),
)
STRATA = (*_WITHOUT_CELLS, *((*strata, "cell") for strata in _WITHOUT_CELLS))
"""What may be asked together: of everybody alike, by kind of state, and of shares of devices."""


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


def choice(options: Collection[str]) -> Field:
    """Return one of some words; rows added to a registry count."""

    def check(value: Any) -> str:
        if type(value) is not str or value not in options:
            raise ValueError
        return value

    return Field(f"one of {', '.join(options)}", check, check)


def names(options: Collection[str]) -> Field:
    """Return a list of words, each one of some."""
    each = choice(options)

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
    older, faster = "older" in manifest.strata, "faster" in manifest.strata
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
        "hidden presence goes with an estimated size, no ages and no speeds": (
            (manifest.presence == "hidden") == (manifest.size_source == "estimated")
            and not (manifest.presence == "hidden" and (older or faster))
        ),
        "other_shares must have one share for each of older, present, faster and cell asked": (
            len(manifest.other_shares) == sum(about in OTHERS for about in manifest.strata)
        ),
        f"other_shares must stay below {MICRO:,} in sum, or nobody reports transitions": (
            sum(manifest.other_shares) < MICRO
        ),
        "ages must ascend up to twice the gap, and be there iff older is asked": (
            list(manifest.ages) == sorted(set(manifest.ages))
            and bool(manifest.ages) == older
            and max(manifest.ages, default=0) <= 2 * manifest.gap
        ),
        "speeds must ascend, and they and public_map be there iff faster is asked": (
            list(manifest.speeds) == sorted(set(manifest.speeds))
            and bool(manifest.speeds) == bool(manifest.public_map) == faster
        ),
        "lifetime_cap must allow at least one report": manifest.lifetime_cap >= manifest.epsilon,
    }
    for rule, kept in rules.items():
        if not kept:
            raise WireError(f"manifest {manifest.name!r}: {rule}; correct it")


HASH_BYTES = 32
MAX_EPSILON = 100 * MICRO
_U32 = (1 << 32) - 1
_INSTANT = whole(0, 1 << 40)

MANIFEST_FIELDS: dict[str, Field] = {
    "name": name(64),
    "key": hexadecimal(32),
    "box": numbers(4, 4, -MAX_WHOLE, MAX_WHOLE),
    "side": whole(1, 64),
    "state_order": whole(1, 1),
    "n_states": whole(1, 65_535),
    "period": whole(1, 86_400),
    "epoch": _INSTANT,
    "window": whole(1, 1 << 20),
    "unit": choice(("position", "transition")),
    "gap": whole(1, (1 << 20) + 1),
    "epsilon": whole(1, MAX_EPSILON),
    "division": choice(("population", "budget")),
    "sampling": choice(("phase", "self", "curator")),
    "oracle": choice(ORACLES),
    "presence": choice(("count", "flags", "hidden")),
    "jump": choice(("split", "clamp")),
    "size_source": choice(("counted", "estimated")),
    "strata": names(("transition", "move", "enter", "quit", *OTHERS)),
    "other_shares": numbers(0, 3, 1, MICRO - 1),
    "ages": numbers(0, 16, 1, 1 << 21),
    "lifetime_cap": whole(1, MAX_WHOLE),
    "retention": whole(0, 1 << 20),
    "speeds": numbers(1, 16, 1, 1 << 20),
    "public_map": hexadecimal(HASH_BYTES),
}
OPTIONAL = frozenset({"speeds", "public_map"})
"""Fields of a manifest that are there iff `faster` is asked."""
ROUND_FIELDS: dict[str, Field] = {
    "manifest": hexadecimal(ID_BYTES),
    "t": whole(0, _U32),
    "open": _INSTANT,
    "close": _INSTANT,
    "grace": whole(0, 86_400),
    "epsilon": whole(1, MAX_EPSILON),
    "portion": digits(0, 1 << 64),
    "previous": hexadecimal(HASH_BYTES),
}

Message = TypeVar("Message", Manifest, Round)


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest, or refuse what no device would accept."""
    text = _encode(manifest, MANIFEST_FIELDS, "manifest")
    check_manifest(manifest)
    return text


def decode_manifest(text: bytes) -> Manifest:
    """Read a manifest from exactly what `encode_manifest` writes."""
    manifest = _decode(Manifest, MANIFEST_FIELDS, text, "manifest")
    check_manifest(manifest)
    return manifest


def manifest_id(text: bytes) -> bytes:
    """Return the id of a manifest's text."""
    return hashlib.sha256(text).digest()[:ID_BYTES]


def encode_round(asked: Round) -> bytes:
    """Write a round, or refuse what no device would accept."""
    text = _encode(asked, ROUND_FIELDS, "round")
    _check_instants(asked)
    return text


@functools.lru_cache(maxsize=4)  # thousands of devices in one process are asked the same
def decode_round(text: bytes) -> Round:
    """Read a round from exactly what `encode_round` writes."""
    asked = _decode(Round, ROUND_FIELDS, text, "round")
    _check_instants(asked)
    return asked


def round_hash(text: bytes) -> bytes:
    """Return what the next round calls its previous; of a manifest's text, what the first does."""
    return hashlib.sha256(text).digest()


def _check_instants(asked: Round) -> None:
    if asked.close <= asked.open:
        raise WireError(f"round {asked.t} closes before it opens; let close be after open")


def _encode(message: Manifest | Round, fields: dict[str, Field], what: str) -> bytes:
    written: dict[str, Any] = {}
    for label, field in fields.items():
        value = getattr(message, label)
        if value or label not in OPTIONAL:
            written[label] = _apply(field.write, value, what, label, field)
    return write_canonical(written)


def _decode(kind: type[Message], fields: dict[str, Field], text: bytes, what: str) -> Message:
    given = read_canonical(text, what)
    if wrong := (fields.keys() ^ given.keys()) - (OPTIONAL & fields.keys()):
        odd = ", ".join(sorted(wrong))
        raise WireError(f"{what} lacks or has too many fields ({odd:.200}); write each once")
    return kind(
        **{
            label: _apply(field.read, given[label], what, label, field)
            for label, field in fields.items()
            if label in given
        }
    )


def _apply(turn: Callable[[Any], Any], value: Any, what: str, label: str, field: Field) -> Any:
    """Turn a value into its other form, or say what it should have been."""
    try:
        return turn(value)
    except (ValueError, TypeError, AttributeError):
        raise WireError(f"{what}: {label} must be {field.rule}; correct it") from None
