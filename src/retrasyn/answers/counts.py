"""Counts: how many people are present in a zone, on average over the timestamps of a period.

Profiles are the same by the time of day, and hotspots the zones with the highest ones. Cells that a
zone's border cuts need no rule: points are counted where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.answers.base import Breakdown, Inquiry, KeyedValues, blocks, check_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.answers.base import Columns
    from retrasyn.data.trajectories import Trajectories

_LIKELY = (0.05, 0.95)  # of the ranks in replicas


def present(data: Trajectories, by: Breakdown) -> KeyedValues:
    """Return the mean number of points in every zone and period; outside only where there are any.

    Keys are period * n_codes + zone.
    """
    shape = (by.periods.n_periods, by.n_codes)
    n_keys = shape[0] * shape[1]
    check_rows(KeyedValues(np.broadcast_to(np.int64(0), n_keys), np.empty(0)))
    counts = np.zeros(n_keys, np.int64)
    for block in blocks(data):
        periods = by.periods.locate(block.t)
        rows = np.flatnonzero(periods >= 0)
        zones = by.zones_of(block.x[rows], block.y[rows])
        counts += np.bincount(periods[rows] * np.int64(shape[1]) + zones, minlength=n_keys)
    means = counts / np.repeat(by.periods.sizes, shape[1])
    keys = np.arange(n_keys)
    if by.zones is not None:
        outside = keys % shape[1] == by.zones.n_zones
        keys = keys[~outside | np.repeat(counts.reshape(shape)[:, -1] > 0, shape[1])]
    return KeyedValues(keys, means[keys])


def zone_and_period(keys: npt.NDArray[np.int64], by: Breakdown) -> Columns:
    """Return what tells the rows of counts."""
    periods, zones = np.divmod(keys, by.n_codes)
    return {
        **by.zone_columns(zone=zones),
        **by.period_columns(periods),
        "timestamps": by.periods.sizes[periods],
    }


def hottest(found: KeyedValues, by: Breakdown) -> npt.NDArray[np.int64]:
    """Return the rows of the zones with the highest counts of each period, the highest first."""
    assert by.zones is not None  # noqa: S101 - hotspots are always among zones
    ranks = _ranks(_table(found.values, found.keys, by))  # [n_periods, n_zones]
    periods, zones = np.nonzero(ranks <= by.top)
    order = np.lexsort((ranks[periods, zones], periods))
    keys = periods[order] * by.n_codes + zones[order]
    return np.searchsorted(found.keys, keys)


def ranks_of(
    values: npt.NDArray[np.float64], keys: npt.NDArray[np.int64], by: Breakdown
) -> Columns:
    """Return the ranks of zones from the values of the release and of its replicas: [1 + B, n].

    Where there are replicas, also between which ranks nine of ten of them have a zone, and which
    share of them has it among the first.
    """
    chosen = hottest(KeyedValues(keys, values[0]), by)
    periods, zones = np.divmod(keys[chosen], by.n_codes)
    ranks = np.stack([_ranks(_table(each, keys, by))[periods, zones] for each in values])
    own, others = ranks[0], ranks[1:]
    if not len(others):
        empty = np.full(own.size, np.nan)
        return {"rank": own, "rank_low": empty, "rank_high": empty, "in_top": empty}
    low, high = np.quantile(others, _LIKELY, axis=0, method="nearest").astype(np.float64)
    in_top = (others <= by.top).mean(axis=0)
    return {"rank": own, "rank_low": low, "rank_high": high, "in_top": in_top}


def _table(
    values: npt.NDArray[np.float64], keys: npt.NDArray[np.int64], by: Breakdown
) -> npt.NDArray[np.float64]:
    """Return counts by period and zone, without what is outside: [n_periods, n_zones]."""
    table = np.zeros((by.periods.n_periods, by.n_codes))
    table.ravel()[keys] = values
    return table[:, :-1]


def _ranks(table: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the place of each zone from 1, of equal ones in their order: [n_periods, n_zones]."""
    order = np.argsort(-table, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, table.shape[1] + 1)[None, :], axis=1)
    return ranks


COUNTS = Inquiry(
    "counts",
    "people present in a zone, on average over the timestamps of a period",
    "grid",
    "people present at a time",
    present,
    zone_and_period,
)
PROFILE = Inquiry(
    "profile",
    "people present at each time of day, on average over the days",
    "everywhere",
    "people present at a time",
    present,
    zone_and_period,
    by_day=True,
    sorted_by_value=False,
)
HOTSPOTS = Inquiry(
    "hotspots",
    "the zones where most people are present, with how sure their rank is",
    "grid",
    "people present at a time",
    present,
    zone_and_period,
    sorted_by_value=False,
    select=hottest,
    rank=ranks_of,
)
