"""GeoJSON points: a FeatureCollection or one Feature per line, with who and when as properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options, Rows, refusal
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import Columns, find_columns
from retrasyn.data.formats.features import read_features
from retrasyn.data.formats.parallel import files_of

_ROWS = 1 << 16
_GEOMETRY = "geometry"


def read_geojson(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file, or all ``.geojson``, ``.geojsonl`` and ``.json`` files of a folder."""
    files = files_of(path, ".geojson", ".geojsonl", ".geojsonseq", ".ndjson", ".json")
    for file in files:
        yield from _read(file, options)


def _read(path: Path, options: Options) -> Iterator[Fixes]:
    batch: _Batch | None = None
    crs = None
    n_skipped = 0
    for line, feature, crs in read_features(path):
        place = _point(feature)
        if place is None:
            if options.on_error == "fail":
                raise refusal(path, line, "this is no Feature with a Point of two numbers")
            n_skipped += 1
            continue
        properties = feature.get("properties") or {}
        if batch is None:
            columns = find_columns(
                [*map(str, properties), _GEOMETRY], options, path, geometry=_GEOMETRY
            )
            batch = _Batch(columns)
        batch.add(line, properties, place)
        if len(batch.lines) == _ROWS:
            yield check(batch.rows(path, crs, n_skipped), options)
            batch, n_skipped = _Batch(batch.columns), 0
    if batch is not None:
        yield check(batch.rows(path, crs, n_skipped), options)
    elif n_skipped:
        raise refusal(path, None, f"none of its {n_skipped} features is a Point")


def _point(feature: Any) -> tuple[float, float] | None:
    """Return the coordinates of a point feature, None for anything else."""
    try:
        geometry = feature["geometry"]
        if feature["type"] != "Feature" or geometry["type"] != "Point":
            return None
        x, y = geometry["coordinates"][:2]
        return float(x), float(y)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


@dataclass(slots=True)
class _Batch:
    """Features gathered until there are enough to work on together."""

    columns: Columns
    lines: list[int] = field(default_factory=list)
    users: list[Any] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    trips: list[Any] = field(default_factory=list)
    places: list[tuple[float, float]] = field(default_factory=list)

    def add(self, line: int, properties: dict[str, Any], place: tuple[float, float]) -> None:
        """Take one feature."""
        self.lines.append(line)
        self.users.append(properties.get(self.columns.user))
        self.times.append(properties.get(self.columns.time))
        self.trips.append(properties.get(self.columns.traj))
        self.places.append(place)

    def rows(self, path: Path, crs: str | None, n_skipped: int) -> Rows:
        """Return what was gathered as columns."""
        x, y = np.array(self.places, np.float64).T
        return Rows(
            path=path,
            user=texts(self.users),
            time=numbers_or_texts(self.times),
            x=pa.array(x),
            y=pa.array(y),
            trip=texts(self.trips) if self.columns.traj else None,
            lines=np.array(self.lines),
            names=self.columns.names,
            crs=crs,
            n_skipped=n_skipped,
        )


def texts(values: list[Any]) -> pa.Array:
    """Return JSON values as text; what names nobody is null."""
    named = [v if isinstance(v, str) else str(v) if _names(v) else None for v in values]
    return pa.array(named, pa.string())


def numbers_or_texts(values: list[Any]) -> pa.Array:
    """Return JSON values as numbers where all are, as text otherwise."""
    if all(type(v) is int and abs(v) < 1 << 62 for v in values):
        return pa.array(values, pa.int64())
    if all(type(v) in (int, float) for v in values):
        return pa.array([_float(v) for v in values], pa.float64())
    return texts(values)


def _names(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("nan")
