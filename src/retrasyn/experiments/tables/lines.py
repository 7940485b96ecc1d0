"""The rows of the comparisons: which runs a row shows, and what the paper calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrasyn.experiments.cells import Cell
from retrasyn.experiments.published import Source
from retrasyn.experiments.tables.summary import METRIC, Book, Summary, merit

LDP_IDS = ("lbd", "lba", "lpd", "lpa")
MAIN = (*LDP_IDS, "retrasyn-b", "retrasyn-p", "steered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row; of several methods, the best mean counts in each cell."""

    title: str
    methods: tuple[str, ...]
    paper: str = ""  # the method of the paper it is compared with
    faithful: bool = False
    beside: tuple[Source, ...] = ()  # whose figures stand below it in the headline
    in_contest: bool = True  # may be the best: keeps its guarantee and was not picked afterwards

    def read(self, book: Book[Cell], metric: str, **key: Any) -> Summary | None:
        """Return our figure of one cell."""
        figures = [
            book.read(metric, method=method, faithful=self.faithful, **key)
            for method in self.methods
        ]
        known = [figure for figure in figures if figure is not None]
        return max(known, key=lambda figure: merit(METRIC[metric], figure.mean), default=None)


def line(method: str, note: str = "", *, paper: str = "", beside: tuple[Source, ...] = ()) -> Line:
    """Return the row of one method."""
    return Line(title=f"{method} {note}".strip(), methods=(method,), paper=paper, beside=beside)


def _faithful(method: str) -> Line:
    return Line(
        title=f"{method} (authors' reading)",
        methods=(method,),
        paper=method,
        beside=("paper", "authors"),
        faithful=True,
        in_contest=False,
    )


def _best(division: str) -> Line:
    methods = tuple(f"{name}-{division}" for name in ("retrasyn", "uniform", "sample"))
    return Line(
        title=f"best of three allocations, -{division}",
        methods=methods,
        paper=f"retrasyn-{division}",
        beside=("paper",),
        in_contest=False,
    )


GROUPS: dict[str, tuple[Line, ...]] = {
    "LDP-IDS, as the paper compares": tuple(
        line(name, paper=name, beside=("paper", "authors")) for name in LDP_IDS
    ),
    "LDP-IDS with entering and quitting": tuple(line(f"{name}-eq") for name in LDP_IDS),
    "LDP-IDS with our synthesiser": tuple(line(f"{name}-steered") for name in LDP_IDS),
    "The paper's method": (
        line("retrasyn-b", "(Adaptive)", paper="retrasyn-b"),
        line("retrasyn-p", "(Adaptive)", paper="retrasyn-p"),
        *(line(f"{name}-{division}") for name in ("uniform", "sample") for division in "bp"),
        *(_best(division) for division in "bp"),
    ),
    "Read as the authors' program does, with a weaker guarantee": tuple(
        _faithful(name) for name in ("retrasyn-b", "retrasyn-p")
    ),
    "Ours": (
        line("steered"),
        line("steered-flags", "(starts and stops public)"),
        line("steered-length", "(no age reports)"),
        line("steered-hidden", "(presence hidden)"),
    ),
}
"""The rows of Table III."""

ABLATIONS = (
    *(
        line(f"{name}-{division}", paper=f"{name}-{division}")
        for name in ("allupdate", "noeq", "retrasyn")
        for division in "bp"
    ),
    line("steered"),
)
"""The rows of Table IV."""
