"""The status of something recorded or simulated: taken from its receipt, if it has one."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from retrasyn.errors import RetraSynError
from retrasyn.methods import find_method

if TYPE_CHECKING:
    from retrasyn.data.clock import Clock
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.service.viewing.source import Source

UNKNOWN = "NOT KNOWN TO BE PRIVATE: there is no receipt that says how this data was made."


def status_of(
    source: Source,
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
