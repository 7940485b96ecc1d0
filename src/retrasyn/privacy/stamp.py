"""The short receipt that every release of a running stream carries."""

from __future__ import annotations

from typing import Any

from retrasyn.privacy.receipt import Receipt, Rounds

NO_ROUNDS = Rounds((), (), ())
_TOLD = (
    "format_version",
    "retrasyn_version",
    "method",
    "private",
    "guarantee",
    "unit",
    "ledger",
    "window",
    "gap",
    "epsilon",
    "division",
    "oracle",
    "presence",
    "n_reports",
    "worst_window",
    "within_guarantee",
    "lifetime",
    "not_protected",
)


def stamp_of(receipt: Receipt, *, n_rounds: int) -> dict[str, Any]:
    """Return what is promised and what was spent so far; rounds as their number."""
    values = receipt.to_dict()
    return {name: values[name] for name in _TOLD} | {"rounds": n_rounds}
