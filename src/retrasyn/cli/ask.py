"""``retrasyn ask``: tables of counts, trips and flows from a release, with what may be chance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from rich.table import Table

    from retrasyn.answers.table import AnswerTable

_SHOWN = 20  # rows on a terminal


@saying_stopped()
def ask(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A release; its replicas are found beside it."),
    ],
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="counts, od, flows, hotspots, profile or trips.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write all rows: .csv, .parquet, .geojson, .geoparquet."),
    ] = None,
    zones: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|h3:RES|grid:K",
            help="Polygons, of which the first wins where they overlap; hexagons; or a grid. "
            "(default: the grid of the release)",
            show_default=False,
        ),
    ] = None,
    named_by: Annotated[
        str | None, typer.Option(metavar="PROPERTY", help="What names a polygon, if unusual.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="15min|1h|day", help="Length of a period; a number counts timestamps."
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME|T", help="The first timestamp, or a time.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME|T", help="The last timestamp, or a time to end before."),
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(
            metavar="x0,y0,x1,y1",
            help="The box of a grid or of hexagons. (default: that of the release)",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many hotspots of each period.")] = 10,
) -> None:
    """Ask a release what people ask, with standard errors and 90 % intervals from its replicas.

    Without --out, the rows with the highest values are printed. Asking spends no privacy.

    Example: retrasyn ask synthetic.parquet od --zones districts.geojson --by 1h -o od.csv
    """
    from retrasyn.answers.asking import ask as answer_of
    from retrasyn.answers.table import check_answer_file
    from retrasyn.data.reading_files import check_readable
    from retrasyn.data.writing_files import check_apart
    from retrasyn.space import Box

    check_readable(source)
    if out is not None:
        check_answer_file(out)
        check_apart(out, source, named="input")
    extent = None if box is None else Box.parse(box)
    found = answer_of(
        source,
        what,
        zones=zones,
        by=by,
        start=start,
        end=end,
        box=extent,
        named_by=named_by,
        top=top,
    )
    if not found.private:
        sys.stderr.write(
            f"WARNING: {source} has no receipt beside it: if it is real data, the answer is NOT "
            "private\n"
        )
    for note in found.zones.notes if found.zones else ():
        sys.stderr.write(f"note: {note}\n")
    if out is not None:
        found.write(out)
        print(f"{out}: {len(found):,} rows")
    else:
        _show(found)
    print(_chance(found))


def _show(found: AnswerTable) -> None:
    """Print the rows with the highest values."""
    from rich.console import Console

    if not len(found):
        print("no rows: nothing of what is asked for is there")
        return
    console = Console(file=sys.stdout)
    console.print(_top_rows(found))
    if len(found) > _SHOWN:
        print(f"{_SHOWN} of {len(found):,} rows; --out writes all")


def _top_rows(found: AnswerTable) -> Table:
    """Return rows as a table: as they are if they have an order, else the highest first."""
    from rich.table import Table
    from rich.text import Text

    inquiry = found.inquiry
    rows = np.arange(len(found))
    if inquiry.sorted_by_value:
        rows = np.argsort(-found["value"], kind="stable")
    shown = found.to_frame().take(rows[:_SHOWN])
    hidden = {"low", "high"} | ({"standard_error", "unclear"} if not found.n_replicas else set())
    names = [name for name in shown.column_names if name not in hidden]
    table = Table(*names, title=inquiry.value, title_justify="left")
    for row in shown.to_pylist():
        table.add_row(*(Text(_cell(name, row)) for name in names))
    return table


def _cell(name: str, row: dict[str, Any]) -> str:
    """Return one value as it is printed; an interval stands beside its standard error."""
    value = row[name]
    if value is None:
        return ""
    if name == "standard_error":
        return f"{value:,.4g} ({row['low']:,.4g} to {row['high']:,.4g})"
    if name == "unclear":
        return "unclear" if value else ""
    if name == "time":
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _chance(found: AnswerTable) -> str:
    """Say what of an answer may be chance."""
    if not found.n_replicas:
        return (
            "no replicas: nobody knows which of this is chance; "
            "retrasyn synthesize --replicates 20 makes them"
        )
    n_unclear = int(np.count_nonzero(found["unclear"]))
    return (
        f"90 % intervals from {found.n_replicas} replicas; of {len(found):,} rows, {n_unclear:,} "
        "are unclear: the interval says next to nothing"
    )
