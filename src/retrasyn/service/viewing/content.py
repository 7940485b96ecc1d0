"""Everything a page shows, put together: what is synthetic, how it is doing, and what is real."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from retrasyn.errors import RetraSynError
from retrasyn.methods import find_method
from retrasyn.service.releases import Feed
from retrasyn.service.viewing.source import ReleaseSource

if TYPE_CHECKING:
    from retrasyn.data.metadata import Clock
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.service.viewing.source import ReleaseSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerContent:
    """What the routes of the page work with; a campaign has no `real`, and must not."""

    source: ReleaseSource
    kind: Literal["campaign", "recording"] = "campaign"  # recording: there is nobody to report
    unfolds: bool = True  # whether more may come; False: all of it is there
    status: Callable[[], dict[str, Any]]  # what /v1/status says
    feed: Feed
    feed_clients: int = 100  # readers of the feed at once
    real: ReleaseSource | None = None  # in a simulation, what the synthetic data stands for


UNKNOWN = "NOT KNOWN TO BE PRIVATE: there is no receipt that says how this data was made."


def status_of(
    source: ReleaseSource,
    receipt: Receipt | None,
    *,
    title: str,
    showing: str,  # names this showing: a page that sees another one begins anew
    clock: Clock | None = None,
    period: float = 1,
) -> dict[str, Any]:
    """Return what /v1/status says of a source that is no campaign; 0 where nothing is known."""
    return {
        "campaign": title,
        "manifest": showing,
        "method": "" if receipt is None else receipt.method,
        "guarantee": UNKNOWN if receipt is None else receipt.guarantee,
        "epsilon": 0.0 if receipt is None else receipt.epsilon,
        "window": 0 if receipt is None else receipt.window,
        "unit": "" if receipt is None else receipt.unit,
        "presence": "" if receipt is None else _presence(receipt.method),
        "period": max(1, math.ceil(period if clock is None else clock.period)),
        "epoch": 0 if clock is None else int(dt.datetime.fromisoformat(clock.epoch).timestamp()),
        "box": list(source.grid.box),
        "grid": source.grid.side,
        "round": None,
        "next_round_in": 0.0,
        "n_reports": 0 if receipt is None else receipt.n_reports,
        "n_releases": len(source.timestamps),
        "oldest_release": source.oldest,
        "newest_release": source.newest,
        "ready": True,
        "reason": "",
    }


def _presence(method: str) -> str:
    """Return what a method makes public of presence; receipts may name one that we do not know."""
    try:
        return find_method(method).presence
    except RetraSynError:
        return ""
