"""Reports as rows of zeros and ones, a block at a time, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

_BITS_AT_ONCE = 1 << 24


def blocks(
    packed: npt.NDArray[np.uint8], n_states: int
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield where each block begins, and its bits: [n_block, n_states]."""
    size = max(_BITS_AT_ONCE // n_states, 1)
    for start in range(0, len(packed), size):
        part = packed[start : start + size]
        yield start, np.unpackbits(part, axis=1, count=n_states, bitorder="little")
