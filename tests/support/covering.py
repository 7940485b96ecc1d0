"""Answers to what people ask of trajectories, and how often intervals hold the true ones.

The answers are counted here in plain numpy, on the cells of a grid as zones.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from retrasyn import synthesize
from retrasyn.answers.intervals import Intervals

LEAST_PAIR = 0.002


def answers(trips, grid, span, hour):
    """Return the answers by name: each a row per timestamp or hour, or a single row."""
    first, last = span
    n_times, n_cells = last - first + 1, grid.n_cells
    n_hours = -(-n_times // hour)
    cells, _ = grid.locate(trips.x, trips.y)
    cells = cells.astype(np.int64)
    lengths = np.diff(trips.starts)
    stream = np.repeat(np.arange(lengths.size), lengths)
    t = np.arange(stream.size) - trips.starts[stream] + trips.begins[stream] - first
    here = np.bincount(t * n_cells + cells, minlength=n_times * n_cells)
    counts = here.reshape(n_times, n_cells).astype(float)
    same = stream[1:] == stream[:-1]
    moved = same & (cells[1:] != cells[:-1])
    pair = cells[:-1] * n_cells + cells[1:]
    flows = np.zeros((n_hours, n_cells * n_cells))
    np.add.at(flows, (t[1:][moved] // hour, pair[moved]), 1.0)
    near = np.zeros((n_cells, n_cells), bool)
    table = grid.neighbour_table
    rows = np.repeat(np.arange(n_cells), table.shape[1]).reshape(table.shape)
    near[rows[table >= 0], table[table >= 0]] = True
    np.fill_diagonal(near, False)
    flows = flows[:, near.ravel()]
    steps = np.hypot(np.diff(trips.x), np.diff(trips.y))[same]
    ends = cells[trips.starts[:-1]] * n_cells + cells[trips.starts[1:] - 1]
    hours = np.add.reduceat(counts, np.arange(0, n_times, hour))
    return {
        "counts": counts,
        "counts, mean": counts.mean(axis=0, keepdims=True),
        "zone x hour": hours,
        "od": np.bincount(ends, minlength=n_cells**2)[None].astype(float),
        "flows": flows.sum(axis=0, keepdims=True),
        "flows by hour": flows,
        "length": np.array([[steps.sum() / lengths.size]]),
        "duration": np.array([[lengths.mean()]]),
    }


@dataclass(frozen=True)
class Replicated:
    """A release, its replicas and the truth, as answers."""

    real: dict
    release: dict
    replicas: list

    @classmethod
    def of(cls, real, settings, hour):
        """Synthesise with replicas."""
        made = synthesize(real, settings)
        of = partial(answers, grid=settings.grid, span=(real.first_t, real.last_t), hour=hour)
        return cls(of(real), of(made.synthetic), [of(one) for one in made.replicas])

    def held(self, name):
        """Return where intervals hold, which are unclear, and which are the busiest tenth."""
        true, value = self.real[name], self.release[name]
        told = Intervals.of(value, np.array([one[name] for one in self.replicas]))
        asked = np.ones(true.shape, bool)
        if name == "od":
            asked = true >= LEAST_PAIR * true.sum()
        busiest = asked & (true >= np.quantile(true[asked], 0.9))
        held = (told.low <= true) & (true <= told.high)
        return held, told.unclear, asked, busiest
