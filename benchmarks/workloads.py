"""Inputs of the benchmarks: seeded, offline, the same for everybody."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrasyn.data import write
from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.data.moving_objects.generate import generate
from retrasyn.interpretation import SAFE
from retrasyn.mobility.model import MobilityModel
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.synthesis.lifecycle import EnterQuit, LifecycleMemory, SynthesisContext
from retrasyn.synthesis.paper_steps import CompetingPlan
from retrasyn.synthesis.synthesizer import Shard, ShardedStreams, Synthesizer

LENGTH_SCALE = 15.0


@dataclass(frozen=True)
class Line:
    """One figure: what was measured, as a ratio, and the most it may be."""

    name: str
    ratio: float
    bar: float
    detail: str
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the ratio keeps its bar."""
        return self.ratio >= self.bar if self.at_least else self.ratio <= self.bar


def best(actions: dict[str, Callable[[], object]], repeats: int = 10) -> dict[str, float]:
    """Time actions in turn and return the best seconds of each."""
    seconds = dict.fromkeys(actions, float("inf"))
    for action in actions.values():
        action()
    for _ in range(repeats):
        for name, action in actions.items():
            begin = time.perf_counter()
            action()
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
    return seconds


def mobility(side: int = 6, seed: int = 0) -> tuple[Grid, MobilityModel]:
    """Return a grid and a model in which one stream in fifty quits."""
    grid = Grid(Box(0, 0, 1, 1), side)
    states = StateSpace(grid)
    released = np.random.default_rng(seed).random(states.n_states)
    released[states.n_moves :] *= 0.2
    return grid, MobilityModel.from_frequencies(released / released.sum(), states)


class Population:
    """A population that can be stepped again and again from the same state."""

    def __init__(self, n: int, *, n_threads: int = 1) -> None:
        self.grid, self.model = mobility()
        self.n = n
        self.synthesizer = Synthesizer(self.grid, 1)
        self.streams = ShardedStreams.open(self.grid, n_threads=n_threads)
        self.synthesizer.step(self.streams, self.plan(n), 0)
        ids, cells, entered = (part.copy() for part in self.streams.living())
        # Streams of lengths 1 to 30, so that length-aware quitting has something to do.
        entered -= (ids % 30).astype(np.int32)
        self.start = {"ids": ids, "cells": cells, "entered": entered}
        self.t = 1

    def plan(self, target: int) -> CompetingPlan:
        """Return the plan of a step that ends with `target` streams."""
        return EnterQuit().plan(
            SynthesisContext(
                model=self.model,
                memory=LifecycleMemory(),
                grid=self.grid,
                interpretation=SAFE,
                length_scale=LENGTH_SCALE,
                size=target,
                cell_counts=self.streams.counts,
            )
        )

    def rewind(self) -> None:
        """Go back to the first state (not timed)."""
        self.streams.take(self.start, self.n)
        for shard in self.streams.shards.engine.workers:
            shard.streams.reserve(self.n + self.n // 8)
        self.t += 1

    def step(self, target: int) -> float:
        """Step once and return the seconds it took."""
        self.rewind()
        begin = time.perf_counter()
        plan = self.plan(target)
        self.synthesizer.step(self.streams, plan, self.t)
        return time.perf_counter() - begin

    @property
    def n_survivors(self) -> int:
        """How many streams do not quit by themselves in the next step."""
        self.rewind()
        inputs = self.synthesizer.inputs(self.streams, self.t)
        return self.plan(self.n).decide(self.streams.shards, inputs)

    def points(self) -> float:
        """Draw points once and return the seconds it took."""
        begin = time.perf_counter()
        self.streams.shards.each(Shard.points, self.t)
        return time.perf_counter() - begin


def naive_step(n: int, seed: int = 3) -> float:
    """Time the plain loop: weight lists per cell, one `random.choices` call per point."""
    grid, model = mobility()
    generator = random.Random(seed)
    choices = [[int(c) for c in grid.neighbour_table[i] if c >= 0] for i in range(grid.n_cells)]
    weights = [
        [float(w) for w, c in zip(model.move[i], grid.neighbour_table[i], strict=True) if c >= 0]
        for i in range(grid.n_cells)
    ]
    hazard = model.quit_hazard.tolist()
    streams = [[generator.randrange(grid.n_cells), 1 + i % 30] for i in range(n)]
    begin = time.perf_counter()
    living = []
    for cell, length in streams:
        quit_weight = min(1.0, length / LENGTH_SCALE) * hazard[cell]
        chosen = generator.choices([*choices[cell], -1], [*weights[cell], quit_weight])[0]
        if chosen >= 0:
            living.append([chosen, length + 1])
    while len(living) < n:
        living.append([generator.choices(range(grid.n_cells), model.enter)[0], 1])
    return time.perf_counter() - begin


def recordings(folder: Path) -> dict[str, tuple[Path, Box]]:
    """Return files to synthesise: those in the folder RETRASYN_DATA names, else a city."""
    data = os.environ.get("RETRASYN_DATA")
    if data:
        return {
            "T-Drive": (Path(data) / "tdrive.parquet", Box(116.15, 39.75, 116.60, 40.10)),
            "Oldenburg": (Path(data) / "oldenburg.parquet", Box(0, 0, 30_000, 40_000)),
        }
    path = folder / "city.parquet"
    write(demo_city(n_users=150_000, n_timestamps=120), path)
    return {"built-in city": (path, CITY_BOX)}


def moving_objects(folder: Path, *, seed: int) -> Path:
    """Return a file as large as the paper's Oldenburg stream: 15.5 million points, 501 steps."""
    path = folder / f"objects-{seed}.parquet"
    write(generate(city_network(6_000), n_objects=10_000, n_new=535, n_steps=501, seed=seed), path)
    return path
