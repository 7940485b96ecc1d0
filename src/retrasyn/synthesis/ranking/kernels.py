"""Counting and listing keys within intervals, compiled.

A key is a float from 0 on, looked at as a 64-bit word: words of such floats ascend as they do.
Each group has an interval: the words that begin at `low` and differ from it in the last `width`
bits only.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.synthesis.kernels import ENDED

BIN_BITS = 12
N_BINS = 1 << BIN_BITS


@njit(nogil=True, cache=True)
def count_words(
    words: npt.NDArray[np.uint64],
    groups: npt.NDArray[np.uint8],
    kept: npt.NDArray[np.uint16],
    low: npt.NDArray[np.uint64],
    width: int,
) -> npt.NDArray[np.int64]:
    """Count the living by group and by bin of their group's interval: [n_groups, N_BINS]."""
    counts = np.zeros((low.size, N_BINS), np.int64)
    shift = np.uint64(max(width - BIN_BITS, 0))
    span = np.uint64(1) << np.uint64(width)
    for i in range(words.size):
        begin = low[groups[i]]
        if words[i] >= begin and words[i] - begin < span and kept[i] != ENDED:
            counts[groups[i], np.int64((words[i] - begin) >> shift)] += 1
    return counts


@njit(nogil=True, cache=True)
def list_words(
    words: npt.NDArray[np.uint64],
    groups: npt.NDArray[np.uint8],
    kept: npt.NDArray[np.uint16],
    low: npt.NDArray[np.uint64],
    width: int,
) -> npt.NDArray[np.int64]:
    """Return the places of the living whose word lies in their group's interval."""
    places = np.empty(words.size, np.int64)
    span = np.uint64(1) << np.uint64(width)
    n_found = 0
    for i in range(words.size):
        begin = low[groups[i]]
        if words[i] >= begin and words[i] - begin < span and kept[i] != ENDED:
            places[n_found] = i
            n_found += 1
    return places[:n_found].copy()


@njit(nogil=True, cache=True)
def end_up_to(
    words: npt.NDArray[np.uint64],
    groups: npt.NDArray[np.uint8],
    kept: npt.NDArray[np.uint16],
    ids: npt.NDArray[np.int64],
    last_words: npt.NDArray[np.uint64],
    last_ids: npt.NDArray[np.int64],
) -> None:
    """Mark the living up to their group's last one, by (word, id), as ended."""
    for i in range(words.size):
        last = last_words[groups[i]]
        if words[i] < last or (words[i] == last and ids[i] <= last_ids[groups[i]]):
            kept[i] = ENDED
