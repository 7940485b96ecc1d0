"""Table I: the data sets, ours beside the published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Results, Timings
from retrasyn.experiments.published import published_statistic
from retrasyn.experiments.tables.markdown import table, whole

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet

STATISTICS = {
    "streams": "streams",
    "points": "points",
    "mean_length": "mean length",
    "timestamps": "timestamps",
}


def table1(_results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the statistics of the data sets."""
    rows = [[dataset.title, *_facts(dataset)] for dataset in datasets]
    caption = "In brackets: as published. A stream is one trajectory after splitting at gaps."
    return f"{caption}\n\n{table(['data', *STATISTICS.values()], rows)}\n"


def _facts(dataset: DataSet) -> list[str]:
    texts = []
    for name in STATISTICS:
        ours, theirs = dataset.statistics.get(name), published_statistic(name, data=dataset.name)
        figures = [_number(name, ours), f"({_number(name, theirs)})" if theirs is not None else ""]
        texts.append(" ".join(filter(None, figures)))
    return texts


def _number(name: str, value: float | None) -> str:
    if value is None or name != "mean_length":
        return whole(value)
    return f"{value:.2f}"
