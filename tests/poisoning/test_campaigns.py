"""Liars in a campaign of ten thousand devices, 430 reports a round: seen by rounds taken together.

Of the devices 45 % report their transition and as many their cell. A liar may claim either role: so
liars are looked at in the roles they drew, and all gathered in one. A gap of 21 rounds has one
probability of 1 % for a false alarm, shared by two roles and nine tests in each round.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from retrasyn.oracles.oue import OUE
from retrasyn.poisoning import Evidence, power
from retrasyn.poisoning.statistics import WeightLaw, pair_limit, tracy_widom, weight_limit
from support.poisoned_rounds import (
    ATTACKS,
    EPSILON,
    ESCAPING,
    FALSE_ALARMS,
    GAP,
    HONEST,
    N_CELLS,
    N_STATES,
    ROLES,
    alarmed,
    campaign,
    first_alarm,
    honest,
    inspections,
)

N_DEVICES = 10_000
LEVEL = FALSE_ALARMS / GAP / len(ROLES) / 9
GATHERED = ["", *ROLES]


def rounds_until_alarm(share, attack, n_runs, seed, gathered=""):
    """Return when each run raised its first alarm; None: not within a gap."""
    random = np.random.default_rng(seed)
    return [
        first_alarm(
            campaign(N_DEVICES, share, attack, random, crowd=HONEST[number % 4], gathered=gathered)
        )
        for number in range(n_runs)
    ]


def n_caught(*run, **where):
    return sum(found is not None for found in rounds_until_alarm(*run, **where))


# Of 36 bits so few are ones that a few less do not show, and all that such reports push is one
# cell. The same number of ones shows where liars gather: in both roles together too seldom.
_SELDOM = {("too few ones", "cell"), ("always the same number of ones", "")}
SEEN = [(name, role) for role in GATHERED for name in ATTACKS if (name, role) not in _SELDOM]
QUICK = [one for one in SEEN if one[0] in ("10 target states", "too few ones")]


@pytest.mark.parametrize(("name", "gathered"), QUICK)
def test_two_percent_of_liars_are_seen_within_a_gap(name, gathered):
    assert n_caught(0.02, ATTACKS[name], 1, 1, gathered=gathered) == 1


@pytest.mark.parametrize("gathered", GATHERED)
def test_only_rounds_taken_together_show_ten_targets(gathered):
    attack, random = ATTACKS["10 target states"], np.random.default_rng(2)
    found = [
        (role, alarm.test)
        for roles in inspections(campaign(N_DEVICES, 0.02, attack, random, gathered=gathered))
        for role, inspection in roles.items()
        for alarm in inspection.alarms
    ]
    assert all(test.startswith("pooled") for _, test in found)
    lied_about = {gathered} if gathered else set(ROLES)
    assert {role for role, test in found if test == "pooled spectrum"} == lied_about


@pytest.fixture(scope="module")
def honest_gap():
    return [*inspections(campaign(N_DEVICES, 0, None, np.random.default_rng(3)))]


def test_an_honest_crowd_raises_no_alarm_in_a_gap(honest_gap):
    assert not any(alarmed(found) for found in honest_gap)


@pytest.mark.long
@pytest.mark.parametrize(("name", "gathered"), SEEN)
def test_two_percent_of_liars_are_seen_within_a_gap_in_95_of_100_runs(name, gathered):
    assert n_caught(0.02, ATTACKS[name], 60, 4, gathered=gathered) >= 0.95 * 60


@pytest.mark.long
def test_no_honest_gap_in_two_hundred_raises_an_alarm():
    # Every campaign has a gap in which the pool grows, then one in which it is full.
    random, n_alarmed = np.random.default_rng(501), 0
    for number in range(1, 101):
        crowd = HONEST[number % len(HONEST)]
        rounds = campaign(N_DEVICES, 0, None, random, crowd=crowd, n_rounds=2 * GAP)
        found = [alarmed(roles) for roles in inspections(rounds)]
        n_alarmed += any(found[:GAP]) + any(found[GAP:])
    assert (
        n_alarmed == 0
    )  # a rate of 1 % would give that with probability 0.13, one of 2.3 % with 0.01


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "share", "gathered", "least", "most"),
    [
        ("5 target states", 0.02, "", 0.9, 1.0),
        ("2 target states", 0.02, "", 0.0, 0.2),
        ("1 target state", 0.02, "", 0.0, 0.1),
        ("always the same number of ones", 0.02, "", 0.3, 0.9),
        ("10 target states", 0.01, "", 0.9, 1.0),
        ("5 target states", 0.01, "", 0.0, 0.2),
        ("2 target states", 0.02, "transition", 0.6, 1.0),
        ("5 target states", 0.01, "transition", 0.0, 0.3),
        ("2 target states", 0.02, "cell", 0.6, 1.0),
        ("1 target state", 0.02, "cell", 0.0, 0.1),
        ("too few ones", 0.02, "cell", 0.0, 0.5),
        ("5 target states", 0.01, "cell", 0.9, 1.0),
        ("2 target states", 0.01, "cell", 0.0, 0.3),
    ],
)
def test_what_escapes_a_gap_escapes_as_often_as_was_counted(name, share, gathered, least, most):
    caught = n_caught(share, (ATTACKS | ESCAPING)[name], 40, 6, gathered=gathered)
    assert least <= caught / 40 <= most


def whole_gap(n_states=N_STATES):
    packed = honest(4_500, np.random.default_rng(7), n_states=n_states)
    return Evidence.of(packed, n_states, epsilon=EPSILON)


def named(inspection):
    """Return the kinds of fakes that an inspection would rather miss."""
    lines = [line for line in inspection.not_tested if "seen with probability" in line]
    assert all(0 <= float(line.rpartition(" ")[2]) < 0.5 for line in lines)
    return [(line[:2], line.split(" as reports ")[1].split(":")[0]) for line in lines]


def test_what_is_rather_missed_is_named_with_its_power(honest_gap):
    assert named(honest_gap[-1]["transition"]) == [
        ("2%", "that push 5 states"),
        ("2%", "that push 2 states"),
        ("2%", "that push 1 state"),
        ("1%", "with always as many ones"),
        ("1%", "that push 10 states"),
        ("1%", "that push 5 states"),
        ("1%", "that push 2 states"),
        ("1%", "that push 1 state"),
    ]
    assert named(honest_gap[-1]["cell"]) == [
        ("2%", "with too few ones"),
        ("2%", "with too many ones"),
        ("2%", "with always as many ones"),
        ("2%", "that push 2 states"),
        ("2%", "that push 1 state"),
        ("1%", "with too few ones"),
        ("1%", "with too many ones"),
        ("1%", "with always as many ones"),
        ("1%", "that push 5 states"),
        ("1%", "that push 2 states"),
        ("1%", "that push 1 state"),
    ]


@pytest.mark.parametrize("role", ROLES)
def test_a_first_round_of_430_admits_that_it_sees_little(role, honest_gap):
    found = named(honest_gap[0][role])
    pushes = {(share, kind) for share, kind in found if kind.startswith("that push")}
    assert len(pushes) == len(power.SHARES) * len(power.TARGETS)


@pytest.mark.parametrize(
    ("n_states", "share", "n_targets", "counted"),
    [
        (N_STATES, 0.02, 20, 1.0),
        (N_STATES, 0.02, 10, 1.0),
        (N_STATES, 0.02, 5, 0.0),
        (N_STATES, 0.01, 20, 1.0),
        (N_STATES, 0.01, 10, 0.0),
        (N_CELLS, 0.02, 5, 0.97),
        (N_CELLS, 0.02, 2, 0.0),
        (N_CELLS, 0.01, 10, 1.0),
        (N_CELLS, 0.01, 5, 0.03),
    ],
)
def test_closed_forms_agree_with_what_was_counted(n_states, share, n_targets, counted):
    # Counted in 20 or 40 whole gaps each.
    evidence = whole_gap(n_states)
    found = max(
        test(evidence, LEVEL, share, n_targets) for test in (power.of_pairs, power.of_spectrum)
    )
    assert abs(found - counted) <= 0.17


def test_the_power_against_one_number_of_ones_is_that_of_the_binomial_law():
    law, share, n = WeightLaw.of(N_STATES, OUE(EPSILON).q).exactly.max(), 0.02, 4_500
    most = binom.isf(weight_limit(LEVEL, N_STATES), n, law)
    expected = binom.sf(most, n, (1 - share) * law + share)
    assert power.of_one_weight(whole_gap(), LEVEL, share) == pytest.approx(expected)
    assert 0.5 < expected < 0.9
    assert power.of_one_weight(whole_gap(N_CELLS), LEVEL, share) < 0.1


def test_the_power_against_wrong_numbers_of_ones_grows_with_the_reports():
    for factor in power.NOISES.values():
        small, large = (
            Evidence.of(honest(n, np.random.default_rng(10)), N_STATES, epsilon=EPSILON)
            for n in (60, 3_000)
        )
        assert power.of_weights(small, LEVEL, factor)[1] < 0.9
        assert min(power.of_weights(large, LEVEL, factor)) > 0.9


@pytest.mark.parametrize("epsilon", [500_000, 1_000_000, 2_000_000, 4_000_000])
@pytest.mark.parametrize("both", [25, 100])
def test_the_limit_of_pairs_keeps_its_level_by_the_exact_law(epsilon, both):
    """Given how often each of two bits is set, how often both are is hypergeometric."""
    q = OUE(epsilon).q
    n = math.ceil(both / q**2)
    ones = round(n * q)
    mean = ones / n
    limit = float(pair_limit(n, N_STATES, LEVEL, (1 - 2 * mean) ** 2 / (mean * (1 - mean))))
    most = math.floor(n * mean**2 + limit * math.sqrt(n) * mean * (1 - mean))
    assert hypergeom.sf(most, n, ones, ones) <= 1.2 * LEVEL / math.comb(N_STATES, 2)


def test_the_tail_of_tracy_and_widom_is_the_tabulated_one_or_safer():
    table = {0.01: 2.0234, 0.005: 2.4224, 0.0025: 2.7973, 0.001: 3.2724, 0.0001: 4.3655}
    for tail, quantile in table.items():
        assert quantile <= tracy_widom(tail) <= quantile + 0.12
    assert tracy_widom(0.5) == tracy_widom(0.01)
    assert tracy_widom(1e-6) > tracy_widom(1e-5) > 5
