"""``retrasyn roads``: what is understood of a public road network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options

if TYPE_CHECKING:
    from retrasyn.roads.public_map import PublicMap
    from retrasyn.roads.summary import RoadSummary


def roads(
    network: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Roads: .geojson, .osm.pbf, .gpkg, .shp, or a pair of text files."
        ),
    ],
    box: Annotated[
        str | None,
        typer.Option(metavar="x0,y0,x1,y1", help="Cut off what lies outside, in data coordinates."),
    ] = None,
    to_crs: Annotated[
        str | None, typer.Option(metavar="EPSG:N", help="Coordinate system of the data.")
    ] = None,
    prior: options.Prior = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png|svg", help="Draw roads and prior into a file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")
    ] = False,
) -> None:
    """Show what is understood of a road network, before it is used as a public map.

    Example: retrasyn roads city.roads.geojson --plot roads.png
    """
    from retrasyn.report.road_picture import check_picture, draw_map
    from retrasyn.roads.opening import open_map
    from retrasyn.roads.summary import RoadSummary
    from retrasyn.space import Box

    if plot is not None:
        check_picture(plot)
    extent = None if box is None else Box.parse(box)
    known = open_map(extent, roads=network, prior=prior, crs=to_crs)
    assert known.roads is not None  # noqa: S101 - they were given
    summary = RoadSummary.of(known.roads)
    if plot is not None:
        draw_map(known, plot)
    if as_json:
        print(json.dumps(summary.to_dict() | {"map": known.to_dict()}, indent=2))
        return
    print("\n".join([str(network), *(f"  {row}" for row in _rows(summary, known))]))
    if plot is not None:
        print(f"plot: {plot}")


def _rows(summary: RoadSummary, known: PublicMap) -> Iterator[str]:
    """Yield a line for each thing that was understood."""
    from retrasyn.roads.network import CLASS_NAMES
    from retrasyn.space.grid import format_box

    yield _row("nodes", f"{summary.n_nodes:,}, of which {summary.n_stubs:,} are dead ends")
    yield _row("roads", f"{summary.n_edges:,}, {summary.length:,.6g} long in all")
    if summary.by_class is None:
        yield _row("classes", "none: all roads are as fast")
    else:
        shares = enumerate(zip(CLASS_NAMES, summary.by_class, strict=True))
        words = [f"{n} {name} {100 * share:.3g} %" for n, (name, share) in shares if share]
        yield _row("classes", ", ".join(words) + " of the length")
    yield _row("one-ways", f"{summary.n_one_way:,}")
    yield _row("left out", ", ".join(_left_out(summary)) or "nothing")
    yield _row(
        "box",
        f"{format_box(known.box)}" + (f", {summary.n_cut:,} roads cut at it" * bool(summary.n_cut)),
    )
    yield _row("coordinates", summary.crs or "not said: taken to be those of the data")
    yield _row("prior", known.weighting)
    yield _row("sha256", known.sha256)


def _left_out(summary: RoadSummary) -> Iterator[str]:
    """Yield what was left out of a network."""
    if summary.n_others:
        yield f"{summary.n_others:,} lines that are no roads for cars"
    if summary.n_doubled:
        yield f"{summary.n_doubled:,} loops or roads beside a faster one"
    if summary.n_left_out:
        yield f"{summary.n_left_out:,} nodes without a way to the others and back"


def _row(name: str, value: str) -> str:
    return f"{name:<12}{value}"
