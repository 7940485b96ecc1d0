"""Arrays in a file with a seal over them: for checkpoints of a run and snapshots of a service."""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.data.writing_files import replacing
from retrasyn.errors import CheckpointError
from retrasyn.privacy.replay import Replay, Spend

Arrays = Mapping[str, npt.NDArray[Any]]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays and their seal, whole or not at all, for the owner's eyes only."""
    sealed = {**arrays, "seal": np.frombuffer(_seal(arrays), np.uint8)}
    with replacing(path, private=True) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **sealed)
        file.flush()
        os.fsync(file.fileno())


def load_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read arrays back, seal included; whatever is not as it was written is damage."""
    try:
        with path.open("rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
    except Exception:  # noqa: BLE001 - a damaged archive can fail in any way
        raise damaged(path) from None
    return arrays


def check_seal(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays that are not those that were written: kernels trust the sizes they get."""
    seal = arrays.pop("seal", np.empty(0, np.uint8))
    if seal.tobytes() != _seal(arrays):
        raise damaged(path)


def _seal(arrays: Arrays) -> bytes:
    """Return a digest of names, shapes and contents."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}/{array.dtype.str}/{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def damaged(path: Path) -> CheckpointError:
    """Return what to raise about a file that is not as it was written."""
    return CheckpointError(f"checkpoint {path} is damaged; remove the folder and start again")


def pack_replay(name: str, replay: Replay) -> dict[str, npt.NDArray[Any]]:
    """Return a recount as plain arrays whose names begin with its own."""
    spends = [*replay.waiting, *replay.opened]
    recent = [
        (place < len(replay.waiting), spend.due, spend.t, spend.epsilon, spend.keys.size)
        for place, spend in enumerate(spends)
    ]
    return {
        f"{name}_total": replay.total,
        f"{name}_highest": replay.highest,
        f"{name}_n_reports": np.array([replay.n_reports], np.int64),
        f"{name}_recent": np.array(recent, np.int64).reshape(-1, 5),
        f"{name}_keys": np.concatenate([np.empty(0, np.int64), *(s.keys for s in spends)]),
    }


def unpack_replay(name: str, replay: Replay, arrays: Arrays) -> None:
    """Take a recount over from plain arrays."""
    replay.total = arrays[f"{name}_total"].copy()
    replay.highest = arrays[f"{name}_highest"].copy()
    replay.n_reports = int(arrays[f"{name}_n_reports"][0])
    recent, keys = arrays[f"{name}_recent"], arrays[f"{name}_keys"]
    edges = np.concatenate([[0], np.cumsum(recent[:, 4])]).tolist()
    for (waits, due, t, epsilon, _), a, b in zip(recent, edges, edges[1:], strict=False):
        spends = replay.waiting if waits else replay.opened
        spends.append(Spend(int(due), len(spends), int(t), int(epsilon), keys[a:b]))
    heapq.heapify(replay.waiting)
    heapq.heapify(replay.opened)
