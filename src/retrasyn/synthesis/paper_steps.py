"""What streams do where quitting competes with the moves: the paper's plan (Sec. III-D, Eq. 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from retrasyn.synthesis import kernels
from retrasyn.synthesis.shard_base import ShardBase

if TYPE_CHECKING:
    import numpy.typing as npt


Weighing = Literal["newest", "last"]
"""By which cell a surplus is weighed: where a stream goes, or where it was."""


class CompetingSteps(ShardBase):
    """Draws moves or ends, and ends a surplus by the weights of cells."""

    __slots__ = ()

    def decide(
        self,
        t: int,
        key: int,
        table: npt.NDArray[np.uint64],
        quit_odds: npt.NDArray[np.float64],
        per_length: float,
        length_cap: float,
        against_moves: float,
    ) -> int:
        """Draw the next cell of every stream, or its end; return how many live on."""
        ids, cells, entered = self.streams.living()
        kept = self._fresh_marks()
        alive = self._over_slices(
            lambda part: kernels.decide(
                ids[part],
                cells[part],
                entered[part],
                kept[part],
                t,
                np.uint64(key),
                table,
                quit_odds,
                per_length,
                length_cap,
                against_moves,
            )
        )
        return sum(alive)

    def sample_alive(self, weighing: Weighing) -> tuple[npt.NDArray[np.int64], int]:
        """Guess how many live on per cell from some of them, and tell of how many: [n_cells]."""
        stride = max(1, self.streams.n >> 16)
        counts = kernels.count_alive(self._weighed(weighing), self._kept, self.grid.n_cells, stride)
        return counts * stride, int(counts.sum())

    def find_surplus(
        self,
        key: int,
        weights: npt.NDArray[np.float64],
        floors: npt.NDArray[np.uint64],
        sure_floors: npt.NDArray[np.uint64],
        room: int,
        weighing: Weighing,
    ) -> tuple[int, int, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Look for the smallest keys; return how many passed, how many surely, and the others.

        Of the others, which lie between the floors, key and id are told.
        """
        ids, _, _ = self.streams.living()
        n_found, n_sure, self._places, self._keys = kernels.keys_above(
            ids,
            self._weighed(weighing),
            self._kept,
            np.uint64(key),
            weights,
            floors,
            sure_floors,
            min(room, self.streams.n),
        )
        between = self._keys >= 0
        return n_found, n_sure, self._keys[between], ids[self._places[between]]

    def end_surplus(self, last_key: float, last_id: int) -> None:
        """End those found up to the last one, by (key, id)."""
        ids = self.streams.ids[self._places]
        ended = (self._keys < last_key) | ((self._keys == last_key) & (ids <= last_id))
        self._kept[self._places[ended]] = kernels.ENDED

    def settle(self) -> None:
        """Let the ended go and everybody else be where they moved."""
        ids, cells, entered = self.streams.living()
        self.streams.n = kernels.compact(ids, cells, entered, self._kept)

    def _weighed(self, weighing: Weighing) -> npt.NDArray[np.uint16]:
        """Return the cell that weighs each stream."""
        return self._kept if weighing == "newest" else self.streams.cells[: self.streams.n]
