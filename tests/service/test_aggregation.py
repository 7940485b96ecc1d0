"""Reports added up by several workers are the sums of one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.engines.base import LocalEngine, Workers
from retrasyn.oracles.registry import BINARY
from retrasyn.service import aggregation
from retrasyn.service.aggregation import Sums, add_up, oracle_named

ORACLES = [
    ("oue", 1_000_000, 40),
    ("grr", 1_000_000, 9),
    ("olh", 1_000_000, 40),
    (BINARY.name, 10**6, 1),
]


def reports(oracle, n, seed=1):
    name, epsilon, n_answers = oracle
    answers = np.random.default_rng(seed).integers(0, n_answers, n).astype(np.int32)
    return oracle_named(name, epsilon, n_answers).perturb(
        answers, np.arange(n).astype(np.uint64), key=3, n_answers=n_answers
    )


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle[0])
@given(st.integers(0, 200), st.integers(1, 5), st.integers(1, 60))
def test_workers_add_up_what_one_would(oracle, n, n_workers, batch):
    packed, workers = reports(oracle, n), Workers.open(LocalEngine(n_workers), Sums.open)
    expected = add_up(None, packed, t=4, code=2, oracle=oracle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation, "BATCH", batch)
        once = add_up(workers, packed, t=4, code=2, oracle=oracle)
        twice = add_up(workers, packed, t=4, code=2, oracle=oracle)
        other = add_up(workers, packed[:3], t=5, code=2, oracle=oracle)
    for found in (once, twice):
        assert (found.n, found.counts.tolist()) == (expected.n, expected.counts.tolist())
    assert other.n == min(n, 3)


def test_a_batch_counts_once_per_timestamp_and_question():
    packed, worker = reports(ORACLES[0], 10), Sums()
    assert worker.add(1, 0, 7, ORACLES[0], packed) == 10
    assert worker.add(1, 0, 7, ORACLES[0], packed) == 0
    assert worker.add(1, 1, 7, ORACLES[0], packed) == 10
    assert worker.add(2, 0, 7, ORACLES[0], packed) == 10
    worker.forget(1)
    assert list(worker.sums) == [(2, 0)]


def test_sums_survive_as_plain_arrays():
    worker, again = Sums(), Sums()
    worker.add(1, 0, 7, ORACLES[0], reports(ORACLES[0], 10))
    worker.add(1, 3, 2, ORACLES[1], reports(ORACLES[1], 4))
    again.load_arrays(worker.to_arrays())
    assert again.add(1, 0, 7, ORACLES[0], reports(ORACLES[0], 10)) == 0
    for code, oracle in ((0, ORACLES[0]), (3, ORACLES[1])):
        assert (
            again.sum_of(1, code, oracle[2]).tolist() == worker.sum_of(1, code, oracle[2]).tolist()
        )
