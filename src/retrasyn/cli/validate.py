"""``retrasyn validate``: checks a file before `synthesize` uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from rich.table import Table

    from retrasyn.data.validation import Findings
    from retrasyn.planning.outlook import Outlook


@saying_stopped("nothing was found out")
def validate(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .parquet, .csv or .geoparquet file.")
    ],
    box: Annotated[
        str | None, typer.Option(metavar="x0,y0,x1,y1", help="The box all points must lie in.")
    ] = None,
    grid: options.Side = 6,
    epsilon: options.Epsilon = 1.0,
    window: options.Window = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    quiet: options.Silent = False,
) -> None:
    """Check every rule a file must keep, and say what can be learnt of it at these settings.

    The first rows that break each rule are named, and the people active at a time are counted.
    Exit code 0 if `synthesize` takes the file as it is, 2 if not.

    Example: retrasyn validate trips.csv --box 116.15,39.75,116.60,40.10
    """
    from rich.console import Console

    from retrasyn.data import validation
    from retrasyn.planning.outlook import Outlook
    from retrasyn.run_settings import RunSettings
    from retrasyn.space import Box, Grid

    extent = None if box is None else Box.parse(box)
    cells = Grid(extent or Box(0, 0, 1, 1), grid)
    settings = RunSettings.of(grid=cells, epsilon=epsilon, window=window)
    found = validation.validate(source, box=extent, grid=grid)
    active = found.activity
    outlook = None
    if active is not None:
        outlook = Outlook.of(settings, active.mean, active.n_timestamps)
    if as_json:
        learnt = None if outlook is None else outlook.to_dict()
        print(json.dumps({**found.to_dict(), "outlook": learnt}, indent=2))
    elif not quiet:
        console = Console()
        for line in (_counts(found), *_activity(found, outlook)):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        for note in found.notes:
            console.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
        if not found.usable:
            console.print(_faults(found))
        verdict = "can be used" if found.usable else "cannot be used as it is"
        console.print(f"{source} {verdict}", highlight=False, markup=False, soft_wrap=True)
    if not found.usable:
        raise typer.Exit(2)


def _counts(found: Findings) -> str:
    """Say how much there is."""
    counts = {
        "points": found.n_points,
        "streams": found.n_streams,
        "users": found.n_users,
        "timestamps": found.n_timestamps,
        f"jumps at grid {found.side}": found.n_jumps,
    }
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count is not None)


def _activity(found: Findings, outlook: Outlook | None) -> Iterator[str]:
    """Say who is there, where, and what can be learnt of them."""
    from retrasyn.space.grid import format_box

    if found.extent is not None:
        yield f"all points lie in {format_box(found.extent)}, which is not public"
    if found.activity is not None:
        yield found.activity.words
    if outlook is not None:
        yield outlook.words


def _faults(found: Findings) -> Table:
    """Return a row per broken rule and per row that breaks it."""
    from rich.table import Table
    from rich.text import Text

    from retrasyn.data.validation import RULES

    table = Table("rule", "rows", "what is found", "cells")
    for fault in found.faults:
        table.add_section()
        table.add_row(fault.rule, f"{fault.count:,}", RULES[fault.rule], "", style="bold")
        for offence in fault.first:
            cells = ", ".join(f"{name}={cell}" for name, cell in offence.cells.items())
            place = "" if offence.row is None else f"row {offence.row}"
            table.add_row("", place, Text(offence.why), Text(cells))
    return table
