"""Readers of raw position files and folders, one module per format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from retrasyn.data.formats.base import Fixes, Format, Options
from retrasyn.data.formats.blocks import unzipped
from retrasyn.data.formats.brinkhoff import read_brinkhoff
from retrasyn.data.formats.csv import read_csv
from retrasyn.data.formats.feather import SUFFIXES as FEATHERS
from retrasyn.data.formats.feather import read_feather
from retrasyn.data.formats.fit import read_fit
from retrasyn.data.formats.geojson import read_geojson
from retrasyn.data.formats.geolife import read_geolife
from retrasyn.data.formats.gpx import read_gpx
from retrasyn.data.formats.guessing import guess, known_suffixes
from retrasyn.data.formats.kml import read_kml
from retrasyn.data.formats.mf_json import read_mf_json
from retrasyn.data.formats.parquet import read_geoparquet, read_parquet
from retrasyn.data.formats.porto import read_porto
from retrasyn.data.formats.records import read_records
from retrasyn.data.formats.tdrive import read_tdrive
from retrasyn.data.formats.vector import SHEETS, VECTORS, read_sheets, read_vectors
from retrasyn.data.formats.yjmob import read_yjmob
from retrasyn.errors import InputError, SettingError

__all__ = ["FORMATS", "Fixes", "Format", "Options", "guess", "read_fixes"]

_USUAL = Options()
_ZIPPED = {".zip", ".kmz"}
_ALL = ("user", "time", "date", "clock", "x", "y", "traj", "time_format", "decimal")

FORMATS = {
    row.name: row
    for row in (
        Format("csv", "lines with a header; columns found by name", read_csv, _ALL, (".tsv",)),
        Format("parquet", "columns found by name", read_parquet, _ALL),
        Format(
            "geoparquet",
            "points and their coordinate system",
            read_geoparquet,
            _ALL,
            (".geoparquet",),
        ),
        Format(
            "geojson",
            "point features",
            read_geojson,
            ("user", "time", "traj", "time_format"),
            (".geojson", ".geojsonl", ".geojsonseq"),
        ),
        Format("tdrive", "folder of id,time,lon,lat text files", read_tdrive),
        Format("geolife", "folder tree of .plt files", read_geolife, suffixes=(".plt",)),
        Format("porto", "CSV of trips with a POLYLINE, 15 seconds apart", read_porto),
        Format("brinkhoff", "network-based generator; time in steps", read_brinkhoff),
        Format("gpx", "timed track points", read_gpx, ("user",), (".gpx",)),
        Format("kml", "timed tracks and Placemarks", read_kml, ("user",), (".kml",)),
        Format("fit", "what sports watches record", read_fit, ("user",), (".fit",)),
        Format("json", "records, one per line or in a list", read_records, _ALL),
        Format("feather", "Feather or Arrow IPC", read_feather, _ALL, FEATHERS),
        Format("vector", "GeoPackage, Shapefile, FlatGeobuf", read_vectors, _ALL, VECTORS),
        Format("excel", "spreadsheets, .xlsx or .ods", read_sheets, _ALL, SHEETS),
        Format("yjmob", "YJMob100K: half hours of days", read_yjmob),
        Format("mf-json", "OGC Moving Features JSON", read_mf_json, ("user", "traj"), (".mfjson",)),
    )
}


def read_fixes(
    path: str | os.PathLike[str], kind: str = "auto", options: Options | None = None
) -> Iterator[Fixes]:
    """Read a file or folder in chunks; `auto` detects the format from suffix and content."""
    path = Path(path)
    if kind != "auto" and kind not in FORMATS:
        raise SettingError(f"format {kind!r} is not known; use auto, {', '.join(FORMATS)}")
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"{path} does not exist; check the path")
    if path.suffix.lower() in _ZIPPED and path.is_file():
        return _unzipped(path, kind, options)
    row = FORMATS[guess(path, FORMATS) if kind == "auto" else kind]
    options = options or Options()
    _check_options(options, row)
    return row.read(path, options)


def _check_options(options: Options, row: Format) -> None:
    """Reject options about columns that do not fit a format."""
    for name in _ALL:
        if getattr(options, name) != getattr(_USUAL, name) and name not in row.columns:
            takes = ", ".join(f"`{one}`" for one in row.columns) or "none"
            raise SettingError(
                f"`{name}` does not fit the format {row.name}, whose columns are fixed "
                f"(it takes {takes}); leave it away"
            )


def _unzipped(path: Path, kind: str, options: Options | None) -> Iterator[Fixes]:
    """Read the one file of an archive."""
    with unzipped(path, known_suffixes(FORMATS)) as file:
        try:
            yield from read_fixes(file, kind, options)
        except InputError as error:
            raise InputError(str(error).replace(str(file.parent), str(path))) from None
