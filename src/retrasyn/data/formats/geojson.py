"""GeoJSON points: a FeatureCollection or one Feature per line; user and time are properties."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from retrasyn.bounded_json import MAX_DEPTH, is_too_deep
from retrasyn.data.formats.base import Fixes, Options, Rows, bad_row, refusal
from retrasyn.data.formats.blocks import Unpacked, files_of, unpacked
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.understanding import WGS84, Columns
from retrasyn.errors import InputError

LONGEST_FEATURE = 256 << 20
_BLOCK = 1 << 20
_FEATURES = re.compile(r'"features"\s*:\s*\[')
_CRS = re.compile(r'"crs"\s*:\s*(?=\{)')
_BETWEEN = re.compile(r"[\s,\x1e]*")
_TOO_DEEP = f"the JSON is nested more than {MAX_DEPTH} deep"
_EPSG = re.compile(r"EPSG:[:0-9.]*?([0-9]+)$")


class Features:
    """Iterates over the features of one file; `crs` is its coordinate system."""

    def __init__(self, path: Path, file: Unpacked, begins: re.Pattern[str] = _FEATURES) -> None:
        self._path, self._file, self._begins = path, file, begins
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._json = json.JSONDecoder(parse_constant=_no_constant)
        self._text, self._at = "", 0  # buffered text, and how much of it was consumed
        self._line, self._ended = 1, False
        self.crs: str | None = WGS84  # the standard's default

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield the line and value of every feature."""
        self._fill()
        collection = self._begins.search(self._text)
        if collection is not None:
            header = _CRS.search(self._text, 0, collection.start())
            if header is not None:
                self.crs = crs_of(self._header(header.end()))
            self._advance(collection.end())
        while self._skip_between():
            if collection is not None and self._text[self._at] == "]":
                return
            line, value = self._line, self._next()
            inner = value.get("features") if isinstance(value, dict) else None
            if isinstance(inner, list) and isinstance(value.get("crs"), dict):
                self.crs = crs_of(value["crs"])
            for feature in inner if isinstance(inner, list) else [value]:
                yield line, feature
        if collection is not None:
            raise refusal(self._path, self._line, "the file ends inside its list of features")

    def _header(self, at: int) -> Any:
        """Decode the members before the features, which are already read in full."""
        try:
            return self._value(at)[0]
        except ValueError as error:
            raise refusal(self._path, self._line, _explain(error)) from None

    def _next(self) -> Any:
        """Decode the next value, reading more until it is complete."""
        while True:
            try:
                value, end = self._value(self._at)
            except ValueError as error:
                if self._ended:
                    raise refusal(self._path, self._line, _explain(error)) from None
                self._fill()
                continue
            self._advance(end)
            return value

    def _value(self, at: int) -> tuple[Any, int]:
        """Decode the value at an offset; return it and the offset of its end."""
        try:
            value, end = self._json.raw_decode(self._text, at)
        except RecursionError:
            raise refusal(self._path, self._line, _TOO_DEEP) from None
        n_openings = self._text.count("[", at, end) + self._text.count("{", at, end)
        if n_openings > MAX_DEPTH and is_too_deep(value):
            raise refusal(self._path, self._line, _TOO_DEEP)
        return value, end

    def _skip_between(self) -> bool:
        """Advance to the next value; False at the end of the file."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            self._advance(between.end() if between else self._at)
            if self._at < len(self._text):
                return True
            if self._ended:
                return False
            self._fill()

    def _advance(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _fill(self) -> None:
        """Double the buffer, so that a long feature is not decoded over and over."""
        self._text, self._at = self._text[self._at :], 0
        data = self._file.read(max(_BLOCK, len(self._text)))
        self._ended = not data
        try:
            self._text += self._decode(data, not data)
        except UnicodeDecodeError:
            raise refusal(self._path, self._line, "not UTF-8 text from about here on") from None
        if len(self._text) > LONGEST_FEATURE:
            raise refusal(
                self._path, self._line, f"a feature is longer than {LONGEST_FEATURE >> 20} MiB"
            )


def read_features(path: Path) -> Iterator[tuple[int, Any, str | None]]:
    """Yield the line of every feature, the feature and the file's coordinate system."""
    with unpacked(path) as file:
        features = Features(path, file)
        empty = True
        for line, feature in features:
            empty = False
            yield line, feature, features.crs
        if empty:
            raise InputError(f"{path} holds no feature")


def crs_of(member: Any) -> str | None:
    """Return the coordinate system a ``crs`` member names, in the form EPSG:4326.

    >>> crs_of({"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}})
    'EPSG:3857'
    """
    try:
        name = member["properties"]["name"]
    except (KeyError, TypeError):
        return None
    found = _EPSG.search(str(name))
    if found:
        return f"EPSG:{found[1]}"
    return WGS84 if "CRS84" in str(name) else str(name)


def _no_constant(name: str) -> float:
    del name
    return float("nan")


def _explain(error: ValueError) -> str:
    return f"the JSON is broken or cut off ({str(error)[:80]})"


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
                raise bad_row(path, line, "this is no Feature with a Point of two numbers")
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
    """Features collected for conversion to columns."""

    columns: Columns
    lines: list[int] = field(default_factory=list)
    users: list[Any] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    trips: list[Any] = field(default_factory=list)
    places: list[tuple[float, float]] = field(default_factory=list)

    def add(self, line: int, properties: dict[str, Any], place: tuple[float, float]) -> None:
        """Add one feature."""
        self.lines.append(line)
        self.users.append(properties.get(self.columns.user))
        self.times.append(properties.get(self.columns.time))
        self.trips.append(properties.get(self.columns.traj))
        self.places.append(place)

    def rows(self, path: Path, crs: str | None, n_skipped: int) -> Rows:
        """Return the collected features as columns."""
        x, y = np.array(self.places, np.float64).T
        return Rows(
            path=path,
            user=texts(self.users),
            time=numbers_or_texts(self.times),
            x=pa.array(x),
            y=pa.array(y),
            trip=texts(self.trips) if self.columns.traj else None,
            lines=np.array(self.lines),
            columns=self.columns,
            crs=crs,
            n_skipped=n_skipped,
        )


def texts(values: list[Any]) -> pa.Array:
    """Return JSON values as text; values that are no identifier become null."""
    named = [v if isinstance(v, str) else str(v) if _names(v) else None for v in values]
    return pa.array(named, pa.string())


def numbers_or_texts(values: list[Any]) -> pa.Array:
    """Return JSON values as numbers if all that are there are, otherwise as text."""
    there = [v for v in values if v is not None]
    if all(type(v) is int and abs(v) < 1 << 62 for v in there):
        return pa.array(values, pa.int64())
    if all(type(v) in (int, float) for v in there):
        return pa.array([None if v is None else _float(v) for v in values], pa.float64())
    return texts(values)


def _names(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("nan")
