"""Parses untrusted JSON with a fixed limit on its nesting.

Python versions differ in how deeply nested JSON they can read, write or format.
"""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 64
"""Maximum nesting of objects and lists; a GeoJSON map of many polygons needs nine."""


def parse_json(text: str | bytes, **hooks: Any) -> Any:
    """Parse JSON text; too deep nesting raises ValueError, like any other error.

    >>> parse_json('{"t": [1, 2]}')
    {'t': [1, 2]}
    """
    try:
        value = json.loads(text, **hooks)
    except RecursionError:
        raise _too_deep() from None
    if isinstance(text, str):
        n_openings = text.count("[") + text.count("{")
    else:
        n_openings = text.count(b"[") + text.count(b"{")
    if n_openings > MAX_DEPTH and is_too_deep(value):  # with fewer brackets it cannot be too deep
        raise _too_deep()
    return value


def is_too_deep(value: Any) -> bool:
    """Whether a value is nested too deeply, checked level by level.

    >>> is_too_deep([[[]]])
    False
    """
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return False
    return True


def _too_deep() -> ValueError:
    return ValueError(f"nested more than {MAX_DEPTH} deep")
