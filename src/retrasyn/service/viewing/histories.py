"""What happened in one cell, timestamp by timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retrasyn.service.viewing.flows import N_DIRECTIONS, STAYING, Flows, neighbour
from retrasyn.service.viewing.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class CellHistory:
    """Points of a cell, and moves over its edges; None where the timestamp before is not there."""

    cell: int
    t: list[int]
    n: list[int]
    inflow: list[int | None]  # from other cells
    outflow: list[int | None]  # to other cells
    destinations: list[tuple[int, int]]  # cell and moves, most first
    origins: list[tuple[int, int]]


def cell_history(view: View, cell: int, timestamps: Sequence[int]) -> CellHistory:
    """Follow a cell through timestamps."""
    side = view.source.grid.side
    around = [d for d in range(N_DIRECTIONS) if d != STAYING]
    targets = {d: found for d in around if (found := neighbour(cell, d, side)) is not None}
    leaving = dict.fromkeys(targets.values(), 0)  # by the cell that is moved to
    coming = dict.fromkeys(targets.values(), 0)
    there, n, inflow, outflow = [], [], [], []
    for t in timestamps:
        summary = view.source.summary(t)
        if summary is None:
            continue
        there.append(t)
        n.append(int(summary["cells"][cell]))
        flows = view.flows(t)
        inflow.append(None if flows is None else _add(coming, _into(flows, targets)))
        outflow.append(None if flows is None else _add(leaving, _out_of(flows, cell, targets)))
    return CellHistory(
        cell=cell,
        t=there,
        n=n,
        inflow=inflow,
        outflow=outflow,
        destinations=_most_first(leaving),
        origins=_most_first(coming),
    )


def _out_of(flows: Flows, cell: int, targets: dict[int, int]) -> Iterable[tuple[int, int]]:
    """Go through the moves out of a cell."""
    return ((target, int(flows[cell, d])) for d, target in targets.items())


def _into(flows: Flows, targets: dict[int, int]) -> Iterable[tuple[int, int]]:
    """Go through the moves into a cell: they come from where others go to.

    Directions opposite each other add up to 8.
    """
    last = N_DIRECTIONS - 1
    return ((origin, int(flows[origin, last - d])) for d, origin in targets.items())


def _add(sums: dict[int, int], moves: Iterable[tuple[int, int]]) -> int:
    """Add moves by cell to sums; return how many there are."""
    total = 0
    for cell, n in moves:
        sums[cell] += n
        total += n
    return total


def _most_first(sums: dict[int, int]) -> list[tuple[int, int]]:
    found = [(cell, n) for cell, n in sums.items() if n]
    return sorted(found, key=lambda one: (-one[1], one[0]))
