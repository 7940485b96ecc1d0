"""Bytes from the operating system's generator, or no bytes at all (standard library only).

There is no buffer and no state of our own, so two processes after a fork never share a byte. A
source that fails, or hands out too little, is an `EntropyError`: whoever asked makes no report.
"""

import os
from collections.abc import Callable

from retrasyn.errors import EntropyError

Words = Callable[[int], bytes]
"""Hands out exactly so many fresh bytes."""


def system_bytes(n: int) -> bytes:
    """Return n fresh bytes of the operating system's generator.

    >>> len(system_bytes(16))
    16
    """
    return draw(os.urandom, n)


def draw(words: Words, n: int) -> bytes:
    """Return exactly n bytes of a source, or raise.

    >>> draw(lambda n: b"a" * n, 3)
    b'aaa'
    """
    try:
        drawn = words(n)
    except (OSError, NotImplementedError) as fault:
        raise EntropyError(
            f"the source of randomness failed ({fault}): no report is made without fresh "
            "randomness; try again when it works"
        ) from fault
    if type(drawn) is not bytes or len(drawn) != n:
        size = f"{len(drawn)} bytes" if isinstance(drawn, bytes) else type(drawn).__name__
        raise EntropyError(
            f"the source of randomness gave {size} where {n} bytes were asked for: no report is "
            "made without fresh randomness; use the operating system's generator"
        )
    return drawn
