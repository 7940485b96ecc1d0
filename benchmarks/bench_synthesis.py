"""One synthesis step against numpy drawing uniforms and against the plain loop."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from retrasyn.space import Box, Grid
from retrasyn.synthesis.paper_steps import CompetingPlan
from retrasyn.synthesis.steered_steps import OrderedPlan
from retrasyn.synthesis.synthesizer import ShardedStreams, Synthesizer
from workloads import Line, Population, naive_step

MILLION = 1_000_000
MANY = 10 * MILLION
STAYING = {6: 0.71, 18: 0.46}  # by side: taxis, of which ten minutes are one step
MEAN_LENGTH = 30
STEPS = 7


def step_against_uniforms() -> Iterator[Line]:
    """A step of a million streams, one thread, in turn with a million uniforms."""
    generator = np.random.default_rng(0)
    population = Population(MILLION)
    cases = {"births": MILLION, "surplus of 1 %": population.n_survivors - MILLION // 100}
    for case, target in cases.items():
        steps, points, uniforms = [], [], []
        for _ in range(11):
            steps.append(population.step(target))
            points.append(population.points())
            begin = time.perf_counter()
            generator.random(MILLION)
            uniforms.append(time.perf_counter() - begin)
        step, point, uniform = min(steps[1:]), min(points[1:]), min(uniforms[1:])
        detail = f"{step * 1e3:.2f} ms against {uniform * 1e3:.2f} ms"
        bar = 3 if case == "births" else 4  # a surplus needs one more look at every stream
        yield Line(f"step of 1,000,000 streams, {case} / uniforms", step / uniform, bar, detail)
        detail = f"{(step + point) * 1e3:.2f} ms against {uniform * 1e3:.2f} ms"
        yield Line(
            f"the same with x and y / uniforms ({case})", (step + point) / uniform, 6, detail
        )
        if case == "births":
            loop = naive_step(50_000) / 50_000
            ours = (step + point) / MILLION
            yield Line(
                "plain loop / step with x and y, per point",
                loop / ours,
                150,
                f"{loop * 1e9:,.0f} ns against {ours * 1e9:.1f} ns",
                at_least=True,
            )


def cost_per_stream() -> Iterator[Line]:
    """Time per stream at ten million against a hundred thousand."""
    small, large = Population(100_000), Population(10_000_000)
    seconds = {}
    for population in (small, large):
        runs = [population.step(population.n) + population.points() for _ in range(6)]
        seconds[population.n] = min(runs[1:]) / population.n
    few, many = seconds[small.n], seconds[large.n]
    yield Line(
        "time per stream, 10^7 / 10^5",
        many / few,
        1.5,
        f"{many * 1e9:.1f} ns against {few * 1e9:.1f} ns",
    )


class Steps:
    """Steps of `steered` or of `retrasyn-p` one after the other, points included."""

    def __init__(self, side: int, n_threads: int, *, steered: bool) -> None:
        self.grid, self.steered, self.t = Grid(Box(0, 0, 1, 1), side), steered, 0
        self.synthesizer = Synthesizer(self.grid, 1, steers=steered)
        self.streams = ShardedStreams.open(self.grid, continuous=steered, n_threads=n_threads)
        generator, near = np.random.default_rng(side), self.grid.neighbour_table >= 0
        flows = np.where(near, generator.random(near.shape), 0.0)
        flows[:, 4] = 0.0
        flows[:, 4] = flows.sum(axis=1) * STAYING[side] / (1.0 - STAYING[side])
        self.mass = flows / flows.sum()
        self.pull = np.ones(self.grid.n_cells)

    def plan(self, target: int) -> CompetingPlan | OrderedPlan:
        """Return a plan by which streams live for MEAN_LENGTH timestamps."""
        n_cells, before = self.grid.n_cells, self.streams.n
        enter = np.full(n_cells, 1.0 / n_cells)
        if self.steered:
            return OrderedPlan(
                by_age=np.full(400, 1.0 / MEAN_LENGTH),
                by_cell=np.linspace(0.5, 1.5, n_cells),
                keeps_sum=True,
                at_least=before - target,
                cap=0.95,
                ends=None,
                target=target,
                enter=enter,
                mass=self.mass,
                pull=self.pull,
            )
        return CompetingPlan(
            move=self.mass / self.mass.sum(axis=1, keepdims=True),
            quit_odds=np.full(n_cells, 1.0 / MEAN_LENGTH),
            against_moves=True,
            length_scale=float(MEAN_LENGTH),
            target=target,
            enter=enter,
            surplus_weights=np.linspace(0.5, 1.5, n_cells),
            surplus_by_newest=False,
        )

    def step(self) -> float:
        """Step once, to a size that changes by a thousandth, and return the seconds it took."""
        target = MANY - (self.t % 2) * MANY // 1000
        begin = time.perf_counter()
        changes = self.synthesizer.step(self.streams, self.plan(target), self.t)
        self.synthesizer.release(self.streams, self.t)
        seconds = time.perf_counter() - begin
        self.pull, self.t = self.pull if changes.pull is None else changes.pull, self.t + 1
        return seconds


def steered_against_paper() -> Iterator[Line]:
    """Ten million streams of both methods in turn, on one thread and on two."""
    for side in STAYING:
        for n_threads in (1, 2):
            ours, theirs = (Steps(side, n_threads, steered=steered) for steered in (True, False))
            seconds = [(ours.step(), theirs.step()) for _ in range(STEPS)][2:]
            step, plain = (min(column) / MANY for column in zip(*seconds, strict=True))
            threads = "one thread" if n_threads == 1 else "two threads"
            yield Line(
                f"step of {MANY:,} streams with x and y at K = {side}, {threads}: "
                "steered / retrasyn-p",
                step / plain,
                2,
                f"{step * 1e9:.1f} ns a stream against {plain * 1e9:.1f} ns",
            )


def lines() -> Iterator[Line]:
    yield from step_against_uniforms()
    yield from cost_per_stream()
    yield from steered_against_paper()
