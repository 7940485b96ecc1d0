"""Real reports are admitted only if the ledger has room for them."""

import numpy as np
import pytest

from retrasyn import Box, Curator, Grid, RunSettings
from retrasyn.errors import BudgetExceeded, SettingError
from retrasyn.messages import MICRO, Ask, Question

GRID = Grid(Box(0, 0, 1, 1), 3)
ASK = Ask(share=1.0)


def test_a_key_that_reported_within_the_gap_is_not_admitted_again():
    curator = Curator(RunSettings.of("steered", grid=GRID, window=4, seed=0))
    first = curator.admit(ASK, t=0, epsilon=MICRO, reporters=np.array([2, 5]))
    assert (first.reporters.tolist(), first.epsilon, first.n_answers) == ([2, 5], MICRO, 67)
    with pytest.raises(BudgetExceeded, match="1 of 1 reporters"):
        curator.admit(ASK, t=4, epsilon=MICRO, reporters=np.array([5]))
    assert curator.admit(ASK, t=5, epsilon=MICRO, reporters=np.array([5])).reporters.size == 1


def test_an_answer_that_looks_back_further_must_have_rested_longer():
    curator = Curator(RunSettings.of("steered", grid=GRID, window=4, seed=0))
    curator.admit(ASK, t=0, epsilon=MICRO, reporters=np.array([0]))
    older = Ask(share=1.0, question=Question(about="older", threshold=10))
    with pytest.raises(BudgetExceeded, match="less than 14"):
        curator.admit(older, t=13, epsilon=MICRO, reporters=np.array([0]))
    assert curator.admit(older, t=14, epsilon=MICRO, reporters=np.array([0])).n_answers == 1


def test_a_round_that_asked_for_epsilon_is_charged_though_nobody_reported():
    curator = Curator(RunSettings.of("retrasyn-b", grid=GRID, window=4, seed=0))
    nobody = np.empty(0, np.int64)
    curator.admit(ASK, t=0, epsilon=600_000, reporters=nobody)
    with pytest.raises(BudgetExceeded, match=r"0\.4 left"):
        curator.admit(ASK, t=4, epsilon=400_001, reporters=nobody)
    curator.admit(ASK, t=4, epsilon=0, reporters=nobody)
    assert curator.admit(ASK, t=4, epsilon=400_000, reporters=nobody).epsilon == 400_000


def test_no_device_answers_a_method_that_is_not_private():
    with pytest.raises(SettingError, match="exact is not private"):
        Curator(RunSettings.of("exact", grid=GRID, seed=0)).admit(
            ASK, t=0, epsilon=MICRO, reporters=np.array([0])
        )
