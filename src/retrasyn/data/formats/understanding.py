"""`Understanding`: which columns of an input were taken for what, and what was guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WGS84 = "EPSG:4326"
FILE, FOLDER = "file", "folder"
"""What stands in the place of a user's column if all of a file or folder is one person's."""
SINCE_1970 = "since 1970, UTC"
"""The zone of times that are numbers."""
_LONGEST_NAME = 40  # a longer coordinate system is a definition in full


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the relevant columns, as the file spells them."""

    user: str
    time: str
    x: str = ""
    y: str = ""
    traj: str = ""
    geometry: str = ""  # used in place of x and y
    clock: str = ""  # the time of day, if time holds the date alone
    unused: tuple[str, ...] = ()  # columns that were not chosen
    doubt: Literal["", "column", "file"] = ""  # what was taken for the user without being told
    owner: str = ""  # file or folder: whose name is the user's, if no column's is

    @property
    def wanted(self) -> list[str]:
        """All columns to read."""
        user = "" if self.owner else self.user
        names = (user, self.time, self.clock, self.x, self.y, self.traj, self.geometry)
        return [name for name in dict.fromkeys(names) if name]

    @property
    def names(self) -> dict[str, str]:
        """Column names by role."""
        x, y = self.x or self.geometry, self.y or self.geometry
        time = f"{self.time} and {self.clock}" if self.clock else self.time
        return {"user": self.user, "time": time, "x": x, "y": y}

    @property
    def crs(self) -> str | None:
        """The coordinate system, if the column names imply degrees."""
        return WGS84 if "lat" in self.y.lower() else None


@dataclass(frozen=True, slots=True)
class Understanding:
    """What the columns of an input were taken for.

    >>> columns = Columns("tracker", "t", "X", "Y", "trip", unused=("speed",))
    >>> print(Understanding(columns, "UTC", "EPSG:4326"))
    user = tracker, stream = trip, time = t (UTC), x = X, y = Y (EPSG:4326); not used: speed
    """

    columns: Columns
    zone: str  # of the times, or "steps"
    crs: str | None

    def __str__(self) -> str:
        names, traj = self.columns.names, self.columns.traj
        parts = [f"user = {names['user']}", *([f"stream = {traj}"] if traj else [])]
        parts += [f"time = {names['time']} ({self.zone})", f"x = {names['x']}", f"y = {names['y']}"]
        crs = f" ({self.crs})" if self.crs and len(self.crs) <= _LONGEST_NAME else ""
        unused = ", ".join(self.columns.unused)
        return ", ".join(parts) + crs + (f"; not used: {unused}" if unused else "")

    def to_dict(self) -> dict[str, object]:
        """Return the columns by role, ready for JSON."""
        return {
            **self.columns.names,
            "stream": self.columns.traj or None,
            "zone": self.zone,
            "crs": self.crs,
            "unused": list(self.columns.unused),
            "user_guessed": bool(self.columns.doubt),
        }

    def warning(self, n_users: int) -> str:
        """Return what it means, and what cures it, if nothing said who a person is."""
        columns = self.columns
        multiplied = "whoever has several spends the whole budget as many times"
        if columns.doubt == "column":
            return (
                f"user = {columns.user} is a guess, since no column is named after persons: each "
                f"value counts as a person of its own, and {multiplied}. Name the persons with "
                f'`user="COLUMN"`, or confirm with `user="{columns.user}"`'
            )
        if columns.doubt == "file" and n_users > 1:
            return (
                f"nothing names the persons: each {columns.owner or columns.user} counts as a "
                f"person of its own, and {multiplied}. "
                'Write `user="folder"` if all files of a folder are of one person, or confirm with '
                '`user="file"`'
            )
        return ""
