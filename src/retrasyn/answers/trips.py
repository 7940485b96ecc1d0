"""Trips: how long streams are, in distance and in time, by when and where they depart."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.answers.base import Breakdown, Inquiry, KeyedValues, blocks, check_rows
from retrasyn.roads.coordinates import great_circle, straight

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.answers.base import Columns
    from retrasyn.data.trajectories import Trajectories

_MEASURES = ("length", "duration")
_TENTHS = np.arange(1, 10) / 10
_CLASSES = np.array([digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5)])
"""Where classes end: 1, 2, 5, 10, 20, 50 and so on; the last one does not end."""
_NAMES = np.array(
    ["mean", *(f"p{10 * tenth}" for tenth in range(1, 10)), "trips"]
    + [f"trips below {_CLASSES[0]:g}"]
    + [f"trips of {low:g} to {high:g}" for low, high in pairwise(_CLASSES)]
    + [f"trips from {_CLASSES[-1]:g}"],
)
_N_MEANS = 10  # statistics that are of trips, not numbers of them


def statistics(data: Trajectories, by: Breakdown) -> KeyedValues:
    """Return mean, deciles, number and classes of length and duration of the trips that depart.

    Keys are ((period * n_codes + origin) * 2 + measure) * n_statistics + statistic.
    """
    periods = by.periods.locate(data.begins)  # [n_streams]
    departs = np.flatnonzero(periods >= 0)
    first = data.starts[departs]
    origins = by.zones_of(data.x[first], data.y[first])
    groups = periods[departs] * np.int64(by.n_codes) + origins
    length = _travelled(data, degrees=by.degrees)[departs]
    duration = (data.lengths[departs] - 1) * np.float64(_step(by)[0])
    parts = [
        _of_groups(groups * len(_MEASURES) + measure, values)
        for measure, values in enumerate((length, duration))
    ]
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys)
    values = np.concatenate([part.values for part in parts])
    return check_rows(KeyedValues(keys[order], values[order]))


def _of_groups(groups: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> KeyedValues:
    """Return the statistics of values in groups."""
    order = np.lexsort((values, groups))
    there, first, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    ascending = values[order]
    if not there.size:
        return KeyedValues(np.empty(0, np.int64), np.empty(0))
    means = np.add.reduceat(ascending, first) / sizes
    place = _TENTHS * (sizes[:, None] - 1)  # [n_groups, 9], as numpy's quantiles
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, sizes[:, None] - 1)
    low, high = ascending[first[:, None] + below], ascending[first[:, None] + above]
    tenths = low + (place - below) * (high - low)
    n = _NAMES.size
    table = np.concatenate([means[:, None], tenths, sizes[:, None]], axis=1)
    keys = there[:, None] * n + np.arange(table.shape[1])
    classes = groups * n + table.shape[1] + np.searchsorted(_CLASSES, values, side="right")
    of_class, counts = np.unique(classes, return_counts=True)
    keys = np.concatenate([keys.ravel(), of_class])
    everything = np.concatenate([table.ravel(), counts])
    order = np.argsort(keys)
    return KeyedValues(keys[order], everything[order])


def _travelled(data: Trajectories, *, degrees: bool) -> npt.NDArray[np.float64]:
    """Return how far each stream goes, in kilometres if coordinates are degrees: [n_streams]."""
    parts = [np.empty(0)]
    for block in blocks(data):
        here, there = ((block.x[rows], block.y[rows]) for rows in (slice(-1), slice(1, None)))
        steps = great_circle(here, there) / 1000 if degrees else straight(here, there)
        steps = np.append(steps, 0.0)
        steps[block.starts[1:] - 1] = 0.0  # from the end of a stream to the next one
        parts.append(np.add.reduceat(steps, block.starts[:-1]))
    return np.concatenate(parts)


def _step(by: Breakdown) -> tuple[float, str]:
    """Return what one timestamp adds to a duration, and in which unit."""
    return (1.0, "timestamps") if by.clock is None else (by.clock.period / 60, "min")


def describe(keys: npt.NDArray[np.int64], by: Breakdown) -> Columns:
    """Return what tells the rows of statistics."""
    rest, statistic = np.divmod(keys, _NAMES.size)
    groups, measure = np.divmod(rest, len(_MEASURES))
    periods, zones = np.divmod(groups, by.n_codes)
    units: Any = np.array(["km" if by.degrees else "coordinates", _step(by)[1]])
    return {
        **by.zone_columns(zone=zones),
        **by.period_columns(periods),
        "measure": np.array(_MEASURES)[measure],
        "unit": units[measure],
        "statistic": _NAMES[statistic],
    }


def missing(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the statistics of no trips: their number is 0, the others are none."""
    return np.where(keys % _NAMES.size < _N_MEANS, np.nan, 0.0)


TRIPS = Inquiry(
    "trips",
    "length and duration of trips: mean, deciles and how many there are of each class",
    "everywhere",
    "see statistic and unit",
    statistics,
    describe,
    sorted_by_value=False,
    missing=missing,
)
