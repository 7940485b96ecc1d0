"""Rounds that accept reports, or have accepted some that are not folded yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown
from retrasyn.messages import Manifest
from retrasyn.service.admission.headers import Header
from retrasyn.service.admission.records import Chunk, keys_of_marks, read_chunks, write_marks
from retrasyn.service.store.base import RoundRow, keys_in
from retrasyn.wire.frames import question_of
from retrasyn.wire.layout import FIRST_KIND, TAG_BYTES

_NOBODY = np.zeros(0, np.int64)
_NEVER = -(1 << 40)  # the timestamp of a report that was never made


@dataclass(slots=True)
class Marks:
    """The tag of each device that was heard, and how far back its bits look."""

    lookbacks: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    tags: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def lookbacks_of(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how far back each device's bits look; 0 if it was not heard."""
        self._make_room(keys)
        return self.lookbacks[keys]

    def same(
        self, keys: npt.NDArray[np.int64], tags: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.bool_]:
        """Return which tags equal those that came first."""
        found: npt.NDArray[np.bool_] = (self.tags[keys] == _words(tags)).all(axis=1)
        return found

    def add(self, keys: npt.NDArray[np.int64], tags: npt.NDArray[np.uint8], lookback: int) -> None:
        """Mark devices as heard."""
        self._make_room(keys)
        self.lookbacks[keys] = lookback
        self.tags[keys] = _words(tags)

    def _make_room(self, keys: npt.NDArray[np.int64]) -> None:
        n = int(keys.max(initial=-1)) + 1
        self.lookbacks, self.tags = grown(self.lookbacks, n, 0), grown(self.tags, n, 0)


def _words(tags: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return np.frombuffer(tags.tobytes(), np.int64).reshape(-1, TAG_BYTES // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedReports:
    """Everything a round has accepted, durable or about to be."""

    answers: Mapping[int, tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]] = field(repr=False)
    """By question code: bits [n, bytes] and keys [n], by ascending key."""
    kinds: npt.NDArray[np.uint8]  # [n_heartbeats], ENTERING, MOVING or QUITTING
    keys: npt.NDArray[np.int64]  # [n_heartbeats], ascending
    marks: bytes = field(repr=False)  # for `Store.fold`: who reported, and the tags


@dataclass(slots=True)
class OpenRound:
    """A round that is not folded yet, with every frame that it accepted."""

    row: RoundRow
    closed: bool = False
    reports: Marks = field(default_factory=Marks, repr=False)
    heartbeats: Marks = field(default_factory=Marks, repr=False)
    chunks: dict[int, list[Chunk]] = field(default_factory=dict, repr=False)  # by code
    asked: npt.NDArray[np.int64] | None = field(init=False, repr=False)  # keys; None: anybody

    def __post_init__(self) -> None:
        drawn = self.row.drawn
        self.asked = None if drawn is None else keys_in(drawn)

    @property
    def reporters(self) -> npt.NDArray[np.int64]:
        """The keys of those who reported."""
        keys = [chunk.keys for chunk in self._report_chunks()]
        return np.concatenate(keys) if keys else _NOBODY

    def marks_for(self, code: int) -> Marks:
        """Return the marks of reports or of heartbeats, by the code of a frame."""
        return self.heartbeats if code >= FIRST_KIND else self.reports

    def not_asked(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which devices were not to report in this round."""
        if self.asked is not None:
            return ~np.isin(keys, self.asked)
        return np.full(len(keys), self.row.portion == 0)

    def add(self, chunk: Chunk, lookback: int) -> None:
        """Add frames of devices that were not heard before."""
        self.marks_for(chunk.code).add(chunk.keys, chunk.tags, lookback)
        self.chunks.setdefault(chunk.code, []).append(chunk)

    def add_again(self, chunk: Chunk, lookback: int) -> None:
        """Add those frames of a stored chunk whose devices were not heard yet."""
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

    def accepted(self) -> AcceptedReports:
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
        return AcceptedReports(
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


@dataclass(slots=True)
class OpenRounds:
    """Finds the round of a frame, and knows whose budget is free in it."""

    manifest: Manifest
    rounds: dict[int, OpenRound] = field(default_factory=dict)  # by timestamp
    newest: int = -1  # timestamp of the last round that was opened
    _last: npt.NDArray[np.int64] = field(  # [n_keys], newest folded timestamp of a report
        default_factory=lambda: np.zeros(0, np.int64), repr=False
    )

    def open(self, row: RoundRow) -> None:
        """Accept reports for a round."""
        self.rounds.setdefault(row.t, OpenRound(row))
        self.newest = max(self.newest, row.t)

    def forget(self, t: int) -> None:
        """Drop a folded round; who reported in it is remembered for the gap."""
        self._remember(t, self.rounds.pop(t).reporters)

    def restore(self, t: int, blobs: Iterable[bytes]) -> None:
        """Reset a round to exactly what the store holds of it."""
        round_ = self.rounds[t]
        round_.clear()
        for blob in blobs:
            for chunk in read_chunks(blob):
                beat = chunk.code >= FIRST_KIND
                lookback = 1 if beat else question_of(chunk.code, self.manifest).lookback
                round_.add_again(chunk, lookback)

    def restore_marks(self, t: int, marks: bytes) -> None:
        """Remember who reported in a round that was folded before a restart."""
        self.newest = max(self.newest, t)
        self._remember(t, keys_of_marks(marks))

    def find(self, header: Header, now: float) -> OpenRound | str:
        """Return the open round of frames with this header, or the status of them all."""
        manifest, round_ = self.manifest, self.rounds.get(header.t)
        opens = manifest.epoch + header.t * manifest.period
        if round_ is None:
            if header.t <= self.newest:
                return "late"
            return "early" if opens <= now + manifest.period else "unknown round"
        if round_.closed or now >= round_.row.ends:
            return "late"
        if now < opens:
            return "early"
        if header.is_report and header.epsilon != round_.row.epsilon:
            return "bad manifest"
        return round_

    def too_soon(
        self, header: Header, round_: OpenRound, keys: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Return which devices have no free budget at t, or were not asked.

        Where epsilon is divided, what the rounds ask within a window is within epsilon already.
        """
        soon = round_.not_asked(keys)
        if self.manifest.division == "budget":
            return soon
        t, rest = header.t, self.manifest.gap + header.lookback - 1
        self._last = grown(self._last, int(keys.max()) + 1, _NEVER)
        soon |= t - self._last[keys] < rest
        for other in self.rounds.values():
            if other is round_:
                continue
            lookbacks, apart = other.reports.lookbacks_of(keys), abs(t - other.row.t)
            rests = self.manifest.gap + lookbacks - 1 if other.row.t > t else rest
            soon |= (lookbacks > 0) & (apart < rests)
        return soon

    def _remember(self, t: int, keys: npt.NDArray[np.int64]) -> None:
        self._last = grown(self._last, int(keys.max(initial=-1)) + 1, _NEVER)
        self._last[keys] = np.maximum(self._last[keys], t)
