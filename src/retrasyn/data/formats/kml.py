"""KML: the points of ``gx:Track`` and Placemarks with a time.

By default each file is one user, as with GPX; ``--user name`` takes each Placemark by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from retrasyn.data.formats.base import Fixes, Options
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.gpx import Tracks, read_tracks, whose
from retrasyn.errors import InputError

_HEARD = frozenset({"when", "begin", "coord", "coordinates", "name"})


def read_kml(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.kml`` files of a folder."""
    columns = replace(whose(options.user, "name"), time="when", traj="gx:Track")
    for file in files_of(path, ".kml"):
        placemarks = _Placemarks(file, columns, heard=_HEARD)
        yield from read_tracks(placemarks, options)
        if not placemarks.n_points:
            raise InputError(
                f"{file} has no point with a time: neither a gx:Track nor a Placemark with a "
                "TimeStamp; export GPX instead"
            )


@dataclass
class _Placemarks(Tracks):
    """Parser of Placemarks; times and places of a track stand in two lists."""

    n_points: int = 0
    _times: list[str] = field(default_factory=list)
    _coords: list[tuple[int, str]] = field(default_factory=list)  # with their lines

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        del attributes  # KML keeps everything in elements
        tag = name.rpartition(" ")[2]
        self._open.append(tag)
        self._text.clear()
        if tag == "Placemark" or (tag == "Track" and not self.names):
            self.names.append("")
        if tag in {"Placemark", "Track"}:
            self._times.clear()
            self._coords.clear()

    def _end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._open.pop()
        parent = self._open[-1] if self._open else ""
        text = "".join(self._text).strip()
        if tag in {"when", "begin"}:
            self._times.append(text)
        elif tag == "coord" or (tag == "coordinates" and parent == "Point"):
            self._coords.append((self._parser.CurrentLineNumber, text.replace(",", " ")))
        elif tag == "name" and parent == "Placemark":
            self.names[-1] = text
        elif tag in {"Placemark", "Track"}:
            self._n_segments += tag == "Track"
            self._flush()

    def _flush(self) -> None:
        """Keep the points of what has ended; a Placemark without a time is no position."""
        here = (self._parser.CurrentLineNumber, "")
        for time, place in zip_longest(self._times, self._coords if self._times else ()):
            line, text = place or here
            x, y = (*text.split(), None, None)[:2]
            self.times.append(time)
            self.lines.append(line)
            self.places.append((x, y))
            self.segments.append(self._n_segments)
            self.track_of.append(len(self.names) - 1)
            self.n_points += 1
        self._times.clear()
        self._coords.clear()
