"""Recounts as plain arrays: for checkpoints of a run and snapshots of a service."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import Arrays
from retrasyn.privacy.replay import Replay, Spend


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
