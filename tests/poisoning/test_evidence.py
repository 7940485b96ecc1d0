"""What is kept of rounds for the tests of later ones: sums that add, of one gap and no more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import InputError, StoreError
from retrasyn.poisoning import Evidence, EvidencePool, inspect
from retrasyn.poisoning.evidence import MOST_PIECES, from_bytes, to_bytes
from support.poisoned_rounds import EPSILON, honest

N_STATES = 24


def some_reports(n, seed=0, n_states=N_STATES):
    return honest(n, np.random.default_rng(seed), n_states=n_states)


def evidence_of(packed, epsilon=EPSILON, n_states=N_STATES):
    return Evidence.of(packed, n_states, epsilon=epsilon)


def plain(evidence):
    columns = evidence.counts, evidence.weights, evidence.pairs
    return evidence.epsilon, evidence.n, *(column.tolist() for column in columns)


def test_evidence_is_counted_as_plain_loops_count_it():
    packed = some_reports(40)
    bits = np.unpackbits(packed, axis=1, count=N_STATES, bitorder="little").tolist()
    pairs = [
        sum(row[i] and row[j] for row in bits)
        for i in range(N_STATES)
        for j in range(i + 1, N_STATES)
    ]
    found = evidence_of(packed)
    assert found.counts.tolist() == [sum(row[i] for row in bits) for i in range(N_STATES)]
    assert found.weights.tolist() == [
        sum(sum(row) == k for row in bits) for k in range(N_STATES + 1)
    ]
    assert found.pairs.tolist() == pairs
    assert np.allclose(found.covariances(), np.cov(np.array(bits).T, bias=True))


@given(st.integers(0, 60), st.integers(0, 9))
def test_evidence_of_rounds_adds_up_to_that_of_all_their_reports(cut, seed):
    packed = some_reports(60, seed)
    assert plain(evidence_of(packed[:cut]) + evidence_of(packed[cut:])) == plain(
        evidence_of(packed)
    )


def test_reports_of_another_budget_are_never_added():
    one, other = evidence_of(some_reports(9)), evidence_of(some_reports(9), epsilon=7)
    with pytest.raises(InputError, match="another law"):
        one + other
    with pytest.raises(InputError, match="another law"):
        inspect(some_reports(9), N_STATES, epsilon=EPSILON, before=other)
    pool = EvidencePool(gap=5)
    pool.keep(0, {(0, 7): other, (0, EPSILON): one, (3, EPSILON): one + one})
    assert pool.before(1, 0, EPSILON).n == 9
    assert pool.before(1, 3, EPSILON).n == 18
    assert pool.before(1, 3, 7) is None


@pytest.mark.parametrize("n", [0, 3, 300, 70_000])
def test_evidence_is_read_back_as_it_was_and_never_from_other_bytes(n):
    small = Evidence(
        epsilon=5,
        n=n,
        counts=np.array([n, 0, 1 % (n + 1)]),
        weights=np.array([n, 0, 0, 0]),
        pairs=np.array([0, n, 0], np.int32),
    )
    piece = {(0, 5): small, (2, EPSILON): evidence_of(some_reports(20))}
    body = to_bytes(piece)
    again = from_bytes(body)
    assert {place: plain(found) for place, found in again.items()} == {
        place: plain(found) for place, found in piece.items()
    }
    assert to_bytes(again) == body
    for cut in (1, 19, len(body) - 1):
        with pytest.raises(StoreError, match="damaged"):
            from_bytes(body[:cut])


def test_with_very_many_states_pairs_are_not_counted():
    found = evidence_of(np.zeros((2, 126), np.uint8), n_states=1_001)
    assert (found.n, found.pairs.size, found.weights[0]) == (2, 0, 2)
    assert from_bytes(to_bytes({(0, EPSILON): found}))[0, EPSILON].pairs.size == 0


@pytest.mark.parametrize("gap", [1, 2, 3, 21, 22, 50])
def test_a_pool_holds_every_device_once_at_most_and_nearly_all_of_a_gap(gap):
    pool = EvidencePool(gap)
    for t in range(3 * gap):
        before = pool.before(t, 0, EPSILON)
        n = 0 if before is None else before.n
        assert n <= min(t, gap - 1)  # one report a round
        assert n >= min(t, gap - pool.length)
        # Weights tell which rounds are in the pool: every round's report has another.
        inside = [] if before is None else np.flatnonzero(before.weights[:-1]).tolist()
        assert all(t - gap < t - (t - k) % (3 * gap) <= t for k in inside)
        bits = np.zeros((1, 3 * gap), np.uint8)
        bits[0, :t] = 1
        packed = np.packbits(bits, axis=1, bitorder="little")
        found = {(0, EPSILON): evidence_of(packed, n_states=3 * gap)}
        pool.keep(t, pool.joined(t, found))
        assert len(pool.pieces) <= MOST_PIECES + 1


def test_a_pool_forgets_after_a_long_silence():
    pool = EvidencePool(gap=4)
    pool.keep(3, {(0, EPSILON): evidence_of(some_reports(5))})
    assert pool.before(6, 0, EPSILON).n == 5
    assert pool.before(7, 0, EPSILON) is None
