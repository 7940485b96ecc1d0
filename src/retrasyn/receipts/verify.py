"""All checks of a receipt, and of the released file that belongs to it."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from retrasyn._version import __version__
from retrasyn.data.reading_files import SUFFIXES, read
from retrasyn.data.replica_files import replica_folder
from retrasyn.errors import RetraSynError
from retrasyn.interpretation import AUTHORS, SAFE
from retrasyn.methods import find_method
from retrasyn.oracles.registry import PAPER_ORACLE
from retrasyn.privacy.receipt import Holds, Receipt
from retrasyn.receipts import checks
from retrasyn.receipts.checks import Check, judge, unknown
from retrasyn.receipts.files import STANDARD_OUTPUT, SUFFIX, describe, describe_replicas
from retrasyn.simulation.accounting import DEVICES
from retrasyn.simulation.result import Synthesis
from retrasyn.simulation.run import BoxInferredWarning, synthesize

if TYPE_CHECKING:
    from pathlib import Path

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.roads.public_map import PublicMap


_BYTES = ["data_file", "replicas"]
_POINTS = ["n_points_out", "n_streams_out", "holds", "box", "first_t", "last_t"]


def find_release(receipt_path: Path) -> Path | None:
    """Return the released file next to a receipt, if it exists."""
    if not receipt_path.name.endswith(SUFFIX):
        return None
    path = receipt_path.with_name(receipt_path.name.removesuffix(SUFFIX))
    return path if path.exists() else None


def check_release(receipt: Receipt, data: Path | None) -> list[Check]:
    """Compare the digest, size and points of the file with the receipt."""
    if data is None:
        return [
            unknown("data file", _BYTES, "the released file"),
            unknown("points", _POINTS, "the released file"),
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
    folder = replica_folder(data)
    if describe_replicas(folder, name=folder.name) != receipt.replicas:
        n = 0 if receipt.replicas is None else receipt.replicas.n
        faults.append(f"{n} replicas are stated, {folder} does not hold exactly them")
    return judge("data file", _BYTES, faults, f"{data} is the file it was made with")


def _whole(receipt: Receipt) -> Holds:
    """Return what a file holds if it is not a part."""
    return Holds(
        first_t=receipt.first_t,
        last_t=receipt.last_t,
        n_points=receipt.n_points_out,
        n_streams=receipt.n_streams_out,
    )


def _check_part(receipt: Receipt) -> list[str]:
    """Check a part against the whole that the receipt describes."""
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


# Fields that only the input can confirm, apart from those other checks recompute.
_FIELDS = (
    *("seed", "grid", "box", "settings", "reading", "faithful", "door", "length_scale"),
    *("box_inferred_from_data", "n_users", "n_points_in", "n_points_dropped", "standard_error"),
    *(
        "public_map",
        "folded",
        "rounds",
        "worst_window",
        "first_t",
        "last_t",
        "timestamps",
        "epsilon",
        "lifetime",
    ),
)
# Fields that a second run does not have: it is neither written nor counted.
_OTHERS = ("data_file", "replicas", "retrasyn_version", "composition", "headline", "not_protected")


def check_rerun(
    receipt: Receipt,
    real: Trajectories | None,
    data: Path | None,
    known: PublicMap | None = None,
) -> Check:
    """Repeat the run, if input and seed are known; compare every field and every point."""
    if receipt.door == DEVICES:
        counts = ("n_reports", "n_points_out", "n_streams_out", "usual_place")
        return unknown(
            "run", (*_FIELDS, *counts), "the reports of real devices, which are gone on purpose"
        )
    enrolled = receipt.presence.startswith("hidden") and receipt.data_file is not None
    missing = (
        "the seed, which is kept secret on purpose, and the input"
        if receipt.seed is None
        else "the public map of the run, to run it again"
        if receipt.public_map is not None and known is None
        else "the input, to run it again"
        if real is None
        else "the stream as it came: it enrolled people on sight"
        if enrolled and cast("Any", receipt.data_file).name == STANDARD_OUTPUT
        else None
    )
    if missing is not None or real is None:
        return unknown("run", _FIELDS, missing or "the input")
    try:
        synthetic, again = run_again(receipt, real, known)
        released = read(data) if data is not None and data.suffix.lower() in SUFFIXES else None
    except RetraSynError as error:
        return judge("run", _FIELDS, [f"it cannot be run again: {error}"], "")
    faults = [
        f"{field.name} comes out otherwise"
        for field in dataclasses.fields(Receipt)
        if field.name not in _OTHERS and getattr(again, field.name) != getattr(receipt, field.name)
    ]
    if released is not None and not _same_points(synthetic, released):
        faults.append("the released points come out otherwise")
    return judge("run", _FIELDS, faults, "run again from the input, with the same outcome")


def run_again(receipt: Receipt, real: Trajectories, known: PublicMap | None = None) -> Synthesis:
    """Repeat the run of a receipt on the given input, with the public map it names."""
    row = find_method(receipt.method)
    base = AUTHORS if receipt.faithful else SAFE.answer(jump=row.jump)
    answers = {
        name: value for name, value in receipt.reading.items() if value != getattr(base, name, None)
    }
    settings = {name: _text(value) for name, value in (receipt.settings | answers).items()}
    asked: dict[str, Any] = {
        "seed": receipt.seed,
        "box": None if receipt.box_inferred_from_data else receipt.box,
        "outside": "drop" if receipt.n_points_dropped else "refuse",
        "door": receipt.door if receipt.private else "counts",
        "oracle": receipt.oracle if receipt.private else PAPER_ORACLE,
        "fold": None if receipt.folded is None else receipt.folded.by,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxInferredWarning)
        return synthesize(
            real,
            receipt.method,
            epsilon=receipt.epsilon,
            window=receipt.window,
            grid=receipt.grid,
            faithful=receipt.faithful,
            settings=settings,
            public_map=known,
            anyway=True,
            **asked,
        )


def _same_points(one: Trajectories, other: Trajectories) -> bool:
    """Tell whether two data sets have the same points in the same order."""
    columns = ((one.t, other.t), (one.x, other.x), (one.y, other.y), (one.traj_id, other.traj_id))
    return all(np.array_equal(mine, theirs) for mine, theirs in columns)


def _text(value: Any) -> str:
    """Format a setting as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def verify(
    receipt: Receipt,
    *,
    data: Path | None = None,
    real: Trajectories | None = None,
    known: PublicMap | None = None,
) -> list[Check]:
    """Recompute what can be recomputed, and say what cannot be and why.

    Args:
        receipt: The receipt to check.
        data: The released file it belongs to, if available.
        real: The input of the run, if available; the run is then repeated.
        known: The public map of the run, without which one that used a map cannot be repeated.

    Returns:
        All checks in order; the receipt is sound if none failed.
    """
    return [
        _check_version(receipt),
        checks.check_method(receipt),
        checks.check_gap(receipt),
        checks.check_noise(receipt),
        checks.check_rounds(receipt),
        checks.check_recount(receipt),
        checks.check_verdicts(receipt),
        checks.check_lifetime(receipt),
        checks.check_usual_place(receipt),
        checks.check_counts(receipt),
        checks.check_reading(receipt),
        checks.check_composition(receipt),
        checks.check_guarantee(receipt),
        checks.check_left_open(receipt),
        *check_release(receipt, data),
        check_rerun(receipt, real, data, known),
    ]


def _check_version(receipt: Receipt) -> Check:
    fields = ["retrasyn_version"]
    if receipt.retrasyn_version != __version__:
        made = f"RetraSyn {receipt.retrasyn_version[:40]!r} (this is {__version__})"
        return unknown("version", fields, f"{made}, whose rules may differ")
    return judge("version", fields, [], f"made by RetraSyn {__version__}, as this is")
