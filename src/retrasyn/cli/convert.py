"""``retrasyn convert``: raw positions of any common format in, steps and streams out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped
from retrasyn.cli.pages import in_flags
from retrasyn.errors import SettingError

if TYPE_CHECKING:
    from retrasyn.data.conversion_summary import ConversionSummary
    from retrasyn.data.trajectories import Trajectories

_KINDS = (
    *("csv", "parquet", "geoparquet", "geojson", "tdrive", "geolife", "porto", "brinkhoff", "gpx"),
    *("kml", "fit", "json", "feather", "vector", "excel", "yjmob", "mf-json"),
)
_Column = typer.Option(metavar="COLUMN", help="Its column, where the name is unusual.")


@saying_stopped()
def convert(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file or a folder.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write, by suffix.")],
    kind: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"auto, {', '.join(_KINDS)}.")
    ] = "auto",
    every: Annotated[
        str | None, typer.Option(metavar="10min", help="Length of a step; its last fix is kept.")
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(metavar="x0,y0,x1,y1", help="Leave out what is outside, in output units."),
    ] = None,
    from_crs: Annotated[
        str | None, typer.Option(metavar="EPSG:4326", help="Coordinate system of the input.")
    ] = None,
    to_crs: Annotated[
        str | None, typer.Option(metavar="EPSG:3857", help="Project to this system.")
    ] = None,
    dense: Annotated[bool, typer.Option("--dense", help="Number empty steps away.")] = False,
    on_error: Annotated[
        Literal["fail", "skip"], typer.Option(help="A line that cannot be used.")
    ] = "fail",
    user: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Who a person is; or file, or folder, if each is one person's."
        ),
    ] = None,
    time: Annotated[str | None, _Column] = None,
    date: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --clock, in the place of --time.")
    ] = None,
    clock: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The time of day beside --date.")
    ] = None,
    x: Annotated[str | None, _Column] = None,
    y: Annotated[str | None, _Column] = None,
    traj: Annotated[str | None, _Column] = None,
    timezone: Annotated[str, typer.Option(help="Of times without an offset.")] = "UTC",
    time_format: Annotated[
        str | None,
        typer.Option(metavar="'%d/%m/%Y %H:%M'", help="How times are written."),
    ] = None,
    decimal: Annotated[str, typer.Option(help="A point or a comma.")] = ".",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Turn raw positions into the file that synthesize reads.

    One point per user and step, streams cut where a user is missing. Times that are whole numbers
    count steps unless --every is given.

    Example: retrasyn convert taxi_log/ -o taxis.parquet --every 10min
    """
    from retrasyn.data.discretise import discretise, read_period
    from retrasyn.data.formats import Options, read_fixes
    from retrasyn.data.writing_files import check_apart, check_writable, write
    from retrasyn.space import Box

    _refuse_format_word(source, context.args)
    reading = Options(
        user=user,
        time=time,
        date=date,
        clock=clock,
        x=x,
        y=y,
        traj=traj,
        timezone=timezone,
        time_format=time_format,
        decimal=decimal,  # type: ignore[arg-type] # checked there
        numbers="steps" if every is None else "seconds",
        on_error=on_error,
        from_crs=from_crs,
    )
    if every is not None:
        read_period(every)
    extent = None if box is None else Box.parse(box)
    check_writable(out)
    check_apart(out, source, named="input")
    with _counting(quiet=quiet or as_json) as progress:
        real, summary = discretise(
            read_fixes(source, kind, reading),
            every=every,
            box=extent,
            from_crs=from_crs,
            to_crs=to_crs,
            dense=dense,
            progress=progress,
        )
        write(real, out)
    for warning in summary.warnings:
        sys.stderr.write(f"WARNING: {in_flags(warning)}\n")
    if as_json:
        print(json.dumps(_facts(real, summary), indent=2))
    elif not quiet:
        _show(out, real, summary)


def _refuse_format_word(first: Path, others: list[str]) -> None:
    """Say what to type in the place of the older form, which began with a format."""
    if not others:
        return
    if str(first) in {"auto", *_KINDS}:
        option = "" if str(first) == "auto" else f" --format {first}"
        raise SettingError(
            f"the format is an option now, and rarely needed: retrasyn convert {others[0]} -o OUT"
            f"{option}"
        )
    raise SettingError(
        f"one FILE, or a folder of files, is converted at a time, not {others[0]} too"
    )


@contextmanager
def _counting(*, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Give a callback that shows how many fixes were read, on a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,} fixes"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    task = bar.add_task("", total=None)
    with bar:
        yield lambda n_fixes: bar.update(task, completed=n_fixes)


def _facts(real: Trajectories, summary: ConversionSummary) -> dict[str, object]:
    """Return the summary, what a timestamp means and the coordinate system."""
    clock = None if real.clock is None else {"epoch": real.clock.epoch, "period": real.clock.period}
    warnings = [in_flags(warning) for warning in summary.warnings]
    return {**summary.to_dict(), "warnings": warnings, "clock": clock, "crs": real.crs}


def _show(out: Path, real: Trajectories, summary: ConversionSummary) -> None:
    """Print what was understood, and the summary as a table."""
    from rich.console import Console
    from rich.table import Table

    for understood in summary.understood:
        print(understood)
    table = Table(title=str(out), show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    rows = {
        "fixes read": f"{summary.n_fixes:,}",
        "points": f"{summary.n_points:,}",
        "users": f"{summary.n_users:,}",
        "streams": f"{summary.n_streams:,}",
        "mean length": f"{summary.mean_length:.1f}",
        "timestamps": f"{summary.n_timestamps:,}",
        "dropped, not the last in its step": f"{summary.n_duplicates:,}",
        "dropped, outside the box": f"{summary.n_outside:,}",
        "dropped, cannot be projected": f"{summary.n_unprojectable:,}",
        "skipped lines": f"{summary.n_skipped:,}",
        "epoch": "" if real.clock is None else real.clock.epoch,
        "step": "" if real.clock is None else f"{real.clock.period:g} s",
        "coordinates": real.crs or "",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console(file=sys.stdout).print(table)
