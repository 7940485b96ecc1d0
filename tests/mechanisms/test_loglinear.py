"""The estimator of `steered` as a whole against plain loops, whatever presence is taken for."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn.interpretation import SAFE
from retrasyn.mechanisms.base import ReleasedMemory, View, drive
from retrasyn.messages import Aggregate, Estimate, Flags
from retrasyn.methods import METHODS
from retrasyn.mobility import estimator
from retrasyn.oracles import OUE
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.space import Box, Grid, StateSpace

EPSILON, WINDOW = 1.0, 5
ONE_BIT = math.exp(EPSILON) / (math.exp(EPSILON) - 1) ** 2  # variance of one answer
NAMES = {"move": ["stay", "move"], "enter": ["enter"], "quit": ["quit"]}


class Plain:
    """The same estimator in plain loops; every stratum has a bank of its own."""

    def __init__(self, side, strata, *, ages):
        self.side = side
        self.names = []
        for kind, *cells in naive.all_states(side):
            stays = kind == "move" and cells[0] == cells[1]
            self.names.append("stay" if stays else kind)
        self.banks = {about: naive.empty_bank(self.groups(about)) for about in strata}
        self.priors = [naive.UNIFORM_PRIOR] * 5
        self.obar = self.smoothed = None
        self.anybody = False
        self.thresholds = naive.age_thresholds(WINDOW + 1) if ages else []
        laws = naive.experts() if ages else []
        self.hazards = [naive.weibull_hazard(*law) for law in laws]
        self.histograms = [[0.0] * naive.OLDEST for _ in laws]
        nothing = [[0.0] * len(self.thresholds) for _ in laws]
        n = len(self.thresholds)
        self.pool = naive.AgeReports([0] * n, [0.0] * n, nothing)

    def groups(self, about):
        if about == "transition":
            return self.names
        if about == "present":
            return ["stay"]
        if about == "cell":  # asked, and not yet used
            return ["stay"] * sum(name == "enter" for name in self.names)
        return [name for name in self.names if name in NAMES[about]]

    def step_ages(self, size, bits):
        """Return the hazard by age and the totals, after the bits of one timestamp."""
        pairs = zip(self.histograms, self.hazards, strict=True)
        steps = [naive.age_step(*pair, size) for pair in pairs]
        self.histograms = [step[0] for step in steps]
        self.pool = naive.pool_age_reports(
            self.pool, bits, self.histograms, self.thresholds, EPSILON
        )
        weights = naive.expert_weights(
            [
                naive.expert_score(*law, WINDOW, self.pool, e, EPSILON)
                for e, law in enumerate(naive.experts())
            ]
        )
        now = naive.age_totals(weights, [s[1] for s in steps], [s[2] for s in steps], size)
        if self.anybody:
            self.smoothed = naive.smooth_totals(self.smoothed, now)
        self.anybody = self.anybody or size > 0
        return naive.mean_hazard(weights, self.hazards), self.smoothed

    def table(self, flat):
        values = iter(flat)
        return [
            [next(values) if j >= 0 else 0.0 for j in row]
            for row in naive.neighbour_table(self.side)
        ]

    def release(self, *, presence, totals, size, flags):
        n_cells = self.side**2
        bank = self.banks.get("transition") or self.banks["move"]
        factor = 1.0
        if presence == "hidden":
            share = self.presence()
            factor = 1 / max(share, 0.01)
        tables = []
        for group in ("stay", "move"):
            if group not in bank.groups:  # one cell: nobody moves, all speeds are trusted alike
                for by_group in bank.trust:
                    by_group[group] = 1 / len(naive.FACTORS)
            f, v = naive.bank_estimate(bank, group, naive.variance_of_one(EPSILON))
            n_moves = sum(name in {"stay", "move"} for name in self.names)
            tables.append((self.table([factor * x for x in f[:n_moves]]), factor**2 * v))
        whole = None
        if presence == "flags":
            whole = 1.0
        elif totals is not None:
            whole = 1 - totals["enter"] - totals["quit"]
        leaving_error = 0.0
        if whole is not None:
            tables = [(naive.balance(table, whole, self.side), v) for table, v in tables]
            leaving_error = n_cells * (n_moves - n_cells) / n_moves
        kept = estimator._KEPT
        begin = [[kept * p + (1 - kept) / 40 for p in prior] for prior in self.priors]
        moves = naive.empirical_bayes_movement(
            *tables,
            self.side,
            priors=begin,
            rounds=estimator._WARM_ROUNDS,
            leaving_error=leaving_error,
        )
        self.priors = moves.priors
        self.obar = naive.update_obar(self.obar, moves.mass, self.side)
        x, vx = self.read_ends(n_moves, factor)
        if presence == "flags":
            mass = naive.endpoints(x, vx, self.obar, {"enter": 1.0, "quit": 1.0})
            n_quitting = flags.ages_of_quitters.size
            n_states = max(size + n_quitting, 1)
            for group, n in (("enter", flags.n_entering), ("quit", n_quitting)):
                total = sum(mass[group])
                mass[group] = [m * n / n_states / total for m in mass[group]]
        else:
            mass = naive.endpoints(x, vx, self.obar, totals)
        return naive.release_count(moves.mass, mass["enter"], mass["quit"], self.side)

    def read_ends(self, n_moves, factor):
        v1 = naive.variance_of_one(EPSILON)
        n_cells = self.side**2
        if "transition" in self.banks:
            bank = self.banks["transition"]
            last = [factor * a / bank.weights[-1] for a in bank.sums[-1]]
            x = {"enter": last[n_moves : n_moves + n_cells], "quit": last[n_moves + n_cells :]}
            return x, dict.fromkeys(x, factor**2 * v1 / bank.weights[-1])
        x, vx = {}, {}
        for group in ("enter", "quit"):
            bank = self.banks[group]
            known = bank.weights[-1] > 0
            x[group] = [a / bank.weights[-1] if known else 0.0 for a in bank.sums[-1]]
            vx[group] = v1 / bank.weights[-1] if known else 1e6
        return x, vx

    def presence(self):
        """Return the share of the enrolled that is present."""
        bank = self.banks["present"]
        if bank.weights[-1] == 0:
            return 0.0
        f, _ = naive.bank_estimate(bank, "stay", ONE_BIT)
        return min(max(f[0], 0.0), 1.0)


def noisy(random, n_states, n):
    variance = OUE(int(EPSILON * 1e6)).variance(n)
    truth = random.dirichlet(np.full(n_states, 0.3))
    y = truth + random.normal(0, variance**0.5, n_states)
    return Estimate(frequencies=y, variance=variance, n=n)


@pytest.mark.parametrize(
    ("presence", "ages"),
    [("count", True), ("count", False), ("flags", False), ("hidden", False)],
)
@settings(max_examples=12)
@given(
    side=st.integers(1, 3),
    sizes=st.lists(st.one_of(st.just(0), st.integers(1, 300)), min_size=1, max_size=5),
    seed=st.integers(0, 999),
)
def test_what_is_released_equals_the_plain_loop(presence, ages, side, sizes, seed):
    random = np.random.default_rng(seed)
    row = dataclasses.replace(METHODS["steered"], presence=presence, ages=ages)
    mechanism, states = row.mechanism, StateSpace(Grid(Box(0, 0, 1, 1), side))
    memory = mechanism.open_memory(states, WINDOW + 1, row.topics)
    plain = Plain(side, memory.banks, ages=ages)
    binary = BinaryResponse(int(EPSILON * 1e6))
    for t, size in enumerate(sizes):
        bits = []

        def answer(ask, size=size, bits=bits):
            about, n = ask.question.about, int(random.integers(0, 1 + size))
            if n == 0:
                return None
            if about == "older":
                n = min(n, 3)
                ones = int(random.integers(0, n + 1))
                bits += [(ask.question.threshold, int(k < ones)) for k in range(n)]
                return binary.estimate(Aggregate(counts=np.array([ones]), n=n))
            if about == "present":
                estimate = binary.estimate(Aggregate(counts=np.array([n // 2]), n=n))
            else:
                estimate = noisy(random, len(plain.groups(about)), n)
            v1 = ONE_BIT if about == "present" else naive.variance_of_one(EPSILON)
            bank = plain.banks[about]
            plain.banks[about] = naive.bank_step(bank, estimate.frequencies.tolist(), n, v1)
            return estimate

        n_quitting = int(random.integers(0, 9)) if size else 0
        flags = Flags(n_entering=size // 2, ages_of_quitters=np.full(n_quitting, 3))
        view = View(
            t=t,
            first_t=0,
            window=WINDOW,
            gap=WINDOW + 1,
            reading=SAFE,
            memory=memory,
            size=size,
            n_enrolled=700,
            flags=flags if presence == "flags" else None,
        )
        outcome = drive(mechanism.dialogue(view), answer)
        memory = outcome.memory
        totals = None
        if ages:
            hazard, totals = plain.step_ages(size, bits)
            np.testing.assert_allclose(outcome.hazard, hazard, rtol=1e-8)
        if presence == "hidden":
            assert outcome.size == round(plain.presence() * 700)
        if next(iter(plain.banks.values())).weights[-1] == 0:
            assert outcome.released is None
            continue
        expected = plain.release(presence=presence, totals=totals, size=size, flags=flags)
        np.testing.assert_allclose(outcome.released, expected, rtol=1e-7, atol=1e-10)
        assert (outcome.released >= 0).all()
        assert outcome.released.sum() == pytest.approx(1.0)
        assert memory.released is outcome.released


@pytest.mark.parametrize(
    ("name", "furthest"),
    [("steered", 2 * (WINDOW + 1)), ("steered-length", 1), ("steered-flags", 1)],
)
def test_the_furthest_lookback_is_that_of_the_questions_asked(name, furthest):
    row, states = METHODS[name], StateSpace(Grid(Box(0, 0, 1, 1), 2))
    assert row.furthest_lookback(WINDOW + 1) == furthest
    mechanism, memory = row.mechanism, row.mechanism.open_memory(states, WINDOW + 1, row.topics)
    asked = []
    flags = Flags(n_entering=0, ages_of_quitters=np.empty(0, np.int64))
    view = View(
        t=0,
        first_t=0,
        window=WINDOW,
        gap=WINDOW + 1,
        reading=SAFE,
        memory=memory,
        size=3,
        flags=flags,
    )
    outcome = drive(mechanism.dialogue(view), lambda ask: asked.append(ask.question))
    assert max(question.lookback for question in asked) == furthest
    assert outcome.released is None
    assert not outcome.fresh


def test_a_mechanism_refuses_the_memory_of_another():
    view = View(
        t=0, first_t=0, window=WINDOW, gap=WINDOW + 1, reading=SAFE, memory=ReleasedMemory()
    )
    with pytest.raises(AssertionError, match="opened a"):
        next(METHODS["steered"].mechanism.dialogue(view))
