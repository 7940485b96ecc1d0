"""Small pairs of data sets, the pages made of them, and both in plain Python."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.metrics.baselines import plain_baselines
from retrasyn.metrics.pair import Gridded, Pair
from retrasyn.metrics.suite import Scores, evaluate_pair
from retrasyn.report.content import Content, gather
from retrasyn.report.page import write_report
from retrasyn.roads.network import RoadNetwork
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.baselines import run_baselines
from retrasyn.space import Box, Grid

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\"'&"
RECEIPT = {
    "method": "retrasyn-p",
    "private": True,
    "within_guarantee": True,
    "within_epsilon_per_person": True,
    "guarantee": "For one person and any 20 consecutive positions, all is well.",
    "epsilon": 1.0,
    "window": 20,
    "unit": "position",
    "seed": None,
    "n_users": 30,
    "n_reports": 1200,
    "grid": 5,
    "worst_window": {"declared": {"epsilon": 1.0}, "person_position": {"epsilon": 1.0}},
    "not_protected": ["two devices of one person"],
    "settings": {"gain": 8.0},
}
SETTINGS: dict[str, Any] = {
    "receipt": RECEIPT,
    "title": "Streets",
    "span": 6,
    "top_cells": 5,
    "top_patterns": 20,
    "seed": 3,
}
CLOCK = Clock("2008-02-02T18:00:00+08:00", 600.0)


def walks(
    *, n: int, n_timestamps: int, length: int, seed: int, first_t: int = 0, step: float = 0.12
) -> Trajectories:
    """Walkers in the unit square, each present for a while."""
    random = np.random.default_rng(seed)
    length = min(length, n_timestamps)
    begins = random.integers(0, n_timestamps - length + 1, n)
    begins[0], begins[-1] = 0, n_timestamps - length  # the whole time is covered
    steps = random.uniform(-step, step, (2, n, length))
    x, y = np.clip(random.random((2, n, 1)) + np.cumsum(steps, axis=2), 0, 1)
    return Trajectories.from_columns(
        traj_id=np.repeat(np.arange(n), length),
        t=(first_t + begins[:, None] + np.arange(length)).ravel(),
        x=x.ravel(),
        y=y.ravel(),
    )


def crowd(
    seed: int, *, n: int = 30, n_timestamps: int = 24, length: int = 9, first_t: int = 0
) -> Trajectories:
    """One side of `make_pair`."""
    return walks(n=n, n_timestamps=n_timestamps, length=length, seed=seed, first_t=first_t)


def make_pair(
    *, side: int = 5, n: int = 30, n_timestamps: int = 24, length: int = 9, first_t: int = 0
) -> Pair:
    """Two crowds of walkers on a grid over the unit square."""
    shape = {"n": n, "n_timestamps": n_timestamps, "length": length, "first_t": first_t}
    return Pair.of(*(crowd(seed, **shape) for seed in (1, 2)), Grid(Box(0, 0, 1, 1), side))


def street_grid(n: int = 12) -> RoadNetwork:
    """Return a network of n x n crossings on the unit square, the outermost streets fast."""
    nodes = np.arange(n * n).reshape(n, n)
    tail = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    head = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    rows, columns = np.divmod(nodes.ravel(), n)
    outermost = (rows[tail] == rows[head]) & np.isin(rows[tail], (0, n - 1))
    return RoadNetwork.from_edges(
        x=columns / (n - 1),
        y=rows / (n - 1),
        tail=tail,
        head=head,
        road_class=np.where(outermost, 1, 4),
    )


EDGES = {
    "one cell, one timestamp, one stream": {"side": 1, "n": 1, "n_timestamps": 1, "length": 1},
    "one cell": {"side": 1},
    "one timestamp": {"n_timestamps": 1},
    "one stream": {"n": 1, "n_timestamps": 7},
    "timestamps with nobody": {"n": 2, "n_timestamps": 60, "length": 3},
    "the finest grid": {"side": 64, "n": 200},
    "more timestamps than frames": {"n": 400, "n_timestamps": 2500, "length": 20},
    "timestamps from -5 on": {"first_t": -5},
}


def content_of(pair: Pair, **changes: Any) -> Content:
    """Gather what a page shows."""
    return gather(pair, evaluate_pair(pair), **SETTINGS | changes)


def page_of(pair: Pair, path: Path, **changes: Any) -> str:
    """Write a page and return its text."""
    write_report(path, pair, evaluate_pair(pair), **SETTINGS | changes)
    return path.read_text(encoding="utf-8")


def all_baselines(pair: Pair) -> dict[str, Scores]:
    """Score all that a release is compared with, on the data of the pair itself."""
    grid, real = pair.grid, crowd(1)
    settings = RunSettings.of(grid=grid, window=4, seed=2)
    return plain_baselines(pair, evaluate_pair) | run_baselines(real, settings, pair)


def unpack(packed: dict[str, Any], *shape: int) -> np.ndarray:
    """Undo `pack`."""
    codes = np.frombuffer(base64.b64decode(packed["codes"]), np.dtype(packed["kind"]))
    return (codes * packed["scale"]).reshape(shape or -1)


def paths(gridded: Gridded) -> list[tuple[int, list[int]]]:
    """Return every stream as its first timestamp and its cells."""
    return [
        (int(begin), gridded.cells[low:high].tolist())
        for begin, low, high in zip(
            gridded.begins, gridded.starts[:-1], gridded.starts[1:], strict=True
        )
    ]
