"""Which oracle is taken, from public settings alone."""

import numpy as np
import pytest

from retrasyn.messages import Grant, Question
from retrasyn.oracles.registry import choose_oracle, find_oracle, oracle_for

MILLION = 1_000_000


@pytest.mark.parametrize("wish", ["auto", "small"])
@pytest.mark.parametrize("epsilon", [100_000, MILLION, 4 * MILLION])
@pytest.mark.parametrize("n_answers", [1, 4, 12, 40, 328, 40_000])
def test_the_choice_has_the_least_variance_or_the_smallest_report(wish, epsilon, n_answers):
    oracles = {name: find_oracle(name).at(epsilon, n_answers) for name in ("oue", "grr", "olh")}
    chosen = oracles[choose_oracle(wish, epsilon, n_answers)]
    least = min(oracle.variance(1) for oracle in oracles.values())
    if wish == "auto":
        assert chosen.variance(1) == least
        return
    assert chosen.variance(1) <= 2 * least
    for oracle in oracles.values():
        if oracle.variance(1) <= 2 * least:
            assert chosen.report_bytes(n_answers) <= oracle.report_bytes(n_answers)


@pytest.mark.parametrize(
    ("wish", "epsilon", "n_answers", "chosen"),
    [
        ("auto", MILLION, 328, "oue"),
        ("small", MILLION, 328, "olh"),
        ("auto", MILLION, 4, "grr"),
        ("small", MILLION, 4, "grr"),
        ("auto", 4 * MILLION // 21, 12, "oue"),
        ("olh", MILLION, 4, "olh"),
    ],
)
def test_the_choice_in_some_cases(wish, epsilon, n_answers, chosen):
    assert choose_oracle(wish, epsilon, n_answers) == chosen


def test_the_oracle_of_a_grant_knows_budget_and_number_of_answers():
    grant = Grant(t=0, epsilon=MILLION, reporters=np.arange(2), oracle="grr", n_answers=5)
    assert oracle_for(grant) == find_oracle("grr").at(MILLION, 5)
    older = Grant(t=0, epsilon=MILLION, reporters=np.arange(2), question=Question(about="older"))
    assert type(oracle_for(older)) is not type(oracle_for(grant))
