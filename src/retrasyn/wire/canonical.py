"""Canonical JSON and the signed envelope around it.

One value has one text: keys sorted, no spaces, ASCII only, whole numbers only. So a hash of the
text is a hash of the value, and a decoder can refuse everything else by writing again what it read.
"""

import json
from typing import Any, NoReturn

from retrasyn.errors import WireError
from retrasyn.wire.layout import SIGNATURE_BYTES, VERSION

MAX_TEXT = 8192
MAX_OPENINGS = 128
"""Brackets and braces that open, those within names too: a manifest has at most 70."""
MAX_WHOLE = (1 << 53) - 1
"""The largest whole number that every JSON reader keeps."""
_BEFORE, _BETWEEN, _AFTER = b'{"body":', b',"signature":"', b'"}'


def write_canonical(value: dict[str, Any]) -> bytes:
    """Write a value in its one form.

    >>> write_canonical({"b": [1, 2], "a": "x"})
    b'{"a":"x","b":[1,2]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def read_canonical(text: bytes, what: str) -> dict[str, Any]:
    """Read an object from its one form, refusing any other.

    What is refused does not depend on how deep or how long a number the interpreter can read.
    """
    if len(text) > MAX_TEXT:
        raise WireError(f"{what} of {len(text)} bytes is longer than {MAX_TEXT}; it is not ours")
    n_openings = text.count(b"[") + text.count(b"{")
    if n_openings > MAX_OPENINGS:
        raise WireError(
            f"{what} opens {n_openings} brackets, more than {MAX_OPENINGS}; it is not ours"
        )
    try:
        value = json.loads(
            text.decode("ascii"), parse_int=_whole, parse_float=_refuse, parse_constant=_refuse
        )
        same = isinstance(value, dict) and write_canonical(value) == text
    except ValueError:
        same = False
    if not same:
        raise WireError(
            f"{what} is not canonical JSON; write one object with sorted keys, no spaces and whole "
            "numbers within 2^53 - 1 only"
        )
    fields: dict[str, Any] = value
    return fields


def _whole(digits: str) -> int:
    if len(digits) > len(str(-MAX_WHOLE)) or abs(number := int(digits)) > MAX_WHOLE:
        raise ValueError(digits)
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def signed_part(kind: str, body: bytes) -> bytes:
    r"""Return what is signed or tagged: the kind keeps a manifest from passing for a round.

    >>> signed_part("round", b"{}")
    b'retrasyn/3/round\n{}'
    """
    return f"retrasyn/{VERSION}/{kind}\n".encode() + body


def seal(body: bytes, signature: bytes) -> bytes:
    """Put a body and the signature of its signed part into one envelope."""
    if len(signature) != SIGNATURE_BYTES:
        raise WireError(f"a signature of {len(signature)} bytes is not Ed25519's; it has 64")
    return _BEFORE + body + _BETWEEN + signature.hex().encode() + _AFTER


def unseal(envelope: bytes) -> tuple[bytes, bytes]:
    """Take an envelope apart into body and signature; neither is checked here.

    >>> unseal(seal(b"{}", bytes(64))) == (b"{}", bytes(64))
    True
    """
    tail = len(_BETWEEN) + 2 * SIGNATURE_BYTES + len(_AFTER)
    body = envelope[len(_BEFORE) : -tail]
    digits = envelope[-tail:][len(_BETWEEN) : -len(_AFTER)]
    try:
        signature = bytes.fromhex(digits.decode("ascii"))
        same = seal(body, signature) == envelope
    except (ValueError, WireError):
        same = False
    if not same:
        raise WireError(
            'this is no envelope; write {"body":...,"signature":"..."} with 128 lower-case digits'
        )
    return body, signature
