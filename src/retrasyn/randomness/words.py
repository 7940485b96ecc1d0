"""Random words: addressed, or from the operating system (standard library only)."""

import hashlib
import os
from collections.abc import Callable

from retrasyn.errors import EntropyError


def address(seed: int, t: int, purpose: str, *, n_bytes: int = 8) -> int:
    """Return the key under which all words of one purpose at one timestamp are drawn.

    >>> address(0, 5, "move") == address(0, 5, "move")
    True
    >>> address(0, 5, "move") == address(0, 5, "birth")
    False
    """
    text = f"retrasyn/1/{seed}/{t}/{purpose}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=n_bytes).digest(), "little")


Words = Callable[[int], bytes]
"""Returns exactly the requested number of fresh random bytes."""


def system_bytes(n: int) -> bytes:
    """Return n fresh bytes from the operating system's generator.

    >>> len(system_bytes(16))
    16
    """
    return draw(os.urandom, n)


def draw(words: Words, n: int) -> bytes:
    """Return exactly n bytes from a source, or raise.

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
