"""Scores become rows, from nothing alike to the same."""

import math

import pytest

from retrasyn.metrics.suite import METRICS, evaluate_pair
from retrasyn.report.content import likeness, measures
from retrasyn.simulation.baselines import STATIC
from support.report_pairs import all_baselines, make_pair

BY_KEY = {metric.key: metric for metric in METRICS}


def test_every_metric_has_a_row_with_its_explanation():
    rows = measures(evaluate_pair(make_pair()), {})
    assert [row.key for row in rows] == [metric.key for metric in METRICS]
    assert all(row.better and row.explanation and row.likeness is not None for row in rows)


def test_every_bar_has_the_ticks_of_all_baselines_that_can_answer_and_the_band_of_chance():
    pair = make_pair()
    rows = measures(evaluate_pair(pair), all_baselines(pair))
    for row in rows:
        answers = "UMLE" if row.key in STATIC else "ULE"
        assert sorted(tick.letter for tick in row.ticks) == sorted(answers), row.key
        assert [tick.likeness for tick in row.ticks] == sorted(tick.likeness for tick in row.ticks)
        assert 0.0 <= row.chance <= 1.0


def test_letters_of_ticks_that_lie_close_stand_on_both_sides_of_the_bar():
    same = evaluate_pair(make_pair())
    row = measures(same, {"uniform": same, "exact": same})[0]
    assert [(tick.letter, tick.below) for tick in row.ticks] == [("U", False), ("E", True)]


def test_what_cannot_be_compared_has_no_likeness():
    rows = measures(evaluate_pair(make_pair(side=1)), {})
    (row,) = [row for row in rows if row.key == "kendall_tau"]
    assert (row.value, row.likeness) == ("no value", None)


@pytest.mark.parametrize(
    ("key", "worst", "best"),
    [
        ("density_error", math.log(2), 0.0),
        ("query_error", 7.0, 0.0),
        ("pattern_f1", 0.0, 1.0),
        ("kendall_tau", -1.0, 1.0),
        ("stream_ratio", 0.0, 1.0),
    ],
)
def test_likeness_runs_from_the_worst_to_the_best(key, worst, best):
    assert likeness(BY_KEY[key], worst) == 0.0
    assert likeness(BY_KEY[key], best) == 1.0
    assert 0.0 < likeness(BY_KEY[key], (worst + best) / 2) < 1.0 or key in {
        "query_error",
        "kendall_tau",
    }


def test_twice_and_half_as_many_streams_are_equally_far():
    assert likeness(BY_KEY["stream_ratio"], 2.0) == likeness(BY_KEY["stream_ratio"], 0.5) == 0.5
