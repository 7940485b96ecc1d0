"""The whole run again, from its input and its seed."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from retrasyn.data.reading_files import SUFFIXES, read
from retrasyn.errors import RetraSynError
from retrasyn.methods import find_method
from retrasyn.privacy.receipt import Receipt
from retrasyn.reading import AUTHORS, SAFE
from retrasyn.receipts.check import Check, judge, unknown
from retrasyn.receipts.files import STANDARD_OUTPUT
from retrasyn.simulation.run import BoxInferredWarning, Synthesis, synthesize

if TYPE_CHECKING:
    from pathlib import Path

    from retrasyn.data.trajectories import Trajectories

# What only the input can confirm, apart from what other checks recompute.
_FIELDS = (
    *("seed", "grid", "box", "settings", "reading", "faithful", "door", "length_scale"),
    *("box_inferred_from_data", "n_users", "n_points_in", "n_points_dropped", "standard_error"),
    *("rounds", "worst_window", "first_t", "last_t", "timestamps", "epsilon", "lifetime"),
)
_OTHERS = ("data_file", "retrasyn_version")


def check_rerun(receipt: Receipt, real: Trajectories | None, data: Path | None) -> Check:
    """Run everything again, if input and seed are known; compare every field and every point."""
    if receipt.door == "rounds":
        counts = ("n_reports", "n_points_out", "n_streams_out")
        return unknown(
            "run", (*_FIELDS, *counts), "the reports of real devices, which are gone on purpose"
        )
    enrolled = receipt.presence.startswith("hidden") and receipt.data_file is not None
    if receipt.seed is None:
        return unknown("run", _FIELDS, "the seed, which is kept secret on purpose, and the input")
    if real is None:
        return unknown("run", _FIELDS, "the input, to run it again: give it with --input")
    if enrolled and cast("Any", receipt.data_file).name == STANDARD_OUTPUT:
        return unknown("run", _FIELDS, "the stream as it came: it enrolled people on sight")
    try:
        synthetic, again = run_again(receipt, real)
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


def run_again(receipt: Receipt, real: Trajectories) -> Synthesis:
    """Return the outcome of the same run on the given input."""
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
        "oracle": receipt.oracle if receipt.private else "oue",
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
            **asked,
        )


def _same_points(one: Trajectories, other: Trajectories) -> bool:
    """Whether two data sets have the same points in the same order."""
    columns = ((one.t, other.t), (one.x, other.x), (one.y, other.y), (one.traj_id, other.traj_id))
    return all(np.array_equal(mine, theirs) for mine, theirs in columns)


def _text(value: Any) -> str:
    """Write a setting as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
