"""The n smallest of many keys, each of which is known to one shard only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.engines.base import total
from retrasyn.synthesis.kernels import BIN_BITS

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.engines.base import Engine


FEW = 1 << 15
"""Candidates that all shards together may list."""
_WIDTH = 63  # bits of a word whose float is not negative
_NOTHING = np.uint64((1 << 64) - 1)  # begins an interval without words
_EVERYBODY = np.iinfo(np.int64).max


def choose_smallest(
    engine: Engine, wanted: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return per group the word and the id of the last one wanted: [n_groups] each.

    `sizes` says how many keys each group has, of which `wanted` are to be chosen.
    """
    searched = (wanted > 0) & (wanted < sizes)
    words = np.where(wanted > 0, _NOTHING, np.uint64(0))  # all of a group, or none
    ids = np.where(wanted > 0, _EVERYBODY, -1)
    if not searched.any():
        return words, ids
    low = np.where(searched, np.uint64(0), _NOTHING)
    left = wanted.copy()  # of those within the interval
    width, n_candidates = _WIDTH, int(sizes[searched].sum())
    while n_candidates > FEW and width > 0:
        counts = total(engine.each("count_ranked", low, width))  # [n_groups, n_bins]
        width = max(width - BIN_BITS, 0)
        below = np.cumsum(counts, axis=1)
        place = (below < left[:, None]).sum(axis=1)  # the bin of the last one wanted
        n_candidates = 0
        for group in np.flatnonzero(searched):
            found = place[group]
            left[group] -= below[group, found] - counts[group, found]
            low[group] += np.uint64(found) << np.uint64(width)
            n_candidates += int(counts[group, found])
    listed = [
        np.concatenate(column)
        for column in zip(*engine.each("list_ranked", low, width), strict=True)
    ]
    groups, found_words, found_ids = listed
    order = np.lexsort((found_ids, found_words, groups))
    begins = np.searchsorted(groups[order], np.arange(wanted.size))
    for group in np.flatnonzero(searched):
        last = order[begins[group] + left[group] - 1]
        words[group], ids[group] = found_words[last], found_ids[last]
    return words, ids
