"""Simulated devices: one state each, never a hint of where anybody went."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.data.trajectories import Trajectories
from retrasyn.interpretation import AUTHORS, SAFE
from retrasyn.messages import ENTERING, MOVING, QUITTING, SPEEDS, Grant, Question
from retrasyn.simulation.population import (
    Identities,
    Recording,
    SimulatedDevices,
    Step,
    stable_words,
)
from retrasyn.space import Box, Grid, StateSpace
from support.streams import BOX, recordings

SIDE = 5
GRID = Grid(Box(*BOX), SIDE)


def devices(real, *, reading=SAFE, endpoints=True, everybody=False, seed=0):
    return SimulatedDevices(
        identities=Identities.of(real, reading.ledger),
        states=StateSpace(GRID, endpoints=endpoints),
        reading=reading,
        gap=4,
        seed=seed,
        everybody_reports=everybody,
    )


def states_by_time(real, **keywords):
    """Return, per timestamp, the state of every key on the roster as a tuple."""
    population = devices(real, **keywords)
    out = {}
    for step in Recording.of(real, GRID).steps():
        population.observe(step)
        keys = population.roster().keys
        grant = Grant(t=step.t, epsilon=1, reporters=keys)
        numbers = population.answers_to(grant).tolist()
        names = [population.states.describe(n) if n >= 0 else None for n in numbers]
        out[step.t] = dict(zip(keys.tolist(), names, strict=True))
    return out


def expected_states(real, jump):
    """Return, per timestamp and key, the states the plain loop allows."""
    keys = real.stream_ids if real.user_of_stream is None else real.user_of_stream
    numbers = {key: k for k, key in enumerate(np.unique(keys).tolist())}
    allowed: dict[int, dict[int, list]] = {t: {} for t in range(real.first_t, real.last_t + 1)}
    cells = GRID.cells_of(real.x, real.y).tolist()
    t = real.t.tolist()
    for stream in range(real.n_streams):
        rows = range(real.starts[stream], real.starts[stream + 1])
        points = {t[row]: cells[row] for row in rows}
        for when, states in naive.device_states(points, SIDE, jump).items():
            if when in allowed:
                allowed[when].setdefault(numbers[int(keys[stream])], []).extend(states)
    return allowed


@given(recordings(), st.sampled_from(["split", "clamp"]))
def test_every_device_is_in_one_of_the_states_the_plain_loop_allows(real, jump):
    found = states_by_time(real, reading=SAFE.answer(jump=jump))
    allowed = expected_states(real, jump)
    for t, states in allowed.items():
        assert found[t].keys() == states.keys()
        for key, choices in states.items():
            kind, first, last = found[t][key]
            name = (kind, first, last) if kind == "move" else (kind, first)
            assert name in choices
            assert len(choices) <= 2


def test_a_clamped_jump_reports_the_neighbour_nearest_to_where_it_went():
    real = Trajectories.from_columns(
        traj_id=[1, 1, 1], t=[0, 1, 2], x=[0.1, 0.9, 0.9], y=[0.1, 0.5, 0.5]
    )
    found = states_by_time(real, reading=SAFE.answer(jump="clamp"))
    assert found[1][0] == ("move", 0, 6)
    assert found[2][0] == ("move", 14, 14)  # from the true cell, not the clamped one


def test_two_states_at_once_are_settled_by_a_fair_coin():
    real = Trajectories.from_columns(
        traj_id=[1, 2], t=[0, 1], x=[0.1, 0.1], y=[0.1, 0.1], user_id=[5, 5]
    )
    kinds = [states_by_time(real, seed=seed)[1][0][0] for seed in range(2000)]
    assert set(kinds) == {"enter", "quit"}
    assert abs(kinds.count("enter") - 1000) < 5 * 500**0.5  # five standard deviations


@given(recordings(), st.booleans())
def test_who_reports_and_when_does_not_depend_on_where_anybody_is(real, endpoints):
    elsewhere = Trajectories(
        real.stream_ids,
        real.begins,
        real.starts,
        np.full(real.n_points, 0.5),
        np.full(real.n_points, 0.5),
        real.user_of_stream,
    )
    pair = [devices(data, endpoints=endpoints) for data in (real, elsewhere)]
    steps = [Recording.of(data, GRID).steps() for data in (real, elsewhere)]
    for one, other in zip(*steps, strict=True):
        pair[0].observe(one)
        pair[1].observe(other)
        rosters = [population.roster() for population in pair]
        assert np.array_equal(rosters[0].keys, rosters[1].keys)
        assert np.array_equal(rosters[0].slots, rosters[1].slots)
        assert pair[0].size == pair[1].size


def test_a_jump_without_endpoint_states_is_a_null_report():
    real = Trajectories.from_columns(traj_id=[1, 1], t=[0, 1], x=[0.1, 0.9], y=[0.1, 0.9])
    assert states_by_time(real, endpoints=False) == {0: {}, 1: {0: None}}


def test_slots_lie_within_a_gap_of_entering():
    real = Trajectories.from_columns(
        traj_id=np.arange(400), t=np.zeros(400, int), x=np.full(400, 0.5), y=np.full(400, 0.5)
    )
    population = devices(real)
    population.observe(Recording.of(real, GRID).step(0))
    assert set(population.roster().slots.tolist()) == {0, 1, 2, 3}


JUMPER = Trajectories.from_columns(
    traj_id=[1, 1, 1, 2, 2, 2],
    t=[0, 1, 2, 0, 1, 2],
    x=[0.1, 0.9, 0.9, 0.1, 0.1, 0.1],
    y=[0.1, 0.9, 0.9, 0.1, 0.1, 0.1],
)


def test_the_authors_let_a_jump_quit_and_then_enter_beside_its_move():
    found = states_by_time(JUMPER, reading=AUTHORS, everybody=True)
    assert found[1][0] == ("quit", 0, 0)
    assert found[2] == {0: ("move", 24, 24), 1: ("move", 0, 0), 2: ("enter", 24, 24)}


def test_the_authors_never_draw_a_jumper_again():
    found = states_by_time(JUMPER, reading=AUTHORS)
    assert found[1].keys() == {0, 1}
    assert found[2].keys() == {1}


@pytest.mark.parametrize(("reading", "size"), [(SAFE, [2, 2, 2]), (AUTHORS, [2, 2, 3])])
def test_the_size_target_follows_the_reading(reading, size):
    population = devices(JUMPER, reading=reading)
    sizes = []
    for step in Recording.of(JUMPER, GRID).steps():
        population.observe(step)
        sizes.append(population.size)
    assert sizes == size


def test_text_and_numbers_have_stable_words():
    assert stable_words(["a", "b"]).tolist() == stable_words(["a", "b"]).tolist()
    assert len(set(stable_words(["a", "b", "c"]).tolist())) == 3


QUESTIONS = [
    Question(),
    Question(about="move"),
    Question(about="enter"),
    Question(about="quit"),
    Question(about="present"),
    Question(about="cell"),
    *(Question(about="faster", threshold=threshold) for threshold in SPEEDS),
    Question(about="older", threshold=2),
    Question(about="older", threshold=5),
]


def presence_of(real):
    """Return, per key, at which timestamps it is present and since when."""
    keys = real.stream_ids if real.user_of_stream is None else real.user_of_stream
    numbers = {key: k for k, key in enumerate(np.unique(keys).tolist())}
    since = {key: {} for key in numbers.values()}
    for stream in range(real.n_streams):
        begin = int(real.begins[stream])
        for t in range(begin, begin + int(real.lengths[stream])):
            since[numbers[int(keys[stream])]][t] = begin
    return since


def cells_of(real):
    """Return, per key, its cell at each timestamp: that of its last stream."""
    keys = real.stream_ids if real.user_of_stream is None else real.user_of_stream
    numbers = {key: k for k, key in enumerate(np.unique(keys).tolist())}
    cells = {key: {} for key in numbers.values()}
    everywhere, t = GRID.cells_of(real.x, real.y).tolist(), real.t.tolist()
    for stream in range(real.n_streams):
        for row in range(real.starts[stream], real.starts[stream + 1]):
            cells[numbers[int(keys[stream])]][t[row]] = everywhere[row]
    return cells


def distances_of(real):
    """Return, per key, how far it moved up to each timestamp: its last stream, if it moved."""
    keys = real.stream_ids if real.user_of_stream is None else real.user_of_stream
    numbers = {key: k for k, key in enumerate(np.unique(keys).tolist())}
    distances = {key: {} for key in numbers.values()}
    x, y, t = real.x.tolist(), real.y.tolist(), real.t.tolist()
    for stream in range(real.n_streams):
        for row in range(real.starts[stream], real.starts[stream + 1]):
            begins = row == real.starts[stream]
            moved = -1.0 if begins else math.dist((x[row - 1], y[row - 1]), (x[row], y[row]))
            distances[numbers[int(keys[stream])]][t[row]] = moved
    return distances


@given(recordings(), st.sampled_from(["split", "clamp"]), st.booleans())
def test_every_question_is_answered_as_the_plain_loop_does(real, jump, enrolled):
    population = devices(real, reading=SAFE.answer(jump=jump))
    population.everybody_enrolled = enrolled
    allowed, since = expected_states(real, jump), presence_of(real)
    cells, distances = cells_of(real), distances_of(real)
    x0, y0, x1, y1 = BOX
    side = max(x1 - x0, y1 - y0)
    states = population.states
    ranges = {
        "transition": (0, states.n_states),
        "move": (0, states.n_moves),
        "enter": (states.n_moves, states.n_moves + GRID.n_cells),
        "quit": (states.n_moves + GRID.n_cells, states.n_states),
    }
    for step in Recording.of(real, GRID, topics=["faster"]).steps():
        population.observe(step)
        keys = population.roster().keys
        assert keys.tolist() == list(since) if enrolled else set(keys) == set(allowed[step.t])
        whole = population.answers_to(Grant(t=step.t, epsilon=1, reporters=keys)).tolist()
        for question in QUESTIONS:
            grant = Grant(t=step.t, epsilon=1, reporters=keys, question=question)
            answers = population.answers_to(grant)
            assert answers.dtype == np.int32
            for key, state, answer in zip(keys.tolist(), whole, answers.tolist(), strict=True):
                present = step.t in since[key]
                if question.about == "present":
                    assert answer == (0 if present else -1)
                elif question.about == "cell":
                    assert answer == (cells[key][step.t] if present else -1)
                elif question.about == "faster":
                    least = question.threshold / 1000 * side
                    further = present and np.float32(distances[key][step.t]) > least
                    assert answer == (0 if further else -1)
                elif question.about == "older":
                    if present:
                        age = step.t - since[key][step.t] + 1
                        assert answer == (0 if age > question.threshold else -1)
                else:
                    low, high = ranges[question.about]
                    assert answer == (state - low if low <= state < high else -1)
                    assert (state >= 0) == (key in allowed[step.t])


@given(recordings(), st.sampled_from(["split", "clamp"]))
def test_what_kind_of_state_a_device_shows_is_its_presence(real, jump):
    population, since = devices(real, reading=SAFE.answer(jump=jump)), presence_of(real)
    for step in Recording.of(real, GRID).steps():
        population.observe(step)
        roster = population.roster()
        for key, kind in zip(roster.keys.tolist(), roster.kinds.tolist(), strict=True):
            begin = since[key].get(step.t)
            touching = begin == step.t and step.t - 1 in since[key]
            if touching:  # two states at once, whatever the place: a coin
                assert kind in {ENTERING, QUITTING}
            elif begin is None:
                assert kind == QUITTING
            else:
                assert kind == (ENTERING if begin == step.t else MOVING)


@given(recordings(), st.sampled_from(["split", "clamp"]))
def test_who_starts_and_stops_is_counted_by_stream_and_not_by_jump(real, jump):
    population = devices(real, reading=SAFE.answer(jump=jump))
    begins, ends = real.begins, real.begins + real.lengths
    for step in Recording.of(real, GRID).steps():
        population.observe(step)
        assert population.n_entering == np.count_nonzero(begins == step.t)
        quitters = ends == step.t
        assert sorted(population.ages_of_quitters) == sorted(real.lengths[quitters])


def test_after_a_jump_the_true_cell_is_told():
    population = devices(JUMPER, reading=SAFE.answer(jump="clamp"))
    steps = Recording.of(JUMPER, GRID).steps()
    told = []
    for step in steps:
        population.observe(step)
        cell = Grant(t=step.t, epsilon=1, reporters=np.array([0]), question=Question(about="cell"))
        told += population.answers_to(cell).tolist()
    assert told == [0, 24, 24]


def test_a_stream_that_pauses_begins_a_new_age():
    population = devices(JUMPER)
    streams, cells = np.array([0], np.int32), np.array([3], np.uint16)
    nobody = Step(2, streams[:0], cells[:0])
    older = Question(about="older", threshold=1)
    ages = []
    for step in [Step(0, streams, cells), Step(1, streams, cells), nobody, Step(3, streams, cells)]:
        population.observe(step)
        grant = Grant(t=step.t, epsilon=1, reporters=np.array([0]), question=older)
        ages.append((population.answers_to(grant)[0], population.ages_of_quitters.tolist()))
    assert [ages[0], ages[1], ages[3]] == [(-1, []), (0, []), (-1, [])]
    assert ages[2][1] == [2]
    assert population.n_entering == 1


def test_distances_are_kept_only_where_they_are_asked_about():
    assert Recording.of(JUMPER, GRID, topics=["transition", "cell"]).moved is None
    assert Recording.of(JUMPER, GRID, topics=["faster"]).moved.dtype == np.float32


def test_a_point_outside_the_box_is_no_place_to_have_come_from():
    real = Trajectories.from_columns(
        traj_id=[0] * 5, t=range(5), x=[0.1, 0.4, -9, 0.1, 0.2], y=[0.1, 0.5, 0.1, 0.1, 0.1]
    )
    recording = Recording.of(real, Grid(Box(0, 0, 1, 1), 2), "drop", ["faster"])
    assert recording.moved.tolist() == pytest.approx([-1, 0.5, -1, 0.1])
    assert [step.moved.tolist() for step in recording.steps()][2] == []


def test_the_longer_side_of_the_box_is_what_distances_are_measured_by():
    grid = Grid(Box(0, 0, 1, 10), 2)
    population = devices(JUMPER)
    population.states = StateSpace(grid)
    streams, cells = np.array([0], np.int32), np.array([1], np.uint16)
    told = []
    for t, moved in enumerate([-1.0, 0.015, 0.025, 0.4, 0.7]):
        population.observe(Step(t, streams, cells, np.array([moved], np.float32)))
        told.append(
            [
                population.answers_to(
                    Grant(t=t, epsilon=1, reporters=streams.astype(int), question=question)
                ).tolist()[0]
                for question in QUESTIONS
                if question.about == "faster"
            ]
        )
    no, yes = -1, 0
    assert told == [[yes] * n + [no] * (8 - n) for n in (0, 0, 1, 7, 8)]
