"""A store by its name: the path of a file, or the address of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from retrasyn.service.store.base import Store


def open_store(place: str | Path) -> Store:
    """Open a store, make it if it is new, and bring it to this version's tables."""
    raise NotImplementedError(place)
