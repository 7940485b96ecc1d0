"""Recorded files to be looked at: the synthetic one, its receipt, and the real one beside it."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from retrasyn.service.feed import Feed
from retrasyn.service.viewing.exhibit import Exhibit
from retrasyn.service.viewing.in_memory import InMemory
from retrasyn.service.viewing.statement import status_of

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.space import Grid


def exhibit_of(
    synthetic: Trajectories,
    grid: Grid,
    *,
    real: Trajectories | None,
    receipt: Receipt | None,
    title: str,
) -> Exhibit:
    """Put together what the page shows; without real data that view does not exist."""
    source = InMemory.of_recording(synthetic, grid, receipt)
    known: dict[str, Any] = {
        "title": title,
        "showing": secrets.token_hex(16),
        "clock": synthetic.clock,
    }
    return Exhibit(
        source=source,
        kind="recording",
        unfolds=False,
        status=partial(status_of, source, receipt, **known),
        feed=Feed(source.after, newest=source.newest),
        real=None if real is None else InMemory.of_recording(real, grid),
    )
