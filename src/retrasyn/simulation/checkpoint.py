"""Checkpoints of a run over recorded data: computed state only, never the recorded positions.

A folder holds one `state.npz`, replaced atomically, and numbered parts with the points released
since the previous state. Raw positions are never stored: on resuming, the simulated devices
replay the input, which is cheap.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn._version import __version__
from retrasyn.arrays import check_seal, damaged, load_arrays, save_arrays
from retrasyn.bounded_json import parse_json
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import CheckpointError
from retrasyn.files import is_there
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.accounting import AccountedRun
from retrasyn.sinks.collected import Collected, Snapshot
from retrasyn.sinks.parts import Scattered

FORMAT = 4
EVERY_SECONDS = 2.0
REPLICAS = "replicas"  # the folder in a checkpoint's with the points of replicas
_OTHERS = {
    "data": "other data; use the same input",
    "public_map": "another public map, or none; use the same `roads` and `prior`",
}


@dataclass(slots=True)
class Checkpoint:
    """The checkpoint folder of a run."""

    folder: Path
    settings: RunSettings  # of the run, with the seed it was begun with
    configuration: dict[str, Any]  # what a saved state must agree with to be resumed
    resumes: bool = False  # whether the folder holds a state to resume from
    n_parts: int = 0
    n_saved: int = 0  # snapshots already in parts
    _due: float = field(default_factory=lambda: time.monotonic() + EVERY_SECONDS)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        settings: RunSettings,
        about: Mapping[str, str],
        *,
        resume: bool,
    ) -> Checkpoint:
        """Prepare a folder; an unfinished run in it is resumed only if `resume` is set.

        A run is identified by its settings and by what `about` says of its input and output.
        """
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint folder {path} cannot be made ({error.strerror}); name another"
            ) from None
        described = {
            "format": FORMAT,
            "retrasyn": __version__,
            "numpy": np.__version__,  # simulated noise is drawn by it
            **settings.to_dict(),
            **about,
        }
        checkpoint = cls(path, settings, json.loads(json.dumps(described)))
        if not checkpoint.exists:
            return checkpoint
        header = checkpoint._header()
        if header["finished"] and not resume:
            return checkpoint
        if not resume:
            raise CheckpointError(
                f"checkpoint folder {path} holds an unfinished run; "
                "go on with it by `resume=True`, or name another folder"
            )
        checkpoint._check(header["configuration"])
        checkpoint.settings = RunSettings.from_dict(
            header["configuration"],
            row=settings.method,
            seed=header["secret"],
            public_map=settings.public_map,
        )
        checkpoint.resumes = True
        return checkpoint

    @property
    def exists(self) -> bool:
        """Whether the folder holds a state."""
        return is_there(self._state)

    @property
    def _state(self) -> Path:
        return self.folder / "state.npz"

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.npz"

    def due(self) -> bool:
        """Tell whether it is time to save."""
        return time.monotonic() >= self._due

    def save(
        self, run: AccountedRun, collected: Collected | Scattered, *, finished: bool = False
    ) -> None:
        """Write the new points, then the state that refers to them."""
        run.curator.state.streams.flush()
        fresh = collected.snapshots[self.n_saved :]
        if fresh:
            save_arrays(self._part(self.n_parts), _pack_snapshots(fresh))
            self.n_parts += 1
            self.n_saved = len(collected.snapshots)
        header = {
            "configuration": self.configuration,
            "secret": self.settings.seed,
            "n_parts": self.n_parts,
            "finished": finished,
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
            **run.curator.state.to_arrays(),
            **run.declared.to_arrays("declared"),
            **run.personal.to_arrays("personal"),
        }
        if run.replicas is not None:
            arrays |= run.replicas.to_arrays()
        save_arrays(self._state, arrays)
        self._due = time.monotonic() + EVERY_SECONDS

    def load(self, run: AccountedRun, collected: Collected | Scattered) -> None:
        """Restore a run to where it was saved."""
        arrays = load_arrays(self._state)
        check_seal(self._state, arrays)
        run.curator.state.load_arrays(arrays)
        run.declared.load_arrays("declared", arrays)
        run.personal.load_arrays("personal", arrays)
        if run.replicas is not None:
            run.replicas.load_arrays(arrays)
        self.n_parts = int(self._header()["n_parts"])
        for number in range(self.n_parts):
            part = load_arrays(self._part(number))
            check_seal(self._part(number), part)
            collected.snapshots += _unpack_snapshots(part)
        self.n_saved = len(collected.snapshots)

    def _header(self) -> dict[str, Any]:
        """Read the header of the saved state."""
        try:
            header = parse_json(load_arrays(self._state)["header"].tobytes())
            return {
                "configuration": dict(header["configuration"]),
                "secret": int(header["secret"]),
                "n_parts": int(header["n_parts"]),
                "finished": bool(header["finished"]),
            }
        except (KeyError, ValueError, TypeError):
            raise damaged(self._state) from None

    def _check(self, saved: Mapping[str, Any]) -> None:
        """Refuse the checkpoint of a different run, naming the first difference."""
        for name, then, now in _differences(saved, self.configuration):
            what = f"{name}={then!r}, this run has {now!r}; use the same settings"
            raise CheckpointError(
                f"checkpoint in {self.folder} was made with {_OTHERS.get(name, what)}, or another "
                "folder"
            )


def _differences(
    saved: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the entries in which two configurations differ, one level deep."""
    # Another format explains all else; what being faithful changes says more than that word.
    order = {"format": 0, "faithful": 2}
    for name in sorted(saved.keys() | now.keys(), key=lambda name: (order.get(name, 1), name)):
        ours, theirs = now.get(name), saved.get(name)
        if isinstance(ours, dict) and isinstance(theirs, dict) and name not in _OTHERS:
            yield from _differences(theirs, ours)
        elif ours != theirs:
            yield name, theirs, ours


def fingerprint(real: Trajectories) -> str:
    """Return a short digest of all points, which ties a checkpoint to its input."""
    digest = hashlib.blake2b(digest_size=16)
    columns = [real.stream_ids, real.begins, real.starts, real.x, real.y]
    if real.user_of_stream is not None:
        columns.append(real.user_of_stream)
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    for name, texts in real.labels.items():  # draws are addressed by the original labels
        digest.update("\0".join([name, *texts.tolist()]).encode())
    return digest.hexdigest()


def _pack_snapshots(snapshots: list[Snapshot]) -> dict[str, npt.NDArray[Any]]:
    return {
        "times": np.array([(s.t, s.ids.size, s.n_born) for s in snapshots], np.int64),
        "ids": np.concatenate([s.ids for s in snapshots]),
        "x": np.concatenate([s.x for s in snapshots]),
        "y": np.concatenate([s.y for s in snapshots]),
    }


def _unpack_snapshots(arrays: Mapping[str, npt.NDArray[Any]]) -> list[Snapshot]:
    edges = np.concatenate([[0], np.cumsum(arrays["times"][:, 1])]).tolist()
    return [
        Snapshot(int(t), arrays["ids"][a:b], arrays["x"][a:b], arrays["y"][a:b], int(n_born))
        for (t, _, n_born), a, b in zip(arrays["times"], edges, edges[1:], strict=False)
    ]


def discard(folder: str | os.PathLike[str]) -> None:
    """Delete the checkpoint in a folder, and the folder if nothing else is in it."""
    path = Path(folder)
    for file in [*path.glob("state.npz"), *path.glob("part-??????.npz")]:
        file.unlink()
    shutil.rmtree(path / REPLICAS, ignore_errors=True)
    with contextlib.suppress(OSError):  # not empty, or in use
        path.rmdir()
