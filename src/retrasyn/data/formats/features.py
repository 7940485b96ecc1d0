"""Features of a JSON document one at a time: a collection, one per line, or a single one."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrasyn.data.formats.base import WGS84, refusal
from retrasyn.data.formats.blocks import Unpacked, unpacked
from retrasyn.errors import InputError
from retrasyn.foreign import MAX_DEPTH, is_too_deep

LONGEST_FEATURE = 256 << 20
_BLOCK = 1 << 20
_FEATURES = re.compile(r'"features"\s*:\s*\[')
_CRS = re.compile(r'"crs"\s*:\s*(?=\{)')
_BETWEEN = re.compile(r"[\s,\x1e]*")
_TOO_DEEP = f"the JSON is nested more than {MAX_DEPTH} deep"
_EPSG = re.compile(r"EPSG:[:0-9.]*?([0-9]+)$")


class Features:
    """The features of one file, and the coordinate system written before the first."""

    def __init__(self, path: Path, file: Unpacked) -> None:
        self._path, self._file = path, file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._json = json.JSONDecoder(parse_constant=_no_constant)
        self._text, self._at = "", 0  # what was read, and how much of it is done with
        self._line, self._ended = 1, False
        self.crs: str | None = WGS84  # what the standards say where a file does not

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield every feature with its line."""
        self._fill()
        collection = _FEATURES.search(self._text)
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
        """Decode what stands before the features; it is whole, since they were seen."""
        try:
            return self._value(at)[0]
        except ValueError as error:
            raise refusal(self._path, self._line, _explain(error)) from None

    def _next(self) -> Any:
        """Decode the value at the front, reading on until it is whole."""
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
        """Decode the value at a place, and say where it ends."""
        try:
            value, end = self._json.raw_decode(self._text, at)
        except RecursionError:
            raise refusal(self._path, self._line, _TOO_DEEP) from None
        n_openings = self._text.count("[", at, end) + self._text.count("{", at, end)
        if n_openings > MAX_DEPTH and is_too_deep(value):
            raise refusal(self._path, self._line, _TOO_DEEP)
        return value, end

    def _skip_between(self) -> bool:
        """Go to the next value; False at the end of the file."""
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
        """Read on: as much again as is held, so that a long feature is not read again and again."""
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
    """Yield line, feature and the coordinate system of the file."""
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
