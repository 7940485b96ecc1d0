"""Simulated devices fed one timestamp at a time: real-time use without a server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.data.trajectories import MAX_TIME
from retrasyn.errors import InputError, SettingError
from retrasyn.messages import Release
from retrasyn.privacy.receipt import Receipt, stamp_of
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.accounting import receipt_of
from retrasyn.simulation.composition import ReleaseCount
from retrasyn.simulation.population import Identities, Step, stable_words
from retrasyn.simulation.replicas import Replicas
from retrasyn.simulation.run import Simulation
from retrasyn.space.grid import format_box
from retrasyn.space.kernels import OUTSIDE

Identifier = int | str
MAX_SILENCE = 100_000
"""Maximum number of missing timestamps between two lines."""


@dataclass(slots=True)
class Live:
    """A running simulation that adds identifiers as they appear.

    A traj_id that is absent for a while and returns has quit and entered again; its ledger key
    stays the same.

    >>> from retrasyn import Box, Grid, RunSettings
    >>> live = Live.start(RunSettings.of("uniform-b", grid=Grid(Box(0, 0, 1, 1), 2), window=3))
    >>> [release.n_points for release in live.step(5, ["a", "b"], [0.1, 0.9], [0.1, 0.9])]
    [2]
    >>> [release.t for release in live.step(7, ["a"], [0.1], [0.2])]
    [6, 7]
    """

    settings: RunSettings
    simulation: Simulation
    count: ReleaseCount | None = None  # None: it is not counted among the releases of its data
    repeated: list[Sequence[Release]] = field(default_factory=list)  # by replicas, in the last step
    _streams: dict[Identifier, int] = field(default_factory=dict)
    _persons: dict[Identifier, int] = field(default_factory=dict)
    _keys: dict[Identifier, int] = field(default_factory=dict)
    _user_of: dict[Identifier, Identifier] = field(default_factory=dict)
    _has_users: bool | None = None
    _points: dict[int, tuple[float, float]] = field(default_factory=dict)  # by stream, the last

    @classmethod
    def start(cls, settings: RunSettings) -> Live:
        """Start with no devices."""
        if settings.fold is not None:
            raise SettingError("a running stream has no days to fold yet; record it, or leave fold")
        curator = Curator(settings)
        simulation = Simulation.of(curator, Identities.none())
        simulation.enrols_on_sight = True
        if settings.replicates:
            simulation.replicas = Replicas.of(curator, settings.replicates)
        return cls(settings, simulation)

    def step(
        self,
        t: int,
        traj_id: Sequence[Identifier],
        x: Sequence[float],
        y: Sequence[float],
        user_id: Sequence[Identifier] | None = None,
    ) -> list[Release]:
        """Run timestamp t, and before it the empty timestamps since the last one."""
        if abs(t) > MAX_TIME:
            raise InputError(f"t={t} is beyond {MAX_TIME:,}; number the time steps 0, 1, 2, ...")
        last = self.simulation.curator.state.t
        if last is not None and not last < t <= last + MAX_SILENCE:
            raise InputError(
                f"t={t} follows t={last}; timestamps must ascend, by at most {MAX_SILENCE:,}"
            )
        step = self._sense(t, traj_id, x, y, user_id)
        silent = range(t if last is None else last + 1, t)
        nobody = (np.empty(0, np.int32), np.empty(0, np.uint16))
        steps = [*(Step(then, *nobody) for then in silent), step]
        releases: list[Release] = []
        self.repeated = []
        for one in steps:
            releases.append(self.simulation.step(one))
            self.repeated.append(self.simulation.repeated)
        return releases

    def receipt(self) -> Receipt:
        """Return the receipt of the run so far."""
        return self._receipt()

    def stamp(self) -> dict[str, Any]:
        """Return the short receipt that every release carries; its rounds are only counted."""
        state = self.simulation.curator.state
        return stamp_of(self._receipt(after=state.t), n_rounds=len(state.rounds))

    def _receipt(self, *, after: int | None = None) -> Receipt:
        """Return the receipt so far; from the first release on, the run counts."""
        count, begun = self.count, self.simulation.curator.state.t is not None
        if count is not None and begun:
            count.cover(self.simulation.personal.worst)
        composition = None if count is None else count.composition
        return receipt_of(self.simulation, after=after, composition=composition)

    def _sense(
        self,
        t: int,
        traj_id: Sequence[Identifier],
        x: Sequence[float],
        y: Sequence[float],
        user_id: Sequence[Identifier] | None,
    ) -> Step:
        """Validate one timestamp's positions and put them on the grid."""
        n = len(traj_id)
        lengths = {"x": len(x), "y": len(y), "user_id": n if user_id is None else len(user_id)}
        for name, length in lengths.items():
            if length != n:
                raise InputError(f"{name} has {length} entries, traj_id has {n}")
        if n and self._has_users not in (None, user_id is not None):
            raise InputError("user_id must be given at every timestamp or at none")
        xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
            raise InputError("x and y must be finite numbers")
        for name, values in (("traj_id", traj_id), ("user_id", user_id or ())):
            if len(set(values)) != len(values):
                raise InputError(f"{_twins(name, values)} are equal: two points at t={t}; keep one")
        cells, n_outside = self.settings.grid.locate(xs, ys)
        if n_outside and self.settings.outside == "refuse":
            raise InputError(
                f"{n_outside} of {n} points lie outside the box "
                f"{format_box(self.settings.grid.box)}; widen `box`, or drop them with "
                '`outside="drop"`'
            )
        streams = self._number(traj_id, user_id)
        self.simulation.n_points_dropped += n_outside
        inside = cells != OUTSIDE
        moved = None
        if "faster" in self.settings.method.topics:
            moved = self._moved(t, streams[inside], xs[inside], ys[inside])
        return Step(t, streams[inside], cells[inside], moved)

    def _moved(
        self,
        t: int,
        streams: npt.NDArray[np.int32],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.float32]:
        """Return how far each stream moved since t - 1, and keep its point for t + 1."""
        before = self._points if self.simulation.curator.state.t == t - 1 else {}
        points = zip(x.tolist(), y.tolist(), strict=True)
        self._points = dict(zip(streams.tolist(), points, strict=True))
        return np.array(
            [
                math.dist(before[stream], point) if stream in before else -1.0
                for stream, point in self._points.items()
            ],
            np.float32,
        )

    def _number(
        self, traj_id: Sequence[Identifier], user_id: Sequence[Identifier] | None
    ) -> npt.NDArray[np.int32]:
        """Return the numbers of streams, adding new ones."""
        users = traj_id if user_id is None else user_id
        for number, (stream, user) in enumerate(zip(traj_id, users, strict=True), 1):
            if self._user_of.setdefault(stream, user) != user:
                raise InputError(
                    f"entry {number}: its traj_id changes its user_id; give each user's part a "
                    "traj_id of its own"
                )
        if traj_id:
            self._has_users = self.simulation.has_users = user_id is not None
        for stream, user in zip(traj_id, users, strict=True):
            if stream not in self._streams:
                self._open(stream, user)
        self.simulation.population.make_room()
        return np.array([self._streams[stream] for stream in traj_id], np.int32)

    def _open(self, stream: Identifier, user: Identifier) -> None:
        """Add a stream, and a person and a ledger key if they are new."""
        identities = self.simulation.population.identities
        person = self._persons.setdefault(user, len(self._persons))
        owner = user if self.settings.interpretation.ledger == "user" else stream
        if owner not in self._keys:
            keys = identities.add_keys(stable_words([owner]), np.array([person]))
            self._keys[owner] = int(keys[0])
        opened = identities.add_streams(np.array([self._keys[owner]]))
        self._streams[stream] = int(opened[0])


def _twins(name: str, values: Sequence[Identifier]) -> str:
    """Name two equal entries by index, so that logs never name a person."""
    seen: dict[Identifier, int] = {}
    for number, value in enumerate(values, 1):
        if value in seen:
            return f"entries {seen[value]} and {number} of {name}"
        seen[value] = number
    raise AssertionError("no two entries are equal")  # pragma: no cover - asked only if there are
