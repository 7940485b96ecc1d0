"""A source in memory for tests: whatever points one wants, at whatever timestamps."""

import io

import numpy as np

from retrasyn.data.metadata import Metadata
from retrasyn.data.trajectories import Trajectories
from retrasyn.service.viewing.source import ReleaseSource, TimestampPoints
from retrasyn.space import Box, Grid


class Recording(ReleaseSource):
    """Timestamps and their points, as given."""

    def __init__(self, points, *, side=3, box=(0.0, 0.0, 3.0, 3.0)):
        self._grid, self._points = Grid(Box(*box), side), points
        self.timestamps = sorted(points)
        self.replicas = []
        self.n_reads = 0

    @property
    def grid(self):
        return self._grid

    def points_at(self, t):
        self.n_reads += 1
        return self._points.get(t)

    def replicas_at(self, t):
        return [one.points_at(t) for one in self.replicas]

    def places_at(self, t):
        found = self._points.get(t)
        return None if found is None else (found.x, found.y)

    def summary(self, t):
        found = self._points.get(t)
        if found is None:
            return None
        before = self._points.get(t - 1)
        old = set() if before is None else set(before.ids.tolist())
        new = set(found.ids.tolist())
        cells = self._grid.cells_of(found.x, found.y)
        return {
            "t": t,
            "time": f"2024-01-01T00:{t:02d}:00+00:00",
            "n_points": len(new),
            "n_born": len(new - old),
            "n_ended": len(old - new),
            "n_reports": 11,
            "epsilon": 1.0,
            "cells": np.bincount(cells, minlength=self._grid.n_cells).tolist(),
        }

    def metadata(self):
        return Metadata()

    def open_receipt(self, t=None):
        if t is not None and not self.has(t):
            return None
        return io.BytesIO(b'{"format_version": 1, "guarantee": "none"}')


def streams_of(source, first=None, last=None):
    """Return all points of a range of a source as streams."""
    times = source.within(first, last)
    found = [source.points_at(t) for t in times]
    return Trajectories.from_columns(
        traj_id=np.concatenate([points.ids for points in found]),
        t=np.repeat(times, [points.ids.size for points in found]),
        x=np.concatenate([points.x for points in found]),
        y=np.concatenate([points.y for points in found]),
    )


def points_of(ids, x, y):
    return TimestampPoints(np.asarray(ids, np.int64), np.asarray(x, float), np.asarray(y, float))


def nobody():
    return points_of([], [], [])


def crowd(seed, timestamps, *, side=3, n=400, box=(0.0, 0.0, 3.0, 3.0), n_ids=None):
    """Return a recording of random points; most streams are there at most timestamps."""
    dice, x0, y0, x1, y1 = np.random.default_rng(seed), *box
    points = {}
    for t in timestamps:
        ids = np.sort(dice.choice(n_ids or 2 * n, n, replace=False))
        points[t] = points_of(ids, dice.uniform(x0, x1, n), dice.uniform(y0, y1, n))
    return Recording(points, side=side, box=box)
