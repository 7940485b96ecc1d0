"""GeoPackage, Shapefile, FlatGeobuf and spreadsheets, which GDAL reads (extra [geo])."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options
from retrasyn.data.formats.blocks import files_of, whole_file
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.tables import ROWS, fixes_of
from retrasyn.data.geoparquet import load_extra
from retrasyn.errors import InputError

VECTORS = (".gpkg", ".shp", ".fgb")
SHEETS = (".xlsx", ".ods")
_HEADED = {"OGR_XLSX_HEADERS": "FORCE", "OGR_ODS_HEADERS": "FORCE"}


def read_vectors(path: Path, options: Options) -> Iterator[Fixes]:
    """Read the points of a file, or of all such files of a folder."""
    yield from _read_all(files_of(path, *VECTORS), options)


def read_sheets(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a spreadsheet, whose first row names the columns, or all of a folder."""
    yield from _read_all(files_of(path, *SHEETS), options)


def _read_all(files: list[Path], options: Options) -> Iterator[Fixes]:
    for file in files:
        with whole_file(file) as whole:
            yield from _read(file, whole, options)


def _read(path: Path, whole: Path, options: Options) -> Iterator[Fixes]:
    pyogrio = load_extra("pyogrio", f"to read {path.name}")
    try:
        layer = _only_layer(pyogrio, path, whole)
        layers = pyogrio.raw.open_arrow(whole, layer=layer, use_pyarrow=True, batch_size=ROWS)
        with ExitStack() as stack:
            with _quiet_and_headed(pyogrio):
                about, reader = stack.enter_context(layers)
            names = reader.schema.names
            geometry = about["geometry_name"] or "wkb_geometry"
            columns = find_columns(
                names, options, path, geometry=geometry if geometry in names else None
            )
            yield from fixes_of(reader, columns, path, options, crs=about["crs"])
    except (pyogrio.errors.DataSourceError, RuntimeError, pa.ArrowException) as error:
        first = str(error).partition("; It might help")[0].splitlines()[0][:200]
        raise InputError(f"{path} cannot be read: {first}; check that the file is whole") from None


@contextmanager
def _quiet_and_headed(pyogrio: Any) -> Iterator[None]:
    """Open files without GDAL's warnings, and sheets whose first row is a header in any case."""
    pyogrio.set_gdal_config_options(_HEADED)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what GDAL finds odd and reads nevertheless
            yield
    finally:
        pyogrio.set_gdal_config_options(dict.fromkeys(_HEADED))


def _only_layer(pyogrio: Any, path: Path, whole: Path) -> str:
    """Return the name of the one layer, or sheet, that holds anything to read."""
    layers = [str(name) for name, _ in pyogrio.list_layers(whole)]
    if len(layers) != 1:
        raise InputError(
            f"{path} has {len(layers)} layers ({', '.join(layers)[:200]}); save the one with the "
            "positions as a file of its own"
        )
    return layers[0]
