"""What streams do in order: quit, end by rank, then move."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retrasyn.engines.base import total
from retrasyn.synthesis import kernels
from retrasyn.synthesis import kernels as ordered
from retrasyn.synthesis import kernels as ranking
from retrasyn.synthesis.kernels import ANGLES
from retrasyn.synthesis.lifecycle import AGE_EDGES
from retrasyn.synthesis.shard_base import ShardBase

if TYPE_CHECKING:
    import numpy.typing as npt

    Law = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float, float]
    """by_age, by_cell, factor and cap: who quits how likely (see `ordered.kernels`)."""


@lru_cache(maxsize=1)
def angles() -> npt.NDArray[np.float64]:
    """Return cosine and sine of evenly spread directions: [4096, 2]."""
    turn = (np.arange(ANGLES) + 0.5) * (2.0 * np.pi / ANGLES)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)


class OrderedWalk(ShardBase):
    """Draws quits, ends the smallest keys, and moves the rest."""

    __slots__ = ()

    def sum_hazards(self, t: int, law: Law) -> tuple[int, int]:
        """Return the sums of by_age alone and of the probability to quit, in units of 2^-32."""
        _, cells, entered = self.streams.living()
        sums = self._over_slices(
            lambda part: ordered.sum_hazards(cells[part], entered[part], t, *law)
        )
        return sum(plain for plain, _ in sums), sum(capped for _, capped in sums)

    def draw_quits(self, t: int, key: int, law: Law) -> int:
        """Draw who quits; return how many live on."""
        ids, cells, entered = self.streams.living()
        kept = self._fresh_marks()
        alive = self._over_slices(
            lambda part: ordered.draw_quits(
                ids[part], cells[part], entered[part], t, np.uint64(key), *law, kept[part]
            )
        )
        return sum(alive)

    def quit_nobody(self) -> None:
        """Let everybody live on for now."""
        self._fresh_marks()[:] = self.streams.cells[: self.streams.n]

    def rank(self, t: int, key: int, law: Law, floor: float) -> None:
        """Give every living stream the key that decides who ends first, all in one group."""
        ids, _, entered = self.streams.living()
        kept, keys = self._kept, np.empty(ids.size)
        self._over_slices(
            lambda part: ordered.surplus_keys(
                ids[part], entered[part], kept[part], t, np.uint64(key), *law, floor, keys[part]
            )
        )
        self._keys, self._groups = keys, np.zeros(ids.size, np.uint8)

    def group_by_age(self, t: int) -> npt.NDArray[np.int64]:
        """Put every stream into the group of its age bucket; return their sizes."""
        _, _, entered = self.streams.living()
        places = np.searchsorted(AGE_EDGES, t - entered, side="right") - 1
        self._groups = places.astype(np.uint8)
        return np.bincount(places, minlength=AGE_EDGES.size)

    def group_together(self) -> None:
        """Put every stream into one group."""
        self._groups = np.zeros(self.streams.n, np.uint8)

    def count_ranked(self, low: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.int64]:
        """Count the living by group and by bin of their group's interval of keys."""
        words, groups, kept = self._keys.view(np.uint64), self._groups, self._kept
        counts = self._over_slices(
            lambda part: ranking.count_words(words[part], groups[part], kept[part], low, width)
        )
        return total(counts)

    def list_ranked(
        self, low: npt.NDArray[np.uint64], width: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Return group, key and id of the living in their group's interval of keys."""
        words = self._keys.view(np.uint64)
        places = ranking.list_words(words, self._groups, self._kept, low, width)
        return self._groups[places], words[places], self.streams.ids[places]

    def end_ranked(
        self, last_words: npt.NDArray[np.uint64], last_ids: npt.NDArray[np.int64]
    ) -> None:
        """End the living up to their group's last one, by (key, id)."""
        ids, _, _ = self.streams.living()
        words = self._keys.view(np.uint64)
        ranking.end_up_to(words, self._groups, self._kept, ids, last_words, last_ids)

    def leave_ended(self) -> npt.NDArray[np.int64]:
        """Let the ended go; return how many are left per cell: [n_cells]."""
        n, kept = self.streams.n, self._kept
        if self.continuous and self.streams.x.size:
            ordered.compact_points(self.streams.x[:n], self.streams.y[:n], kept)
        self.streams.n = kernels.compact(*self.streams.living(), kept)
        return self.count_cells()

    def move(
        self,
        move_key: int,
        step_key: int,
        alias: npt.NDArray[np.uint64],
        lengths: npt.NDArray[np.float64],
    ) -> None:
        """Move everybody, and with continuous steps their points."""
        streams = self.streams
        ids, cells, _ = streams.living()
        moved = self._fresh_marks()

        def work(part: slice) -> None:
            ordered.move_streams(ids[part], cells[part], np.uint64(move_key), alias, moved[part])
            if self.continuous:
                ordered.step_points(
                    ids[part],
                    cells[part],
                    moved[part],
                    np.uint64(step_key),
                    lengths,
                    angles(),
                    self.grid.side,
                    streams.x[: ids.size][part],
                    streams.y[: ids.size][part],
                )

        self._over_slices(work)
        cells[:] = moved
