"""Frames of the live map, to pyarrow reading the two files that each is made of."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from retrasyn.data import Trajectories, write
from retrasyn.data.reading_files import read_columns
from retrasyn.service.viewing.frames import Placed, count_flows, encode_frame
from retrasyn.service.viewing.source import TimestampPoints
from retrasyn.simulation.city import CITY_BOX
from retrasyn.space import Grid
from workloads import Line, best

N_POINTS = 50_000
TRAVELLERS = 3000
BAR = 4
_COLUMNS = ("traj_id", "x", "y")


def lines() -> Iterator[Line]:
    grid = Grid(CITY_BOX, 18)
    with tempfile.TemporaryDirectory() as folder:
        files = [_release(Path(folder), t) for t in (0, 1)]

        def ours() -> None:
            before, after = (
                Placed.on(grid, TimestampPoints(*read_columns(file, _COLUMNS))) for file in files
            )
            summary = {"t": 1, "n_born": 0, "n_ended": 0, "n_reports": 0}
            flows = count_flows(before, after, grid.side)
            encode_frame(summary, after, flows, grid, most=TRAVELLERS)

        def arrow() -> None:
            for file in files:
                pq.read_table(file, columns=list(_COLUMNS))

        seconds = best({"ours": ours, "arrow": arrow}, repeats=20)
    yield Line(
        f"frame of {N_POINTS:,} points at K = 18 / pyarrow reading its two files",
        seconds["ours"] / seconds["arrow"],
        BAR,
        f"{seconds['ours'] * 1e3:.1f} ms against {seconds['arrow'] * 1e3:.1f} ms",
    )


def _release(folder: Path, t: int) -> Path:
    """Write a timestamp; nine streams in ten are in both."""
    dice = np.random.default_rng(t)
    ids = np.sort(dice.choice(N_POINTS * 10 // 9, N_POINTS, replace=False)).astype(np.int64)
    x, y = dice.uniform(0.01, 9.99, (2, N_POINTS))
    path = folder / f"{t}.parquet"
    write(Trajectories(ids, np.full(N_POINTS, t), np.arange(N_POINTS + 1), x, y), path)
    return path
