"""A round that is open or not yet folded: what it has accepted, and from whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.service.marks import Marks
from retrasyn.service.records import Chunk, write_marks
from retrasyn.service.store import RoundRow
from retrasyn.wire.heartbeats import FIRST_KIND

_NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Everything a round has accepted, durable or about to be."""

    answers: Mapping[int, tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]] = field(repr=False)
    """By question code: bits [n, bytes] and keys [n], by ascending key."""
    kinds: npt.NDArray[np.uint8]  # [n_heartbeats], ENTERING, MOVING or QUITTING
    keys: npt.NDArray[np.int64]  # [n_heartbeats], ascending
    marks: bytes = field(repr=False)  # for `Store.fold`: who reported, and the tags


@dataclass(slots=True)
class Taking:
    """Grows with every frame that is accepted."""

    row: RoundRow
    closed: bool = False
    reports: Marks = field(default_factory=Marks, repr=False)
    heartbeats: Marks = field(default_factory=Marks, repr=False)
    chunks: dict[int, list[Chunk]] = field(default_factory=dict, repr=False)  # by code
    asked: npt.NDArray[np.int64] | None = field(init=False, repr=False)  # keys; None: anybody

    def __post_init__(self) -> None:
        drawn = self.row.drawn
        self.asked = None if drawn is None else np.frombuffer(drawn, "<u4").astype(np.int64)

    @property
    def reporters(self) -> npt.NDArray[np.int64]:
        """The keys of those who reported."""
        keys = [chunk.keys for chunk in self._report_chunks()]
        return np.concatenate(keys) if keys else _NOBODY

    def marks_for(self, code: int) -> Marks:
        """Return the marks that a frame with this code must be new to."""
        return self.heartbeats if code >= FIRST_KIND else self.reports

    def not_asked(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Tell who was not to report in this round."""
        if self.asked is not None:
            return ~np.isin(keys, self.asked)
        return np.full(len(keys), self.row.portion == 0)

    def add(self, chunk: Chunk, lookback: int) -> None:
        """Take frames of devices that were not heard before."""
        self.marks_for(chunk.code).add(chunk.keys, chunk.tags, lookback)
        self.chunks.setdefault(chunk.code, []).append(chunk)

    def add_again(self, chunk: Chunk, lookback: int) -> None:
        """Take from a chunk that was read back what is not here yet: the first is kept."""
        fresh = self.marks_for(chunk.code).lookbacks_of(chunk.keys) == 0
        fresh[np.setdiff1d(np.arange(len(fresh)), np.unique(chunk.keys, return_index=True)[1])] = (
            False
        )
        if fresh.any():
            some = Chunk(chunk.code, chunk.keys[fresh], chunk.tags[fresh], chunk.bits[fresh])
            self.add(some, lookback)

    def clear(self) -> None:
        """Forget everything that was accepted."""
        self.reports, self.heartbeats, self.chunks = Marks(), Marks(), {}

    def taken(self) -> Taken:
        """Return what was accepted, by ascending key."""
        answers = {}
        for code in sorted(self.chunks):
            if code < FIRST_KIND:
                keys, bits = _sorted(self.chunks[code])
                answers[code] = bits, keys
        kinds, sharing = [], []
        for code, chunks in self.chunks.items():
            if code >= FIRST_KIND:
                keys = np.concatenate([chunk.keys for chunk in chunks])
                sharing.append(keys)
                kinds.append(np.full(len(keys), code - FIRST_KIND, np.uint8))
        keys = np.concatenate(sharing) if sharing else _NOBODY
        order = np.argsort(keys)
        return Taken(
            answers=answers,
            kinds=np.concatenate(kinds)[order] if kinds else np.zeros(0, np.uint8),
            keys=keys[order],
            marks=write_marks(self._report_chunks()),
        )

    def _report_chunks(self) -> list[Chunk]:
        return [
            chunk for code, chunks in self.chunks.items() if code < FIRST_KIND for chunk in chunks
        ]


def _sorted(chunks: list[Chunk]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    keys = np.concatenate([chunk.keys for chunk in chunks])
    bits = np.concatenate([chunk.bits for chunk in chunks])
    order = np.argsort(keys)
    return keys[order], bits[order]
