"""JSON files that an operator names: read whole, no larger than is sensible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrasyn.errors import InputError
from retrasyn.foreign import parse_json

MOST = 64 << 20
"""Bytes of a file that goes to every page."""


def read_document(name: str, path: Path) -> dict[str, Any]:
    """Read the JSON object behind a setting."""
    try:
        if path.stat().st_size > MOST:
            raise InputError(f"{name} {path} is larger than {MOST >> 20} MiB; simplify it")
        found = parse_json(path.read_bytes(), parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"{name} {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{name} {path} is not JSON: {str(error)[:100]}") from None
    if not isinstance(found, dict):
        raise InputError(f"{name} {path} must hold a JSON object")
    return found


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number")
