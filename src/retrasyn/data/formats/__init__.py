"""Readers of raw position files and folders, one module per format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrasyn.data.formats.base import Fixes, Options, Read
from retrasyn.data.formats.blocks import unpacked
from retrasyn.data.formats.brinkhoff import read_brinkhoff
from retrasyn.data.formats.csv import read_csv
from retrasyn.data.formats.geojson import read_geojson
from retrasyn.data.formats.geolife import read_geolife
from retrasyn.data.formats.gpx import read_gpx
from retrasyn.data.formats.mf_json import read_mf_json
from retrasyn.data.formats.parquet import read_geoparquet, read_parquet
from retrasyn.data.formats.porto import read_porto
from retrasyn.data.formats.tdrive import read_tdrive
from retrasyn.errors import InputError, SettingError

_HEAD = 1 << 16
_BY_CONTENT = {".parquet", ".csv", ".txt", ".dat", ".json"}


def guess(path: Path) -> str:
    """Guess the format of a file or folder from its suffix and content."""
    if path.is_dir():
        path = _first_known(path)
    suffix = _suffix(path)
    for row in FORMATS.values():
        if suffix in row.suffixes:
            return row.name
    if suffix not in _BY_CONTENT:
        raise InputError(f"{path} ends in {suffix or 'nothing'}; name its format instead of auto")
    if suffix == ".parquet":
        return _guess_parquet(path)
    with unpacked(path) as file:
        head = file.read(_HEAD)
    if suffix == ".json":
        return "mf-json" if b"temporalGeometry" in head or b'"datetimes"' in head else "geojson"
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip()
    if first.split(b"\t")[0] in {b"newpoint", b"point", b"disappearpoint"}:
        return "brinkhoff"
    if b"POLYLINE" in first:
        return "porto"
    bare = first.split(b",")
    return "tdrive" if len(bare) == 4 and bare[1][:4].isdigit() else "csv"  # noqa: PLR2004


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _first_known(folder: Path) -> Path:
    """Return the file that decides a folder's format: the first one with a known suffix."""
    own = (suffix for row in FORMATS.values() for suffix in row.suffixes)
    known_suffixes = _BY_CONTENT.union(own)
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            known = _suffix(path) in known_suffixes
            # GeoLife's folders hold text files of labels beside the recordings
            if known and name != "labels.txt" and path.stat().st_size:
                return path
    raise InputError(f"{folder} holds no file of a known format; name the format instead of auto")


def _guess_parquet(path: Path) -> str:
    import pyarrow as pa  # noqa: PLC0415 - needed for Parquet files only
    import pyarrow.parquet  # noqa: PLC0415

    try:
        metadata = pa.parquet.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as parquet: {str(error)[:200]}") from None
    return "geoparquet" if b"geo" in metadata else "parquet"


__all__ = ["FORMATS", "Fixes", "Format", "Options", "guess", "read_fixes"]


@dataclass(frozen=True, slots=True)
class Format:
    """A raw file format and its reader."""

    name: str
    summary: str
    read: Read
    columns: tuple[str, ...] = ()  # columns that options may name
    suffixes: tuple[str, ...] = ()  # suffixes unique to this format


_ALL = ("user", "time", "x", "y", "traj")

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
            ("user", "time", "traj"),
            (".geojson", ".geojsonl", ".geojsonseq", ".ndjson"),
        ),
        Format("tdrive", "folder of id,time,lon,lat text files", read_tdrive),
        Format("geolife", "folder tree of .plt files", read_geolife, suffixes=(".plt",)),
        Format("porto", "CSV of trips with a POLYLINE, 15 seconds apart", read_porto),
        Format("brinkhoff", "network-based generator; time in steps", read_brinkhoff),
        Format("gpx", "timed track points", read_gpx, ("user",), (".gpx",)),
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
