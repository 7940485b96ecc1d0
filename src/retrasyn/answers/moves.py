"""Moves between zones: flows from one timestamp to the next, and trips from origin to destination.

Both need what lies around the time that is asked for: a move that arrives at the first timestamp
began before it, and a trip that departs in time may end later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.answers.base import Breakdown, Inquiry, KeyedValues, blocks, count_keys

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.answers.base import Columns
    from retrasyn.data.trajectories import Trajectories


def flows(data: Trajectories, by: Breakdown) -> KeyedValues:
    """Count moves from one zone to another between consecutive timestamps, by when they arrive.

    Keys are (period * n_codes + origin) * n_codes + destination.
    """
    return count_keys(_moved(data, by), by.periods.n_periods * by.n_codes**2)


def _moved(data: Trajectories, by: Breakdown) -> Iterator[npt.NDArray[np.int64]]:
    for block in blocks(data):
        periods = by.periods.locate(block.t)  # [n_points]
        arrives = periods >= 0
        arrives[block.starts[:-1]] = False
        arrivals = np.flatnonzero(arrives)
        looked_at = arrives.copy()
        looked_at[arrivals - 1] = True
        zones = np.zeros(block.n_points, np.int32)
        zones[looked_at] = by.zones_of(block.x[looked_at], block.y[looked_at])
        origins, destinations = zones[arrivals - 1], zones[arrivals]
        went = origins != destinations
        yield _key(periods[arrivals][went], origins[went], destinations[went], by)


def trips(data: Trajectories, by: Breakdown) -> KeyedValues:
    """Count streams by the zones of their first and last points, and by when they depart.

    Keys are those of flows.
    """
    periods = by.periods.locate(data.begins)  # [n_streams]
    departs = np.flatnonzero(periods >= 0)
    first, last = data.starts[departs], data.starts[departs + 1] - 1
    origins, destinations = (by.zones_of(data.x[rows], data.y[rows]) for rows in (first, last))
    keys = _key(periods[departs], origins, destinations, by)
    return count_keys([keys], by.periods.n_periods * by.n_codes**2)


def _key(
    periods: npt.NDArray[np.int32],
    origins: npt.NDArray[np.int32],
    destinations: npt.NDArray[np.int32],
    by: Breakdown,
) -> npt.NDArray[np.int64]:
    n_codes = np.int64(by.n_codes)
    return (periods * n_codes + origins) * n_codes + destinations


def pair_and_period(keys: npt.NDArray[np.int64], by: Breakdown) -> Columns:
    """Return what tells the rows of moves."""
    rest, destinations = np.divmod(keys, by.n_codes)
    periods, origins = np.divmod(rest, by.n_codes)
    return {
        **by.zone_columns(origin=origins, destination=destinations),
        **by.period_columns(periods),
    }


FLOWS = Inquiry(
    "flows",
    "moves from zone to zone between consecutive timestamps, by when they arrive",
    "grid",
    "moves",
    flows,
    pair_and_period,
    shape="line",
)
OD = Inquiry(
    "od",
    "trips by the zones where they begin and end, by when they depart",
    "grid",
    "trips",
    trips,
    pair_and_period,
    shape="line",
)
