"""Recounts as plain arrays: for checkpoints of a run and snapshots of a service."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import Arrays, with_prefix, without_prefix
from retrasyn.privacy.replay import Replay, Spend


def pack_replay(name: str, replay: Replay) -> dict[str, npt.NDArray[Any]]:
    """Return a recount as plain arrays whose names begin with its own."""
    spends = [*replay.waiting, *replay.opened]
    recent = [
        (place < len(replay.waiting), spend.due, spend.t, spend.epsilon, spend.keys.size)
        for place, spend in enumerate(spends)
    ]
    arrays = {
        "total": replay.total,
        "highest": replay.highest,
        "n_reports": np.array([replay.n_reports], np.int64),
        "recent": np.array(recent, np.int64).reshape(-1, 5),
        "keys": np.concatenate([np.empty(0, np.int64), *(s.keys for s in spends)]),
    }
    return with_prefix(f"{name}_", arrays)


def unpack_replay(name: str, replay: Replay, arrays: Arrays) -> None:
    """Take a recount over from plain arrays."""
    own = without_prefix(f"{name}_", arrays)
    replay.total, replay.highest = own["total"].copy(), own["highest"].copy()
    replay.n_reports = int(own["n_reports"][0])
    recent, keys = own["recent"], own["keys"]
    edges = np.concatenate([[0], np.cumsum(recent[:, 4])]).tolist()
    for (waits, due, t, epsilon, _), a, b in zip(recent, edges, edges[1:], strict=False):
        spends = replay.waiting if waits else replay.opened
        spends.append(Spend(int(due), len(spends), int(t), int(epsilon), keys[a:b]))
    heapq.heapify(replay.waiting)
    heapq.heapify(replay.opened)
