"""The released file, held against its receipt."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retrasyn.data.reading_files import SUFFIXES, read
from retrasyn.errors import RetraSynError
from retrasyn.privacy.receipt import Holds, Receipt
from retrasyn.receipts.check import Check, judge, unknown
from retrasyn.receipts.files import STANDARD_OUTPUT, SUFFIX, describe

_BYTES = ["data_file"]
_POINTS = ["n_points_out", "n_streams_out", "holds", "box", "first_t", "last_t"]


def find_release(receipt_path: Path) -> Path | None:
    """Return the file a receipt lies beside, if it is there."""
    if not receipt_path.name.endswith(SUFFIX):
        return None
    path = receipt_path.with_name(receipt_path.name.removesuffix(SUFFIX))
    return path if path.exists() else None


def check_release(receipt: Receipt, data: Path | None) -> list[Check]:
    """Compare digest, size and points of the file with the receipt."""
    if data is None:
        return [
            unknown("data file", _BYTES, "the released file: give it with --data"),
            unknown("points", _POINTS, "the released file: give it with --data"),
        ]
    return [_check_bytes(receipt, data), _check_points(receipt, data)]


def _check_bytes(receipt: Receipt, data: Path) -> Check:
    if receipt.data_file is None:
        return judge("data file", _BYTES, ["the receipt is bound to no file"], "")
    stated, found = receipt.data_file, describe(data)
    faults = [
        f"{name} is {stated_value}, that of {data} is {found_value}"
        for name, stated_value, found_value in (
            ("sha256", stated.sha256, found.sha256),
            ("n_bytes", stated.n_bytes, found.n_bytes),
        )
        if stated_value != found_value
    ]
    if stated.name not in (data.name, STANDARD_OUTPUT):
        faults.append(f"it was made as {stated.name}, this is {data.name}")
    return judge("data file", _BYTES, faults, f"{data} is the file it was made with")


def _whole(receipt: Receipt) -> Holds:
    """Return what a file holds that is not a part of anything."""
    return Holds(
        first_t=receipt.first_t,
        last_t=receipt.last_t,
        n_points=receipt.n_points_out,
        n_streams=receipt.n_streams_out,
    )


def _check_part(receipt: Receipt) -> list[str]:
    """Hold a part against the whole that the receipt speaks of."""
    whole, part = _whole(receipt), receipt.holds
    if part is None:
        return []
    inside = whole.first_t <= part.first_t <= part.last_t <= whole.last_t
    fewer = 0 <= part.n_streams <= part.n_points and (
        part.n_points <= whole.n_points and part.n_streams <= whole.n_streams
    )
    return [] if inside and fewer else ["the file is said to hold more than there is"]


def _check_points(receipt: Receipt, data: Path) -> Check:
    if data.suffix.lower() not in SUFFIXES:
        return unknown("points", _POINTS, f"a table that can be read, not {data.suffix or data}")
    held, faults = receipt.holds or _whole(receipt), _check_part(receipt)
    try:
        points = read(data)
    except RetraSynError as error:
        if held.n_points == 0 and not faults:
            return judge("points", _POINTS, [], "none, as stated")
        return judge("points", _POINTS, [f"they cannot be read: {error}"], "")
    x0, y0, x1, y1 = receipt.box
    inside = (points.x >= x0) & (points.x <= x1) & (points.y >= y0) & (points.y <= y1)
    if (held.n_points, held.n_streams) != (points.n_points, points.n_streams):
        faults.append(
            f"{held.n_points:,} points in {held.n_streams:,} streams are stated, "
            f"{points.n_points:,} in {points.n_streams:,} are there"
        )
    if not np.all(inside):
        faults.append(f"{np.count_nonzero(~inside):,} points lie outside the box")
    if not held.first_t <= points.first_t <= points.last_t <= held.last_t:
        faults.append("there are points before the first timestamp or after the last")
    return judge("points", _POINTS, faults, f"{points.n_points:,} in the box, as stated")
