"""One timestamp as the map draws it, in bytes: cells, flows and travellers (docs/api.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.service.viewing.source import Summary, TimestampPoints
from retrasyn.space import Grid

N_DIRECTIONS = 9
STAYING = 4
"""The direction of streams that stay: a direction is 3 (row step + 1) + column step + 1."""
Flows = npt.NDArray[np.uint32]
MAX_TRAVELLERS = 10_000
"""Most travellers that a frame can hold."""
NOBODY = 64
"""The number of halvings for a frame without travellers."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
FRAME_VERSION = 1
"""Whole numbers in the header; all numbers but places have 32 bits."""
_MAX_NUMBER = (1 << 32) - 1
_FINEST = (1 << 16) - 1  # steps of a position across the box


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The points of one timestamp and their cells."""

    points: TimestampPoints
    cells: npt.NDArray[np.uint16]  # [n_points]

    @classmethod
    def on(cls, grid: Grid, points: TimestampPoints) -> Placed:
        """Find the cells of points."""
        return cls(points, grid.cells_of(points.x, points.y))

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return self.points.n_bytes + self.cells.nbytes


def count_flows(before: Placed, after: Placed, side: int) -> Flows:
    """Count moves by origin and direction: [n_cells, 9].

    Streams that were born or ended in between move nowhere. Neither does one that jumps beyond a
    neighbour, which only recorded data does: the figures cut it into two streams there, too.
    """
    old, new = before.points.ids, after.points.ids
    empty = np.zeros((side * side, N_DIRECTIONS), np.uint32)  # [n_cells, 9]
    if not old.size or not new.size:
        return empty
    place = np.minimum(np.searchsorted(old, new), old.size - 1)  # [n_points]
    went_on = old[place] == new  # [n_points]
    origin = before.cells[place[went_on]].astype(np.int32)
    target = after.cells[went_on].astype(np.int32)
    row, column = target // side - origin // side, target % side - origin % side
    near = (np.abs(row) <= 1) & (np.abs(column) <= 1)
    code = (origin * N_DIRECTIONS + 3 * (row + 1) + column + 1)[near]
    return np.bincount(code, minlength=empty.size).astype(np.uint32).reshape(empty.shape)


def neighbour(cell: int, direction: int, side: int) -> int | None:
    """Return the cell that lies in a direction; None off the grid.

    >>> neighbour(0, 8, 3), neighbour(0, 0, 3), neighbour(4, 4, 3)
    (4, None, 4)
    """
    row, column = cell // side + direction // 3 - 1, cell % side + direction % 3 - 1
    on_grid = 0 <= row < side and 0 <= column < side
    return row * side + column if on_grid else None


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
    summary: Summary, placed: Placed, flows: Flows | None, grid: Grid, *, most: int
) -> bytes:
    """Return the bytes of a frame with at most about `most` travellers."""
    ids = placed.points.ids
    times = halvings(ids.size, most)
    kept = chosen(ids, times)
    # A page knows streams by the low half of their ids; ours never grow beyond it.
    names, order = np.unique(ids[kept].astype(np.uint64).astype(np.uint32), return_index=True)
    kept = kept[order]
    counted = (summary[name] for name in ("n_born", "n_ended", "n_reports"))
    header = [
        *(FRAME_VERSION, summary["t"], grid.side, ids.size),
        *(min(int(n), _MAX_NUMBER) for n in counted),
        *(flows is not None, names.size, times),
    ]
    parts = [
        np.array(header, "<u4"),
        np.bincount(placed.cells, minlength=grid.n_cells).astype("<u4"),  # [n_cells]
        np.empty(0, "<u4") if flows is None else flows.astype("<u4"),  # [n_cells, 9]
        names.astype("<u4"),
        _steps(placed.points.x[kept], grid.box.x0, grid.box.x1),
        _steps(placed.points.y[kept], grid.box.y0, grid.box.y1),
    ]
    return b"".join(part.tobytes() for part in parts)


def _steps(values: npt.NDArray[np.float64], low: float, high: float) -> npt.NDArray[np.uint16]:
    """Return positions along a side of the box in 16 bits, padded to words of 32 bits."""
    shares = np.clip((values - low) / (high - low), 0.0, 1.0)
    padded = np.zeros(values.size + values.size % 2, "<u2")
    padded[: values.size] = np.rint(shares * _FINEST)
    return padded
