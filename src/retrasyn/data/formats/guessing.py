"""Guesses the format of a file or folder from its name and content."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from retrasyn.data.formats.base import Format
from retrasyn.data.formats.blocks import beginning, inner_suffix
from retrasyn.data.formats.yjmob import HEADER
from retrasyn.errors import InputError

_HEAD = 1 << 16
_BY_CONTENT = {".parquet", ".csv", ".txt", ".dat", ".json", ".jsonl", ".ndjson"}
_JSON = {".json", ".jsonl", ".ndjson"}
_ELSEWHERE = {
    ".rds": "write it as CSV or Parquet in R: write.csv(readRDS(file), 'positions.csv')",
    ".rdata": "write the frame as CSV or Parquet in R: write.csv(frame, 'positions.csv')",
    ".mat": "write it as CSV in MATLAB: writetable(positions, 'positions.csv')",
    ".sas7bdat": "write it as CSV, in SAS or with pandas.read_sas",
    ".sav": "write it as CSV, in SPSS or with pandas.read_spss",
    ".dta": "write it as CSV, in Stata or with pandas.read_stata",
    ".xls": "save it as .xlsx",
    ".xlsb": "save it as .xlsx",
    ".gdb": "export the layer with the positions as GeoPackage",
    ".npy": "give the array column names: write it as CSV or Parquet",
    ".npz": "give the arrays column names: write them as CSV or Parquet",
    ".nc": "write the positions as CSV or Parquet, for example with xarray's to_dataframe",
    ".h5": "write the table as Parquet: pandas.read_hdf(file).to_parquet('positions.parquet')",
    ".hdf5": "write the table as Parquet: pandas.read_hdf(file).to_parquet('positions.parquet')",
    ".db": "write the table as CSV, for example with sqlite3 -header -csv",
    ".sqlite": "write the table as CSV, for example with sqlite3 -header -csv",
    ".tcx": "export GPX or FIT instead",
    ".pdf": "a table in it has to be written as CSV",
} | dict.fromkeys(
    (".pkl", ".pickle", ".joblib"),
    "a pickle can run any program and is never opened; where you trust it, write it as Parquet: "
    "frame.to_parquet('positions.parquet')",
)
"""Endings that nobody here reads, and what helps."""


def guess(path: Path, formats: Mapping[str, Format]) -> str:
    """Return the name of the format, judged by suffix and content."""
    if path.is_dir() and inner_suffix(path.name) not in _ELSEWHERE:
        path = _first_known(path, formats)
    suffix = inner_suffix(path.name)
    for row in formats.values():
        if suffix in row.suffixes:
            return row.name
    if suffix in _ELSEWHERE:
        raise InputError(f"{path}: files that end in {suffix} are not read; {_ELSEWHERE[suffix]}")
    if suffix not in _BY_CONTENT:
        raise InputError(
            f"{path} ends in {suffix or 'nothing'}, which says no format; name it, for example "
            '`format="csv"`'
        )
    if suffix == ".parquet":
        return _guess_parquet(path)
    head = beginning(path, _HEAD)
    return _guess_json(path, head) if suffix in _JSON else _guess_lines(head, suffix)


def _guess_lines(head: bytes, suffix: str) -> str:
    """Return the format of a text with one position per line."""
    first = head.partition(b"\n")[0].strip()
    if first.split(b"\t")[0] in {b"newpoint", b"point", b"disappearpoint"}:
        return "brinkhoff"
    if b"POLYLINE" in first:
        return "porto"
    if first.decode(errors="replace").split(",") == HEADER:
        return "yjmob"
    bare = first.split(b",")
    is_bare = len(bare) == 4 and bare[1][:4].isdigit()  # noqa: PLR2004
    return "tdrive" if is_bare and suffix == ".txt" else "csv"


def known_suffixes(formats: Mapping[str, Format]) -> set[str]:
    """Return the suffixes of files that may hold positions."""
    return _BY_CONTENT.union(suffix for row in formats.values() for suffix in row.suffixes)


def _guess_json(path: Path, head: bytes) -> str:
    if b'"semanticSegments"' in head or b'"timelineObjects"' in head:
        raise InputError(
            f"{path} is a timeline of visits and trips, not of positions; take Records.json of the "
            "same export, or GPX"
        )
    if b"temporalGeometry" in head or b'"datetimes"' in head:
        return "mf-json"
    return "geojson" if re.search(rb'"type"\s*:\s*"Feature', head) else "json"


def _first_known(folder: Path, formats: Mapping[str, Format]) -> Path:
    """Return the file that decides a folder's format: the first one with a known suffix."""
    suffixes = known_suffixes(formats)
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            known = inner_suffix(path.name) in suffixes
            # GeoLife's folders hold text files of labels beside the recordings
            if known and name != "labels.txt" and path.stat().st_size:
                return path
    raise InputError(f"{folder} holds no file of a known format; name it as `format`")


def _guess_parquet(path: Path) -> str:
    import pyarrow as pa  # noqa: PLC0415 - needed for Parquet files only
    import pyarrow.parquet  # noqa: PLC0415

    try:
        metadata = pa.parquet.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as parquet: {str(error)[:200]}") from None
    return "geoparquet" if b"geo" in metadata else "parquet"
