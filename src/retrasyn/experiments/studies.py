"""The studies: each table and figure of the paper, and the runs it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from retrasyn.errors import SettingError
from retrasyn.experiments.cells import Cell, Timing

EPSILONS = (0.5, 1.0, 1.5, 2.0)
WINDOWS = (10, 20, 30, 40, 50)
SPANS = (5, 10, 20, 50, 100)
SIDES = (2, 6, 10, 14, 18)
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)

BASELINES = ("lbd", "lba", "lpd", "lpa")
FAIR = tuple(f"{name}-{part}" for part in ("eq", "steered") for name in BASELINES)
PAPER = ("retrasyn-b", "retrasyn-p")
FIXED = ("uniform-b", "uniform-p", "sample-b", "sample-p")
OURS = ("steered", "steered-flags", "steered-length", "steered-hidden")
ABLATIONS = ("allupdate-b", "allupdate-p", "noeq-b", "noeq-p")
MAIN = (*BASELINES, *PAPER, "steered")

ALL_DATA = ("tdrive", "oldenburg", "sanjoaquin")
TWO_DATA = ("tdrive", "oldenburg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which of the paper's settings are run."""

    seeds: int = 3
    epsilons: tuple[float, ...] = EPSILONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One table or figure."""

    name: str
    title: str
    data: tuple[str, ...]
    cells: Callable[[str, Scope], Iterable[Cell]] = lambda _data, _scope: ()
    timings: Callable[[str, Scope], Iterable[Timing]] = lambda _data, _scope: ()
    has_figure: bool = True


def _table3(data: str, scope: Scope) -> Iterator[Cell]:
    for epsilon in sorted(scope.epsilons, key=lambda epsilon: (epsilon != 1, epsilon)):
        for method in (*BASELINES, *PAPER, *FIXED, *OURS, *FAIR):
            yield Cell(data=data, method=method, epsilon=epsilon)
        for method in PAPER:
            yield Cell(data=data, method=method, epsilon=epsilon, faithful=True)


def _table4(data: str, _: Scope) -> Iterator[Cell]:
    for method in (*ABLATIONS, *PAPER, "steered"):
        yield Cell(data=data, method=method)


def _table5(data: str, _: Scope) -> Iterator[Timing]:
    for method in ("retrasyn-p", "steered"):
        yield Timing(data=data, method=method)


_ALLOCATIONS = (*PAPER, *FIXED, "random-p")


def _allocation(data: str, _: Scope) -> Iterator[Cell]:
    for method in (*_ALLOCATIONS, "steered"):
        yield Cell(data=data, method=method)


def _allocation_time(data: str, _: Scope) -> Iterator[Timing]:
    for method in _ALLOCATIONS:
        yield Timing(data=data, method=method)


def _complexity(data: str, _: Scope) -> Iterator[Cell]:
    for method in (*MAIN, *FIXED, "random-p"):
        yield Cell(data=data, method=method)


def _complexity_time(data: str, scope: Scope) -> Iterator[Timing]:
    yield from _grid_time(data, scope)
    yield from _scale(data, scope)


def _window(data: str, _: Scope) -> Iterator[Cell]:
    for window in WINDOWS:
        for method in MAIN:
            yield Cell(data=data, method=method, window=window)


def _span(data: str, _: Scope) -> Iterator[Cell]:
    for method in MAIN:
        for span in SPANS:
            yield Cell(data=data, method=method, span=span)


_TIMED = (*PAPER, "steered")


def _grid(data: str, _: Scope) -> Iterator[Cell]:
    for side in SIDES:
        for method in _TIMED:
            yield Cell(data=data, method=method, side=side)


def _grid_time(data: str, _: Scope) -> Iterator[Timing]:
    for side in SIDES:
        for method in _TIMED:
            yield Timing(data=data, method=method, side=side)


def _scale(data: str, _: Scope) -> Iterator[Timing]:
    for share in SHARES:
        for method in _TIMED:
            yield Timing(data=data, method=method, share=share)


STUDIES = {
    study.name: study
    for study in (
        Study(name="table1", title="Table I: data sets", data=ALL_DATA, has_figure=False),
        Study(
            name="table3",
            title="Table III: utility at different privacy budgets",
            data=ALL_DATA,
            cells=_table3,
        ),
        Study(name="table4", title="Table IV: ablations", data=ALL_DATA, cells=_table4),
        Study(name="table5", title="Table V: time per component", data=ALL_DATA, timings=_table5),
        Study(
            name="allocation",
            title="Allocation strategies",
            data=TWO_DATA,
            cells=_allocation,
            timings=_allocation_time,
        ),
        Study(
            name="complexity",
            title="Communication and computation (Sec. IV-B)",
            data=TWO_DATA,
            cells=_complexity,
            timings=_complexity_time,
        ),
        Study(name="window", title="Window size w", data=TWO_DATA, cells=_window),
        Study(name="span", title="Evaluation time range phi", data=TWO_DATA, cells=_span),
        Study(
            name="grid",
            title="Granularity K",
            data=TWO_DATA,
            cells=_grid,
            timings=_grid_time,
        ),
        Study(name="scale", title="Number of users", data=TWO_DATA, timings=_scale),
    )
}
"""All studies by name, in the paper's order."""


def find_studies(what: str) -> list[Study]:
    """Return the named study, or all of them.

    >>> [study.title for study in find_studies("span")]
    ['Evaluation time range phi']
    """
    if what == "all":
        return list(STUDIES.values())
    if what not in STUDIES:
        raise SettingError(f"unknown study {what!r}; choose from {', '.join(STUDIES)}, all")
    return [STUDIES[what]]


def cells_of(study: Study, data: Iterable[str], scope: Scope) -> list[Cell]:
    """Return the utility runs of a study, ordered by seed."""
    plain = [cell for name in data for cell in study.cells(name, scope)]
    return [dataclasses.replace(cell, seed=seed) for seed in range(scope.seeds) for cell in plain]


def timings_of(study: Study, data: Iterable[str], scope: Scope) -> list[Timing]:
    """Return the timed runs of a study, one seed each."""
    return [timing for name in data for timing in study.timings(name, scope)]
