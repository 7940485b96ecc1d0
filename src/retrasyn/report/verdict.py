"""What a release is good for, in plain words: its scores between a guess and a ceiling.

One rule grades every use of every data set. Without a model one can guess: a uniform crowd, or the
mean of all reports so far. Beyond the ceiling nobody gets: true frequencies without noise, or one
half of the real streams in the place of the other. What counts is the share of the way from the
better guess to the better ceiling that a score has come; a use is as good as its worst score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from retrasyn.metrics.suite import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from retrasyn.metrics.suite import Metric, Scores

Word = Literal["good", "fair", "do not use"]
GOOD, FAIR = 1 / 2, 1 / 4
"""Shares of the way from the guess to the ceiling."""
GUESSES = ("uniform", "static")
CEILINGS = ("exact", "half")


@dataclass(frozen=True, slots=True)
class Use:
    """Something people do with such data, and the scores it rests on."""

    name: str
    metrics: tuple[str, ...]


USES = (
    Use("where crowds are", ("density_error", "hotspot_ndcg")),
    Use("how many move between districts", ("transition_error", "pattern_f1")),
    Use("where trips go", ("trip_error",)),
    Use("how long and how far", ("duration_error", "length_error")),
    Use("how busy places are over time", ("query_error", "kendall_tau")),
)
SINGLE = "single trips"
_NOBODY = "a synthetic trip belongs to nobody, and shows no way that anybody went"


@dataclass(frozen=True, slots=True)
class Grade:
    """One use, how good the release is for it, and why."""

    use: str
    word: Word
    reasons: tuple[str, ...]


def verdict(scores: Scores, baselines: Mapping[str, Scores]) -> list[Grade]:
    """Grade every use that any score can tell of; single trips are never to be used."""
    known = {metric.key: metric for metric in METRICS}
    grades = []
    for use in USES:
        found = [_way(known[key], scores, baselines) for key in use.metrics]
        told = [one for one in found if one is not None]
        if told:
            least = min(share for share, _ in told)
            grades.append(Grade(use.name, _word(least), tuple(reason for _, reason in told)))
    return [*grades, Grade(SINGLE, "do not use", (_NOBODY,))]


def in_words(grades: Iterable[Grade]) -> str:
    """Return the verdict as one sentence.

    >>> in_words([Grade("where crowds are", "good", ()), Grade("single trips", "do not use", ())])
    'where crowds are: good; single trips: do not use'
    """
    return "; ".join(f"{grade.use}: {grade.word}" for grade in grades)


def _word(share: float) -> Word:
    if share >= GOOD:
        return "good"
    return "fair" if share >= FAIR else "do not use"


def _way(
    metric: Metric, scores: Scores, baselines: Mapping[str, Scores]
) -> tuple[float, str] | None:
    """Return the share of the way from guess to ceiling that a score has come, and the reason.

    None where the score, or every guess or ceiling, is unknown. A guess at or beyond the ceiling
    leaves nothing to gain: the share is 0.
    """
    own = _loss(metric, scores)
    guess, ceiling = (_least(metric, baselines, names) for names in (GUESSES, CEILINGS))
    if not math.isfinite(own + guess + ceiling):
        return None
    share = (guess - own) / (guess - ceiling) if guess > ceiling else 0.0
    at, low, high = (_figure(metric, loss) for loss in (own, guess, ceiling))
    if guess <= ceiling:
        return share, f"{metric.title} {at}: a guess, {low}, is as good as the best, {high}"
    way = "no part" if share <= 0 else f"{min(share, 1):.0%}"
    return share, f"{metric.title} {at}: {way} of the way from a guess, {low}, to the best, {high}"


def _least(metric: Metric, baselines: Mapping[str, Scores], names: Iterable[str]) -> float:
    """Return the loss of the best of some baselines; NaN where none has any."""
    losses = (_loss(metric, baselines[name]) for name in names if name in baselines)
    return min(filter(math.isfinite, losses), default=math.nan)


def _loss(metric: Metric, scores: Scores) -> float:
    """Return how far a score is from perfect."""
    return scores[metric.key] if metric.better == "smaller" else 1.0 - scores[metric.key]


def _figure(metric: Metric, loss: float) -> str:
    return f"{loss if metric.better == 'smaller' else 1.0 - loss:.4f}"


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A baseline as the bars show it."""

    key: str
    letter: str
    title: str
    explanation: str


YARDSTICKS = (
    Yardstick("uniform", "U", "uniform", "as many people, each staying anywhere: no data at all"),
    Yardstick("static", "M", "mean", "of all reports so far: a map, without moves or trips"),
    Yardstick("lpa", "L", "lpa", "the earlier LDP-IDS, with the same budget"),
    Yardstick("exact", "E", "exact", "true frequencies without noise, not private: the ceiling"),
)
CHANCE = "half"
"""The baseline where the band of chance begins."""
