"""What the map draws of a timestamp, or of some on average, in bytes (docs/api.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from retrasyn.answers.intervals import Intervals
from retrasyn.service.viewing.source import Summary
from retrasyn.service.viewing.tallies import Average, Means, Placed
from retrasyn.space import Grid

Number = TypeVar("Number", bound=np.generic)
MAX_TRAVELLERS = 10_000
"""Most travellers that a frame can hold."""
NOBODY = 64
"""The number of halvings for a frame without travellers."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
FRAME_VERSION = 2
UNCLEAR_CELL, UNCLEAR_MOVES = 1, 2
"""Flags of a cell: its points, or where streams move on from it, may be chance."""
_MAX_NUMBER = (1 << 32) - 1
_FINEST = (1 << 16) - 1  # steps of a position across the box


def mix(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return a number per id that looks random: the first word of SplitMix64 seeded with it.

    >>> [hex(word) for word in mix(np.array([0, 1])).tolist()]
    ['0xe220a8397b1dcdaf', '0x910a2dec89025cc1']
    """
    words = ids.astype(np.uint64) + _GAMMA  # modulo 2^64
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        words = (words ^ (words >> shift)) * factor
    return words ^ (words >> _SHIFTS[-1])


def halvings(n_points: int, most: int) -> int:
    """Return how often n_points streams are halved until `most` or fewer are left on average.

    >>> halvings(3000, 3000), halvings(3001, 3000), halvings(50_000, 3000), halvings(7, 0)
    (0, 1, 5, 64)
    """
    if most <= 0:
        return NOBODY
    return max(-(-n_points // most) - 1, 0).bit_length()


def chosen(ids: npt.NDArray[np.int64], times: int) -> npt.NDArray[np.intp]:
    """Return the indices of the streams that are left after so many halvings."""
    if times == 0:
        return np.arange(ids.size)
    if times >= NOBODY:
        return np.empty(0, np.intp)
    return np.flatnonzero(mix(ids) >> np.uint64(64 - times) == 0)


def encode_frame(
    summary: Summary, placed: Placed, average: Average, grid: Grid, *, most: int
) -> bytes:
    """Return the bytes of a frame with at most about `most` travellers."""
    ids = placed.points.ids
    times = halvings(ids.size, most)
    kept = chosen(ids, times)
    # A page knows streams by the low half of their ids; ours never grow beyond it.
    names, order = np.unique(ids[kept].astype(np.uint64).astype(np.uint32), return_index=True)
    kept = kept[order]
    moves, n_replicas = average.moves, len(average.cells) - 1
    header = [
        *(FRAME_VERSION, summary["t"], grid.side, average.n_rounds, n_replicas),
        *(min(int(summary["n_reports"]), _MAX_NUMBER), moves is not None, names.size, times),
    ]
    parts = [
        np.array(header, "<u4"),
        average.totals[0].astype("<f4"),  # [3]
        average.cells[0].astype("<f4"),  # [n_cells]
        np.empty(0, "<f4") if moves is None else moves[0].astype("<f4"),  # [n_cells, 2]
        *(_errors(average) if n_replicas else ()),
        names.astype("<u4"),
        _steps(placed.points.x[kept], grid.box.x0, grid.box.x1),
        _steps(placed.points.y[kept], grid.box.y0, grid.box.y1),
    ]
    return b"".join(part.tobytes() for part in parts)


def _errors(average: Average) -> Iterator[npt.NDArray[Any]]:
    """Yield the intervals of totals and cells, and what of cells and moves may be chance."""
    totals = Intervals.of(average.totals[0], average.totals[1:])
    cells = Intervals.of(average.cells[0], average.cells[1:])
    for found in (totals, cells):
        yield found.low.astype("<f4")
        yield found.high.astype("<f4")
    flags = cells.unclear * UNCLEAR_CELL  # [n_cells]
    if average.moves is not None:
        flags = flags + _unclear_moves(average.moves) * UNCLEAR_MOVES
    yield _padded(flags.astype(np.uint8), 4)


def _unclear_moves(moves: Means) -> npt.NDArray[np.bool_]:
    """Return where replicas do not agree that streams move the way they do: [n_cells].

    Of each replica counts how far its streams went in the direction of the release's.
    """
    if len(moves) < 2:  # noqa: PLR2004 - the timestamp before has no replicas: nobody knows
        return np.ones(moves.shape[1], np.bool_)
    far = np.hypot(moves[0, :, 0], moves[0, :, 1])  # [n_cells]
    along = np.divide(moves[0], far[:, None], out=np.zeros_like(moves[0]), where=far[:, None] > 0)
    return Intervals.of(far, (moves[1:] * along).sum(axis=2)).unclear


def _steps(values: npt.NDArray[np.float64], low: float, high: float) -> npt.NDArray[np.uint16]:
    """Return positions along a side of the box in 16 bits, padded to words of 32 bits."""
    shares = np.clip((values - low) / (high - low), 0.0, 1.0)
    return _padded(np.rint(shares * _FINEST).astype("<u2"), 2)


def _padded(values: npt.NDArray[Number], to: int) -> npt.NDArray[Number]:
    """Fill values up with zeros to a multiple of so many."""
    return np.pad(values, (0, -values.size % to))
