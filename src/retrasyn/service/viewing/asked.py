"""Questions about a source, as `retrasyn ask` answers them, with bounds and a cache."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from retrasyn.answers.asking import answer, breakdown, find_inquiry, streams_of
from retrasyn.answers.table import AnswerTable
from retrasyn.data.metadata import iso_texts
from retrasyn.data.replica_table import Columns
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import SettingError
from retrasyn.service.viewing.known_zones import CELLS, KnownZones
from retrasyn.service.viewing.source import ReleaseSource, TimestampPoints
from retrasyn.service.viewing.view import LruCache

AnswerFormat = Literal["json", "csv", "geojson"]
MAX_ROWS = 100_000
"""Rows of an answer."""
AFTERWARDS = 200
"""Timestamps for which trips that began in time are followed."""
_WHOLE_TRIPS = ("od", "trips")
_NOTHING = TimestampPoints(np.empty(0, np.int64), np.empty(0), np.empty(0))
_CACHED_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """What somebody asks, of timestamps that exist."""

    what: str
    first: int
    last: int
    zones: str | None = None  # None: as `retrasyn ask` does without any
    by: str | None = None
    top: int = 10
    format: AnswerFormat = "json"


@dataclass(frozen=True, slots=True)
class AskedSource:
    """Answers about a source, read from several threads at once."""

    source: ReleaseSource
    zones: KnownZones
    most: int  # points of the release that an answer goes through, and as many of each replica
    _bodies: LruCache[bytes] = field(default_factory=lambda: LruCache(_CACHED_BYTES, len))

    def body(self, asked: AnswerRequest) -> bytes | None:
        """Return an answer in its format; None if nothing was released then."""
        timestamps = self._around(asked)
        if not timestamps:
            return None
        key = asked, timestamps[0], timestamps[-1], len(timestamps)
        return self._bodies.get(key, lambda: _written(self._table(asked, timestamps), asked))

    def _around(self, asked: AnswerRequest) -> list[int]:
        """Return the timestamps to be read: those asked for, and what their moves need besides."""
        afterwards = AFTERWARDS if asked.what in _WHOLE_TRIPS else 0
        later = self.source.within(asked.last + 1, asked.last + afterwards)
        return [*self.source.within(asked.first - 1, asked.last), *self._affordable(later)]

    def _affordable(self, timestamps: list[int]) -> list[int]:
        n = np.cumsum([self.source.n_points(t) for t in timestamps])
        return timestamps[: int(np.searchsorted(n, self.most, side="right"))]

    def _table(self, asked: AnswerRequest, timestamps: list[int]) -> AnswerTable:
        source, inquiry, known = self.source, find_inquiry(asked.what), self.source.metadata()
        name = asked.zones or (CELLS if inquiry.zones == "grid" else None)
        by_what = breakdown(
            inquiry,
            range(asked.first, asked.last + 1),
            known,
            zones=None if name is None else self.zones.named(name),
            by=asked.by,
            top=asked.top,
        )
        found = answer(
            inquiry,
            streams_of(((t, *_columns(source.points_at(t))) for t in timestamps), known),
            self._replicas(timestamps),
            by_what,
        )
        if len(found) > MAX_ROWS:
            raise SettingError(f"the answer has {len(found):,} rows, more than {MAX_ROWS:,}")
        return found

    def _replicas(self, timestamps: list[int]) -> Iterator[Trajectories]:
        """Yield the replicas that all of the timestamps have; one at a time is in memory."""
        source, known = self.source, self.source.metadata()
        for number in range(1, min(map(source.n_replicas, timestamps)) + 1):
            read = ((t, *_columns(source.replica_at(t, number))) for t in timestamps)
            yield streams_of(read, known)


def _columns(points: TimestampPoints | None) -> Columns:
    """Return ids, x and y; none of a timestamp that was deleted meanwhile."""
    found = points or _NOTHING
    return found.ids, found.x, found.y


def _written(table: AnswerTable, asked: AnswerRequest) -> bytes:
    """Return an answer in its format."""
    if asked.format == "json":
        return _json(table, asked)
    with tempfile.TemporaryDirectory(prefix="retrasyn-") as folder:
        path = Path(folder) / f"answer.{asked.format}"
        table.write(path)
        return path.read_bytes()


def _json(table: AnswerTable, asked: AnswerRequest) -> bytes:
    """Return an answer as a JSON object with a row each."""
    frame = table.to_frame()
    if "time" in frame.column_names:
        times = iso_texts(frame.column("time").to_numpy(), whole_seconds=True)
        frame = frame.set_column(frame.column_names.index("time"), "time", [times])
    told = dataclasses.asdict(asked)
    del told["format"], told["top"]
    told |= {"n_replicas": table.n_replicas, "rows": frame.to_pylist()}
    return json.dumps(told).encode()
