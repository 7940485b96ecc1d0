"""Which format a file or folder is in, by its suffix and its first bytes."""

from __future__ import annotations

import os
from pathlib import Path

from retrasyn.data.formats.blocks import unpacked
from retrasyn.errors import InputError

_HEAD = 1 << 16
_BY_SUFFIX = {
    ".plt": "geolife",
    ".gpx": "gpx",
    ".geojson": "geojson",
    ".geojsonl": "geojson",
    ".geojsonseq": "geojson",
    ".ndjson": "geojson",
    ".mfjson": "mf-json",
    ".geoparquet": "geoparquet",
    ".tsv": "csv",
}
_BY_CONTENT = {".parquet", ".csv", ".txt", ".dat", ".json"}


def guess(path: Path) -> str:
    """Return the name of a format."""
    if path.is_dir():
        path = _first_known(path)
    suffix = _suffix(path)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
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
    """Return the file a folder is judged by: the first, in order, of a suffix we know."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            known = _suffix(path) in _BY_CONTENT or _suffix(path) in _BY_SUFFIX
            # GeoLife's folders hold labels in text beside the recordings
            if known and name != "labels.txt" and path.stat().st_size:
                return path
    raise InputError(f"{folder} holds no file of a known format; name the format instead of auto")


def _guess_parquet(path: Path) -> str:
    import pyarrow as pa  # noqa: PLC0415 - with its door beside it
    import pyarrow.parquet  # noqa: PLC0415

    try:
        metadata = pa.parquet.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as parquet: {str(error)[:200]}") from None
    return "geoparquet" if b"geo" in metadata else "parquet"
