"""What the tests need of a round once its reports are gone: sums, kept for one gap and added up.

A campaign of 10,000 devices has some 430 reports in a round, too few to tell liars from chance.
Within one gap every device reports at most once, so the evidence of that many rounds is as good as
one round with all of their reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import add

import numpy as np
import numpy.typing as npt

from retrasyn.errors import InputError, StoreError
from retrasyn.oracles.oue import OUE

MOST_STATES = 1_000
"""With more states than this, pairs of bits are not counted: they would need too much memory."""
MOST_PIECES = 21
"""A pool has at most this many pieces and the unfinished one, however long the gap is."""
_BITS_AT_ONCE = 1 << 24
_HEAD = np.dtype("<u4")


def blocks(
    packed: npt.NDArray[np.uint8], n_states: int
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield the first row of each block, and its bits: [n_block, n_states]."""
    size = max(_BITS_AT_ONCE // n_states, 1)
    for start in range(0, len(packed), size):
        part = packed[start : start + size]
        yield start, np.unpackbits(part, axis=1, count=n_states, bitorder="little")


@lru_cache(maxsize=4)
def pair_places(n_states: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first and the second bit of every pair, in the order of `Evidence.pairs`."""
    first, second = np.triu_indices(n_states, 1)
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Sums over reports of one budget: whole numbers, which add."""

    epsilon: int  # micro-nats each report spent
    n: int
    counts: npt.NDArray[np.int64]  # [n_states], reports that set each bit
    weights: npt.NDArray[np.int64]  # [n_states + 1], reports by their number of ones
    pairs: npt.NDArray[np.int32]  # [n_states (n_states - 1) / 2], reports that set both; or empty

    @classmethod
    def of(cls, packed: npt.NDArray[np.uint8], n_states: int, *, epsilon: int) -> Evidence:
        """Add up reports, one per row."""
        counts, weights = np.zeros(n_states, np.int64), np.zeros(n_states + 1, np.int64)
        counted = n_states <= MOST_STATES
        products = np.zeros((n_states, n_states) if counted else (0, 0))
        for _, bits in blocks(packed, n_states):
            counts += bits.sum(axis=0, dtype=np.int64)
            weights += np.bincount(bits.sum(axis=1, dtype=np.int64), minlength=n_states + 1)
            if counted:
                block = bits.astype(np.float32)  # integers below 2^24: sums are exact
                products += block.T @ block
        pairs = products[pair_places(n_states)] if counted else np.empty(0)
        return cls(
            epsilon=epsilon,
            n=len(packed),
            counts=counts,
            weights=weights,
            pairs=pairs.astype(np.int32),
        )

    @property
    def n_states(self) -> int:
        """Number of bits of a report."""
        return self.counts.size

    @property
    def q(self) -> float:
        """Probability of a noise bit."""
        return OUE(self.epsilon).q

    def covariances(self) -> npt.NDArray[np.float64]:
        """Return the covariance of every two bits: [n_states, n_states]."""
        mean = self.counts / self.n
        square = -np.outer(mean, mean)
        first, second = pair_places(self.n_states)
        square[first, second] += self.pairs / self.n
        square[second, first] = square[first, second]
        np.fill_diagonal(square, mean * (1 - mean))
        return square

    def __add__(self, other: Evidence) -> Evidence:
        if (self.epsilon, self.n_states) != (other.epsilon, other.n_states):
            raise InputError(
                f"evidence at epsilon={self.epsilon} over {self.n_states} states follows another "
                f"law than at epsilon={other.epsilon} over {other.n_states}; keep them apart"
            )
        return Evidence(
            epsilon=self.epsilon,
            n=self.n + other.n,
            counts=self.counts + other.counts,
            weights=self.weights + other.weights,
            pairs=self.pairs + other.pairs,
        )


Piece = Mapping[tuple[int, int], Evidence]
"""The evidence of some consecutive rounds, by question code and epsilon."""


@dataclass(slots=True)
class EvidencePool:
    """The evidence of the last `gap` rounds, in pieces of equally many rounds.

    Up to a gap of 21 every round is a piece. The oldest piece goes as soon as its first round is
    older than the gap, so that no device is in the pool twice.

    >>> pool = EvidencePool(gap=50)
    >>> pool.length, [pool.first_of(t) for t in (0, 2, 3, 4)]
    (3, [0, 0, 3, 3])
    """

    gap: int
    pieces: dict[int, Piece] = field(default_factory=dict)  # by the first timestamp of each

    @property
    def length(self) -> int:
        """Rounds in a piece."""
        return -(-self.gap // MOST_PIECES)

    def first_of(self, t: int) -> int:
        """Return the first timestamp of the piece that t belongs to."""
        return t - t % self.length

    def before(self, t: int, code: int, epsilon: int) -> Evidence | None:
        """Return the evidence on a question before t, of one budget; None if there is none."""
        near = [piece for first, piece in self.pieces.items() if first > t - self.gap]
        found = [piece[code, epsilon] for piece in near if (code, epsilon) in piece]
        return reduce(add, found) if found else None

    def joined(self, t: int, found: Piece) -> Piece:
        """Return the piece of round t with the round's own evidence added."""
        piece = dict(self.pieces.get(self.first_of(t), {}))
        for place, evidence in found.items():
            piece[place] = piece[place] + evidence if place in piece else evidence
        return piece

    def keep(self, t: int, piece: Piece) -> None:
        """Put the piece of round t in its place, and forget what is older than the gap."""
        self.pieces[self.first_of(t)] = piece
        self.pieces = {
            first: kept for first, kept in self.pieces.items() if first > t + 1 - self.gap
        }


def to_bytes(piece: Piece) -> bytes:
    """Return a piece as plain numbers, in as few bytes each as they need."""
    parts: list[bytes] = []
    for (code, epsilon), found in sorted(piece.items()):
        head = np.array([code, epsilon, found.n, found.n_states, found.pairs.size], _HEAD)
        columns = np.concatenate([found.counts, found.weights, found.pairs])
        parts += [head.tobytes(), columns.astype(_width(found.n)).tobytes()]
    return b"".join(parts)


def from_bytes(body: bytes) -> dict[tuple[int, int], Evidence]:
    """Read a piece from exactly what `to_bytes` writes."""
    piece: dict[tuple[int, int], Evidence] = {}
    place = 0
    try:
        while place < len(body):
            code, epsilon, n, n_states, n_pairs = np.frombuffer(body, _HEAD, 5, place).tolist()
            place += 5 * _HEAD.itemsize
            sizes = n_states, n_states + 1, n_pairs
            column = np.frombuffer(body, _width(n), sum(sizes), place)
            place += column.nbytes
            counts, weights, pairs = np.split(column, np.cumsum(sizes)[:2])
            piece[code, epsilon] = Evidence(
                epsilon=epsilon,
                n=n,
                counts=counts.astype(np.int64),
                weights=weights.astype(np.int64),
                pairs=pairs.astype(np.int32),
            )
    except ValueError:
        raise StoreError(
            "the evidence of a round in the store is damaged; put the store back from a copy"
        ) from None
    return piece


def _width(n: int) -> np.dtype[np.unsignedinteger[npt.NBitBase]]:
    """Return the narrowest whole numbers that count to n."""
    return np.min_scalar_type(n).newbyteorder("<")
