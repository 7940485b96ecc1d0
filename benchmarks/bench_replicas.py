"""A run with replicas against as many runs without."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from retrasyn import demo_city, synthesize
from retrasyn.simulation.city import CITY_BOX
from workloads import Line, best

N = 5
BAR = 1.1


def lines() -> Iterator[Line]:
    """Time both on the built-in city: data are read and people drawn once, not for every replica."""
    city = demo_city(seed=1)
    run = partial(synthesize, city, box=CITY_BOX, seed=1)
    seconds = best({"alone": run, "with": partial(run, replicates=N)}, repeats=3)
    yield Line(
        f"synthesize with {N} replicas / {N + 1} times synthesize",
        seconds["with"] / ((N + 1) * seconds["alone"]),
        BAR,
        f"{seconds['with']:.2f} s against {N + 1} x {seconds['alone']:.2f} s",
    )
