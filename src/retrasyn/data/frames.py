"""Converts trajectories to and from Arrow tables."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from retrasyn.data import geoparquet
from retrasyn.data.metadata import Metadata, clock_of, instants, iso_texts
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.metadata import Clock

COLUMNS = ("traj_id", "t", "x", "y")
OPTIONAL = ("user_id",)
UNIX_TIMES = 100_000_000
"""Steps are numbered lower; as seconds it is 1973."""
TIME = pa.timestamp("us", tz="UTC")


# Export


def schema_of(trajectories: Trajectories, *, datetime: bool = False) -> pa.Schema:
    """Return the schema of the table that `table_of` returns, including metadata."""
    fields = {"traj_id": pa.string() if "traj_id" in trajectories.labels else pa.int64()}
    if trajectories.user_of_stream is not None:
        fields["user_id"] = pa.string() if "user_id" in trajectories.labels else pa.int64()
    fields["t"] = pa.int64()
    if datetime:
        fields["time"] = TIME
    fields |= {"x": pa.float64(), "y": pa.float64()}
    known = Metadata(trajectories.clock, trajectories.crs).to_schema()
    return pa.schema(fields, known or None)


def table_of(trajectories: Trajectories, *, datetime: bool = False) -> pa.Table:
    """Return one row per point with original identifiers and, with `datetime`, a time column."""
    schema = schema_of(trajectories, datetime=datetime)
    columns: dict[str, Any] = {
        "traj_id": identifiers_of(trajectories, "traj_id"),
        "t": trajectories.t,
        "x": trajectories.x,
        "y": trajectories.y,
    }
    if trajectories.user_of_stream is not None:
        columns["user_id"] = identifiers_of(trajectories, "user_id")
    if datetime:
        columns["time"] = instants(clock_of(trajectories.clock, "the column time"), columns["t"])
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def identifiers_of(trajectories: Trajectories, column: str) -> Any:
    """Return the stream or user of every point, in its original spelling."""
    numbers = trajectories.traj_id if column == "traj_id" else trajectories.user_id
    labels = trajectories.labels.get(column)
    return numbers if labels is None else pa.array(labels, pa.string()).take(pa.array(numbers))


def time_texts(clock: Clock, t: npt.NDArray[np.int64]) -> pa.Array:
    """Return the start of each timestamp as text, formatting each distinct one only once."""
    times, codes = np.unique(t, return_inverse=True)
    texts = iso_texts(instants(clock, times), whole_seconds=float(clock.period).is_integer())
    return pa.array(texts, pa.string()).take(pa.array(codes))


def to_pandas(trajectories: Trajectories) -> Any:
    """Return a pandas DataFrame, with a time column if the clock is known."""
    geoparquet.load_extra("pandas", "for a DataFrame")
    return table_of(trajectories, datetime=trajectories.clock is not None).to_pandas()


def to_geodataframe(trajectories: Trajectories) -> Any:
    """Return a GeoDataFrame of points, with a time column if the clock is known."""
    geopandas = geoparquet.load_extra("geopandas", "for a GeoDataFrame")
    geoparquet.projjson(trajectories.crs)  # rejects an unknown coordinate system
    table = table_of(trajectories, datetime=trajectories.clock is not None)
    points = geopandas.points_from_xy(trajectories.x, trajectories.y, crs=trajectories.crs)
    return geopandas.GeoDataFrame(table.drop_columns(["x", "y"]).to_pandas(), geometry=points)


def to_trajectory_collection(trajectories: Trajectories) -> Any:
    """Return a MovingPandas collection in UTC; streams with a single point are left out."""
    clock_of(trajectories.clock, "a TrajectoryCollection")
    movingpandas = geoparquet.load_extra("movingpandas", "for a TrajectoryCollection")
    points = to_geodataframe(trajectories)
    points["time"] = points["time"].dt.tz_localize(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about every stream without a CRS
        return movingpandas.TrajectoryCollection(points, "traj_id", t="time")


# Import


def trajectories_of(
    table: pa.Table,
    names: dict[str, str | None],
    *,
    clock: Clock | None = None,
    crs: str | None = None,
) -> Trajectories:
    """Read a table with numbered steps; `names` maps each field to its column's name."""
    kept = Metadata.of_schema(table.schema.metadata)
    there = table.column_names
    wanted = {role: name for role, name in names.items() if name is not None}
    if "user_id" in wanted and wanted["user_id"] == "user_id" and "user_id" not in there:
        del wanted["user_id"]
    geometry = geoparquet.geometry_column(table.schema)
    if geometry is not None and not {wanted["x"], wanted["y"]} & set(there):
        crs = crs or geoparquet.crs_of(table.schema, geometry)
        del wanted["x"], wanted["y"]
    missing = [name for name in wanted.values() if name not in there]
    if missing:
        raise InputError(
            f"the frame has no column {', '.join(missing)} (it has {', '.join(there)}); "
            'name its columns, for example x="lon", y="lat"'
        )
    twice = [name for name in wanted.values() if there.count(name) > 1]
    if twice:
        raise InputError(f"the frame has the column {twice[0]} twice; rename one of them")
    columns = {role: column(table.column(name), role) for role, name in wanted.items()}
    if "x" not in wanted:
        columns["x"], columns["y"] = geoparquet.coordinates(table.column(geometry))
    if columns["t"].size and columns["t"].min() >= UNIX_TIMES:
        raise SettingError(
            f"column {wanted['t']} begins at {columns['t'].min()}, which looks like a Unix time; "
            'say how long a step is, for example every="10min"'
        )
    return Trajectories.from_columns(**columns, clock=clock or kept.clock, crs=crs or kept.crs)


def is_numbered(table: pa.Table, *, traj_id: str, t: str) -> bool:
    """Whether a table has streams in numbered steps, as `to_frame` makes them."""
    names = table.column_names
    if not {traj_id, t} <= set(names):
        return False
    points = {"x", "y"} <= set(names) or geoparquet.geometry_column(table.schema) is not None
    kind = table.schema.types[names.index(t)]
    return points and (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def as_table(frame: Any) -> pa.Table:
    """Return a data frame as an Arrow table, without copying where possible."""
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "collect"):  # a lazy frame of polars
        frame = frame.collect()
    if hasattr(frame, "to_point_gdf"):  # a MovingPandas collection
        frame = frame.to_point_gdf()
    timed = getattr(getattr(frame, "index", None), "inferred_type", "") == "datetime64"
    if timed and frame.index.name is None:  # pandas keeps times in the index; named ones come along
        frame = frame.rename_axis("time")
    if hasattr(frame, "to_arrow") and hasattr(frame, "geometry"):  # a GeoDataFrame
        frame = frame.to_arrow(index=None if timed else False)
    if not (hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")):
        raise InputError(
            f"{type(frame).__name__} does not speak the Arrow interface; give a frame of pandas, "
            "polars, GeoPandas, MovingPandas or pyarrow, a relation of duckdb, or use "
            "Trajectories.from_columns"
        )
    try:
        return pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"the frame cannot be turned into an Arrow table: {first}; give every column one type "
            "and a name of its own"
        ) from None


def column(values: pa.ChunkedArray, name: str) -> npt.NDArray[Any]:
    """Return one column as an array; empty cells are an error."""
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy())[0]) + 1
        raise InputError(
            f"column {name} is empty in row {row} ({values.null_count} such rows); "
            "remove these rows or fill them in"
        )
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise InputError(f"column {name} holds {kind}, not numbers or UTF-8 text; convert it first")
    if kind == pa.string_view():
        values = values.cast(pa.large_string())
    if not pa.types.is_floating(values.type):
        return values.to_numpy()  # type: ignore[no-any-return]
    numbers = np.empty(len(values))  # filled chunk by chunk: concatenated and widened in one copy
    row = 0
    for chunk in values.chunks:
        numbers[row : row + len(chunk)] = chunk.to_numpy()
        row += len(chunk)
    return numbers
