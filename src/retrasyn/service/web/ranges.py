"""Ranges of timestamps that a query goes through."""

from __future__ import annotations

from retrasyn.service.viewing.source import Source
from retrasyn.service.web.problems import Problem

MOST = 1000
USUAL = 200


def timestamps_in(source: Source, first: int | None, last: int | None) -> list[int]:
    """Return what there is in a range: the latest ones, and fewer if no beginning is given."""
    if first is not None and last is not None and first > last:
        raise Problem(422, "A range begins before it ends; exchange from and to.")
    return source.within(first, last)[-(USUAL if first is None else MOST) :]
