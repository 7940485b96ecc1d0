"""`AnswerTable`: an answer, a row for each of what it is broken down by, as a frame or a file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.answers.zones import OUTSIDE
from retrasyn.data import geojson, geoparquet
from retrasyn.data.metadata import Metadata, iso_texts
from retrasyn.data.writing_files import check_place
from retrasyn.errors import OutputError
from retrasyn.files import replacing
from retrasyn.roads.extras import load

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.answers.base import Inquiry
    from retrasyn.answers.zones import Zones
    from retrasyn.data.metadata import Clock

SUFFIXES = (".csv", ".parquet", ".geoparquet", ".geojson")
_ON_A_MAP = (".geoparquet", ".geojson")
_TYPES = {
    "t": pa.int64(),
    "time": pa.timestamp("us", tz="UTC"),
    "timestamps": pa.int64(),
    "rank": pa.int32(),
    "rank_low": pa.int32(),
    "rank_high": pa.int32(),
    "unclear": pa.bool_(),
    **dict.fromkeys(("value", "standard_error", "low", "high", "in_top"), pa.float64()),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerTable:
    """An answer: what tells each row, its value, and how far that may be off by chance.

    Without replicas nobody knows how far: standard error, interval and `unclear` are empty.
    """

    inquiry: Inquiry
    columns: dict[str, npt.NDArray[Any] | None]  # [n_rows] each; None: nothing is known
    zones: Zones | None
    clock: Clock | None
    crs: str | None
    n_replicas: int
    private: bool  # whether it was asked of a release with a receipt

    def __len__(self) -> int:
        value = self.columns["value"]
        return 0 if value is None else value.size

    def __getitem__(self, column: str) -> Any:
        """Return a column as an array, or None if nothing is known."""
        return self.columns[column]

    def to_frame(self) -> pa.Table:
        """Return a pyarrow table, which pandas, polars and duckdb read directly."""
        types = {name: _TYPES.get(name, pa.string()) for name in self.columns}
        known = Metadata(self.clock, self.crs).to_schema()
        schema = pa.schema(types, known or None)
        arrays = [
            pa.nulls(len(self), types[name])
            if values is None
            else pa.array(values, from_pandas=True).cast(types[name])
            for name, values in self.columns.items()
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        geoparquet.load_extra("pandas", "for a DataFrame")
        return self.to_frame().to_pandas()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a row each: .csv, .parquet, or for maps .geoparquet and .geojson.

        On a map a zone is its shape, a flow or trip the line between two zones.
        """
        path = check_answer_file(path)
        suffix = path.suffix.lower()
        if suffix in _ON_A_MAP and self.zones is None:
            raise OutputError(
                f"{path}: there are no zones to put on a map; name some, or write .csv or .parquet"
            )
        with replacing(path) as temporary:
            if suffix == ".csv":
                pa.csv.write_csv(self._as_text(), temporary)
            elif suffix == ".parquet":
                pa.parquet.write_table(self.to_frame(), temporary)
            elif suffix == ".geoparquet":
                pa.parquet.write_table(self._with_geometry(), temporary)
            else:
                self._write_features(temporary)

    def _as_text(self) -> pa.Table:
        """Return the table with times as text."""
        table = self.to_frame()
        times = self.columns.get("time")
        if times is None:
            return table
        texts = pa.array(iso_texts(times, whole_seconds=True))
        return table.set_column(table.column_names.index("time"), "time", texts)

    def _geometries(self) -> pa.Array:
        """Return the geometry of every row as GeoJSON, null for what is outside."""
        assert self.zones is not None  # noqa: S101 - refused before
        names = pa.array([*self.zones.names, OUTSIDE])
        if self.inquiry.shape == "zone":
            outlines = pa.array([*self.zones.outlines(), None])
            return outlines.take(_places(names, self.columns["zone"]))
        ends = [_places(names, self.columns[end]) for end in ("origin", "destination")]
        places = np.concatenate([self.zones.centres, [[np.nan, np.nan]]])
        lines = np.stack([places[end.to_numpy()] for end in ends], axis=1)  # [n_rows, 2, 2]
        return pa.array([_line(line) for line in lines.tolist()], pa.string())

    def _write_features(self, path: Path) -> None:
        table = self._as_text()
        pieces = []
        for number, name in enumerate(table.column_names):
            key = f'{"," if number else "{"}"{name}":'
            pieces += [key, _json_texts(table.column(name).combine_chunks())]
        rows = geojson.joined(
            '{"type":"Feature","properties":',
            *pieces,
            '},"geometry":',
            self._geometries().fill_null("null"),
            "}",
        )
        head = geojson.heading(self.clock, self.crs)
        with path.open("wb") as file, geojson.collection(file, head) as add:
            add(rows)

    def _with_geometry(self) -> pa.Table:
        """Return the table with shapes as well-known binary (GeoParquet)."""
        shapely = load("shapely")
        shapes = shapely.from_geojson(np.array(self._geometries().to_pylist(), object))
        binary = pa.array(shapely.to_wkb(shapes), pa.binary())
        kinds = sorted({shape.geom_type for shape in shapes if shape is not None})
        about = geoparquet.entry_of(self.crs, kinds, shapely.total_bounds(shapes))
        table = self.to_frame().append_column(geoparquet.GEOMETRY, binary)
        return table.replace_schema_metadata({**(table.schema.metadata or {}), **about})


def check_answer_file(path: str | os.PathLike[str]) -> Path:
    """Reject a path or format to which an answer cannot be written."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(
            f"output {path} ends in {path.suffix or 'nothing'}; use .csv or .parquet, or for maps "
            ".geojson or .geoparquet"
        )
    return check_place(path)


def _places(names: pa.Array, column: Any) -> pa.Array:
    """Return which zone each name is."""
    return pa.compute.index_in(pa.array(column), names)


def _line(line: list[list[float]]) -> str | None:
    """Return a line between two places, or the place that both are."""
    if line != line:  # noqa: PLR0124 - NaN: an end is outside
        return None
    if line[0] == line[1]:
        return json.dumps({"type": "Point", "coordinates": line[0]})
    return json.dumps({"type": "LineString", "coordinates": line})


def _json_texts(column: pa.Array) -> pa.Array:
    """Return values as JSON."""
    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        texts = pa.array([json.dumps(text) for text in coded.dictionary.to_pylist()])
        return texts.take(coded.indices)
    return column.cast(pa.string()).fill_null("null")
