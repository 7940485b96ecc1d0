"""MATSim plans: a person per trip, who drives from where it begins to where it ends.

The format is that of ``population_v6.dtd``; coordinates are metres, times ``hh:mm:ss`` after the
midnight of the first day, and may be beyond 24 hours.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from retrasyn.data.geojson import joined, number_texts
from retrasyn.exports.systems import in_metres
from retrasyn.exports.trip_ends import TripEnds
from retrasyn.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories

_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE population SYSTEM "http://www.matsim.org/files/dtd/population_v6.dtd">
<population>
"""
_SYSTEM = """<attributes>
<attribute name="coordinateReferenceSystem" class="java.lang.String">{}</attribute>
</attributes>
"""
_AT_ONCE = 1 << 16  # persons made as text before they are written


def write_plans(data: Trajectories, path: Path) -> TripEnds:
    """Write a population, compressed if the path ends in .gz; return its trips."""
    trips = TripEnds.of(data, "a MATSim population")
    data = in_metres(data)
    with replacing(path) as temporary, temporary.open("wb") as file:
        whole = path.suffix.lower() != ".gz"
        # Without a name and a time inside, the same release gives the same bytes.
        out: Any = file if whole else gzip.GzipFile("", "wb", fileobj=file, mtime=0)
        for text in _texts(data, trips):
            out.write(text.encode())
        if out is not file:
            out.close()
    return trips


def _texts(data: Trajectories, trips: TripEnds) -> Iterator[str]:
    """Yield the file piece by piece."""
    yield _HEAD
    if data.crs is not None:
        yield _SYSTEM.format(escape(data.crs))
    for begin in range(0, trips.n_trips, _AT_ONCE):
        yield from _persons(data, trips, slice(begin, begin + _AT_ONCE))
    yield "</population>\n"


def _persons(data: Trajectories, trips: TripEnds, some: slice) -> list[str]:
    first, last = trips.first[some], trips.last[some]
    persons: list[str] = joined(
        "<person id=",
        names_of(data, trips.streams[some]),
        '><plan selected="yes"><activity type="origin"',
        *_place(data, first),
        ' end_time="',
        number_texts(_clock_texts(trips.departures[some])),
        '"/><leg mode="car"/><activity type="destination"',
        *_place(data, last),
        "/></plan></person>\n",
    ).to_pylist()
    return persons


def names_of(data: Trajectories, streams: npt.NDArray[np.int64]) -> Any:
    """Return the identifiers of streams as attributes of XML, in quotation marks."""
    numbers = data.stream_ids[streams]
    if "traj_id" in data.labels:
        return number_texts([quoteattr(str(name)) for name in data.labels["traj_id"][numbers]])
    return joined('"', number_texts(numbers), '"')


def _place(data: Trajectories, rows: npt.NDArray[np.int64]) -> list[Any]:
    x, y = (number_texts(column[rows].round(2)) for column in (data.x, data.y))  # centimetres
    return [' x="', x, '" y="', y, '"']


def _clock_texts(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.str_]:
    """Return seconds after midnight as hh:mm:ss.

    >>> _clock_texts(np.array([3.9, 90061.0])).tolist()
    ['00:00:03', '25:01:01']
    """
    whole = seconds.astype(np.int64)
    hours, minutes, rest = (
        np.strings.zfill(part.astype(str), 2)
        for part in (whole // 3600, whole // 60 % 60, whole % 60)
    )
    texts = hours
    for part in (minutes, rest):
        texts = np.strings.add(np.strings.add(texts, ":"), part)
    return texts
