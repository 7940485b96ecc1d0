"""``retrasyn validate``: checks a file before `synthesize` uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from rich.table import Table

    from retrasyn.data.validation import Findings


@saying_stopped("nothing was found out")
def validate(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .parquet, .csv or .geoparquet file.")
    ],
    box: Annotated[
        str | None, typer.Option(metavar="x0,y0,x1,y1", help="The box all points must lie in.")
    ] = None,
    grid: options.Side = 6,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    quiet: options.Silent = False,
) -> None:
    """Check every rule a file must keep, and name the first rows that break each.

    Exit code 0 if `synthesize` takes the file as it is, 2 if not.

    Example: retrasyn validate trips.csv --box 116.15,39.75,116.60,40.10
    """
    from rich.console import Console

    from retrasyn.data import validation
    from retrasyn.space import Box

    extent = None if box is None else Box.parse(box)
    found = validation.validate(source, box=extent, grid=grid)
    if as_json:
        print(found.to_json())
    elif not quiet:
        console = Console()
        console.print(_counts(found), highlight=False, soft_wrap=True)
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
