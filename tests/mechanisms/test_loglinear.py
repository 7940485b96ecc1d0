"""The dialogue of `steered` as a whole against plain loops, in each of its rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn.interpretation import SAFE
from retrasyn.mechanisms.base import ReleasedMemory, View, drive
from retrasyn.messages import MICRO, SPEEDS, Aggregate, Estimate, Flags
from retrasyn.methods import METHODS
from retrasyn.oracles import OUE
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.space import Box, Grid, StateSpace
from support.tuning import TUNING

EPSILON, WINDOW, N_ENROLLED = 1.0, 5, 700
V1 = naive.variance_of_one(EPSILON)
ONE_BIT = math.exp(EPSILON) / (math.exp(EPSILON) - 1) ** 2  # variance of one answer
ROWS = ["steered", "steered-map", "steered-flags", "steered-length", "steered-hidden"]
sizes_by_time = st.lists(st.one_of(st.just(0), st.integers(1, 300)), min_size=1, max_size=4)


class PlainAges:
    """The experts on ages, in plain loops."""

    def __init__(self):
        self.smoothed = None
        self.anybody = False
        self.thresholds = naive.age_thresholds(WINDOW + 1)
        laws = naive.experts()
        self.hazards = [naive.weibull_hazard(*law) for law in laws]
        self.histograms = [[0.0] * naive.OLDEST for _ in laws]
        nothing = [[0.0] * len(self.thresholds) for _ in laws]
        n = len(self.thresholds)
        self.pool = naive.AgeReports([0] * n, [0.0] * n, nothing)

    def step(self, size, bits):
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


class Plain:
    """The dialogue in plain loops."""

    def __init__(self, side, row):
        self.side, self.row = side, row
        self.flow = naive.NaiveFlow(side, TUNING)
        self.ends = naive.NaiveEnds(side)
        self.presence = naive.NaivePresence(TUNING)
        self.ages = PlainAges() if row.ages else None
        self.n_moves = len(naive.grid_moves(side))

    @property
    def n_answers(self):
        """The number of answers to each question about a state."""
        n_cells = self.side**2
        every = self.n_moves + 2 * n_cells
        asked = {"transition": every, "move": self.n_moves}
        return asked | dict.fromkeys(("cell", "enter", "quit"), n_cells)

    def step(self, t, size, answers, bits, flags):
        """Return what is released and its variances, and the hazard by age."""
        totals = hazard = None
        if self.ages is not None:
            hazard, totals = self.ages.step(size, bits)
        elif t > 0:
            totals = self.ends.totals()
        present = self.present_after(answers)
        moves, moving = answers.get("transition"), None
        if flags is not None:
            moves, moving = answers.get("move"), 1.0
            for group in ("enter", "quit"):
                if group in answers:
                    self.ends.add(group, *answers[group])
        elif moves is not None and totals is not None and present > 0:
            moving = present * max(1 - totals["enter"] - totals["quit"], 0.05)
            y, n = moves
            first, second = self.n_moves, self.n_moves + self.side**2
            for group, part in (("enter", y[first:second]), ("quit", y[second:])):
                self.ends.add(group, part, n, present)
            moves = y[:first], n
        cells = answers.get("cell") if present > 0 else None
        self.flow.learn(moves, cells, moving, present, V1)
        if self.flow.v1 == 0:
            return None, None, hazard
        m, *variances = self.flow.fit()
        return self.release(m, totals, size, flags), variances, hazard

    def present_after(self, answers):
        if self.row.presence != "hidden":
            return 1.0
        if "present" in answers:
            (y,), n = answers["present"]
            self.presence.learn(y, n, ONE_BIT)
        return self.presence.share()

    def release(self, m, totals, size, flags):
        arriving, v1, alarm = naive.arriving(m, self.side), self.flow.v1, self.flow.trust[-1]
        if flags is not None:
            where = self.ends.fit({"enter": 1.0, "quit": 1.0}, arriving, v1, alarm)
            n_quitting = flags.ages_of_quitters.size
            n_states = max(size + n_quitting, 1)
            ending = {"enter": flags.n_entering / n_states, "quit": n_quitting / n_states}
        else:
            ending = {"enter": 0.02, "quit": 0.02}
            if totals is not None:
                ending = {group: max(total, 1e-3) for group, total in totals.items()}
            where = self.ends.fit(ending, arriving, v1, alarm)
        return naive.moves_and_ends(m, where, ending)[0]


def noisy(random, n_answers, n):
    variance = OUE(int(EPSILON * 1e6)).variance(n)
    truth = random.dirichlet(np.full(n_answers, 0.3))
    y = truth + random.normal(0, variance**0.5, n_answers)
    return Estimate(frequencies=y, variance=variance, n=n)


def view_of(row, memory, t, size, flags):
    return View(
        t=t,
        first_t=0,
        window=WINDOW,
        gap=WINDOW + 1,
        reading=SAFE,
        memory=memory,
        size=size,
        n_enrolled=N_ENROLLED,
        flags=flags if row.presence == "flags" else None,
    )


def answered(plain, random, size, answers, bits):
    """Return what answers an ask, and notes the answers for the plain loop."""
    binary = BinaryResponse(int(EPSILON * 1e6))

    def answer(ask):
        about, n = ask.question.about, int(random.integers(0, 1 + size))
        if n == 0:
            return None
        if about == "older":
            n = min(n, 3)
            ones = int(random.integers(0, n + 1))
            bits.extend((ask.question.threshold, int(k < ones)) for k in range(n))
            return binary.estimate(Aggregate(counts=np.array([ones]), n=n))
        if about == "faster":  # pooled apart, and no part of the flow
            ones = int(random.integers(0, n + 1))
            return binary.estimate(Aggregate(counts=np.array([ones]), n=n))
        if about == "present":
            estimate = binary.estimate(Aggregate(counts=np.array([n // 2]), n=n))
        else:
            estimate = noisy(random, plain.n_answers[about], n)
        answers[about] = estimate.frequencies.tolist(), n
        return estimate

    return answer


def reloaded(row, states, memory):
    """Return the memory as it is after a stop and a start."""
    again = row.mechanism.open_memory(states, WINDOW + 1, row.topics)
    again.load_arrays({name: array.copy() for name, array in memory.to_arrays().items()})
    return again


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=8)
@given(
    side=st.integers(1, 3), sizes=sizes_by_time, stop=st.integers(0, 3), seed=st.integers(0, 999)
)
def test_what_is_released_equals_the_plain_loop(name, side, sizes, stop, seed):
    random = np.random.default_rng(seed)
    row, states = METHODS[name], StateSpace(Grid(Box(0, 0, 1, 1), side))
    memory = row.mechanism.open_memory(states, WINDOW + 1, row.topics)
    plain = Plain(side, row)
    for t, size in enumerate(sizes):
        if t == stop:
            memory = reloaded(row, states, memory)
        answers, bits = {}, []
        n_quitting = int(random.integers(0, 9)) if size else 0
        flags = Flags(n_entering=size // 2, ages_of_quitters=np.full(n_quitting, 3))
        view = view_of(row, memory, t, size, flags)
        outcome = drive(row.mechanism.dialogue(view), answered(plain, random, size, answers, bits))
        memory = outcome.memory
        expected, variances, hazard = plain.step(t, size, answers, bits, view.flags)
        if hazard is not None:
            np.testing.assert_allclose(outcome.hazard, hazard, rtol=1e-8)
        if row.presence == "hidden":
            assert outcome.size == round(plain.presence.share() * N_ENROLLED)
        assert outcome.fresh == (bool(answers) and expected is not None)
        if expected is None:
            assert outcome.released is None
            assert outcome.variances is None
            continue
        np.testing.assert_allclose(outcome.released, expected, rtol=1e-5, atol=1e-9)
        of_moves, of_arrivals = outcome.variances
        near = states.move_index >= 0
        np.testing.assert_allclose(of_moves[near], variances[0], rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(of_arrivals, variances[1], rtol=1e-4, atol=1e-9)
        assert not of_moves[~near].any()
        assert (outcome.released >= 0).all()
        assert outcome.released.sum() == pytest.approx(1.0)
        assert memory.released is outcome.released


def run(row, states, n_timestamps, *, stop=None, silent=()):
    """Return the outcome of every timestamp; the process may stop before one."""
    random, plain = np.random.default_rng(5), Plain(states.grid.side, row)
    memory = row.mechanism.open_memory(states, WINDOW + 1, row.topics)
    found = []
    for t in range(n_timestamps):
        if t == stop:
            memory = reloaded(row, states, memory)
        flags = Flags(n_entering=4, ages_of_quitters=np.full(3, 3))
        answer = answered(plain, random, 0 if t in silent else 200, {}, [])
        outcome = drive(row.mechanism.dialogue(view_of(row, memory, t, 50, flags)), answer)
        memory = outcome.memory
        found.append(outcome)
    return found


@pytest.mark.parametrize("name", ROWS)
def test_a_run_that_stops_and_starts_again_releases_the_same_bytes(name):
    row, states = METHODS[name], StateSpace(Grid(Box(0, 0, 1, 1), 4))
    whole, cut = run(row, states, 8), run(row, states, 8, stop=4)
    for one, other in zip(whole, cut, strict=True):
        assert one.released.tobytes() == other.released.tobytes()
        for ours, theirs in zip(one.variances, other.variances, strict=True):
            assert ours.tobytes() == theirs.tobytes()
        assert (one.hazard is None) == (other.hazard is None)


@pytest.mark.parametrize("name", ROWS)
def test_a_timestamp_without_reports_releases_a_flow_that_is_not_fresh(name):
    row, states = METHODS[name], StateSpace(Grid(Box(0, 0, 1, 1), 3))
    found = run(row, states, 9, silent=(0, 1, 6, 7))
    assert [outcome.released is None for outcome in found[:3]] == [True, True, False]
    assert [outcome.fresh for outcome in found] == [False, False, *[True] * 4, False, False, True]
    for outcome in found[2:]:
        assert outcome.released.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ROWS)
def test_a_dialogue_leaves_the_memory_it_was_given_as_it_was(name):
    row, states = METHODS[name], StateSpace(Grid(Box(0, 0, 1, 1), 2))
    memory = run(row, states, 3)[-1].memory
    before = {name: array.tobytes() for name, array in memory.to_arrays().items()}
    flags = Flags(n_entering=4, ages_of_quitters=np.full(3, 3))
    answer = answered(Plain(2, row), np.random.default_rng(1), 200, {}, [])
    drive(row.mechanism.dialogue(view_of(row, memory, 3, 50, flags)), answer)
    assert {name: array.tobytes() for name, array in memory.to_arrays().items()} == before


def test_how_far_people_move_is_asked_at_every_threshold_and_pooled():
    row, states = METHODS["steered-roads"], StateSpace(Grid(Box(0, 0, 1, 1), 2))
    memory = row.mechanism.open_memory(states, WINDOW + 1, row.topics)
    binary, lanes = BinaryResponse(MICRO), []
    expected = np.zeros((len(SPEEDS), 2))

    def answer(ask):
        if ask.question.about != "faster":
            return None
        lanes.append((ask.lane, ask.question.threshold, ask.adds_up))
        which = SPEEDS.index(ask.question.threshold)
        if which == 2:  # nobody drew this threshold
            return None
        estimate = binary.estimate(Aggregate(counts=np.array([which]), n=which + 4))
        expected[which] += estimate.n, estimate.n * estimate.frequencies[0]
        return estimate

    for t in range(3):
        if t == 2:
            memory = reloaded(row, states, memory)
        outcome = drive(row.mechanism.dialogue(view_of(row, memory, t, 9, None)), answer)
        memory = outcome.memory
    assert lanes == 3 * [(f"faster/{threshold}", threshold, True) for threshold in SPEEDS]
    np.testing.assert_allclose(outcome.speeds.answers, expected)
    assert outcome.speeds.variance == pytest.approx(binary.variance(1))
    assert outcome.speeds is memory.speeds
    plain = METHODS["steered"]
    memory = plain.mechanism.open_memory(states, WINDOW + 1, plain.topics)
    outcome = drive(plain.mechanism.dialogue(view_of(plain, memory, 0, 9, None)), answer)
    assert outcome.speeds is None


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
