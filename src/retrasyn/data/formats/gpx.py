"""GPX: the timed points of tracks. Documents with a DOCTYPE, hence entities, are rejected.

By default each file is one user; ``--user folder`` takes each folder for one, ``--user name`` each
track by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.parsers import expat  # a DOCTYPE is rejected, so entities cannot expand

import numpy as np
import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options, Rows, owner_of, refusal, stem
from retrasyn.data.formats.blocks import files_of, unpacked
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.understanding import FILE, FOLDER, WGS84, Columns
from retrasyn.errors import InputError, SettingError

_BLOCK = 1 << 20
_LONGEST_TEXT = 1 << 16
_COLUMNS = Columns("the file", "time", "lon", "lat", traj="trkseg", owner="file")


def read_gpx(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.gpx`` files of a folder."""
    columns = whose(options.user, "name")
    for file in files_of(path, ".gpx"):
        yield from read_tracks(Tracks(file, columns), options)


def whose(user: str | None, *also: str) -> Columns:
    """Return what is taken for the user: the file, the folder, or what the format has as well."""
    if user is None:
        return replace(_COLUMNS, doubt="file")
    if user in also:
        return replace(_COLUMNS, user=user, owner="")
    if user in (FILE, FOLDER):
        return replace(_COLUMNS, user=f"the {user}", owner=user)
    known = ", ".join((FILE, FOLDER, *also))
    raise SettingError(f"`user` {user!r} does not fit this format; it is one of {known}")


def read_tracks(tracks: Tracks, options: Options) -> Iterator[Fixes]:
    """Read the file of a parser, a piece at a time."""
    by_name = not tracks.columns.owner
    with unpacked(tracks.path) as file:
        while data := file.read(_BLOCK):
            tracks.feed(data, last=False)
            if tracks.lines and not (by_name and tracks.unnamed):
                yield check(tracks.take(), options)
        tracks.feed(b"", last=True)
    if tracks.lines:
        yield check(tracks.take(), options)


@dataclass
class Tracks:
    """Parser of tracks that buffers points until they are taken."""

    path: Path
    columns: Columns
    lines: list[int] = field(default_factory=list)
    places: list[tuple[str | None, str | None]] = field(default_factory=list)
    times: list[str | None] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    track_of: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # name of every track
    heard: frozenset[str] = frozenset({"time", "name"})  # elements whose text matters
    _n_segments: int = 0
    _open: list[str] = field(default_factory=list)  # currently open elements
    _text: list[str] = field(default_factory=list)
    _parser: expat.XMLParserType = field(init=False)

    def __post_init__(self) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._hear

    @property
    def unnamed(self) -> bool:
        """Whether the latest track has no name yet."""
        return bool(self.names) and not self.names[-1]

    def feed(self, data: bytes, *, last: bool) -> None:
        """Parse more bytes."""
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise refusal(self.path, error.lineno, f"the XML is broken: {reason}") from None

    def take(self) -> Rows:
        """Return the points completed since the last call."""
        names = [name or f"{stem(self.path)} {i + 1}" for i, name in enumerate(self.names)]
        owner = owner_of(self.path, self.columns)
        users = [owner or names[track] for track in self.track_of]
        n_rows = len(self.times)
        rows = Rows(
            path=self.path,
            user=pa.array(users[:n_rows], pa.string()),
            time=pa.array(self.times, pa.string()),
            x=pa.array([x for x, _ in self.places[:n_rows]], pa.string()),
            y=pa.array([y for _, y in self.places[:n_rows]], pa.string()),
            trip=pa.array([str(n) for n in self.segments[:n_rows]], pa.string()),
            lines=np.array(self.lines[:n_rows], np.int64),
            columns=self.columns,
            crs=WGS84,
        )
        for column in (self.lines, self.places, self.segments, self.track_of):
            del column[:n_rows]
        self.times.clear()
        return rows

    def _refuse_doctype(self, *_: object) -> None:
        raise InputError(
            f"{self.path}, line {self._parser.CurrentLineNumber}: the document has a DOCTYPE, "
            "which it does not need and which can hide entities; remove it"
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._open.append(tag)
        self._text.clear()
        if tag == "trk":
            self.names.append("")
        elif tag == "trkseg":
            self._n_segments += 1
        elif tag == "trkpt":
            self.lines.append(self._parser.CurrentLineNumber)
            self.places.append((attributes.get("lon"), attributes.get("lat")))
            self.segments.append(self._n_segments)
            self.track_of.append(len(self.names) - 1)

    def _end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._open.pop()
        parent = self._open[-1] if self._open else ""
        if tag == "trkpt" and len(self.times) < len(self.lines):
            self.times.append(None)
        elif tag == "time" and parent == "trkpt" and len(self.times) < len(self.lines):
            self.times.append("".join(self._text).strip())
        elif tag == "name" and parent == "trk":
            self.names[-1] = "".join(self._text).strip()

    def _hear(self, text: str) -> None:
        if self._open and self._open[-1] in self.heard:
            self._text.append(text)
            if sum(map(len, self._text)) > _LONGEST_TEXT:
                raise refusal(self.path, self._parser.CurrentLineNumber, "a text is far too long")
