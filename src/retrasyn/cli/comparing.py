"""What `evaluate`, `compare`, `watch` and `demo` share: checks of files, and baselines."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrasyn.bounded_json import parse_json
from retrasyn.cli.interrupts import interruptible_progress

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import Scores
    from retrasyn.run_settings import RunSettings
    from retrasyn.space import Box

ComparisonBox = Annotated[
    str | None,
    typer.Option(
        "--box",
        metavar="x0,y0,x1,y1",
        help="The box of the grid. (default: that of the receipt, else of the real data)",
        show_default=False,
    ),
]

WithoutBaselines = Annotated[
    bool,
    typer.Option("--no-baselines", help="No mean, lpa and exact in the report: these take runs."),
]


def check_files(box: str | None, grid: int, paths: list[Path]) -> None:
    """Refuse a wrong box, a wrong grid or a missing file before any data is read."""
    from retrasyn.data.reading_files import check_readable
    from retrasyn.space import Box, Grid

    Grid(Box(0, 0, 1, 1) if box is None else Box.parse(box), grid)
    for path in paths:
        check_readable(path)


def read_receipt(synthetic: Path) -> dict[str, Any] | None:
    """Return the receipt beside a synthetic file, if there is one."""
    from retrasyn.errors import InputError

    path = synthetic.with_name(f"{synthetic.name}.receipt.json")
    try:
        values = parse_json(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"receipt {path} cannot be read ({error}); move it away") from None
    if not isinstance(values, dict):
        raise InputError(f"receipt {path} holds no receipt; move it away")
    return values


def read_file(path: Path) -> Trajectories:
    """Read a file, saying on standard error what was mended in it."""
    from retrasyn.data.reading_files import read

    data = read(path)
    for note in data.notes:
        sys.stderr.write(f"note: {path}: {note}\n")
    return data


def folded_as_in(receipt: dict[str, Any] | None, real: Trajectories) -> Trajectories:
    """Return the real data on the timestamps of a release, whose receipt says if days were folded.

    For the comparison it is the same whose budget they shared.
    """
    return real if receipt is None or receipt.get("folded") is None else real.folded()


def extent_of(box: str | None, receipts: dict[Path, dict[str, Any] | None]) -> Box | None:
    """Return the box that was asked for, else the first that a receipt names."""
    from retrasyn.space import Box
    from retrasyn.space.grid import format_box

    if box is not None:
        return Box.parse(box)
    named = [_receipt_box(path, receipt) for path, receipt in receipts.items()]
    boxes = [found for found in named if found is not None]
    if len(set(boxes)) > 1:
        chosen = format_box(boxes[0])
        sys.stderr.write(f"warning: receipts name different boxes; {chosen} serves for all\n")
    return boxes[0] if boxes else None


def _receipt_box(path: Path, receipt: dict[str, Any] | None) -> Box | None:
    """Return the public box a receipt names, if it names one."""
    from retrasyn.errors import InputError
    from retrasyn.space import Box

    if receipt is None or "box" not in receipt:
        return None
    match receipt["box"]:
        case [x0, y0, x1, y1] if all(isinstance(edge, int | float) for edge in receipt["box"]):
            return Box(x0, y0, x1, y1)
    raise InputError(f"the receipt of {path} has a box that is not four numbers; give --box")


def pair_of(real: Trajectories, synthetic: Trajectories, extent: Box | None, grid: int) -> Pair:
    """Put both data sets on one grid."""
    from retrasyn.errors import InputError
    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import grid_over

    if real.crs and synthetic.crs and real.crs.upper() != synthetic.crs.upper():
        raise InputError(
            f"the real data is in {real.crs}, the synthetic in {synthetic.crs}; "
            "project one with retrasyn convert --to-crs"
        )
    return Pair.of(real, synthetic, grid_over(real, grid, extent))


def score_baselines(
    real: Trajectories, pair: Pair, terms: RunSettings | None, *, quiet: bool, **settings: Any
) -> dict[str, Scores]:
    """Score what a release is compared with in a report; without `terms`, what needs no run.

    `settings` are those of `evaluate_pair`, the seed among them.
    """
    from retrasyn.metrics.baselines import plain_baselines
    from retrasyn.metrics.suite import evaluate_pair
    from retrasyn.simulation.baselines import run_baselines

    measure, seed = partial(evaluate_pair, **settings), settings["seed"]
    with interruptible_progress(quiet) as progress:
        found = plain_baselines(pair, measure, seed=seed)
        if terms is not None:
            found |= run_baselines(real, terms, pair, measure, progress=progress, seed=seed)
    return found
