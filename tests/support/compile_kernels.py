"""Compiles the kernels that most tests use, before many processes would each do the same.

`make test` runs it beside the checks of style and types.
"""

import numpy as np

import retrasyn
from retrasyn.oracles.registry import ORACLES
from support.public_maps import map_for

WINDOW, GRID, BOX = 3, 3, (0, 0, 10, 10)


def compile_kernels():
    """Synthesise a handful of people in every way that has loops of its own, and measure it."""
    city = retrasyn.demo_city(n_users=60, n_timestamps=8, seed=1)
    for method in ("steered", "steered-map", "steered-roads", "retrasyn-p"):
        options = {"window": WINDOW, "grid": GRID, "box": BOX, "seed": 1, **map_for(method, BOX)}
        synthetic, _ = retrasyn.synthesize(city, method, **options)
    retrasyn.evaluate(city, synthetic, grid=GRID, box=BOX)
    for row in ORACLES.values():
        oracle = row.at(1_000_000, 9)
        reports = oracle.perturb(
            np.zeros(3, np.int32), np.arange(3).astype(np.uint64), key=5, n_answers=9
        )
        oracle.aggregate(reports, n_answers=9)


if __name__ == "__main__":
    compile_kernels()
