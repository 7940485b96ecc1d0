"""Writes points as GeoJSON (RFC 7946) and streams as OGC Moving Features JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.frames import identifiers_of, time_texts
from retrasyn.data.geoparquet import LONGITUDE_LATITUDE
from retrasyn.data.metadata import KEY, Clock, Metadata, clock_of
from retrasyn.data.trajectories import Trajectories

BlockWriter = Callable[[Trajectories], None]
_TEXT = pa.large_string()
_CONTROLS = [chr(code) for code in range(32)]


@contextmanager
def point_features(
    trajectories: Trajectories, file: IO[bytes], *, datetime: bool = False
) -> Iterator[BlockWriter]:
    """Open a collection with one feature per point; each block passed in adds its points."""
    head = heading(trajectories.clock, trajectories.crs)
    with collection(file, head) as add:
        yield lambda block: add(_points(block, datetime=datetime))


def heading(clock: Clock | None, crs: str | None) -> dict[str, Any]:
    """Return the leading members of a collection of GeoJSON, which says if it is not degrees."""
    head = opening(clock, crs)
    if crs is not None and crs.upper() not in LONGITUDE_LATITUDE:
        # Predates the RFC, which allows degrees only; GDAL and GeoPandas still read it.
        head["crs"] = {"type": "name", "properties": {"name": urn_of(crs)}}
    return head


def opening(clock: Clock | None, crs: str | None) -> dict[str, Any]:
    """Return the leading members of a collection: its type and any clock and CRS metadata."""
    known = Metadata(clock, crs)
    return {"type": "FeatureCollection"} | ({} if known == Metadata() else {KEY: known.to_dict()})


def urn_of(crs: str) -> str:
    """Return the URN that GeoJSON uses for a coordinate system.

    >>> urn_of("EPSG:3857")
    'urn:ogc:def:crs:EPSG::3857'
    """
    if crs.upper() in LONGITUDE_LATITUDE:
        return "urn:ogc:def:crs:OGC:1.3:CRS84"
    authority, colon, code = crs.partition(":")
    return f"urn:ogc:def:crs:{authority.upper()}::{code}" if colon and code.isalnum() else crs


@contextmanager
def collection(file: IO[bytes], head: dict[str, Any]) -> Iterator[Callable[[pa.Array], None]]:
    """Write a collection whose features arrive as arrays of JSON text."""
    file.write(json.dumps(head)[:-1].encode() + b', "features": [')
    comma = len(",")

    def add(features: pa.Array) -> None:
        nonlocal comma
        if len(features):
            lines = joined(",\n", features)
            # An array's texts are contiguous in memory and can be written as they are.
            end = int(np.frombuffer(lines.buffers()[1], np.int64)[len(lines)])
            file.write(memoryview(lines.buffers()[2])[comma:end])
            comma = 0

    yield add
    file.write(b"\n]}\n")


def _points(block: Trajectories, *, datetime: bool) -> pa.Array:
    """Return one feature per point: [n_points]."""
    properties = ['{"type":"Feature","properties":{"traj_id":', identifier_texts(block, "traj_id")]
    if block.user_of_stream is not None:
        properties += [',"user_id":', identifier_texts(block, "user_id")]
    properties += [',"t":', number_texts(block.t)]
    if datetime:
        times = time_texts(clock_of(block.clock, "the property time"), block.t)
        properties += [',"time":"', times, '"']
    geometry = ['},"geometry":{"type":"Point","coordinates":', coordinate_texts(block), "}}"]
    return joined(*properties, *geometry)


def joined(*pieces: Any) -> pa.Array:
    """Concatenate strings and string arrays row by row."""
    columns = [
        pa.scalar(piece, _TEXT) if isinstance(piece, str) else piece.cast(_TEXT) for piece in pieces
    ]
    return pc.binary_join_element_wise(*columns, pa.scalar("", _TEXT))


def number_texts(numbers: Any) -> pa.Array:
    """Format numbers with the fewest digits that round-trip exactly."""
    return pa.array(numbers).cast(_TEXT)


def coordinate_texts(block: Trajectories) -> pa.Array:
    """Format positions as JSON: [n_points]."""
    return joined("[", number_texts(block.x), ",", number_texts(block.y), "]")


def identifier_texts(block: Trajectories, column: str) -> pa.Array:
    """Format the stream or user of every point as JSON."""
    if column not in block.labels:
        return number_texts(identifiers_of(block, column))
    texts = identifiers_of(block, column).cast(_TEXT)
    for character in ("\\", '"', *_CONTROLS):  # the backslash first: the other escapes contain one
        if pc.any(pc.match_substring(texts, character)).as_py():
            texts = pc.replace_substring(texts, character, json.dumps(character)[1:-1])
    return joined('"', texts, '"')


_UTC = {"type": "Name", "properties": {"name": "urn:ogc:data:time:iso8601"}}


@contextmanager
def stream_features(trajectories: Trajectories, file: IO[bytes]) -> Iterator[BlockWriter]:
    """Open a collection with one feature per stream; each block passed in adds its streams."""
    clock = clock_of(trajectories.clock, "MF-JSON")
    head = {**opening(clock, trajectories.crs), "trs": _UTC}
    if trajectories.crs is not None:
        head["crs"] = {"type": "Name", "properties": {"name": urn_of(trajectories.crs)}}
    with collection(file, head) as add:
        yield lambda block: add(_streams(block, clock))


def _streams(block: Trajectories, clock: Clock) -> pa.Array:
    """Return one feature per stream: [n_streams].

    A moving point needs two instants, so a stream of one point stays in place for half its time
    step.
    """
    alone = block.lengths == 1  # [n_streams]
    rows = np.arange(block.n_points) + np.repeat(np.cumsum(alone) - alone, block.lengths)
    order = np.insert(np.arange(block.n_points), block.starts[1:][alone], block.starts[:-1][alone])
    halves = 2 * block.t[order]  # half steps since the epoch
    halves[np.setdiff1d(np.arange(order.size), rows, assume_unique=True)] += 1
    times = time_texts(Clock(clock.epoch, clock.period / 2), halves)
    offsets = block.starts + np.concatenate([[0], np.cumsum(alone)])
    of_streams = _first_rows(block)
    properties: list[Any] = ['"traj_id":', identifier_texts(of_streams, "traj_id")]
    if block.user_of_stream is not None:
        properties += [',"user_id":', identifier_texts(of_streams, "user_id")]
    return joined(
        '{"type":"Feature","properties":{',
        *properties,
        '},"temporalGeometry":{"type":"MovingPoint","interpolation":"Linear","datetimes":[',
        _per_stream(joined('"', times, '"'), offsets),
        '],"coordinates":[',
        _per_stream(coordinate_texts(block).take(pa.array(order)), offsets),
        "]}}",
    )


def _first_rows(block: Trajectories) -> Trajectories:
    """Return every stream cut down to its first point."""
    first = block.starts[:-1]
    return dataclasses.replace(
        block, starts=np.arange(block.n_streams + 1), x=block.x[first], y=block.y[first]
    )


def _per_stream(texts: pa.Array, offsets: Any) -> pa.Array:
    """Join the texts of every stream with commas: [n_streams]."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts)
    return pc.binary_join(lists, pa.scalar(",", texts.type))
