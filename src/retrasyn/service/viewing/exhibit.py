"""Everything a page shows, put together: what is synthetic, how it is doing, and what is real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from retrasyn.service.feed import Feed
from retrasyn.service.viewing.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """What the routes of the page work with; a campaign has no `real`, and must not."""

    source: Source
    kind: Literal["campaign", "recording"] = "campaign"  # recording: there is nobody to report
    unfolds: bool = True  # whether more may come; False: all of it is there
    status: Callable[[], dict[str, Any]]  # what /v1/status says
    feed: Feed
    feed_clients: int = 100  # readers of the feed at once
    real: Source | None = None  # in a simulation, what the synthetic data stands for
