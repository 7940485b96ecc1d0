"""Streams that drive on roads: against plain loops, and what holds of all of them."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrasyn.mobility.model import MobilityModel
from retrasyn.mobility.speeds import SpeedMemory
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.next_hops import NextHops
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.synthesis import trip_kernels, trips
from retrasyn.synthesis.lifecycle import LifecycleMemory, Trips
from retrasyn.synthesis.shard import StepInputs
from retrasyn.synthesis.synthesizer import Synthesizer, make_shard
from retrasyn.synthesis.trips import Pace, TripPlan
from support import plain_trips
from support.contexts import context_of
from support.plain_trips import PlainTrip
from support.road_networks import distance_to_roads, road_networks
from support.shards import dealt

SEED = 5
BOXES = [Box(0, 0, 12, 12), Box(-1, -2, 13.5, 14), Box(0, 0, 12, 40)]
sides = st.integers(1, 5)
seeds = st.integers(0, 9999)
boxes = st.sampled_from(BOXES)


def plan_on(roads, grid, seed, *, target=0, alarm=0.0, speed=None):
    """Return a plan with some flow, hazard and pace."""
    random = np.random.default_rng(seed)
    flow = random.dirichlet(np.full(grid.n_cells, 0.7))
    ends = random.dirichlet(np.full(grid.n_cells, 0.7))
    pace = Pace.before_any_answer(roads, grid, None)
    faster = random.uniform(0.5, 20.0) if speed is None else speed
    factors = random.uniform(*trips._FACTORS, grid.n_cells)
    return TripPlan(
        roads=roads,
        target=target,
        flow=roads.shares_on(roads.drivable, flow),
        ends=roads.shares_on(roads.cell_weights > 0, ends),
        hazard=random.uniform(0.02, 0.5, 30),
        alarm=alarm,
        speeds=None,
        gap=3,
        pace=dataclasses.replace(pace, speed=pace.speed * faster, factors=factors),
    )


def opened(grid, roads, **options):
    return dealt(grid, continuous=True, roads=roads, **options)


def advance(streams, plan, grid, t):
    """Take streams through a timestamp; return how many were left, and the next pace."""
    step = StepInputs(grid, SEED, t, streams.n)
    n_left, n_born, pace = plan.advance(streams.shards, step, streams.next_id)
    streams.changed(n=n_left + n_born, n_born=n_born)
    return n_left, pace


def as_plain(streams):
    """Return all streams by id."""
    columns = streams.columns()
    ids = columns["ids"].tolist()
    assert ids == sorted(set(ids))
    if not ids:
        return {}
    names = [field.name for field in dataclasses.fields(PlainTrip)]
    rows = zip(
        *(columns[{"cell": "cells"}.get(name, name)].tolist() for name in names), strict=True
    )
    return {i: PlainTrip(*row) for i, row in zip(ids, rows, strict=True)}


def run(network, grid, sizes, seed, *, alarm=0.0, n_shards=1, **pace):
    """Yield what a plan was given and made, timestamp by timestamp."""
    roads = NextHops.of(network, grid)
    streams, last = opened(grid, roads, n_shards=n_shards), None
    for t, size in enumerate(sizes):
        plan = plan_on(roads, grid, seed + t, target=size, alarm=alarm, **pace)
        if last is not None:
            plan = dataclasses.replace(plan, pace=dataclasses.replace(plan.pace, factors=last))
        before, next_id = as_plain(streams), streams.next_id
        n_left, next_pace = advance(streams, plan, grid, t)
        last = next_pace.factors
        yield plan, before, as_plain(streams), n_left, next_pace, next_id, t


@settings(max_examples=60)
@given(
    network=road_networks(one_way=True),
    box=boxes,
    side=sides,
    sizes=st.lists(st.sampled_from([0, 1, 7, 40, 130, 160]), min_size=1, max_size=6),
    alarm=st.sampled_from([0.0, 0.95]),
    n_shards=st.integers(1, 4),
    seed=seeds,
)
def test_trips_go_on_end_and_begin_as_in_the_plain_loop(
    network, box, side, sizes, alarm, n_shards, seed
):
    grid = Grid(box, side)
    for plan, before, after, n_left, pace, next_id, t in run(
        network, grid, sizes, seed, alarm=alarm, n_shards=n_shards
    ):
        step = StepInputs(grid, SEED, t, len(before))
        expected, expected_left, factors = plain_trips.advance(
            before, plan, step, next_id, lambda weights: trips._alias(np.array(weights)).tolist()
        )
        assert (n_left, list(after)) == (expected_left, list(expected))
        for identifier, trip in after.items():
            plain = expected[identifier]
            exact = ("entered", "cell", "arc", "anchor")
            assert [getattr(trip, name) for name in exact] == [
                getattr(plain, name) for name in exact
            ]
            for name in ("offset", "own", "x", "y"):
                assert getattr(trip, name) == pytest.approx(getattr(plain, name), abs=1e-9)
        np.testing.assert_allclose(pace.factors, factors, rtol=1e-9)


@settings(max_examples=60)
@given(
    network=road_networks(one_way=True),
    box=boxes,
    side=sides,
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    alarm=st.sampled_from([0.0, 0.95]),
    seed=seeds,
)
def test_all_points_lie_on_roads_and_no_step_is_faster_than_the_fastest_class_allows(
    network, box, side, sizes, alarm, seed
):
    grid = Grid(box, side)
    for plan, before, after, *_ in run(network, grid, sizes, seed, alarm=alarm):
        assert len(after) == plan.target
        x = np.array([trip.x * grid.cell_width + box.x0 for trip in after.values()])
        y = np.array([trip.y * grid.cell_height + box.y0 for trip in after.values()])
        assert distance_to_roads(network, x, y).max(initial=0.0) < 1e-6
        cells = [trip.cell for trip in after.values()]
        assert grid.cells_of(x, y).tolist() == cells
        assert plan.roads.drivable[cells].all()
        fastest = trips._FACTORS[1] * math.exp(math.sqrt(3) * trips._SPREADS[-1])
        for identifier in before.keys() & after.keys():
            old, new = before[identifier], after[identifier]
            dx, dy = (new.x - old.x) * grid.cell_width, (new.y - old.y) * grid.cell_height
            allowed = plan.pace.speed * plan.pace.factors[old.cell] * old.own
            assert math.hypot(dx, dy) <= allowed * (1 + 1e-9) + 1e-9
            assert allowed <= plan.pace.speed * fastest * (1 + 1e-9)
            assert (new.own, new.anchor, new.entered) == (old.own, old.anchor, old.entered)


@settings(max_examples=60)
@given(network=road_networks(one_way=True), box=boxes, side=sides, seed=seeds)
def test_a_stream_ends_only_where_its_trip_does_unless_there_are_too_many(network, box, side, seed):
    grid = Grid(box, side)
    for plan, before, after, *_ in run(network, grid, [30] * 6, seed):
        for identifier, trip in before.items():
            driven = plan.pace.speed * plan.pace.factors[trip.cell]
            left = plain_trips.time_left(trip, plan.roads)
            assert (identifier not in after) == (left <= driven * (1 + 1e-6)) or (
                left == pytest.approx(driven, rel=1e-5)  # times are kept as float32
            )


@given(network=road_networks(), side=sides, seed=seeds)
def test_streams_that_drive_do_not_depend_on_the_number_of_shards(network, side, seed):
    grid, ends = Grid(BOXES[0], side), []
    for n_shards in (1, 2, 4):
        roads = NextHops.of(network, grid)
        streams = opened(grid, roads, n_shards=n_shards)
        for t, size in enumerate([40, 150, 90, 90]):
            plan = plan_on(roads, grid, seed + t, target=size, alarm=0.95)
            _, pace = advance(streams, plan, grid, t)
        columns = {name: column.tobytes() for name, column in streams.columns().items()}
        ends.append((columns, pace.factors.tobytes()))
    assert ends[0] == ends[1] == ends[2]


def grid_city(n=9, extent=9.0):
    """Return a city of square blocks."""
    places = np.linspace(0, extent, n)
    x, y = (axis.ravel() for axis in np.meshgrid(places, places))
    nodes = np.arange(n * n).reshape(n, n)
    tail = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    head = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    return RoadNetwork.from_edges(x=x, y=y, tail=tail, head=head)


def city_roads(side=3):
    grid = Grid(Box(0, 0, 9, 9), side)
    return grid, NextHops.of(grid_city(), grid)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_streams_that_drive_do_not_depend_on_the_number_of_threads(n_threads, monkeypatch):
    monkeypatch.setattr("retrasyn.synthesis.shard.MIN_SLICE", 64)
    grid, roads = city_roads()
    ends = []
    for threads in (1, n_threads):
        streams = opened(grid, roads, n_threads=threads)
        for t, size in enumerate([900, 1200, 700, 1000]):
            advance(streams, plan_on(roads, grid, t, target=size, alarm=0.95), grid, t)
        ends.append({name: column.tobytes() for name, column in streams.columns().items()})
    assert ends[0] == ends[1]


@pytest.mark.parametrize("box", [(116.15, 39.75, 116.6, 40.1), (0.1, -7e5, 3e5, 2e6)])
def test_released_points_lie_in_the_box_and_in_their_cells_anywhere_in_the_world(box):
    box, city = Box(*box), grid_city()
    x, y = (
        np.clip(low + axis / 9 * (high - low), low, high)
        for axis, low, high in ((city.x, box.x0, box.x1), (city.y, box.y0, box.y1))
    )
    network = RoadNetwork.from_edges(x=x, y=y, tail=city.tail, head=city.head)
    for side in (1, 3, 7):
        grid = Grid(box, side)
        roads = NextHops.of(network, grid)
        streams, synthesizer = opened(grid, roads), Synthesizer(grid, SEED)
        for t in range(6):
            synthesizer.step(streams, plan_on(roads, grid, t, target=300), t)
            points = synthesizer.release(streams, t)
            cells, n_outside = grid.locate(points["x"], points["y"])
            assert n_outside == 0
            assert cells.tolist() == points["cells"].tolist() == streams.living()[1].tolist()


def test_shards_made_again_from_what_they_saved_go_on_alike():
    grid, roads = city_roads()
    ends = []
    for lost in (False, True):
        streams = opened(grid, roads, n_shards=2)
        for t, size in enumerate([300, 250, 320, 280]):
            advance(streams, plan_on(roads, grid, t, target=size), grid, t)
            if lost:
                engine = streams.shards.engine
                saves = [{k: a.copy() for k, a in w.to_arrays().items()} for w in engine.workers]
                engine.open(partial(make_shard, grid=grid, continuous=True, roads=roads))
                for worker, save in zip(engine.workers, saves, strict=True):
                    worker.load_arrays(save)
        ends.append({name: column.tobytes() for name, column in streams.columns().items()})
    assert ends[0] == ends[1]


def test_of_two_streams_that_are_too_many_the_one_nearer_to_its_end_ends():
    grid, roads = city_roads()
    streams = opened(grid, roads)
    advance(streams, plan_on(roads, grid, 1, target=400), grid, 0)
    before = as_plain(streams)
    advance(streams, plan_on(roads, grid, 1, target=100, speed=1e-6), grid, 1)
    left = {i: plain_trips.time_left(trip, roads) for i, trip in before.items()}
    kept = streams.columns()["ids"].tolist()
    assert len(kept) == 100
    assert min(left[i] for i in kept) >= max(left[i] for i in left.keys() - set(kept)) - 1e-5


def test_relief_ends_streams_only_where_there_are_far_too_many_and_only_after_an_alarm():
    grid, roads = city_roads()
    for alarm in (0.0, 1.0):
        streams = opened(grid, roads)
        flow = np.full(9, 1e-6)
        flow[8] = 1.0
        plan = plan_on(roads, grid, 1, target=900, speed=1e-6)
        flow /= flow.sum()
        advance(streams, dataclasses.replace(plan, flow=np.full(9, 1 / 9)), grid, 0)
        before = streams.counts.copy()
        long_crowded = dataclasses.replace(plan.pace, factors=np.full(9, trips._CROWDED))
        crowded = dataclasses.replace(plan, flow=flow, alarm=alarm, pace=long_crowded)
        n_left, _ = advance(streams, crowded, grid, 1)
        ended = before.sum() - n_left
        most = np.floor(trips._RELIEF * before[:8]).sum()
        assert (ended == 0) if alarm == 0 else (0 < ended <= most)


def test_births_are_where_people_enter_and_streams_are_missing():
    grid, roads = city_roads()
    flow = np.full(9, 1 / 9)
    plan = dataclasses.replace(
        plan_on(roads, grid, 1, target=4000, speed=1e-6), flow=flow, ends=flow
    )
    streams = opened(grid, roads)
    advance(streams, plan, grid, 0)
    even = streams.counts / streams.n
    assert np.abs(even - 1 / 9).max() < 0.02
    flow = np.where(np.arange(9) == 4, 0.5, 0.5 / 8)
    fuller = dataclasses.replace(plan, flow=flow, target=8000)
    advance(streams, fuller, grid, 1)
    born = streams.counts - 4000 * even
    assert born[4] / 4000 > 0.5  # far beyond the ninth that enters there


def test_trips_begin_and_end_by_the_root_of_where_people_enter_and_of_road():
    grid, roads = city_roads()
    model = MobilityModel.from_frequencies(np.ones(StateSpace(grid).n_states), StateSpace(grid))
    enter = np.where(np.arange(9) == 2, 0.0, np.arange(1.0, 10.0))
    model = dataclasses.replace(model, enter=enter / enter.sum())
    known = {"roads": roads, "hazard": np.full(5, 0.1)}
    plan = Trips().plan(context_of(model, LifecycleMemory(), grid=grid, size=5, **known))
    expected = [math.sqrt(a * b) for a, b in zip(enter, roads.cell_weights, strict=True)]
    np.testing.assert_allclose(plan.ends, np.array(expected) / sum(expected), rtol=1e-12)


def test_after_an_alarm_goals_are_where_streams_are_missing():
    grid, roads = city_roads()
    even, flow = np.full(9, 1 / 9), np.where(np.arange(9) == 8, 0.2, 0.8 / 8)
    plan = plan_on(roads, grid, 1, target=2000, speed=1e-6)
    plan = dataclasses.replace(plan, flow=even, ends=even)
    shares = []
    for alarm in (0.0, 1.0):
        streams = opened(grid, roads)
        advance(streams, plan, grid, 0)
        more = dataclasses.replace(plan, flow=flow, alarm=alarm, target=6000)
        advance(streams, more, grid, 1)
        columns = streams.columns()
        newborn = columns["entered"] == 1
        shares.append((roads.anchor_cells[columns["anchor"][newborn]] == 8).mean())
    assert shares[1] > 1.5 * shares[0]


def test_where_people_go_on_for_longer_trips_are_longer():
    grid, roads = city_roads(side=6)
    flow, medians = np.full(36, 1 / 36), []
    for hazard in (0.2, 0.1, 0.05):
        plan = plan_on(roads, grid, 1, target=3000)
        pace = dataclasses.replace(plan.pace, speed=0.2, spread=0.1)
        hazards = np.full(60, hazard)
        plan = dataclasses.replace(plan, pace=pace, hazard=hazards, flow=flow, ends=flow)
        streams = opened(grid, roads)
        advance(streams, plan, grid, 0)
        left = [plain_trips.time_left(trip, roads) for trip in as_plain(streams).values()]
        medians.append(np.median(left) / 0.2)
    assert medians[0] < medians[1] < medians[2]
    assert medians[2] == pytest.approx(math.log(2) / 0.05, rel=0.5)  # the nearest of eight goals


@given(st.lists(st.floats(1e-4, 0.9), min_size=1, max_size=40), seeds)
def test_durations_are_those_of_the_hazard(hazard, seed):
    survival = np.cumprod(np.append(1.0, 1.0 - np.array(hazard)))
    for uniform in np.random.default_rng(seed).random(20).tolist():
        found = trip_kernels._duration(survival, uniform)
        assert found == plain_trips.duration(hazard, uniform)


@given(
    st.lists(st.floats(-6, 1), min_size=1, max_size=30),
    st.lists(st.floats(-6, 0), min_size=1, max_size=4),
)
def test_expected_shares_of_steps_equal_the_plain_loop(log_steps, thresholds):
    factors, spreads = [-0.5, 0.0, 0.7], [0.15, 1.0]
    arrays = (np.array(part) for part in (log_steps, thresholds, factors, spreads))
    found = trip_kernels.share_above(*arrays)
    for f, factor in enumerate(factors):
        for s, spread in enumerate(spreads):
            for k, threshold in enumerate(thresholds):
                plain = plain_trips.share_above(log_steps, threshold, factor, spread)
                assert found[f, s, k] == pytest.approx(plain, abs=1e-12)


def speeds_of(answers, thresholds=(6, 20, 60)):
    speeds = SpeedMemory(thresholds)
    speeds.answers[:] = answers
    speeds.variance = 1.0
    return speeds


def paced(speed, n=9):
    return Pace(speed, 0.35, np.ones(n), np.zeros(3))


@pytest.mark.parametrize("truth", [0.005, 0.02, 0.08])
def test_a_fit_finds_how_fast_people_are(truth):
    random = np.random.default_rng(3)
    log_steps = random.normal(0, 0.2, 1500)
    pace = paced(0.02)
    for t in range(60):
        seen = truth * np.exp(random.normal(0, 0.3, 40_000) + 0.2 * random.normal(0, 1, 40_000))
        farther = [(seen > k / 1000).mean() for k in (6, 20, 60)]
        speeds = speeds_of([[40_000, 40_000 * share] for share in farther])
        pace = pace.fit(t, speeds, np.log(pace.speed) + log_steps, 0.02)
    assert pace.speed == pytest.approx(truth, rel=0.25)
    assert pace.fitted == 59
    assert pace.answered.tolist() == [40_000] * 3


def test_without_an_answer_there_is_no_fit():
    assert not paced(0.1).is_due(5, None, 3)
    assert not paced(0.1).is_due(5, speeds_of(np.zeros((3, 2))), 3)


def test_a_fit_is_due_after_a_gap_or_when_there_are_many_new_answers():
    fitted = dataclasses.replace(paced(0.1), fitted=10, answered=np.full(3, 100.0))
    assert not fitted.is_due(12, speeds_of(np.full((3, 2), 101.0)), 3)
    assert fitted.is_due(13, speeds_of(np.full((3, 2), 101.0)), 3)
    assert fitted.is_due(11, speeds_of(np.full((3, 2), 200.0)), 3)


def test_a_pace_is_carried_over_as_arrays():
    pace = dataclasses.replace(paced(0.3), fitted=8, answered=np.array([1.0, 2.0, 3.0]))
    again = Pace.from_arrays(pace.to_arrays())
    for field in dataclasses.fields(Pace):
        assert np.array_equal(getattr(again, field.name), getattr(pace, field.name)), field.name


def test_speeds_are_fitted_to_answers_while_streams_drive():
    grid, roads = city_roads()
    speeds = speeds_of([[500, 400.0], [500, 250.0], [500, 100.0]])
    streams = opened(grid, roads, n_shards=3)
    pace = Pace.before_any_answer(roads, grid, speeds)
    found = []
    for t in range(12):
        plan = plan_on(roads, grid, 1, target=600)
        plan = dataclasses.replace(plan, speeds=speeds, gap=1, pace=pace)
        _, pace = advance(streams, plan, grid, t)
        found.append(pace.fitted)
    assert found == [-1, *range(1, 12)]
    assert pace.speed > Pace.before_any_answer(roads, grid, speeds).speed


def test_shards_without_roads_say_so():
    grid, roads = city_roads()
    streams = dealt(grid, continuous=True)
    with pytest.raises(AssertionError, match="without roads"):
        advance(streams, plan_on(roads, grid, 1, target=5), grid, 0)
