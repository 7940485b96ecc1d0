"""Kernels over slices of the streams, on as many threads as numba is told to use.

Kernels release the interpreter lock and every draw is addressed, so the result does not depend on
how the streams are cut. Small populations stay on one thread: starting another costs more.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numba

MIN_SLICE = 1 << 17
"""Streams below which another thread costs more than it brings."""

_T = TypeVar("_T")


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="retrasyn")


def slices(n: int, n_threads: int) -> list[slice]:
    """Cut n streams into at most n_threads slices of similar size.

    >>> slices(10, 4)
    [slice(0, 10, None)]
    """
    n_slices = max(1, min(n_threads, n // MIN_SLICE))
    edges = [n * k // n_slices for k in range(n_slices + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def over_slices(work: Callable[[slice], _T], n: int, n_threads: int | None = None) -> list[_T]:
    """Run `work` on every slice and return its results in order."""
    if n < 2 * MIN_SLICE:
        return [work(slice(0, n))]
    threads: int = numba.config.NUMBA_NUM_THREADS if n_threads is None else n_threads  # type: ignore[attr-defined]
    parts = slices(n, threads)
    if len(parts) == 1:
        return [work(parts[0])]
    return list(_pool(threads).map(work, parts))
