"""All metrics together: the same figures as one by one, and what no figure may depend on."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn import demo_city, metrics, synthesize
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, SettingError
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.suite import METRICS, Scores, evaluate
from retrasyn.space import Box, Grid
from support.metric_pairs import SIDES, UNIT, Case, cases, columns, same

KEYS = [
    "density_error",
    "query_error",
    "hotspot_ndcg",
    "transition_error",
    "pattern_f1",
    "kendall_tau",
    "trip_error",
    "length_error",
    "duration_error",
    "stream_ratio",
]
WIDER = (-1, -1, 13, 13)
FEW = {"n_queries": 5, "top_cells": 4, "top_patterns": 9}


def scores_of(case, real=None, synthetic=None):
    data = case.trajectories
    return evaluate(
        real or data[0], synthetic or data[1], case.grid, span=case.span, seed=case.seed, **FEW
    )


@given(cases(sides=SIDES))
def test_all_figures_together_are_those_one_by_one(case):
    spans = {"span": case.span, "seed": case.seed}
    options = {
        "query_error": {**spans, "n_queries": 5},
        "hotspot_ndcg": {**spans, "n_spans": 5, "top": 4},
        "pattern_f1": {**spans, "n_spans": 5, "top": 9},
    }
    scores = scores_of(case)
    for key in KEYS:
        alone = getattr(metrics, key)(*case.arguments, **options.get(key, {}))
        assert getattr(scores, key) == pytest.approx(alone, abs=0, rel=0, nan_ok=True)
    assert scores.notes == Pair.of(*case.arguments).notes


@given(cases(sides=SIDES))
def test_a_data_set_against_itself_is_perfect(case):
    scores = scores_of(case, synthetic=case.trajectories[0])
    pair = naive.prepare(case.real, case.real, case.box, case.side)
    perfect = {key: 0.0 for key in KEYS if key.endswith("error")}
    perfect |= {"hotspot_ndcg": 1.0, "pattern_f1": 1.0, "stream_ratio": 1.0}
    for key, value in perfect.items():
        found = getattr(scores, key)
        assert found == pytest.approx(value, abs=1e-12) or math.isnan(found)
    known = {"density_error", "query_error", "trip_error", "length_error", "duration_error"}
    assert not any(math.isnan(getattr(scores, key)) for key in known)
    moves = any(len(trip.cells) > 1 for trip in pair.real)
    assert math.isnan(scores.transition_error) == (not moves)
    visited = naive.visits(pair.real, case.side)
    n_cells = len(visited)
    untied = sum(visited[i] != visited[j] for i in range(n_cells) for j in range(i))
    n_pairs = n_cells * (n_cells - 1) // 2
    assert scores.kendall_tau == same(untied / n_pairs if n_pairs else math.nan)


@given(cases(), st.integers(0, 2**32 - 1))
def test_the_order_and_the_names_of_streams_change_no_figure(case, seed):
    random = np.random.default_rng(seed)

    def renamed(paths):
        ids = random.choice(10**6, len(paths), replace=False).tolist()
        return columns(paths, ids)

    shuffled = scores_of(case, renamed(case.real), renamed(case.synthetic))
    assert shuffled.to_dict() == scores_of(case).to_dict()
    assert shuffled.notes == scores_of(case).notes


@given(cases(), st.integers(-(10**6), 10**6))
def test_when_the_clock_began_changes_no_figure(case, shift):
    later = [
        columns([(begin + shift, points) for begin, points in paths])
        for paths in (case.real, case.synthetic)
    ]
    assert scores_of(case, *later).to_dict() == scores_of(case).to_dict()


@given(cases())
def test_the_unit_of_the_coordinates_changes_no_figure(case):
    def scaled(paths):
        return [(begin, [(1024 * x, 1024 * y) for x, y in points]) for begin, points in paths]

    other = dataclasses.replace(
        case,
        real=scaled(case.real),
        synthetic=scaled(case.synthetic),
        box=tuple(1024 * edge for edge in case.box),
    )
    found, expected = scores_of(other), scores_of(case)
    for key in KEYS:
        assert getattr(found, key) == same(getattr(expected, key))


def test_the_table_of_metrics_names_every_figure_in_order():
    assert [metric.key for metric in METRICS] == KEYS
    assert [field.name for field in dataclasses.fields(Scores)] == [*KEYS, "notes", "added"]
    better = {metric.key: metric.better for metric in METRICS}
    for key in KEYS:
        largest = {"hotspot_ndcg", "pattern_f1", "kendall_tau"}
        expected = "larger" if key in largest else "smaller"
        assert better[key] == ("one" if key == "stream_ratio" else expected)


def test_figures_are_plain_numbers_and_none_where_there_is_nothing_to_compare():
    one = columns([(0, [(0.5, 0.5)])])
    figures = evaluate(one, one, 1, box=UNIT).to_dict()
    assert list(figures) == KEYS
    unknown = {key for key, value in figures.items() if value is None}
    assert unknown == {"transition_error", "pattern_f1", "kendall_tau"}
    assert all(value is None or type(value) is float for value in figures.values())


def test_a_grid_can_be_given_by_its_side_and_a_box_or_none():
    city = demo_city(n_users=60, n_timestamps=30, seed=1)
    half = columns([(0, [(0.5, 0.5)] * 3), (10, [(6.5, 6.5)] * 20)])
    extent = (city.x.min(), city.y.min(), city.x.max(), city.y.max())
    inside = evaluate(city, half, 5)
    assert inside == evaluate(city, half, 5, box=extent)
    given_grid = Case([], [], tuple(map(float, extent)), 5, span=20, seed=0).grid
    assert inside == evaluate(city, half, given_grid)
    assert inside != evaluate(city, half, 5, box=(0, 0, 10, 10.5))
    with pytest.raises(InputError, match="points lie outside the box"):
        evaluate(city, half, 5, box=(0, 0, 5, 5))


@pytest.mark.parametrize(
    "setting",
    [{"span": 0}, {"seed": -1}, {"n_queries": 0}, {"top_cells": 0}, {"top_patterns": 0}],
)
def test_settings_that_make_no_sense_are_refused(setting):
    one = columns([(0, [(0.5, 0.5)])])
    with pytest.raises(SettingError):
        evaluate(one, one, 1, box=UNIT, **setting)


@pytest.fixture(scope="module")
def run():
    real = demo_city(n_users=100, n_timestamps=20, seed=1)
    return real, synthesize(real, window=5, grid=3, box=(0, 0, 12, 12), seed=2)


def test_side_and_box_are_found_in_the_receipt(run):
    real, result = run
    synthetic, receipt = result
    wanted = evaluate(real, synthetic, Grid(Box(0, 0, 12, 12), 3))
    assert evaluate(real, result) == wanted
    assert evaluate(real, synthetic, receipt=receipt) == wanted
    assert evaluate(real, (synthetic, receipt)) == wanted


def test_what_is_given_goes_before_what_a_receipt_says(run):
    real, result = run
    assert evaluate(real, result, 5) == evaluate(real, result[0], Grid(Box(0, 0, 12, 12), 5))
    assert evaluate(real, result, box=WIDER) == evaluate(real, result[0], Grid(Box(*WIDER), 3))
    whole = Grid(Box(*WIDER), 5)
    assert evaluate(real, result, whole) == evaluate(real, result[0], whole)


def test_without_a_receipt_there_are_six_cells_to_a_side_of_the_real_box(run):
    real, _ = run
    box = Box.around(real.x, real.y)
    half = next(real.blocks(real.n_points // 2))
    assert evaluate(real, half) == evaluate(real, half, Grid(box, 6))


def test_nothing_is_compared_with_nothing(run):
    real, _ = run
    nobody = np.empty(0, np.int64)
    empty = Trajectories(nobody, nobody, np.zeros(1, np.int64), np.empty(0), np.empty(0))
    for name, pair in (("real", (empty, real)), ("synthetic", (real, empty))):
        with pytest.raises(InputError, match=f"the {name} data has no points"):
            evaluate(*pair, 4, box=WIDER)
