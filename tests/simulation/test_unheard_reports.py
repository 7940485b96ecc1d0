"""A curator fed with sums: what was sent is charged, whether or not it is of use."""

import numpy as np
import pytest

from retrasyn.curator import Curator
from retrasyn.errors import BudgetExceeded
from retrasyn.messages import MICRO, Aggregate, Question
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.rounds import Answers, Folded, Recorded
from retrasyn.space import Box, Grid

GRID = Grid(Box(0, 0, 1, 1), 2)


def recorded(method, **settings):
    run = RunSettings.of(method, grid=GRID, window=3, seed=1, settings=settings)
    return Recorded(Curator(run))


def folded(t, keys, *, epsilon=MICRO, question=None):
    n_states = recorded("retrasyn-p").curator.states.n_states
    counts = np.full(n_states, len(keys), np.int64)
    answers = Answers(aggregate=Aggregate(counts=counts, n=len(keys)), keys=np.array(keys))
    return Folded(
        t=t,
        epsilon=epsilon,
        size=4,
        n_enrolled=9,
        answers={question or Question(): answers} if keys else {},
    )


def test_reports_nobody_asks_for_any_more_are_charged_counted_and_not_used():
    steps = recorded("sample-p")
    steps.step(folded(0, [0, 1]))
    release = steps.step(folded(1, [2, 3, 4]))  # sample-p asks at every fourth timestamp only
    assert release.n_reports == 3
    assert steps.declared.peaks()[3] == MICRO
    assert steps.curator.state.memory.n_collections == 1
    with pytest.raises(BudgetExceeded):
        steps.step(folded(2, [3]))


def test_what_a_round_asked_of_everybody_is_charged_even_if_nothing_is_asked_by_then():
    steps = recorded("sample-b")
    steps.step(folded(0, [], epsilon=0))
    steps.step(folded(1, [], epsilon=MICRO // 2))
    assert steps.curator.state.ledger.remaining(2) == MICRO // 2
    assert steps.curator.state.n_reports == 0


def test_a_round_without_reports_leaves_the_model_as_it_was():
    steps = recorded("retrasyn-p")
    steps.step(folded(0, [0, 1, 2]))
    before = steps.curator.state.memory.released.copy()
    release = steps.step(folded(1, []))
    assert np.array_equal(steps.curator.state.memory.released, before)
    assert (release.n_reports, release.ids.size) == (0, 4)
