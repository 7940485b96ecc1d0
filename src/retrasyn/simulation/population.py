"""Simulated devices: from positions to one state per ledger key and timestamp."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError
from retrasyn.interpretation import Interpretation
from retrasyn.messages import ENTERING, MOVING, QUITTING, Grant, Roster, Topic
from retrasyn.privacy.ledger import NEVER
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.run_settings import Outside
from retrasyn.simulation import kernels
from retrasyn.space import Grid, StateSpace
from retrasyn.space.grid import format_box


@dataclass(frozen=True, slots=True)
class Step:
    """The streams present at one timestamp, their cells, and how far they moved if that is asked.

    The distance is a straight line in the data's coordinates, -1 of a stream that begins.
    """

    t: int
    streams: npt.NDArray[np.int32]  # [n_active]
    cells: npt.NDArray[np.uint16]  # [n_active]
    moved: npt.NDArray[np.float32] | None = None  # [n_active]


@dataclass(frozen=True, slots=True)
class Recording:
    """All steps from the first timestamp to the last, empty ones included."""

    first_t: int
    offsets: npt.NDArray[np.int64]  # [n_timestamps + 1]
    streams: npt.NDArray[np.int32]  # [n_points]
    cells: npt.NDArray[np.uint16]  # [n_points]
    n_dropped: int
    mean_length: float  # raw mean number of points of a stream
    moved: npt.NDArray[np.float32] | None = None  # [n_points], see `Step`

    @classmethod
    def of(
        cls,
        real: Trajectories,
        grid: Grid,
        outside: Outside = "refuse",
        topics: Sequence[Topic] = (),
    ) -> "Recording":
        """Put trajectories on a grid; points outside the box are refused, or dropped on request.

        Dropping a point in the middle of a stream makes its device quit and enter again. Distances
        are kept only if `topics`, what devices are asked about, need them.
        """
        cells, n_outside = grid.locate(real.x, real.y)
        if n_outside and outside == "refuse":
            raise InputError(
                f"{n_outside} of {real.n_points} points lie outside the box "
                f'{format_box(grid.box)}; widen `box`, or drop them with `outside="drop"`'
            )
        if n_outside == real.n_points:
            raise InputError(f"no point lies inside the box {format_box(grid.box)}; check `box`")
        first_t = real.first_t
        begins, mean_length = real.begins - first_t, real.n_points / real.n_streams
        offsets, streams, grouped = kernels.group_by_time(
            real.starts, begins, cells, real.last_t - first_t + 1
        )
        moved = None
        if "faster" in topics:
            moved = kernels.distances_by_time(real.starts, begins, cells, real.x, real.y, offsets)
        return cls(first_t, offsets, streams, grouped, n_outside, mean_length, moved)

    @property
    def n_timestamps(self) -> int:
        """Number of timestamps."""
        return self.offsets.size - 1

    def step(self, t: int) -> Step:
        """Return the step of timestamp t."""
        low, high = self.offsets[t - self.first_t : t - self.first_t + 2]
        moved = None if self.moved is None else self.moved[low:high]
        return Step(t, self.streams[low:high], self.cells[low:high], moved)

    def steps(self, *, after: int | None = None, until: int | None = None) -> Iterator[Step]:
        """Iterate over all steps, or those after or up to a timestamp."""
        begin = self.first_t if after is None else after + 1
        end = self.first_t + self.n_timestamps if until is None else until + 1
        for t in range(begin, end):
            yield self.step(t)


_JUMPS = {"split": kernels.SPLIT, "clamp": kernels.CLAMP, "authors": kernels.AUTHORS}
_NO_STREAMS = np.empty(0, np.int32)
_NO_STATES = np.empty(0, np.int32)


def stable_words(identifiers: Sequence[int | str]) -> npt.NDArray[np.uint64]:
    """Return one word per identifier, derived from it alone, to address its draws.

    >>> stable_words([3, -1]).tolist()
    [3, 18446744073709551615]
    """
    if len(identifiers) and isinstance(identifiers[0], str):
        digests = [hashlib.blake2b(str(i).encode(), digest_size=8).digest() for i in identifiers]
        return np.frombuffer(b"".join(digests), np.uint64)
    return np.asarray(identifiers, np.int64).astype(np.uint64)


def _words_of(
    real: Trajectories, column: str, identifiers: npt.NDArray[Any]
) -> npt.NDArray[np.uint64]:
    """Return the stable words of identifiers; labelled identifiers use their text."""
    labels = real.labels.get(column)
    return stable_words((identifiers if labels is None else labels[identifiers]).tolist())


@dataclass(slots=True)
class Identities:
    """Streams, the ledger keys they charge and the persons behind the keys. Append-only."""

    key_of: npt.NDArray[np.int64]  # [n_streams or more]
    addresses: npt.NDArray[np.uint64]  # [n_keys or more]
    person_of: npt.NDArray[np.int64]  # [n_keys or more]
    n_streams: int
    n_keys: int

    @classmethod
    def none(cls) -> "Identities":
        """Return empty identities."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64), 0, 0)

    @classmethod
    def of(cls, real: Trajectories, ledger: Literal["user", "stream"]) -> "Identities":
        """Number the ledger keys and persons of recorded streams, with a stable word for each."""
        if real.fold is not None and real.fold.by == "person-day":
            return cls._of_person_days(real)
        words = _words_of(real, "traj_id", real.stream_ids)  # [n_streams]
        streams = np.arange(real.n_streams)
        users, user_words = streams, words
        if real.user_of_stream is not None:
            user_ids, users = np.unique(real.user_of_stream, return_inverse=True)
            user_words = _words_of(real, "user_id", user_ids)
        identities = cls.none()
        if ledger == "user":
            identities.add_keys(user_words, np.arange(user_words.size))
            identities.add_streams(users.astype(np.int64))
        else:
            identities.add_keys(words, users.astype(np.int64))
            identities.add_streams(streams)
        return identities

    @classmethod
    def _of_person_days(cls, real: Trajectories) -> "Identities":
        """Number the days of persons as ledger keys, with a word of person and day for each."""
        assert real.fold is not None  # noqa: S101 - asked for folded data only
        assert real.user_of_stream is not None  # noqa: S101 - nothing else is folded
        _, first, keys = np.unique(real.fold.keys, return_index=True, return_inverse=True)
        users, days = real.user_of_stream[first], real.fold.days[first]  # [n_keys]
        names = [
            f"{real.name('user_id', user)} on day {day}"
            for user, day in zip(users.tolist(), days.tolist(), strict=True)
        ]
        identities = cls.none()
        identities.add_keys(stable_words(names), np.unique(users, return_inverse=True)[1])
        identities.add_streams(keys.astype(np.int64))
        return identities

    def add_keys(
        self, words: npt.NDArray[np.uint64], persons: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Add ledger keys; return their numbers."""
        first, self.n_keys = self.n_keys, self.n_keys + words.size
        self.addresses = grown(self.addresses, self.n_keys, 0)
        self.person_of = grown(self.person_of, self.n_keys, 0)
        self.addresses[first : self.n_keys] = words
        self.person_of[first : self.n_keys] = persons
        return np.arange(first, self.n_keys)

    def add_streams(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Add streams that charge the given keys; return their numbers."""
        first, self.n_streams = self.n_streams, self.n_streams + keys.size
        self.key_of = grown(self.key_of, self.n_streams, 0)
        self.key_of[first : self.n_streams] = keys
        return np.arange(first, self.n_streams, dtype=np.int32)

    @property
    def n_persons(self) -> int:
        """Number of persons behind the keys."""
        return int(self.person_of[: self.n_keys].max(initial=-1)) + 1


@dataclass(slots=True)
class SimulatedDevices:
    """The state of all simulated devices: last cell, current state, own slot."""

    identities: Identities
    states: StateSpace
    reading: Interpretation
    gap: int
    seed: int
    everybody_reports: bool  # budget division; determines how a jump is treated in the authors' way
    everybody_enrolled: bool = False  # presence is hidden, so absent devices report too
    size: int = 0  # number of synthetic points the interpretation asks for now
    ages_of_quitters: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    n_entering: int = 0
    _t: int = NEVER
    _keys: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _before: npt.NDArray[np.int32] = field(default_factory=lambda: _NO_STREAMS)
    _ghosts: npt.NDArray[np.int32] = field(default_factory=lambda: _NO_STREAMS)
    _ghost_states: npt.NDArray[np.int32] = field(default_factory=lambda: _NO_STATES)
    _last_t: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _last_cell: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    _seen_t: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _state_of: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    _slot_of: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _entered: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _key_entered: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _present_t: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _key_cell: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    _key_moved: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    _retired: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    def __post_init__(self) -> None:
        self.make_room()

    def make_room(self) -> None:
        """Grow the arrays for identities that were added."""
        n_streams, n_keys = self.identities.n_streams, self.identities.n_keys
        self._last_t = grown(self._last_t, n_streams, NEVER)
        self._last_cell = grown(self._last_cell, n_streams, 0)
        self._seen_t = grown(self._seen_t, n_keys, NEVER)
        self._state_of = grown(self._state_of, n_keys, -1)
        self._slot_of = grown(self._slot_of, n_keys, 0)
        self._entered = grown(self._entered, n_streams, NEVER)
        self._key_entered = grown(self._key_entered, n_keys, NEVER)
        self._present_t = grown(self._present_t, n_keys, NEVER)
        self._key_cell = grown(self._key_cell, n_keys, 0)
        self._retired = grown(self._retired, n_keys, False)

    def observe(self, step: Step) -> None:
        """Advance every device to a timestamp."""
        keys = np.empty(step.streams.size + self._before.size, np.int64)
        jumpers = np.empty(step.streams.size, np.int32)
        ages = np.empty(self._before.size, np.int64)
        states = self.states
        n_keys, n_quits, n_jumps = kernels.observe(
            step.t,
            step.streams,
            step.cells,
            self._before,
            self.identities.key_of,
            self._last_t,
            self._last_cell,
            self._seen_t,
            self._state_of,
            self._slot_of,
            self._entered,
            self._key_entered,
            self.identities.addresses,
            states.move_index,
            *states.grid.rows_and_columns,
            states.n_moves if states.endpoints else -1,
            states.n_moves + states.grid.n_cells,
            _JUMPS[self.reading.jump],
            self.gap,
            np.uint64(address(self.seed, step.t, "coin")),
            np.uint64(address(self.seed, step.t, "slot")),
            keys,
            jumpers,
            ages,
        )
        self._t = step.t
        present = self.identities.key_of[step.streams]
        self._present_t[present] = step.t
        self._key_cell[present] = step.cells  # of a key with two streams, the last one counts
        if step.moved is not None:
            self._key_moved = grown(self._key_moved, self.identities.n_keys, -1)
            self._key_moved[present] = step.moved
        self._keys = keys[:n_keys]
        self.ages_of_quitters = ages[:n_quits]
        self.n_entering = step.streams.size - (self._before.size - n_quits)
        self._before = step.streams
        self.size = step.streams.size
        if self.reading.size_target == "active-and-quitting":
            self.size += n_quits + self._ghosts.size
        if self.reading.jump == "authors" and states.endpoints:
            self._jump_as_authors(step.t, jumpers[:n_jumps])

    def _jump_as_authors(self, t: int, jumpers: npt.NDArray[np.int32]) -> None:
        """Let devices that jumped at the last timestamp enter now, besides their ordinary moves.

        The authors' program turns a jump into a quit at t and an enter at t + 1. Under budget
        division the enter is one more report, as if from a stream of its own; under population
        division the key is never drawn again.
        """
        if self.everybody_reports:
            self._keys = np.concatenate([self._keys, self._open_ghost_keys(t)])
        else:
            self._keys = self._keys[~self._retired[self._keys]]
            self._retired[self.identities.key_of[jumpers]] = True
        self._ghosts = jumpers.copy()
        self._ghost_states = self.states.enters(self._last_cell[jumpers])

    def _open_ghost_keys(self, t: int) -> npt.NDArray[np.int64]:
        """Add a ledger key, in the entering state, for every stream that enters after a jump."""
        identities = self.identities
        owners = identities.key_of[self._ghosts]
        words = words_at(np.uint64(address(self.seed, t, "ghost")), identities.addresses[owners])
        keys = identities.add_keys(words, identities.person_of[owners])
        self.make_room()
        self._state_of[keys] = self._ghost_states
        self._seen_t[keys] = t
        return keys

    def roster(self) -> Roster:
        """Return the keys that have a state now, or all enrolled ones."""
        keys = np.arange(self.identities.n_keys) if self.everybody_enrolled else self._keys
        return Roster(
            keys=keys,
            addresses=self.identities.addresses[keys],
            slots=self._slot_of[keys],
            kinds=None if self.everybody_enrolled else self._kinds(keys),
        )

    def _kinds(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return whether each key enters, moves or quits.

        Decided by presence, not by state: a device that continues is moving even if it jumped.
        Otherwise what a device is asked would reveal that it jumped.
        """
        goes_on = (self._present_t[keys] == self._t) & (self._key_entered[keys] < self._t)
        state = np.where(goes_on, 0, self._state_of[keys])
        first_quit = self.states.n_moves + self.states.grid.n_cells
        enters = (state >= self.states.n_moves) & (state < first_quit)
        return np.select([enters, state >= first_quit], [ENTERING, QUITTING], MOVING).astype(
            np.uint8
        )

    def answers_to(self, grant: Grant) -> npt.NDArray[np.int32]:
        """Return the true answer of every reporter of a grant: a state, a cell, or 0 for yes.

        -1 is no, or null: there is no state or cell. A state counts from the question's first one.
        """
        keys, about = grant.reporters, grant.question.about
        if about == "older":
            age = self._t - self._key_entered[keys] + 1
            return np.where(age > grant.question.threshold, 0, -1).astype(np.int32)
        if about == "present":
            return np.where(self._present_t[keys] == self._t, 0, -1).astype(np.int32)
        here = self._present_t[keys] == self._t
        if about == "faster":
            x0, y0, x1, y1 = self.states.grid.box
            least = grant.question.threshold / 1000 * max(x1 - x0, y1 - y0)
            return np.where(here & (self._key_moved[keys] > least), 0, -1).astype(np.int32)
        if about == "cell":
            return np.where(here, self._key_cell[keys].astype(np.int32), -1)
        n_moves, n_cells = self.states.n_moves, self.states.grid.n_cells
        first = {"enter": n_moves, "quit": n_moves + n_cells}.get(about, 0)
        last = {"move": n_moves, "enter": n_moves + n_cells}.get(about, self.states.n_states)
        state = np.where(self._seen_t[keys] == self._t, self._state_of[keys], -1)
        return np.where((state >= first) & (state < last), state - first, -1).astype(np.int32)

    def persons_of(self, grant: Grant) -> npt.NDArray[np.int64]:
        """Return the person behind every reporter of a grant."""
        return self.identities.person_of[grant.reporters]
