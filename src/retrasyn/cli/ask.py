"""``retrasyn ask``: tables of counts, trips and flows from a release, with what may be chance."""

from __future__ import annotations

import sys
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from rich.table import Table

    from retrasyn.answers.table import AnswerTable

_SHOWN = 20  # rows on a terminal
_TOGETHER = {
    *("timestamps", "value", "standard_error", "low", "high", "unclear"),
    *("rank", "rank_low", "rank_high", "in_top"),
}
"""Columns that are printed in another way, or not at all."""


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

    rows = np.arange(len(found))
    if found.inquiry.sorted_by_value:
        rows = np.argsort(-found["value"], kind="stable")
    zone = None if found.clock is None else found.clock.time_of(0).tzinfo
    shown = [_words(row, zone) for row in found.to_frame().take(rows[:_SHOWN]).to_pylist()]
    table = Table(*shown[0], title=found.inquiry.value, title_justify="left")
    for row in shown:
        table.add_row(*map(Text, row.values()))
    return table


def _words(row: dict[str, Any], zone: tzinfo | None) -> dict[str, str]:
    """Return the values of a row as they are printed: times on the clock of the data."""
    words = {name: str(value) for name, value in row.items() if name not in _TOGETHER}
    if "time" in row:
        del words["t"]
        words["time"] = f"{row['time'].astimezone(zone):%Y-%m-%d %H:%M}"
    words["value"] = _figure(row["value"])
    if row["standard_error"] is not None:
        words["value"] += f" ± {_figure(row['standard_error'])}"
        words["90 %"] = f"{_figure(row['low'])} to {_figure(row['high'])}"
    if row["unclear"] is not None:
        words.setdefault("90 %", "")
        words[""] = "unclear" if row["unclear"] else ""
    if "rank" in row:
        words = {"rank": str(row["rank"]), **words}
    if row.get("rank_low") is not None:
        words["rank"] += f" ({row['rank_low']} to {row['rank_high']})"
        words["in top"] = f"{row['in_top']:.0%}"
    return words


def _figure(value: float) -> str:
    """Return a number to three digits, without an exponent."""
    return f"{float(f'{value:.3g}'):,.12g}"


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
