"""``retrasyn generate``: moving objects on a road network, any number of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress, saying_stopped


def generate(
    network: Annotated[
        str,
        typer.Option(
            metavar="FILE|city",
            help="A file of roads (see: retrasyn help public-maps), or city (built in).",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write: .parquet or .csv.")],
    objects: Annotated[int, typer.Option(help="Objects at step 0.")] = 10_000,
    new: Annotated[int, typer.Option(help="Objects that appear at every later step.")] = 500,
    steps: Annotated[int, typer.Option(help="Number of steps.")] = 501,
    speed: Annotated[
        float,
        typer.Option(help="Share of the map's width plus height driven per step on fastest roads."),
    ] = 0.02,
    rhythm: Annotated[
        int | None,
        typer.Option(metavar="STEPS", help="Length of a day with tides to work and home."),
    ] = None,
    reroute: Annotated[
        int | None,
        typer.Option(metavar="STEP", help="From this step on all trips move to another place."),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(help="Crossings of the city, at least. (default: 5000)", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    roads: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.geojson",
            help="Where to write the network. (default: beside OUT, where synthesize finds it)",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a stream of objects that drive through a road network, after Brinkhoff.

    Example: retrasyn generate --network city --objects 2000 --new 100 --steps 200 -o city.parquet
    """
    from retrasyn.data.moving_objects.city_network import city_network
    from retrasyn.data.moving_objects.generate import generate as make
    from retrasyn.data.writing_files import check_writable, write
    from retrasyn.data.writing_roads import check_roads_place, roads_beside, write_roads
    from retrasyn.errors import SettingError
    from retrasyn.roads.reading_networks import read_network

    check_writable(out)
    roads = roads_beside(out) if roads is None else roads
    check_roads_place(roads)
    if network == "city":
        driven = city_network() if size is None else city_network(size)
    elif size is not None:
        raise SettingError(f"--size {size} is for --network city; a file has the size it has")
    else:
        driven = read_network(network)
    with saying_stopped(), interruptible_progress(quiet or as_json) as progress:
        made = make(
            driven,
            n_objects=objects,
            n_new=new,
            n_steps=steps,
            speed=speed,
            rhythm=rhythm,
            reroute=reroute,
            seed=seed,
            progress=progress,
        )
    write(made, out)
    write_roads(driven, roads)
    summary = {
        "points": made.n_points,
        "streams": made.n_streams,
        "mean_length": round(made.n_points / made.n_streams, 2),
        "steps": steps,
        "nodes": driven.n_nodes,
        "edges": driven.n_edges,
    }
    if as_json:
        print(json.dumps(summary, indent=2))
    elif not quiet:
        print(_table(summary, out) + f"\n  {'network':<12}{roads}")


def _table(summary: dict[str, int | float], out: Path) -> str:
    """Lay the summary out in two columns."""
    rows = [f"  {name.replace('_', ' '):<12}{value:>14,}" for name, value in summary.items()]
    return "\n".join([str(out), *rows])
