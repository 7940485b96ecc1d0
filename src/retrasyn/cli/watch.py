"""``retrasyn watch``: the live map over recorded files, the real one beside the synthetic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrasyn.cli import options
from retrasyn.cli.comparing import (
    ComparisonBox,
    check_files,
    extent_of,
    pair_of,
    read_file,
    read_receipt,
)
from retrasyn.cli.interrupts import saying_stopped
from retrasyn.errors import InputError, MissingExtra, SettingError

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.service.settings import MapSettings
    from retrasyn.service.viewing.source import ViewerContent
    from retrasyn.space import Box, Grid


HERE = "127.0.0.1"
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of the map; 0: any free one.")
]
Open = Annotated[bool, typer.Option("--open", help="Open the map in the browser.")]


@contextmanager
def needing_serve() -> Iterator[None]:
    """Raise with the install command if the server libraries are missing."""
    try:
        yield
    except ImportError as error:
        library = (error.name or "a library").partition(".")[0]
        raise MissingExtra(f'{library} is not installed: pip install "retrasyn[serve]"') from None


def announcing(what: str, *, opens: bool) -> Callable[[str], None]:
    """Return a callback that prints where the map is, and opens it if asked to."""

    def announce(url: str) -> None:
        print(f"{what}: {url}\nStop with Ctrl-C.", flush=True)
        if opens:
            _open_page(url)

    return announce


def _open_page(url: str) -> None:
    """Open an address in the browser, without showing it to others in the list of processes."""
    import atexit
    import tempfile
    import webbrowser
    from html import escape

    text = f"""<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={escape(url)}">
"""
    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="retrasyn-", delete=False) as page:
        page.write(text)  # readable for its owner only
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())


_SIDE = 6
_MERCATOR = ("EPSG:3857", "EPSG:900913")


@saying_stopped("nothing is kept")
def watch(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="[REAL] SYN", help="The synthetic data, the real before it."),
    ],
    grid: Annotated[
        int | None,
        typer.Option(
            "--grid",
            help="Side K of the grid, 1 to 64. (default: that of the receipt, else 6)",
            show_default=False,
        ),
    ] = None,
    box: ComparisonBox = None,
    roads: Annotated[
        Path | None,
        typer.Option(
            metavar="NETWORK",
            help="Roads to draw below the cells. (default: those beside REAL, if there are any)",
            show_default=False,
        ),
    ] = None,
    zones: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Polygons, with a name each, that the map can show instead of cells.",
            show_default=False,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting of the map, such as style."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HERE,
    port: Port = 8700,
    opens: Open = False,
) -> None:
    """Look at synthetic data on the live map, beside the real data where it is given.

    Everything stays on this machine. Whoever knows the address sees the real positions.

    Example: retrasyn watch trips.parquet synthetic.parquet
    """
    with needing_serve():
        from retrasyn.service.web.running import ViewerServer
    *before, path = files
    if len(before) > 1:
        raise SettingError(f"{len(files)} files were given; name one real and one synthetic file")
    check_files(box, _SIDE if grid is None else grid, files)
    changes = _map_changes(setting)
    if zones is not None:
        changes["map.zones"] = str(zones)
    roads = roads or options.own_roads(files[0])
    with ViewerServer(host=host, port=port) as viewer_server, TemporaryDirectory() as folder:
        content, crs = _read_content(before, path, grid, box)
        if roads is not None:
            changes["map.roads"] = str(_lines_of(roads, crs, content.source.grid.box, Path(folder)))
        _warn(content, host)
        raise typer.Exit(
            viewer_server.show(
                content,
                _map_settings(changes, crs),
                announce=announcing(f"{path.name} is shown at", opens=opens),
            )
        )


def _read_content(
    before: list[Path], path: Path, side: int | None, box: str | None
) -> tuple[ViewerContent, str | None]:
    """Read the files and put together what is shown of them; say in which coordinates it is."""
    from retrasyn.data.replica_files import replica_paths
    from retrasyn.service.viewing.recordings import recording_content

    values = read_receipt(path)
    receipt = None if values is None else _checked(values, path)
    real = read_file(before[0]) if before else None
    synthetic = read_file(path)
    shown = recording_content(
        synthetic,
        _grid(real, synthetic, _side(side, values, path), extent_of(box, {path: values})),
        real=real,
        receipt=receipt,
        title=f"{path.name} against {before[0].name}" if before else path.name,
        replicas=map(read_file, replica_paths(path)),
    )
    return shown, synthetic.crs or (real.crs if real else None)


def _checked(values: dict[str, Any], path: Path) -> Receipt | None:
    """Return the receipt beside a file, unless it speaks of another one."""
    from retrasyn.receipts.files import describe, receipt_place
    from retrasyn.receipts.files import read_receipt as read_values

    receipt = read_values(values, name=str(receipt_place(path)))
    if receipt.data_file is not None and receipt.data_file.sha256 != describe(path).sha256:
        sys.stderr.write(
            f"warning: the receipt beside {path} belongs to another file (its digest differs); "
            "it is not shown\n"
        )
        return None
    return receipt


def _side(asked: int | None, values: dict[str, Any] | None, path: Path) -> int:
    """Return the side of the grid that was asked for, else that of the receipt, else the usual."""
    if asked is not None:
        return asked
    side = _SIDE if values is None else values.get("grid", _SIDE)
    if type(side) is not int:
        raise InputError(f"the receipt of {path} has a grid that is no number; give --grid")
    return side


def _grid(
    real: Trajectories | None, synthetic: Trajectories, side: int, extent: Box | None
) -> Grid:
    """Return the grid of both, once it is sure that they can be compared on it."""
    from retrasyn.metrics.pair import check_inside
    from retrasyn.metrics.suite import grid_over

    notes: list[str] = []
    if real is None:
        grid = grid_over(synthetic, side, extent)
        check_inside("synthetic", synthetic.x, synthetic.y, grid, notes)
    else:
        pair = pair_of(real, synthetic, extent, side)
        grid, notes = pair.grid, [*pair.notes]
    for note in notes:
        sys.stderr.write(f"warning: {note}\n")
    return grid


def _lines_of(roads: Path, crs: str | None, box: Box, folder: Path) -> Path:
    """Return a file of lines to draw, in the coordinates of the data."""
    from retrasyn.data.writing_roads import SUFFIXES, write_roads
    from retrasyn.roads.projecting import in_system
    from retrasyn.roads.reading_networks import read_network

    if roads.suffix.lower() in SUFFIXES:  # whatever lines it has
        return roads
    lines = folder / "roads.geojson"
    write_roads(in_system(read_network(roads), crs, box, roads.name), lines)
    return lines


def _map_changes(pairs: list[str] | None) -> dict[str, str]:
    """Read settings of the map, which may be named with or without their table."""
    from retrasyn.service.settings import MapSettings

    changes = {}
    for name, value in options.read_settings(pairs).items():
        field = name.removeprefix("map.")
        if field not in MapSettings.model_fields:
            known = ", ".join(MapSettings.model_fields)
            raise SettingError(f"unknown setting {name!r} of the map; choose from {known}")
        changes[f"map.{field}"] = value
    return changes


def _map_settings(changes: dict[str, str], crs: str | None) -> MapSettings:
    """Return the settings of the map, with the coordinates of the data unless others are given."""
    from retrasyn.data.geoparquet import LONGITUDE_LATITUDE
    from retrasyn.service.settings import Settings

    known = (crs or "").upper()
    if known in LONGITUDE_LATITUDE:
        changes = {"map.coordinates": "degrees"} | changes
    elif known in _MERCATOR:
        changes = {"map.coordinates": "mercator"} | changes
    return Settings.load(None, changes).map


def _warn(content: ViewerContent, host: str) -> None:
    """Warn who can see what, loudly if that is more than this machine."""
    from retrasyn.client.curator_client import is_loopback_host

    if content.real is not None:
        what = "real positions"
    elif content.source.receipt() is None:
        what = "data that no receipt calls synthetic"
    else:
        return
    if is_loopback_host(host):
        sys.stderr.write(
            f"warning: this shows {what} to whoever on this machine knows the address\n"
        )
        return
    sys.stderr.write(
        f"WARNING: THIS SHOWS {what.upper()} TO EVERYBODY WHO KNOWS THE ADDRESS AND CAN REACH "
        f"{host}, NOT ONLY ON THIS MACHINE; LEAVE --host AWAY UNLESS YOU MEAN IT\n"
    )
