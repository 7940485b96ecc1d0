"""The rounds that take reports, or have taken some that are not folded yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Manifest
from retrasyn.service.headers import Header
from retrasyn.service.marks import grown
from retrasyn.service.records import keys_of_marks, read_chunks
from retrasyn.service.store import RoundRow
from retrasyn.service.taking import Taking
from retrasyn.wire.frames import question_of
from retrasyn.wire.heartbeats import FIRST_KIND

_NEVER = -(1 << 40)  # the timestamp of a report that was never made


@dataclass(slots=True)
class Intake:
    """Finds the round of a frame, and knows whose budget is free in it."""

    manifest: Manifest
    rounds: dict[int, Taking] = field(default_factory=dict)  # by timestamp
    newest: int = -1  # timestamp of the last round that was opened
    _last: npt.NDArray[np.int64] = field(  # [n_keys], newest folded timestamp of a report
        default_factory=lambda: np.zeros(0, np.int64), repr=False
    )

    def open(self, row: RoundRow) -> None:
        """Take reports for a round."""
        self.rounds.setdefault(row.t, Taking(row))
        self.newest = max(self.newest, row.t)

    def forget(self, t: int) -> None:
        """Drop a folded round; who reported in it is remembered for the gap."""
        self._remember(t, self.rounds.pop(t).reporters)

    def restore(self, t: int, blobs: Iterable[bytes]) -> None:
        """Set a round back to exactly what the store holds of it."""
        taking = self.rounds[t]
        taking.clear()
        for blob in blobs:
            for chunk in read_chunks(blob):
                beat = chunk.code >= FIRST_KIND
                lookback = 1 if beat else question_of(chunk.code, self.manifest.ages).lookback
                taking.add_again(chunk, lookback)

    def restore_marks(self, t: int, marks: bytes) -> None:
        """Remember who reported in a round that was folded before a restart."""
        self.newest = max(self.newest, t)
        self._remember(t, keys_of_marks(marks))

    def find(self, header: Header, now: float) -> Taking | str:
        """Return the round that frames are for, or the status of them all."""
        manifest, taking = self.manifest, self.rounds.get(header.t)
        opens = manifest.epoch + header.t * manifest.period
        if taking is None:
            if header.t <= self.newest:
                return "late"
            return "early" if opens <= now + manifest.period else "unknown round"
        if taking.closed or now >= taking.row.ends:
            return "late"
        if now < opens:
            return "early"
        if header.is_report and header.epsilon != taking.row.epsilon:
            return "bad manifest"
        return taking

    def too_soon(
        self, header: Header, taking: Taking, keys: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Tell whose budget is not free at t, or who was not asked.

        Where epsilon is divided, what the rounds ask within a window is within epsilon already.
        """
        soon = taking.not_asked(keys)
        if self.manifest.division == "budget":
            return soon
        t, rest = header.t, self.manifest.gap + header.lookback - 1
        self._last = grown(self._last, int(keys.max()) + 1, _NEVER)
        soon |= t - self._last[keys] < rest
        for other in self.rounds.values():
            if other is taking:
                continue
            lookbacks, apart = other.reports.lookbacks_of(keys), abs(t - other.row.t)
            rests = self.manifest.gap + lookbacks - 1 if other.row.t > t else rest
            soon |= (lookbacks > 0) & (apart < rests)
        return soon

    def _remember(self, t: int, keys: npt.NDArray[np.int64]) -> None:
        self._last = grown(self._last, int(keys.max(initial=-1)) + 1, _NEVER)
        self._last[keys] = np.maximum(self._last[keys], t)
