"""Addresses of random words (standard library only)."""

import hashlib

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
