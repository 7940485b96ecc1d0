"""Distributed selection: ends the streams with the smallest keys across all shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.engines.base import total
from retrasyn.synthesis import kernels
from retrasyn.synthesis.shard import ShardBase

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.engines.base import Workers


FEW = 1 << 15
"""Most candidates that all shards together may list."""
_WIDTH = 63  # bits of the word of a non-negative float
_NOTHING = np.uint64((1 << 64) - 1)  # start of an empty interval of words
_EVERYBODY = np.iinfo(np.int64).max


class RankedShard(ShardBase):
    """Streams in groups, each with a key. Keys are non-negative, so their bits sort like them."""

    __slots__ = ()

    def count_ranked(self, low: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.int64]:
        """Count surviving streams by group and by bin of the group's interval of keys."""
        words, groups, kept = self._keys.view(np.uint64), self._groups, self._kept
        counts = self._over_slices(
            lambda part: kernels.count_words(words[part], groups[part], kept[part], low, width)
        )
        return total(counts)

    def list_ranked(
        self, low: npt.NDArray[np.uint64], width: int
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Return group, key and id of the surviving streams in their group's interval of keys."""
        words = self._keys.view(np.uint64)
        places = kernels.list_words(words, self._groups, self._kept, low, width)
        return self._groups[places], words[places], self.streams.ids[places]

    def end_ranked(
        self, last_words: npt.NDArray[np.uint64], last_ids: npt.NDArray[np.int64]
    ) -> None:
        """End the surviving streams up to their group's last one, by (key, id)."""
        ids, _, _ = self.streams.living()
        words = self._keys.view(np.uint64)
        kernels.end_up_to(words, self._groups, self._kept, ids, last_words, last_ids)


def end_smallest(
    shards: Workers[RankedShard], wanted: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> None:
    """End the streams with the smallest keys in each group; see `choose_smallest`."""
    shards.each(RankedShard.end_ranked, *choose_smallest(shards, wanted, sizes))


def choose_smallest(
    shards: Workers[RankedShard], wanted: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return, per group, the word and id of the last stream to choose: [n_groups] each.

    `sizes` says how many keys each group has, of which `wanted` are to be chosen.
    """
    searched = (wanted > 0) & (wanted < sizes)
    words = np.where(wanted > 0, _NOTHING, np.uint64(0))  # all of a group, or none
    ids = np.where(wanted > 0, _EVERYBODY, -1)
    if not searched.any():
        return words, ids
    low = np.where(searched, np.uint64(0), _NOTHING)
    left = wanted.copy()  # still to choose within the interval
    width, n_candidates = _WIDTH, int(sizes[searched].sum())
    while n_candidates > FEW and width > 0:
        counts = total(shards.each(RankedShard.count_ranked, low, width))  # [n_groups, n_bins]
        width = max(width - kernels.BIN_BITS, 0)
        below = np.cumsum(counts, axis=1)
        place = (below < left[:, None]).sum(axis=1)  # the bin that contains the last one
        n_candidates = 0
        for group in np.flatnonzero(searched):
            found = place[group]
            left[group] -= below[group, found] - counts[group, found]
            low[group] += np.uint64(found) << np.uint64(width)
            n_candidates += int(counts[group, found])
    listed = [
        np.concatenate(column)
        for column in zip(*shards.each(RankedShard.list_ranked, low, width), strict=True)
    ]
    groups, found_words, found_ids = listed
    order = np.lexsort((found_ids, found_words, groups))
    begins = np.searchsorted(groups[order], np.arange(wanted.size))
    for group in np.flatnonzero(searched):
        last = order[begins[group] + left[group] - 1]
        words[group], ids[group] = found_words[last], found_ids[last]
    return words, ids
