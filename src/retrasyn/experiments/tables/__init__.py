"""Markdown tables of the reproduction: one function per study, all with the same signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Results, Timings
from retrasyn.experiments.tables.costs import complexity as complexity
from retrasyn.experiments.tables.costs import table1 as table1
from retrasyn.experiments.tables.costs import table5 as table5
from retrasyn.experiments.tables.sweeps import allocation as allocation
from retrasyn.experiments.tables.sweeps import grid as grid
from retrasyn.experiments.tables.sweeps import scale as scale
from retrasyn.experiments.tables.sweeps import span as span
from retrasyn.experiments.tables.sweeps import window as window
from retrasyn.experiments.tables.utility import headline as headline
from retrasyn.experiments.tables.utility import table3 as table3
from retrasyn.experiments.tables.utility import table4 as table4

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet

TABLES: Mapping[str, Callable[[Results, Timings, Sequence[DataSet]], str]] = {
    "table1": table1,
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
"""The function that writes each study's tables, by study name."""
