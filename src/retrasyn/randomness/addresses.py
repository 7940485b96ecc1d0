"""Addresses of random words, and words from the operating system (standard library only)."""

import hashlib
import os
import struct

WORD_BITS = 64


def address(seed: int, t: int, purpose: str, *, n_bytes: int = 8) -> int:
    """Return the key under which all words of one purpose at one timestamp are drawn.

    >>> address(0, 5, "move") == address(0, 5, "move")
    True
    >>> address(0, 5, "move") == address(0, 5, "birth")
    False
    """
    text = f"retrasyn/1/{seed}/{t}/{purpose}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=n_bytes).digest(), "little")


def entropy_words(n: int) -> tuple[int, ...]:
    """Return n 64-bit words from the operating system's generator.

    >>> len(entropy_words(3))
    3
    """
    return struct.unpack(f"<{n}Q", os.urandom(8 * n))
