"""How much a publication of LDP-IDS may use: the plain loop's shares, and never over a half."""

from collections import deque
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.mechanisms.probe_publish import Absorption, Distribution, Publication

decisions = st.lists(st.booleans(), min_size=1, max_size=80)
first_times = st.integers(-30, 30)
gaps = st.integers(1, 24)


def due(schedule, published, t, gap, first_t):
    """Return the plain loop's share."""
    if isinstance(schedule, Distribution):
        return naive.distribution_share(published, t, gap)
    return naive.absorption_share(published, t, gap, first_t)


def follow(schedule, publishes, first_t, gap):
    """Yield t, the share, and the exact one, publishing whenever told to and something is left."""
    past, published = deque(), {}
    for t, publish in enumerate(publishes, first_t):
        share = schedule.share(t, first_t, gap, past)
        exact = due(schedule, published, t, gap, first_t)
        yield t, share, exact, publish and exact > 0
        if publish and exact > 0:
            past.append(Publication(t, share))
            published[t] = exact


@pytest.mark.parametrize("schedule", [Distribution(), Absorption()], ids=repr)
@given(decisions, first_times, gaps)
def test_shares_are_those_of_the_plain_loop(schedule, publishes, first_t, gap):
    for _, share, exact, _ in follow(schedule, publishes, first_t, gap):
        assert share == pytest.approx(float(exact), rel=1e-12, abs=1e-15)
        assert (share == 0) == (exact == 0)


@pytest.mark.parametrize("schedule", [Distribution(), Absorption()], ids=repr)
@given(decisions, first_times, gaps)
def test_probes_and_publications_of_any_gap_timestamps_never_exceed_the_whole(
    schedule, publishes, first_t, gap
):
    exact_by_t, share_by_t = {}, {}
    for t, share, exact, publishes_now in follow(schedule, publishes, first_t, gap):
        exact_by_t[t] = naive.probe_share(gap) + (exact if publishes_now else 0)
        share_by_t[t] = 0.5 / gap + (share if publishes_now else 0.0)
    for begin in exact_by_t:
        window = [t for t in range(begin, begin + gap) if t in exact_by_t]
        assert sum(exact_by_t[t] for t in window) <= 1
        assert sum(share_by_t[t] for t in window) <= 1 + 1e-12


@given(gaps, first_times)
def test_distribution_halves_until_its_first_publication_leaves_the_window(gap, first_t):
    shares = [share for _, share, _, _ in follow(Distribution(), [True] * (gap + 1), first_t, gap)]
    assert shares[:gap] == [2.0 ** -(2 + step) for step in range(gap)]
    left = 0.5 - sum(shares[1:gap])
    assert shares[gap] == pytest.approx(left / 2)


@given(gaps, st.integers(0, 60), first_times)
def test_absorption_repays_what_it_took_before_it_publishes_again(gap, n_skipped, first_t):
    publishes = [False] * n_skipped + [True] * (gap + 1)
    shares = [share for _, share, _, _ in follow(Absorption(), publishes, first_t, gap)]
    n_parts = min(n_skipped + 1, gap)
    part = 0.5 / gap
    assert shares[n_skipped] == pytest.approx(n_parts * part)
    assert shares[n_skipped + 1 : n_skipped + n_parts] == [0.0] * (n_parts - 1)
    assert shares[n_skipped + n_parts] == pytest.approx(part)


def test_absorption_that_always_publishes_is_uniform():
    shares = {share for _, share, _, _ in follow(Absorption(), [True] * 50, 7, 10)}
    assert shares == {0.05}


@pytest.mark.parametrize("schedule", [Distribution(), Absorption()], ids=repr)
def test_a_long_silence_gives_no_more_than_the_half(schedule):
    past = [Publication(0, 0.25)]
    share = schedule.share(10_000_000, 0, 20, past)
    assert share == pytest.approx({Distribution: 0.25, Absorption: 0.5}[type(schedule)])


@pytest.mark.parametrize("schedule", [Distribution(), Absorption()], ids=repr)
def test_a_window_longer_than_any_stream_asks_for_little_and_does_not_fail(schedule):
    gap = 5000
    for t, share, exact, _ in follow(schedule, [True, False, True, True], 0, gap):
        assert share == pytest.approx(float(exact)), t
        assert exact <= Fraction(1, 4)
