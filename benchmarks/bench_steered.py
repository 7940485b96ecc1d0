"""The estimator and the steering of one timestamp, to numpy drawing uniforms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from retrasyn import Box, Curator, Grid, Roster, RunSettings
from retrasyn.messages import Aggregate, Grant
from retrasyn.oracles.registry import n_answers, oracle_for
from workloads import Line, best

N_UNIFORMS = 500_000
BAR = 1.0
N_KEYS = 4_000  # a timestamp's roster; a twenty-first of them is due
N_STREAMS = 100  # so few that moving them costs nothing
WARM_UP, STEPS = 60, 40


def lines() -> Iterator[Line]:
    """Time whole steps of a curator whose synthetic population is tiny."""
    yield from against_uniforms()


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
        true = generator.multinomial(n, shares) if n_states > 1 else np.array([n // 2])
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
