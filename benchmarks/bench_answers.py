"""Questions about ten million points by a thousand polygons, to numpy sorting a coordinate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import shapely

from retrasyn.answers.asking import ask
from retrasyn.answers.shapes import ShapeZones
from retrasyn.answers.zones import Zones, open_zones
from retrasyn.data.trajectories import Trajectories
from retrasyn.space import Box
from workloads import Line, best

BARS = {"grid:36": 8.0, "a thousand polygons": 40.0, "h3:8": 25.0}
BOX = Box(8.1, 53.0, 8.4, 53.3)
N_STREAMS, LENGTH = 500_000, 20


def walks() -> Trajectories:
    """Return streams that walk about a town, in degrees."""
    rng = np.random.default_rng(1)
    steps = rng.normal(0, 0.002, (2, N_STREAMS, LENGTH))
    steps[:, :, 0] = rng.uniform(0, 0.3, (2, N_STREAMS))
    x, y = np.abs(steps.cumsum(axis=2).reshape(2, -1)) % 0.3
    return Trajectories(
        np.arange(N_STREAMS),
        rng.integers(0, 100, N_STREAMS),
        np.arange(N_STREAMS + 1) * LENGTH,
        BOX.x0 + x,
        BOX.y0 + y,
        crs="EPSG:4326",
    )


def districts(n: int) -> Zones:
    """Return polygons that fill the box."""
    rng = np.random.default_rng(2)
    seeds = np.stack([rng.uniform(*BOX[::2], n), rng.uniform(*BOX[1::2], n)], axis=1)
    cells = shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=shapely.box(*BOX))
    shapes = shapely.segmentize(shapely.get_parts(cells), 0.0005)
    return ShapeZones([str(number) for number in range(n)], seeds, (), shapes, BOX)


def lines() -> Iterator[Line]:
    data = walks()
    zones = {
        "grid:36": open_zones("grid:36", box=BOX),
        "a thousand polygons": districts(1000),
        "h3:8": open_zones("h3:8", box=BOX, crs="EPSG:4326"),
    }
    for name, some in zones.items():
        for what in ("counts", "flows"):
            ours = partial(ask, data, what, zones=some, by=20)
            seconds = best({"ours": ours, "numpy": lambda: np.sort(data.x)}, repeats=2)
            yield Line(
                f"{what} of {data.n_points / 1e6:.0f} million points by {name} / numpy sorting",
                seconds["ours"] / seconds["numpy"],
                BARS[name],
                f"{seconds['ours']:.2f} s against {seconds['numpy']:.2f} s",
            )
