"""Releases as other tools read them; every tool is a row of `EXPORTS`."""

from __future__ import annotations

import datetime as dt
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from retrasyn.answers.asking import grid_beside
from retrasyn.answers.zones import GridZones, open_zones
from retrasyn.data.discretise import read_period
from retrasyn.data.geoparquet import projjson
from retrasyn.data.metadata import Clock
from retrasyn.data.reading_files import read
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import check_apart, check_place, write_native
from retrasyn.errors import OutputError, SettingError
from retrasyn.exports.kepler import write_lines
from retrasyn.exports.matsim import write_plans
from retrasyn.exports.qgis import write_layer
from retrasyn.exports.sumo import write_demand
from retrasyn.exports.sumo_roads import is_sumo_network
from retrasyn.exports.web_map import write_tiles
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    from retrasyn.answers.zones import Zones

    ZonesWish = str | os.PathLike[str] | Grid | Zones | None

_SIDE = 6  # of a grid that nobody names


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be written, and where."""

    data: Trajectories
    path: Path
    zones: ZonesWish
    grid: Grid | None  # that of the release
    roads: Path | None


@dataclass(frozen=True, slots=True)
class Export:
    """A tool, and how files for it are written."""

    name: str
    endings: tuple[str, ...]  # of the output; none: a folder
    write: Callable[[_Wish], list[str]]  # returns what there is to say
    options: tuple[str, ...] = ()
    is_timed: bool = True  # whether it needs a clock


def _kepler(wish: _Wish) -> list[str]:
    write_lines(wish.data, wish.path)
    return [f"{wish.data.n_streams:,} lines with times"]


def _qgis(wish: _Wish) -> list[str]:
    write_layer(wish.data, wish.path)
    return [f"{wish.data.n_points:,} points with times, and the style that plays them"]


def _matsim(wish: _Wish) -> list[str]:
    trips = write_plans(wish.data, wish.path)
    return [f"{trips.n_trips:,} persons; {trips.n_still:,} streams of one point make no trip"]


def _sumo(wish: _Wish) -> list[str]:
    data, folder = wish.data, wish.path
    box = Box.around(data.x, data.y) if wish.grid is None else wish.grid.box
    usual = wish.grid or Grid(box, _SIDE)
    zones = (
        GridZones.of(usual) if wish.zones is None else open_zones(wish.zones, box=box, crs=data.crs)
    )
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
        demand = write_demand(data, Path(made), zones, wish.roads)
        folder.mkdir(exist_ok=True)
        for file in Path(made).iterdir():
            file.replace(folder / file.name)
    held = (
        f"{demand.trips.n_trips:,} trips between {zones.n_zones:,} zones; "
        f"{demand.trips.n_still:,} streams of one point make no trip, "
        f"{demand.n_outside:,} begin or end in no zone"
    )
    return [held, *zones.notes, *_next_in_sumo(wish.roads)]


def _next_in_sumo(roads: Path | None) -> list[str]:
    """Return what to type in the folder, so that the demand drives."""
    if roads is None:
        return ["zones have no edges yet: give `roads`, or run edgesInDistricts.py of SUMO"]
    own = is_sumo_network(roads)
    net = shlex.quote(str(roads.absolute())) if own else "roads.net.xml"
    made = "netconvert -n roads.nod.xml -e roads.edg.xml --offset.disable-normalization -o "
    return [
        *([] if own else [made + net]),
        "od2trips -n taz.xml -z od.xml -o trips.xml",
        f"duarouter -n {net} --route-files trips.xml -o routes.xml",
        f"sumo -n {net} -r routes.xml",
    ]


def _tiles(wish: _Wish) -> list[str]:
    write_tiles(wish.data, wish.path)
    return ["layers cells (points, share) and trips (traj_id, begin)"]


def _geoparquet(wish: _Wish) -> list[str]:
    write_native(wish.data, wish.path)
    return [f"{wish.data.n_points:,} points as Parquet's own geometries"]


EXPORTS: dict[str, Export] = {
    row.name: row
    for row in (
        Export("sumo", (), _sumo, ("zones", "roads")),
        Export("matsim", (".xml", ".xml.gz"), _matsim),
        Export("kepler", (".geojson", ".json"), _kepler),
        Export("qgis", (".gpkg",), _qgis),
        Export("pmtiles", (".pmtiles",), _tiles, is_timed=False),
        Export("geoparquet2", (".parquet", ".geoparquet"), _geoparquet, is_timed=False),
    )
}


def export(
    source: str | os.PathLike[str] | Trajectories,
    path: str | os.PathLike[str],
    to: str,
    *,
    zones: ZonesWish = None,
    roads: str | os.PathLike[str] | None = None,
    begin: str | None = None,
    every: float | str | None = None,
    crs: str | None = None,
) -> list[str]:
    """Write a release for another tool; return what was written, and what to type next.

    Args:
        source: A file, or trajectories.
        path: Where to write: a file, or for SUMO a folder.
        to: ``sumo``, ``matsim``, ``kepler``, ``qgis``, ``pmtiles`` or ``geoparquet2``.
        zones: For SUMO, ``grid:K``, ``h3:RES``, a file of polygons, or a grid; without any, the
            grid of the release.
        roads: For SUMO, its network (``.net.xml``), or public roads of which one is made.
        begin: When timestamp 0 began, where the file does not say.
        every: How long a timestamp is, likewise.
        crs: The coordinate system, likewise.
    """
    if to not in EXPORTS:
        raise SettingError(f"nothing is written for {to[:40]!r}; choose from {', '.join(EXPORTS)}")
    row, path = EXPORTS[to], Path(path)
    _check_options(row, zones=zones, roads=roads)
    _check_path(row, path)
    clock = _clock(begin, every)
    grid = None
    if not isinstance(source, Trajectories):
        check_apart(path, Path(source), named="input")
        grid = grid_beside(Path(source)) if "zones" in row.options else None
        source = read(source)
    if not source.n_points:
        raise OutputError(
            "there are no points to write; those of a release in parts are in its folder"
        )
    data = replace(source, clock=clock or source.clock, crs=crs or source.crs)
    projjson(data.crs)  # rejects an unknown coordinate system
    if row.is_timed and data.clock is None:
        raise SettingError(
            f"{row.name} needs real times, and it is not known when timestamp 0 was; say so, for "
            "example `begin=2026-05-04T06:00+02:00` and `every=10min`"
        )
    return row.write(_Wish(data, path, zones, grid, None if roads is None else Path(roads)))


def _check_options(row: Export, **given: object) -> None:
    for name, value in given.items():
        if value is not None and name not in row.options:
            takers = [other.name for other in EXPORTS.values() if name in other.options]
            raise SettingError(f"`{name}` is for {', '.join(takers)}; leave it away for {row.name}")


def _check_path(row: Export, path: Path) -> None:
    if row.endings:
        if not path.name.lower().endswith(row.endings):
            raise OutputError(
                f"output {path} for {row.name} has to end in {' or '.join(row.endings)}"
            )
        check_place(path)
    elif path.exists() and not path.is_dir():
        raise OutputError(f"output {path} is a file; {row.name} needs a folder")
    elif not path.parent.is_dir():
        raise OutputError(f"output folder {path.parent} does not exist; create it first")


def _clock(begin: str | None, every: float | str | None) -> Clock | None:
    """Return the clock that is told in the place of a file's own."""
    if begin is None and every is None:
        return None
    if begin is None or every is None:
        raise SettingError(
            "`begin` and `every` stand together: when timestamp 0 began, and how long each is"
        )
    try:
        moment = dt.datetime.fromisoformat(begin)
    except ValueError:
        raise SettingError(
            f"`begin` {begin[:40]!r} is not a time; write for example 2026-05-04 or "
            "2026-05-04T06:00+02:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return Clock(moment.isoformat(), read_period(every) / 1e6)
