"""Raw positions from the files and folders of other programs, one module per format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrasyn.data.formats.base import Fixes, Options, Read
from retrasyn.data.formats.brinkhoff import read_brinkhoff
from retrasyn.data.formats.csv import read_csv
from retrasyn.data.formats.geojson import read_geojson
from retrasyn.data.formats.geolife import read_geolife
from retrasyn.data.formats.geoparquet import read_geoparquet
from retrasyn.data.formats.gpx import read_gpx
from retrasyn.data.formats.guessing import guess
from retrasyn.data.formats.mf_json import read_mf_json
from retrasyn.data.formats.parquet import read_parquet
from retrasyn.data.formats.porto import read_porto
from retrasyn.data.formats.tdrive import read_tdrive
from retrasyn.errors import InputError, SettingError

__all__ = ["FORMATS", "Fixes", "Format", "Options", "guess", "read_fixes"]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of raw file."""

    name: str
    summary: str
    read: Read
    columns: tuple[str, ...] = ()  # that may be named


_ALL = ("user", "time", "x", "y", "traj")

FORMATS = {
    row.name: row
    for row in (
        Format("csv", "lines with a header; columns found by name", read_csv, _ALL),
        Format("parquet", "columns found by name", read_parquet, _ALL),
        Format("geoparquet", "points and their coordinate system", read_geoparquet, _ALL),
        Format("geojson", "point features", read_geojson, ("user", "time", "traj")),
        Format("tdrive", "folder of id,time,lon,lat text files", read_tdrive),
        Format("geolife", "folder tree of .plt files", read_geolife),
        Format("porto", "CSV of trips with a POLYLINE, 15 seconds apart", read_porto),
        Format("brinkhoff", "network-based generator; time in steps", read_brinkhoff),
        Format("gpx", "timed track points", read_gpx, ("user",)),
        Format("mf-json", "OGC Moving Features JSON", read_mf_json, ("user", "traj")),
    )
}


def read_fixes(
    path: str | os.PathLike[str], kind: str = "auto", options: Options | None = None
) -> Iterator[Fixes]:
    """Read a file or folder chunk by chunk; `auto` goes by suffix and content."""
    path = Path(path)
    if kind != "auto" and kind not in FORMATS:
        raise SettingError(f"format {kind!r} is not known; use auto, {', '.join(FORMATS)}")
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"{path} does not exist; check the path")
    row = FORMATS[guess(path) if kind == "auto" else kind]
    options = options or Options()
    for name in _ALL:
        if getattr(options, name) is not None and name not in row.columns:
            takes = ", ".join(f"--{name}" for name in row.columns) or "none"
            raise SettingError(
                f"--{name} does not fit the format {row.name}, whose columns are fixed "
                f"(it takes {takes}); leave it away"
            )
    return row.read(path, options)
