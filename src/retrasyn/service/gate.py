"""Judges frames before they are written: who sent them, for which round, and whether it is theirs.

Not for two threads: the service calls it from its event loop only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Manifest
from retrasyn.service.store import RoundRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Everything a round has accepted, durable or about to be."""

    answers: Mapping[int, tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]
    """By question code: bits [n, bytes] and keys [n], by ascending key."""
    kinds: npt.NDArray[np.uint8]  # [n_heartbeats], ENTERING, MOVING or QUITTING
    keys: npt.NDArray[np.int64]  # [n_heartbeats], ascending
    marks: bytes  # for `Store.fold`: who reported, and the tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What becomes of each frame once what is to be written is durable."""

    codes: npt.NDArray[np.uint8]  # [n_frames], numbers of `wire.frames.STATUSES`
    blobs: Sequence[tuple[int, bytes]]  # (t, what to append)

    @property
    def statuses(self) -> list[str]:
        """The names of the codes."""
        raise NotImplementedError


class Gate:
    """Knows the devices and the rounds that are open or not yet folded."""

    def __init__(self, manifest: Manifest, id: bytes) -> None:  # noqa: A002 - the wire's name
        raise NotImplementedError

    def add_device(self, key: int, device: bytes, secret: bytes) -> None:
        """Let a device in."""

    def remove_device(self, device: bytes) -> None:
        """Refuse a device from now on; what it sent before still counts."""

    def open_round(self, row: RoundRow) -> None:
        """Take reports for a round from its opening to its end."""

    def close_round(self, t: int) -> None:
        """Take nothing more for a round, whatever the clock says."""

    def forget_round(self, t: int) -> None:
        """Drop a folded round; who reported in it is remembered for the gap."""

    def restore(self, t: int, blobs: Iterable[bytes]) -> None:
        """Set a round back to exactly what the store holds of it."""

    def restore_marks(self, t: int, marks: bytes) -> None:
        """Remember who reported in a round that was folded before a restart."""

    def judge(self, frames: Sequence[bytes], now: float) -> Verdicts:
        """Judge frames, and remember those that are accepted."""
        raise NotImplementedError

    def judge_batch(self, body: bytes, now: float) -> Verdicts:
        """Judge a `wire.batches` body; a `WireError` if it is none."""
        raise NotImplementedError

    def taken(self, t: int) -> Taken:
        """Return what a round has accepted."""
        raise NotImplementedError

    @property
    def marks_kept(self) -> int:
        """For how many timestamps marks matter; `forget_before` is t less this."""
        raise NotImplementedError
