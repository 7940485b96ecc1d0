"""Living synthetic streams as parallel arrays that grow."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown

Columns = dict[str, npt.NDArray[Any]]


@dataclass(slots=True)
class Streams:
    """Living streams in ascending order of id; only the first `n` entries count."""

    ids: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    cells: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    entered: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    n: int = 0
    x: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # in cell widths;
    y: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # empty: not followed

    def reserve(self, n: int) -> None:
        """Make room for n streams in all."""
        self.ids = grown(self.ids, n, 0)
        self.cells = grown(self.cells, n, 0)
        self.entered = grown(self.entered, n, 0)

    def follow_points(self) -> None:
        """Make room for a point per stream, so that steps can be continuous."""
        self.x = grown(self.x, self.ids.size, np.nan)
        self.y = grown(self.y, self.ids.size, np.nan)

    def living(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
        """Return views of ids, cells and entering timestamps of the living."""
        return self.ids[: self.n], self.cells[: self.n], self.entered[: self.n]

    def columns(self) -> Columns:
        """Return views of all that is known of the living."""
        names = ("ids", "cells", "entered", "x", "y") if self.x.size else _PLACED
        return {name: getattr(self, name)[: self.n] for name in names}

    @classmethod
    def of(cls, columns: Columns) -> "Streams":
        """Return streams that have these columns."""
        return cls(**columns, n=columns["ids"].size)


_PLACED = ("ids", "cells", "entered")


def part_of(columns: Columns, index: int, n_parts: int) -> Columns:
    """Return copies of the rows that belong to one of n parts: streams are dealt by their id."""
    own = columns["ids"] % n_parts == index
    return {name: column[own] for name, column in columns.items()}


def merged(parts: list[Columns]) -> Columns:
    """Put the rows of all parts together, by ascending id.

    >>> merged([{"ids": np.array([0, 2])}, {"ids": np.array([1])}])["ids"].tolist()
    [0, 1, 2]
    """
    parts = [part for part in parts if part["ids"].size] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(whole["ids"], kind="stable")  # runs that ascend: this merges them
    return {name: column[order] for name, column in whole.items()}
