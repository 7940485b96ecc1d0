"""Streams as OGC Moving Features JSON (19-045r3): one feature per stream, a moving point each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.clock import Clock
from retrasyn.data.frames import time_texts
from retrasyn.data.geojson import (
    BlockWriter,
    collection,
    coordinate_texts,
    identifier_texts,
    joined,
    opening,
    urn_of,
)
from retrasyn.data.metadata import clock_of
from retrasyn.data.trajectories import Trajectories

_UTC = {"type": "Name", "properties": {"name": "urn:ogc:data:time:iso8601"}}


@contextmanager
def stream_features(trajectories: Trajectories, file: IO[bytes]) -> Iterator[BlockWriter]:
    """Open a collection with a feature per stream; every block given adds its streams."""
    clock = clock_of(trajectories.clock, "MF-JSON")
    head = {**opening(trajectories), "trs": _UTC}
    if trajectories.crs is not None:
        head["crs"] = {"type": "Name", "properties": {"name": urn_of(trajectories.crs)}}
    with collection(file, head) as add:
        yield lambda block: add(_streams(block, clock))


def _streams(block: Trajectories, clock: Clock) -> pa.Array:
    """Return a feature per stream: [n_streams].

    A moving point needs two instants; a stream of one point stays until half its time step is
    over, which is still its own step.
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
    """Return every stream with its first point only."""
    first = block.starts[:-1]
    return dataclasses.replace(
        block, starts=np.arange(block.n_streams + 1), x=block.x[first], y=block.y[first]
    )


def _per_stream(texts: pa.Array, offsets: Any) -> pa.Array:
    """Join the texts of every stream with commas: [n_streams]."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts)
    return pc.binary_join(lists, pa.scalar(",", texts.type))
