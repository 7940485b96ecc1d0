"""Compiled kernels that count points and moves per frame."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def count_cells(
    cells: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    width: int,
    counts: npt.NDArray[np.int64],
) -> None:
    """Count every point in its frame and cell: counts is [n_frames, n_cells]."""
    for stream in range(begins.size):
        shift = begins[stream] - starts[stream]
        for row in range(starts[stream], starts[stream + 1]):
            counts[(row + shift) // width, cells[row]] += 1


@njit(nogil=True, cache=True)
def count_moves(
    cells: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    width: int,
    side: int,
    block: int,
    counts: npt.NDArray[np.int64],
) -> None:
    """Count every move between two different blocks of block x block cells in its frame.

    counts is [n_frames, n_blocks * 9]: origin block, then one of nine directions.
    """
    n_across = (side + block - 1) // block
    for stream in range(begins.size):
        shift = begins[stream] - starts[stream]
        for row in range(starts[stream] + 1, starts[stream + 1]):
            here, there = int(cells[row - 1]), int(cells[row])
            down, left = here // side // block, here % side // block
            up, right = there // side // block - down, there % side // block - left
            if up != 0 or right != 0:
                code = (down * n_across + left) * 9 + (up + 1) * 3 + right + 1
                counts[(row + shift) // width, code] += 1
