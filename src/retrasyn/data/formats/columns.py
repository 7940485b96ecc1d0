"""Finds the columns of a table by the names that common libraries use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrasyn.data.formats.base import WGS84, Options
from retrasyn.errors import InputError

USERS = (
    *("user_id", "userid", "uid", "user", "object_id", "objectid", "oid", "taxi_id", "vehicle_id"),
    *("device_id", "driver_id", "agent_id", "person_id", "mmsi", "individual-local-identifier"),
)
TRAJECTORIES = ("traj_id", "trajectory_id", "trajid", "tid", "trip_id", "track_id", "traj")
EITHER = ("id", "name")  # used as the user if there is no better column
TIMES = (
    *("t", "time", "timestamp", "datetime", "date_time", "tracked_at", "ts", "date time"),
    *("gps_time", "event_time", "date_utc"),
)
PAIRS = (  # x before lon: coordinates beside degrees were projected on purpose
    ("x", "y"),
    ("lon", "lat"),
    ("lng", "lat"),
    ("long", "lat"),
    ("longitude", "latitude"),
    ("location-long", "location-lat"),
    ("easting", "northing"),
)
GEOMETRIES = ("geometry", "geom", "wkt", "wkb_geometry")


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the relevant columns, as the file spells them."""

    user: str
    time: str
    x: str = ""
    y: str = ""
    traj: str = ""
    geometry: str = ""  # used in place of x and y

    @property
    def wanted(self) -> list[str]:
        """All columns to read."""
        names = (self.user, self.time, self.x, self.y, self.traj, self.geometry)
        return [name for name in dict.fromkeys(names) if name]

    @property
    def names(self) -> dict[str, str]:
        """Column names by role, for error messages."""
        x, y = self.x or self.geometry, self.y or self.geometry
        return {"user": self.user, "time": self.time, "x": x, "y": y}

    @property
    def crs(self) -> str | None:
        """The coordinate system, if the column names imply degrees."""
        return WGS84 if "lat" in self.y.lower() else None


def find_columns(
    names: Sequence[str], options: Options, path: Path, *, geometry: str | None = None
) -> Columns:
    """Find the columns by the options or by their usual names, ignoring case.

    >>> find_columns(["uid", "lat", "lng", "datetime"], Options(), Path("a.csv")).wanted
    ['uid', 'datetime', 'lng', 'lat']
    """
    search = _Search(names, path)
    traj = search.given("traj", options.traj) or search.first(TRAJECTORIES)
    user = search.given("user", options.user) or search.first(USERS) or traj
    user = user or search.first(EITHER)
    # Our own files hold steps in t and may also have a column of real times.
    usual = TIMES if options.numbers == "steps" else (*TIMES[1:], TIMES[0])
    time = search.given("time", options.time) or search.first(usual)
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
        flags = " ".join(f"--{role} COLUMN" for role in missing)
        there = ", ".join(map(repr, list(names)[:30]))
        raise InputError(
            f"{path}, line 1: no column found for {', '.join(missing)} (it has {there}); "
            f"name it with {flags}, and check the delimiter"
        )
    if shape:
        x = y = ""
    return Columns(user, time, x, y, "" if traj == user else traj, shape)


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks up column names of a file, ignoring case."""

    names: Sequence[str]
    path: Path

    def first(self, aliases: Sequence[str]) -> str:
        """Return the first alias that the file has, as the file spells it."""
        spelled = {name.strip().lower(): name for name in reversed(self.names)}
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
        found = name if name in self.names else self.first([name.strip().lower()])
        if not found:
            there = ", ".join(map(repr, list(self.names)[:30]))
            raise InputError(f"{self.path} has no column {name!r} for --{role} (it has {there})")
        return found
