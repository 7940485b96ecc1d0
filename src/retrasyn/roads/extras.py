"""Libraries of the extra [geo], which public maps of some forms need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from retrasyn.errors import MissingExtra


def reason(error: BaseException) -> str:
    """Return the first sentence of what a library says."""
    lines = str(error).splitlines()
    return (
        lines[0].partition("; It might help")[0].rstrip(". ")[:200] if lines else "it is malformed"
    )


def load(name: str) -> Any:
    """Import a library, or raise with the install command."""
    try:
        return import_module(name)
    except ImportError:
        library = name.partition(".")[0]
        raise MissingExtra(f'{library} is not installed: pip install "retrasyn[geo]"') from None
