"""Trips on roads: tables, steps and births, to numpy reading numbers here and there in an array."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import numpy as np

from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.roads import next_hops
from retrasyn.roads.network import Arcs, RoadNetwork
from retrasyn.roads.next_hops import NextHops
from retrasyn.space import Box, Grid
from retrasyn.synthesis.synthesizer import ShardedStreams, Synthesizer
from retrasyn.synthesis.trips import Pace, TripPlan
from workloads import Line, best

MILLION = 1_000_000
CROSSINGS = 6_000  # as many as in Oldenburg, whose network is no part of this repository
FEW_ANCHORS = 4  # of a city of a million crossings, which has 216
SIDE = 6
WARM_UP, STEPS = 20, 10
STEP_BAR, BIRTH_BAR, TABLE_BAR, LARGE_BAR = 16.0, 200.0, 25.0, 12.0


def lines() -> Iterator[Line]:
    """Time tables of two cities, then steps of a million streams in the smaller one."""
    random = np.random.default_rng(1)
    shelf, places = random.random(4 * MILLION), random.integers(0, 4 * MILLION, MILLION)
    network = city_network(CROSSINGS)
    grid = grid_over(network)
    roads = NextHops.of(network, grid)
    seconds = best(
        {"ways": lambda: NextHops.of(network, grid), "reads": lambda: shelf[places]},
        repeats=3,
    )
    read = seconds["reads"] / MILLION
    each = seconds["ways"] / (roads.anchors.size * network.n_nodes)
    size = (roads.times.nbytes + roads.ranks.nbytes) / 1e6
    yield Line(
        f"ways from {network.n_nodes:,} crossings to {roads.anchors.size:,} anchors, each / a read",
        each / read,
        TABLE_BAR,
        f"{seconds['ways']:.2f} s, {size:.0f} MB; {each * 1e9:.0f} ns each",
    )
    yield of_a_large_city(each)
    yield from driving(roads, grid, read)


def grid_over(network: RoadNetwork) -> Grid:
    """Return a grid over a city."""
    extent = float(max(network.x.max(), network.y.max()))
    return Grid(Box(0, 0, extent, extent), SIDE)


def of_a_large_city(each: float) -> Line:
    """Find the ways to a few anchors of a million crossings; most of them are out of all caches."""
    network = city_network(MILLION)
    arcs = Arcs.of(network)
    anchors = np.linspace(0, network.n_nodes - 1, FEW_ANCHORS).astype(np.int32)
    begin = time.perf_counter()
    next_hops.find_tables(arcs, arcs.duration, anchors, n_threads=1)
    seconds = (time.perf_counter() - begin) / FEW_ANCHORS
    return Line(
        f"a way from one of {network.n_nodes:,} crossings / from one of {CROSSINGS:,}",
        seconds / network.n_nodes / each,
        LARGE_BAR,
        f"{seconds:.2f} s by anchor",
    )


def driving(roads: NextHops, grid: Grid, read: float) -> Iterator[Line]:
    """Drive a million streams on one thread, with births for those that arrive."""
    streams = ShardedStreams.open(grid, continuous=True, n_threads=1, roads=roads)
    synthesizer = Synthesizer(grid, 1)
    plan = TripPlan(
        roads=roads,
        target=MILLION,
        flow=roads.cell_weights,
        ends=roads.cell_weights,
        hazard=np.full(400, 0.02),
        alarm=0.0,
        speeds=None,
        gap=21,
        pace=Pace.before_any_answer(roads, grid, None),
    )
    seconds, births = [], []
    for t in range(1 + WARM_UP + STEPS):
        begin = time.perf_counter()
        changes = synthesizer.step(streams, plan, t)
        seconds.append(time.perf_counter() - begin)
        births.append(changes.n_born / MILLION)
        plan = dataclasses.replace(plan, pace=changes.pace or plan.pace)
    usual = min(seconds[-STEPS:]) / MILLION
    yield Line(
        "a step of 1,000,000 trips, by trip / a read",
        usual / read,
        STEP_BAR,
        f"{usual * 1e9:.0f} ns, of which {np.mean(births[-STEPS:]):.1%} begin",
    )
    birth = seconds[0] / MILLION
    yield Line("the birth of a trip / a read", birth / read, BIRTH_BAR, f"{birth * 1e9:.0f} ns")
