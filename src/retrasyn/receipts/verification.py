"""Every check of a receipt, in the order in which people ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn._version import __version__
from retrasyn.receipts import arithmetic, spending, words
from retrasyn.receipts.check import Check, judge, unknown
from retrasyn.receipts.release import check_release
from retrasyn.receipts.rerun import check_rerun

if TYPE_CHECKING:
    from pathlib import Path

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.privacy.receipt import Receipt


def verify(
    receipt: Receipt, *, data: Path | None = None, real: Trajectories | None = None
) -> list[Check]:
    """Recompute what can be recomputed, and say what cannot and why.

    Args:
        receipt: What to check.
        data: The released file it travels with, if it is at hand.
        real: The input of the run, if it is at hand: then everything is run again.

    Returns:
        One check after the other; the receipt is sound if none failed.
    """
    return [
        _check_version(receipt),
        words.check_method(receipt),
        arithmetic.check_gap(receipt),
        arithmetic.check_noise(receipt),
        spending.check_rounds(receipt),
        spending.check_recount(receipt),
        arithmetic.check_verdicts(receipt),
        arithmetic.check_lifetime(receipt),
        arithmetic.check_counts(receipt),
        words.check_reading(receipt),
        words.check_guarantee(receipt),
        words.check_left_open(receipt),
        *check_release(receipt, data),
        check_rerun(receipt, real, data),
    ]


def _check_version(receipt: Receipt) -> Check:
    fields = ["retrasyn_version"]
    if receipt.retrasyn_version != __version__:
        made = f"RetraSyn {receipt.retrasyn_version[:40]!r} (this is {__version__})"
        return unknown("version", fields, f"{made}, whose rules may differ")
    return judge("version", fields, [], f"made by RetraSyn {__version__}, as this is")
