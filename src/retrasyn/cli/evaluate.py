"""``retrasyn evaluate`` and ``retrasyn compare``: how close synthetic data is to the real."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrasyn.cli import options
from retrasyn.cli.comparing import (
    ComparisonBox,
    WithoutBaselines,
    check_files,
    extent_of,
    folded_as_in,
    pair_of,
    read_file,
    read_receipt,
    score_baselines,
)
from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from rich.table import Table

    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import Metric, Scores
    from retrasyn.roads.network import RoadNetwork
    from retrasyn.run_settings import RunSettings
    from retrasyn.space import Box

RealFile = Annotated[Path, typer.Argument(metavar="REAL", help="The recorded data.")]
Span = Annotated[int, typer.Option(help="Timestamps in a span of time.")]
SeedOfSpans = Annotated[int, typer.Option("--seed", help="Other random queries and spans.")]
Queries = Annotated[int, typer.Option("--queries", help="Random queries, and random spans.")]
TopCells = Annotated[int, typer.Option("--top-cells", help="Cells in a ranking of hotspots.")]
_FIGURE = 9  # characters of a figure such as 1234.5678
_AROUND = 34  # characters of a table beside its figures
TopPatterns = Annotated[int, typer.Option("--top-patterns", help="Patterns compared in a span.")]


@saying_stopped()
def evaluate(
    real: RealFile,
    synthetic: Annotated[Path, typer.Argument(metavar="SYN", help="The synthetic data.")],
    grid: options.Side = 6,
    span: Span = 20,
    seed: SeedOfSpans = 0,
    box: ComparisonBox = None,
    queries: Queries = 100,
    top_cells: TopCells = 10,
    top_patterns: TopPatterns = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: options.NoBar = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a report to look at.")
    ] = None,
    roads: Annotated[
        Path | None,
        typer.Option(
            metavar="NETWORK",
            help="Public streets to draw in the report. (default: those beside REAL)",
            show_default=False,
        ),
    ] = None,
    bare: WithoutBaselines = False,
) -> None:
    """Measure how close synthetic data is to the real, in ten ways.

    Example: retrasyn evaluate trips.parquet synthetic.parquet --report report.html
    """
    from retrasyn.errors import SettingError
    from retrasyn.roads.reading_networks import read_network

    settings = _settings(span, seed, queries, top_cells, top_patterns)
    check_files(box, grid, [real, synthetic])
    if report is not None:
        from retrasyn.report.page import check_page

        check_page(report)
    elif roads is not None:
        raise SettingError("--roads are drawn in a report; name one with --report")
    elif bare:
        raise SettingError("--no-baselines is about a report; name one with --report")
    streets = None if report is None else roads or options.own_roads(real)
    network = None if streets is None else read_network(streets)
    receipt = read_receipt(synthetic)
    extent = extent_of(box, {synthetic: receipt})
    recorded = folded_as_in(receipt, read_file(real))
    pair = pair_of(recorded, read_file(synthetic), extent, grid)
    scores = _measure(pair, settings, quiet=quiet or as_json)
    _warn(scores)
    if report is not None:
        from retrasyn.report.page import write_report

        terms = None if bare else _terms(receipt)
        baselines = score_baselines(recorded, pair, terms, quiet=quiet or as_json, **settings)
        content = write_report(
            report,
            pair,
            scores,
            receipt=receipt,
            title=f"{synthetic.name} against {real.name}",
            span=span,
            top_cells=top_cells,
            top_patterns=top_patterns,
            seed=seed,
            clock=recorded.clock,
            roads=network and _within(network, recorded.crs, pair.grid.box, str(streets)),
            baselines=baselines,
            crs=recorded.crs,
        )
    if as_json:
        print(json.dumps(scores.to_dict(), indent=2))
        return
    _show(pair, span, {"figure": scores})
    if report is not None:
        from retrasyn.report.verdict import in_words

        print(f"verdict: {in_words(content.grades)}\nreport: {report}")


def _terms(receipt: dict[str, Any] | None) -> RunSettings | None:
    """Return what baselines run with; say so if no receipt tells."""
    from retrasyn.simulation.baselines import settings_of_receipt

    terms = None if receipt is None else settings_of_receipt(receipt)
    if terms is None:
        sys.stderr.write(
            "note: no receipt tells budget, window and box: mean, lpa and exact are left out\n"
        )
    return terms


def _within(network: RoadNetwork, crs: str | None, box: Box, name: str) -> RoadNetwork:
    """Return streets in the coordinates of the data, within its box."""
    from retrasyn.roads.clipping import clip
    from retrasyn.roads.projecting import in_system

    return clip(in_system(network, crs, box, name), box, name)


@saying_stopped()
def compare(
    real: RealFile,
    synthetic: Annotated[
        list[Path], typer.Argument(metavar="SYN...", help="Synthetic data, a file each.")
    ],
    grid: options.Side = 6,
    span: Span = 20,
    seed: SeedOfSpans = 0,
    box: ComparisonBox = None,
    queries: Queries = 100,
    top_cells: TopCells = 10,
    top_patterns: TopPatterns = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: options.NoBar = False,
) -> None:
    """Measure several synthetic files against one real file, the best figures in bold.

    Example: retrasyn compare trips.parquet one.parquet other.parquet
    """
    settings = _settings(span, seed, queries, top_cells, top_patterns)
    check_files(box, grid, [real, *synthetic])
    receipts = {path: read_receipt(path) for path in synthetic}
    extent, recorded = extent_of(box, receipts), read_file(real)
    found: dict[str, Scores] = {}
    for path, name in zip(synthetic, _names(synthetic), strict=True):
        pair = pair_of(folded_as_in(receipts[path], recorded), read_file(path), extent, grid)
        found[name] = _measure(pair, settings, quiet=quiet or as_json)
        _warn(found[name], name)
    if as_json:
        print(json.dumps({name: scores.to_dict() for name, scores in found.items()}, indent=2))
        return
    _show(pair, span, found)


def _settings(
    span: int, seed: int, queries: int, top_cells: int, top_patterns: int
) -> dict[str, int]:
    """Refuse numbers that make no sense; return the rest by the names the suite knows."""
    from retrasyn.metrics.spans import check_settings

    check_settings(
        span=span, seed=seed, queries=queries, top_cells=top_cells, top_patterns=top_patterns
    )
    return {
        "span": span,
        "seed": seed,
        "n_queries": queries,
        "top_cells": top_cells,
        "top_patterns": top_patterns,
    }


def _measure(pair: Pair, settings: dict[str, Any], *, quiet: bool) -> Scores:
    """Compute all figures behind a progress bar."""
    from retrasyn.metrics.suite import evaluate_pair

    with _naming_bar(quiet=quiet) as progress:
        return evaluate_pair(pair, **settings, progress=progress)


@contextmanager
def _naming_bar(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a callback that shows which figure is being computed."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from retrasyn.metrics.suite import METRICS

    titles = {metric.key: metric.title for metric in METRICS}
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=len(titles))
        done = iter(range(len(titles)))
        yield lambda key: bar.update(task, description=titles[key], completed=next(done))


def _warn(scores: Scores, name: str | None = None) -> None:
    for note in scores.notes:
        sys.stderr.write(f"warning: {note}\n" if name is None else f"warning: {name}: {note}\n")


def _names(paths: list[Path]) -> list[str]:
    """Name each file as briefly as keeps the names apart."""
    for names in ([path.stem for path in paths], [str(path) for path in paths]):
        if len(set(names)) == len(paths):
            return names
    return [f"{number}: {path}" for number, path in enumerate(paths, start=1)]


def _show(pair: Pair, span: int, found: dict[str, Scores]) -> None:
    """Print a table: names folded to fit, and rather too wide than with a figure cut short."""
    from rich.console import Console

    console = Console()
    room = max(_FIGURE, (console.width - _AROUND) // len(found) - 3)
    console.width = max(console.width, _AROUND + len(found) * (room + 3))
    console.print(_table(pair, span, found, room))


def _table(pair: Pair, span: int, found: dict[str, Scores], room: int) -> Table:
    """Return a row per metric and a column per file, the best of several in bold."""
    from rich.box import ROUNDED
    from rich.table import Table
    from rich.text import Text

    from retrasyn.metrics.suite import METRICS

    table = Table(
        box=ROUNDED,
        title=f"grid {pair.grid.side}, {pair.n_timestamps:,} timestamps, span {span:,}",
        title_justify="left",
    )
    table.add_column("metric", no_wrap=True)
    for name in found:
        table.add_column(Text(name, overflow="fold"), justify="right", max_width=room)
    table.add_column("better", no_wrap=True)
    for metric in METRICS:
        figures = [scores[metric.key] for scores in found.values()]
        distances = [_distance(metric, figure) for figure in figures]
        best = min(filter(math.isfinite, distances), default=None) if len(figures) > 1 else None
        cells = [
            Text("-" if math.isnan(figure) else f"{figure:.4f}", "bold" if distance == best else "")
            for figure, distance in zip(figures, distances, strict=True)
        ]
        better = "closer to 1" if metric.better == "one" else metric.better
        table.add_row(metric.title, *cells, better)
    return table


def _distance(metric: Metric, figure: float) -> float:
    """Return a number that is the smaller the better a figure is."""
    match metric.better:
        case "smaller":
            return figure
        case "larger":
            return -figure
        case "one":
            return max(figure, 1 / figure)
