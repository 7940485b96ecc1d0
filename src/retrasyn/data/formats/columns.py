"""Finds the columns of a table by the names that common libraries use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from retrasyn.data.formats.base import Options
from retrasyn.data.formats.understanding import FILE, FOLDER, Columns
from retrasyn.errors import InputError

# Compared without case, spaces and punctuation.
USERS = (
    *("userid", "uid", "user", "objectid", "oid", "taxiid", "vehicleid", "deviceid", "driverid"),
    *("agentid", "personid", "mmsi", "individuallocalidentifier", "trackerid", "tracker"),
    *("individualid", "animalid", "tagid", "vesselid", "courierid", "riderid", "imei", "icao24"),
    *("person", "taxi", "vehicle", "device", "driver"),
)
TRAJECTORIES = ("trajid", "trajectoryid", "tid", "tripid", "trackid", "traj", "trip", "journeyid")
EITHER = ("id", "name")  # used as the user if there is no better column
TIMES = (
    *("t", "time", "timestamp", "datetime", "trackedat", "ts", "gpstime", "eventtime", "dateutc"),
    *("basedatetime", "when", "recordedat", "utctime", "utc", "fixtime", "timestampms", "tst"),
)
PAIRS = (  # x before lon: coordinates beside degrees were projected on purpose
    ("x", "y"),
    ("lon", "lat"),
    ("lng", "lat"),
    ("long", "lat"),
    ("longitude", "latitude"),
    ("locationlong", "locationlat"),
    ("easting", "northing"),
    ("longitudee7", "latitudee7"),
)
GEOMETRIES = ("geometry", "geom", "wkt", "wkbgeometry")
_OWNERS = (FILE, FOLDER)


def plain(name: str) -> str:
    """Return a column's name without case, spaces and punctuation.

    >>> plain("# Vehicle-ID")
    'vehicleid'
    """
    return "".join(filter(str.isalnum, name.lower()))


def find_columns(
    names: Sequence[str], options: Options, path: Path, *, geometry: str | None = None
) -> Columns:
    """Find the columns by the options or by their usual names.

    >>> find_columns(["uid", "lat", "lng", "datetime"], Options(), Path("a.csv")).wanted
    ['uid', 'datetime', 'lng', 'lat']
    """
    search = _Search(names, path)
    traj = search.given("traj", options.traj) or search.first(TRAJECTORIES)
    owner = options.user if options.user in _OWNERS and options.user not in names else ""
    sure = f"the {owner}" if owner else search.given("user", options.user) or search.first(USERS)
    user = sure or traj or search.first(EITHER)
    # Our own files hold steps in t and may also have a column of real times.
    usual = TIMES if options.numbers == "steps" else (*TIMES[1:], TIMES[0])
    time = search.given("time", options.time) or search.given("date", options.date)
    time = time or search.first(usual)
    clock = search.given("clock", options.clock)
    x, y = search.given("x", options.x), search.given("y", options.y)
    if geometry and not (x or y):
        shape = geometry
    else:
        shape = ""
        pair_x, pair_y = search.pair()
        x, y = x or pair_x, y or pair_y
        if not (x and y):
            shape = search.first(GEOMETRIES)
    missing = [
        role
        for role, found in (("user", user), ("time", time), ("x", x or shape), ("y", y or shape))
        if not found
    ]
    if missing:
        settings = ", ".join(f'`{role}="COLUMN"`' for role in missing)
        whole = ', or say `user="file"` if all of it is of one person' if "user" in missing else ""
        there = ", ".join(map(repr, list(names)[:30]))
        raise InputError(
            f"{path}: no column found for {', '.join(missing)} (it has {there}); name it with "
            f"{settings}{whole}"
        )
    if shape:
        x = y = ""
    doubt: Literal["", "column"] = "" if sure else "column"
    found = Columns(
        user, time, x, y, "" if traj == user else traj, shape, clock=clock, doubt=doubt, owner=owner
    )
    return replace(found, unused=tuple(name for name in names if name not in found.wanted))


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks up column names of a file, ignoring case."""

    names: Sequence[str]
    path: Path

    def first(self, aliases: Sequence[str]) -> str:
        """Return the first alias that the file has, as the file spells it."""
        spelled = {plain(name): name for name in reversed(self.names)}
        inner = [plain(name.rpartition(".")[2]) for name in self.names]  # of members of members
        spelled = {
            last: name
            for last, name in zip(inner, self.names, strict=True)
            if inner.count(last) == 1
        } | spelled
        return next((spelled[alias] for alias in aliases if alias in spelled), "")

    def pair(self) -> tuple[str, str]:
        """Return the first pair of coordinate columns that the file has."""
        for x, y in PAIRS:
            if self.first([x]) and self.first([y]):
                return self.first([x]), self.first([y])
        return "", ""

    def given(self, role: str, name: str | None) -> str:
        """Return a column named in the options; a missing one is an error."""
        if name is None:
            return ""
        found = name if name in self.names else self.first([plain(name)])
        if not found:
            there = ", ".join(map(repr, list(self.names)[:30]))
            raise InputError(f"{self.path} has no column {name!r} for `{role}` (it has {there})")
        return found
