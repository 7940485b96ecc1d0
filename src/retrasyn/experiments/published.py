"""Published results: every number of the paper's tables (Sec. V).

`published.csv` holds Table I (the data), III (utility), IV (ablations) and V (seconds) as printed,
from `paper`; and from `authors`, what the authors' program gave on T-Drive when we ran it.
The paper's RetraSyn figures are the best of three allocations in each cell, of one run.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

Source = Literal["paper", "authors"]


class _Key(NamedTuple):
    source: str
    data: str
    method: str  # none for a fact about the data
    epsilon: float
    measure: str


def published(
    measure: str, *, data: str, method: str, epsilon: float = 1.0, source: Source = "paper"
) -> float | None:
    """Return a utility figure of Table III or IV, or None if there is none.

    >>> published("density_error", data="tdrive", method="retrasyn-p")
    0.1338
    >>> published("density_error", data="tdrive", method="retrasyn-p", source="authors")
    0.1154
    """
    return _figures().get(_Key(source, data, method, epsilon, measure))


def published_statistic(measure: str, *, data: str) -> float | None:
    """Return a fact about the data (Table I): streams, points, mean_length, timestamps.

    >>> published_statistic("streams", data="tdrive")
    232640.0
    """
    return _figures().get(_Key("paper", data, "", 0.0, measure))


def published_seconds(measure: str, *, data: str) -> float | None:
    """Return the seconds per timestamp of one component of retrasyn-p (Table V).

    >>> published_seconds("seconds_synthesis", data="oldenburg")
    1.6467
    """
    return _figures().get(_Key("paper", data, "retrasyn-p", 1.0, measure))


@cache
def _figures() -> dict[_Key, float]:
    text = resources.files("retrasyn.experiments").joinpath("published.csv").read_text("utf-8")
    figures: dict[_Key, float] = {}
    for row in csv.DictReader(text.splitlines()):
        epsilon = float(row["epsilon"] or 0)
        key = _Key(row["source"], row["data"], row["method"], epsilon, row["measure"])
        figures[key] = float(row["value"])
    return figures
