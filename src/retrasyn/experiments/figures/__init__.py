"""Plots of the reproduction, arranged as in the paper; `save` writes them as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Results, Timings
from retrasyn.experiments.figures.bars import allocation as allocation
from retrasyn.experiments.figures.bars import table4 as table4
from retrasyn.experiments.figures.bars import table5 as table5
from retrasyn.experiments.figures.costs import complexity as complexity
from retrasyn.experiments.figures.costs import grid as grid
from retrasyn.experiments.figures.costs import scale as scale
from retrasyn.experiments.figures.curves import span as span
from retrasyn.experiments.figures.curves import table3 as table3
from retrasyn.experiments.figures.curves import window as window
from retrasyn.experiments.figures.style import load_matplotlib as load_matplotlib
from retrasyn.experiments.figures.style import save as save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from retrasyn.experiments.sources import DataSet

FIGURES: Mapping[str, Callable[[Results, Timings, Sequence[DataSet]], Figure]] = {
    "table3": table3,
    "table4": table4,
    "table5": table5,
    "allocation": allocation,
    "complexity": complexity,
    "window": window,
    "span": span,
    "grid": grid,
    "scale": scale,
}
"""The drawing function of each study that has a plot, by study name."""
