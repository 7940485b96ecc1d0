"""Asking: a question put to a release and to each of its replicas, one at a time.

It is post-processing of what was released: asking spends no privacy, however often it is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.answers import counts, moves, trips
from retrasyn.answers.base import Breakdown, Inquiry
from retrasyn.answers.intervals import Intervals
from retrasyn.answers.periods import Periods, span_of
from retrasyn.answers.table import AnswerTable
from retrasyn.answers.zones import open_zones
from retrasyn.bounded_json import parse_json
from retrasyn.data.metadata import Metadata
from retrasyn.data.reading_files import read
from retrasyn.data.replica_files import replica_paths
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, SettingError
from retrasyn.roads.coordinates import is_degrees
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.answers.zones import Zones

INQUIRIES = {
    row.name: row
    for row in (
        counts.COUNTS,
        moves.OD,
        moves.FLOWS,
        counts.HOTSPOTS,
        counts.PROFILE,
        trips.TRIPS,
    )
}
_SIDE = 6  # of a grid that nobody names


def ask(
    source: Any,
    what: str,
    *,
    zones: str | os.PathLike[str] | Grid | Zones | None = None,
    by: str | int | None = None,
    start: str | int | None = None,
    end: str | int | None = None,
    box: Box | tuple[float, float, float, float] | None = None,
    named_by: str | None = None,
    top: int = 10,
) -> AnswerTable:
    """Answer a question about a release, with standard errors where it has replicas.

    Args:
        source: A file, whose replicas lie beside it; what `synthesize` returned; or trajectories,
            which have no replicas.
        what: ``counts``, ``od``, ``flows``, ``hotspots``, ``profile`` or ``trips``.
        zones: ``grid:K``, ``h3:RES``, a file of polygons, or a grid. Without any, the grid of the
            release; for ``profile`` and ``trips``, everywhere.
        by: Length of a period: ``15min``, ``1h``, ``day``, or a number of timestamps.
        start: The first timestamp, or a time.
        end: The last timestamp, or the time before which to end.
        box: The box of ``grid:K`` and ``h3:RES``: that of the release, or around the data.
        named_by: The property that names a polygon, if its name is unusual.
        top: How many hotspots.

    >>> import retrasyn
    >>> city = retrasyn.demo_city(n_users=50, n_timestamps=20, seed=1)
    >>> float(retrasyn.ask(city, "counts", zones="grid:1").columns["value"][0])
    18.35
    """
    inquiry = find_inquiry(what)
    data, replicas, known, sure = _opened(source)
    if not data.n_points:
        raise InputError(
            "there are no points to ask; those of a release in parts are in its folder"
        )
    span = span_of(data.first_t, data.last_t, start, end, data.clock)
    extent = Box(*box) if box else known.box if known else Box.around(data.x, data.y)
    if zones is None and inquiry.zones == "grid":
        zones = Grid(extent, known.side if known and box is None else _SIDE)
    found = (
        None if zones is None else open_zones(zones, box=extent, crs=data.crs, named_by=named_by)
    )
    by_what = breakdown(inquiry, span, Metadata(data.clock, data.crs), zones=found, by=by, top=top)
    table = answer(inquiry, data, replicas, by_what, private=known is not None)
    if not sure and table.n_replicas:
        table.columns["unclear"] = np.ones(len(table), np.bool_)
    return table


def find_inquiry(what: str) -> Inquiry:
    """Return the question of a name."""
    if what not in INQUIRIES:
        raise SettingError(f"{what[:40]!r} cannot be asked; choose from {', '.join(INQUIRIES)}")
    return INQUIRIES[what]


def breakdown(
    inquiry: Inquiry,
    span: range,
    known: Metadata,
    *,
    zones: Zones | None,
    by: str | int | None = None,
    top: int = 10,
) -> Breakdown:
    """Return what an answer about a span of timestamps is broken down by."""
    if top < 1:
        raise SettingError(f"`top` {top} is not a number of hotspots; at least 1 is needed")
    divide = Periods.of_day if inquiry.by_day else Periods.along
    degrees = is_degrees(known.crs)
    return Breakdown(divide(span, by, known.clock), zones, top, known.clock, degrees)


def answer(
    inquiry: Inquiry,
    data: Trajectories,
    replicas: Iterable[Trajectories],
    by: Breakdown,
    *,
    private: bool = True,
) -> AnswerTable:
    """Answer a question about trajectories; replicas are taken one at a time.

    To be exact about a span of time, the data holds the timestamp before it, so that streams under
    way do not seem to depart, and for trips what came after it, so that they end where they ended.
    """
    own = inquiry.tally(data, by)
    missing = inquiry.missing(own.keys)
    others = [inquiry.tally(replica, by).at(own.keys, missing) for replica in replicas]
    every = np.stack([own.values, *others])  # [1 + B, n_rows]
    shown = np.arange(own.keys.size) if inquiry.select is None else inquiry.select(own, by)
    ranks = {} if inquiry.rank is None else inquiry.rank(every, own.keys, by)
    value, replicated = every[0, shown], every[1:, shown]
    return AnswerTable(
        inquiry=inquiry,
        columns={
            **inquiry.columns(own.keys[shown], by),
            "value": value,
            **_errors(value, replicated),
            **ranks,
        },
        zones=by.zones,
        clock=data.clock,
        crs=data.crs,
        n_replicas=len(others),
        private=private,
    )


def streams_of(
    releases: Iterable[
        tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
    ],
    known: Metadata,
) -> Trajectories:
    """Put releases, each a timestamp with ids, x and y, together as trajectories.

    Where a timestamp is missing, streams end, and those after it are others.
    """
    times, all_ids, all_x, all_y = zip(*releases, strict=True)
    t = np.repeat(np.array(times, np.int64), [ids.size for ids in all_ids])
    ids, x, y = (np.concatenate(parts) for parts in (all_ids, all_x, all_y))
    order = np.lexsort((t, ids))
    ids, t, x, y = ids[order], t[order], x[order], y[order]
    new = np.ones(t.size, np.bool_)
    new[1:] = (ids[1:] != ids[:-1]) | (t[1:] != t[:-1] + 1)
    starts = np.append(np.flatnonzero(new), t.size).astype(np.int64)
    begins = t[starts[:-1]]
    return Trajectories(
        np.arange(begins.size), begins, starts, x, y, clock=known.clock, crs=known.crs
    )


def _errors(
    value: npt.NDArray[np.float64], replicas: npt.NDArray[np.float64]
) -> dict[str, npt.NDArray[Any] | None]:
    """Return the columns that replicas give; where one of them has no answer, nothing is clear."""
    if not len(replicas):
        return dict.fromkeys(("standard_error", "low", "high", "unclear"))
    found = Intervals.of(value, replicas)
    unknown = np.isnan(replicas).any(axis=0)
    return {
        "standard_error": found.standard_error,
        "low": found.low,
        "high": found.high,
        "unclear": found.unclear | unknown,
    }


def _opened(source: Any) -> tuple[Trajectories, Iterable[Trajectories], Grid | None, bool]:
    """Return trajectories, their replicas, and the grid of the release, if it is one.

    The last is whether replicas differ as the truth may. Those of a method that does not know its
    errors repeat noise alone: whatever they say is unclear.
    """
    if isinstance(source, Trajectories):
        return source, (), None, True
    if isinstance(source, tuple):  # what synthesize returned
        data, receipt = source
        grid = Grid(Box(*receipt.box), receipt.grid)
        return data, getattr(source, "replicas", ()), grid, receipt.standard_error is not None
    path = Path(source)
    receipt = _receipt_beside(path)
    sure = receipt is None or receipt.get("standard_error") is not None
    return read(path), _read_all(replica_paths(path)), grid_beside(path), sure


def _read_all(paths: list[Path]) -> Iterator[Trajectories]:
    for path in paths:
        yield read(path)


def grid_beside(path: Path) -> Grid | None:
    """Return the grid that the receipt beside a release names; None if there is no receipt."""
    values = _receipt_beside(path)
    if values is None:
        return None
    try:
        return Grid(Box(*map(float, values["box"])), int(values["grid"]))
    except (ValueError, KeyError, TypeError, SettingError) as error:
        raise _unreadable(path, error) from None


def _receipt_beside(path: Path) -> dict[str, Any] | None:
    try:
        values = parse_json(_receipt_place(path).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(values, dict):
        raise _unreadable(path, "it is no object")
    return values


def _unreadable(path: Path, why: object) -> InputError:
    return InputError(f"receipt {_receipt_place(path)} cannot be read ({why}); move it away")


def _receipt_place(path: Path) -> Path:
    return path.with_name(f"{path.name}.receipt.json")
