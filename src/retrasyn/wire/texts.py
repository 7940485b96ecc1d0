"""Manifest and round as canonical JSON, their identity and their chain.

A manifest's id is the first 8 bytes of the SHA-256 of its text. A round names the hash of the round
before; the first names the hash of the manifest.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from retrasyn.errors import WireError
from retrasyn.messages import MICRO, Manifest, Round
from retrasyn.wire.canonical import MAX_WHOLE, read_canonical, write_canonical
from retrasyn.wire.fields import (
    Field,
    check_manifest,
    choice,
    digits,
    hexadecimal,
    name,
    names,
    numbers,
    whole,
)

ID_BYTES = 8
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
    "unit": choice("position", "transition"),
    "gap": whole(1, (1 << 20) + 1),
    "epsilon": whole(1, MAX_EPSILON),
    "division": choice("population", "budget"),
    "sampling": choice("phase", "self", "curator"),
    "oracle": choice("oue", "grr", "olh"),
    "presence": choice("count", "flags", "hidden"),
    "jump": choice("split", "clamp"),
    "size_source": choice("counted", "estimated"),
    "strata": names("transition", "move", "enter", "quit", "older", "present"),
    "other_share": whole(0, MICRO - 1),
    "ages": numbers(0, 16, 1, 1 << 21),
    "lifetime_cap": whole(1, MAX_WHOLE),
    "retention": whole(0, 1 << 20),
}
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
        written[label] = _apply(field.write, getattr(message, label), what, label, field)
    return write_canonical(written)


def _decode(kind: type[Message], fields: dict[str, Field], text: bytes, what: str) -> Message:
    given = read_canonical(text, what)
    if given.keys() != fields.keys():
        odd = ", ".join(sorted(given.keys() ^ fields.keys()))
        raise WireError(f"{what} lacks or has too many fields ({odd:.200}); write each once")
    return kind(
        **{
            label: _apply(field.read, given[label], what, label, field)
            for label, field in fields.items()
        }
    )


def _apply(turn: Callable[[Any], Any], value: Any, what: str, label: str, field: Field) -> Any:
    """Turn a value into its other form, or say what it should have been."""
    try:
        return turn(value)
    except (ValueError, TypeError, AttributeError):
        raise WireError(f"{what}: {label} must be {field.rule}; correct it") from None
