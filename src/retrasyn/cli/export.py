"""``retrasyn export``: a release as another tool reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped
from retrasyn.cli.pages import in_flags

Tool = Literal["sumo", "matsim", "kepler", "qgis", "pmtiles", "geoparquet2"]


@saying_stopped()
def export(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A release, or other streams.")],
    to: Annotated[Tool, typer.Option(help="The tool. See: retrasyn help using-it.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write; for sumo a folder.")],
    zones: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|h3:RES|grid:K",
            help="For sumo: between which places trips are counted. (default: the release's grid)",
            show_default=False,
        ),
    ] = None,
    roads: Annotated[
        Path | None,
        typer.Option(
            metavar="NETWORK",
            help="For sumo: its network (.net.xml), or public roads of which one is made.",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            metavar="2026-05-04T06:00+02:00",
            help="When timestamp 0 began, with --every, where FILE does not say.",
        ),
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="10min", help="Length of a timestamp, with --begin.")
    ] = None,
    crs: Annotated[
        str | None,
        typer.Option(metavar="EPSG:N", help="Coordinate system, where FILE does not say."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON, and nothing else.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a release for another tool.

    Example: retrasyn export synthetic.parquet --to pmtiles -o city.pmtiles
    """
    from retrasyn.exports import export as write

    said = write(source, out, to, zones=zones, roads=roads, begin=begin, every=every, crs=crs)
    said = [in_flags(sentence) for sentence in said]
    if as_json:
        print(json.dumps({"out": str(out), "to": to, "said": said}, indent=2))
    elif not quiet:
        print("\n".join([f"{out}: {said[0]}", *(f"  {line}" for line in said[1:])]))
