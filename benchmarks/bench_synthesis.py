"""One synthesis step against numpy drawing uniforms and against the plain loop."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from workloads import Line, Population, naive_step

MILLION = 1_000_000


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


def lines() -> Iterator[Line]:
    yield from step_against_uniforms()
    yield from cost_per_stream()
