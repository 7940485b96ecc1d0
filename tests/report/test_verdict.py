"""One rule grades every use: how far a score has come from a guess to the ceiling."""

import dataclasses

import pytest

from retrasyn.metrics.suite import METRICS, evaluate_pair
from retrasyn.report.verdict import CEILINGS, GUESSES, SINGLE, USES, in_words, verdict
from support.report_pairs import all_baselines, make_pair

PERFECT = {metric.key: 0.0 if metric.better == "smaller" else 1.0 for metric in METRICS}


@pytest.fixture(scope="module")
def some():
    return evaluate_pair(make_pair())


def away(some, loss, **others):
    """Return scores that all lie so far from perfect, but for some."""
    figures = {key: abs(best - loss) for key, best in PERFECT.items()} | others
    return dataclasses.replace(some, **figures)


def words(grades):
    return {grade.use: grade.word for grade in grades}


@pytest.mark.parametrize(
    ("loss", "word"),
    [
        (0.05, "good"),
        (0.1, "good"),
        (0.35, "good"),
        (0.36, "fair"),
        (0.475, "fair"),
        (0.476, "do not use"),
        (0.6, "do not use"),
        (0.7, "do not use"),
    ],
)
def test_half_of_the_way_from_guess_to_ceiling_is_good_and_a_quarter_is_fair(some, loss, word):
    ends = {"uniform": away(some, 0.6), "exact": away(some, 0.1)}
    grades = words(verdict(away(some, loss), ends))
    assert {grades[use.name] for use in USES} == {word}


def test_the_better_guess_and_the_better_ceiling_are_the_ends_of_the_way(some):
    for guess in GUESSES:
        for ceiling in CEILINGS:
            far = dict.fromkeys(GUESSES, away(some, 0.6)) | dict.fromkeys(CEILINGS, away(some, 0.3))
            ends = far | {guess: away(some, 0.4), ceiling: away(some, 0.0)}
            for loss, word in ((0.2, "good"), (0.21, "fair"), (0.31, "do not use")):
                assert words(verdict(away(some, loss), ends))["where trips go"] == word


def test_a_use_is_as_good_as_its_worst_score(some):
    ends = {"uniform": away(some, 0.6), "half": away(some, 0.0)}
    grades = words(verdict(away(some, 0.1, length_error=0.5), ends))
    assert grades["how long and how far"] == "do not use"
    assert grades["where trips go"] == "good"


def test_where_a_guess_is_as_good_as_the_best_nothing_is_to_be_used(some):
    ends = {"uniform": away(some, 0.2), "half": away(some, 0.2)}
    (*grades, _) = verdict(away(some, 0.1), ends)
    assert {grade.word for grade in grades} == {"do not use"}
    assert all("as good as the best" in reason for grade in grades for reason in grade.reasons)


def test_what_cannot_be_compared_is_not_graded(some):
    nothing = float("nan")
    ends = {"uniform": away(some, 0.6), "half": away(some, 0.0)}
    grades = verdict(away(some, 0.1, trip_error=nothing, query_error=nothing), ends)
    assert "where trips go" not in words(grades)
    assert words(grades)["how busy places are over time"] == "good"
    assert [grade.use for grade in verdict(some, {})] == [SINGLE]


def test_single_trips_are_never_to_be_used(some):
    ends = {"uniform": away(some, 0.6), "half": away(some, 0.0)}
    last = verdict(away(some, 0.0), ends)[-1]
    assert (last.use, last.word) == ("single trips", "do not use")


def test_the_verdict_is_one_sentence_with_every_use():
    pair = make_pair()
    sentence = in_words(verdict(evaluate_pair(pair), all_baselines(pair)))
    assert [part.split(": ")[0] for part in sentence.split("; ")] == [
        *(use.name for use in USES),
        SINGLE,
    ]


def test_every_score_but_the_number_of_streams_serves_one_use():
    used = [key for use in USES for key in use.metrics]
    assert sorted([*used, "stream_ratio"]) == sorted(metric.key for metric in METRICS)
