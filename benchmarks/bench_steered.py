"""The estimator of one timestamp, and a whole step, to numpy drawing uniforms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from retrasyn import Box, Curator, Grid, Roster, RunSettings
from retrasyn.messages import Aggregate, Estimate, Grant
from retrasyn.mobility.estimator import FlowMemory, Hypotheses
from retrasyn.oracles import OUE
from retrasyn.oracles.registry import n_answers, oracle_for
from retrasyn.space import StateSpace
from workloads import Line, best

N_UNIFORMS = 500_000
BAR = 1.0
N_KEYS = 4_000  # a timestamp's roster; a twenty-first of them is due
N_STREAMS = 100  # so few that moving them costs nothing
WARM_UP, STEPS = 60, 40
N_REPORTS = 2_000  # of each kind, at a timestamp
FIT_BARS = {6: 1.0, 16: 10.0, 32: 60.0}  # by side; numpy draws them in about 1 ms


def lines() -> Iterator[Line]:
    """Time the estimator alone, and whole steps of a curator whose population is tiny."""
    for side, bar in FIT_BARS.items():
        yield fitting(side, bar)
    yield from against_uniforms()


def fitting(side: int, bar: float) -> Line:
    """Judge, add and fit the reports of a timestamp, as often as numpy draws uniforms."""
    states, generator = StateSpace(Grid(Box(0, 0, 1, 1), side)), np.random.default_rng(1)
    variance = OUE(1_000_000).variance(N_REPORTS)
    shares = generator.dirichlet(np.full(states.n_moves, 0.3))
    cells = np.bincount(states.destinations, shares, states.grid.n_cells)
    memory = FlowMemory(states, Hypotheses.of(states))

    def heard(truth: npt.NDArray[np.float64]) -> Estimate:
        noisy = truth + generator.normal(0.0, variance**0.5, truth.size)
        return Estimate(frequencies=noisy, variance=variance, n=N_REPORTS)

    reports = [(heard(0.9 * shares), heard(cells)) for _ in range(WARM_UP)]

    def follow(n_steps: int) -> None:
        for moves, arrivals in reports[:n_steps]:
            memory.update(moves, arrivals, moving=0.9)
            memory.fit()

    n_steps = 10 if side <= 6 else 2
    follow(WARM_UP if side <= 6 else 5)
    seconds = best(
        {
            "fits": lambda: follow(n_steps),
            "uniforms": lambda: [generator.random(N_UNIFORMS) for _ in range(n_steps)],
        },
        repeats=15,
    )
    ours, uniforms = seconds["fits"] / n_steps, seconds["uniforms"] / n_steps
    return Line(
        f"steered's estimator, one timestamp at K = {side} / numpy drawing {N_UNIFORMS:,}",
        ours / uniforms,
        bar,
        f"{ours * 1e3:.2f} ms against {uniforms * 1e3:.2f} ms",
    )


def against_uniforms() -> Iterator[Line]:
    """Estimate, steer and build tables at K = 6, against drawing uniforms."""
    curator = Curator(RunSettings.of("steered", grid=Grid(Box(0, 0, 1, 1), 6), seed=1))
    keys = np.arange(N_KEYS)
    roster = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(N_KEYS, np.int64))
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.full(curator.states.n_states, 0.3))

    def collect(grant: Grant, lane: str) -> Aggregate:
        del lane
        n_states = n_answers(grant.question, curator.states)
        n = grant.reporters.size
        some = shares[:n_states] / shares[:n_states].sum()
        true = generator.multinomial(n, some) if n_states > 1 else np.array([n // 2])
        return oracle_for(grant).draw_counts(true, n, generator=generator)

    def advance(n_steps: int) -> None:
        first = 0 if curator.state.t is None else curator.state.t + 1
        for t in range(first, first + n_steps):
            curator.step(t, size=N_STREAMS, roster=roster, collect=collect)

    advance(WARM_UP)
    seconds = best(
        {
            "steps": lambda: advance(STEPS),
            "uniforms": lambda: [generator.random(N_UNIFORMS) for _ in range(STEPS)],
        },
        repeats=15,
    )
    ours, uniforms = seconds["steps"] / STEPS, seconds["uniforms"] / STEPS
    yield Line(
        f"steered, one timestamp at K = 6 without its points / numpy drawing {N_UNIFORMS:,}",
        ours / uniforms,
        BAR,
        f"{ours * 1e3:.2f} ms against {uniforms * 1e3:.2f} ms",
    )
