"""Runs workers on a Ray cluster: the only module that imports ray.

Every worker lives in an actor (`engines.host.Host`). Only numpy arrays and plain values are sent.
Actors reserve almost no CPU: their number is chosen to fit the cluster, and after a loss all of
them have to fit on the remaining machines.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from retrasyn.engines.base import Make
from retrasyn.engines.host import KEPT, Host
from retrasyn.errors import CheckpointError, EngineError, MissingExtra

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # avoids a warning about GPUs
try:
    import ray
    from ray.exceptions import ObjectLostError, RayActorError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError:
    raise MissingExtra('ray is not installed: pip install "retrasyn[ray]"') from None

_untyped: Any = ray
_log = logging.getLogger(__name__)
_TRIES = 5  # consecutive losses without an answer in between
_SLICE = 0.001  # of a CPU: with zero, Ray would ignore the requested machine
_LARGE = 1 << 20  # bytes above which an argument is put in the object store once
_HELD = 64 << 20  # bytes of kept questions before a worker is told to save
_T = TypeVar("_T")


def connect(address: str | None) -> None:
    """Join a cluster, or start one on this machine if no address is given; once per process."""
    if ray.is_initialized():
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            ray.init(address="local", include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = "on this machine" if address is None else f"at {address}"
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise EngineError(
            f"no Ray cluster {where} ({first}); start one with: ray start --head"
        ) from None


def n_processors() -> int:
    """Return the number of CPUs in the cluster."""
    return max(int(_untyped.cluster_resources().get("CPU", 1)), 1)


@dataclass(slots=True)
class _Seat:
    """One worker: its actor, and the questions to repeat if the actor is lost."""

    index: int
    actor: Any = None
    node: str = ""  # machine of the actor
    asked: deque[tuple[int, str, tuple[Any, ...]]] = field(default_factory=deque)
    number: int = 0  # number of the last question asked
    pending: Any = None
    n_bytes: int = 0  # size of the questions since a save was requested

    def submit(self, question: str, arguments: tuple[Any, ...], n_bytes: int) -> None:
        """Ask a question without waiting for the answer."""
        self.number += 1
        self.n_bytes += n_bytes
        self.asked.append((self.number, question, arguments))
        self.pending = self.actor.ask.remote(self.number, question, *arguments)

    def trim(self, saved: list[int]) -> None:
        """Drop questions that will never be repeated: those up to the last save but one."""
        if len(saved) >= KEPT:
            while self.asked and self.asked[0][0] <= saved[-KEPT]:
                self.asked.popleft()


@dataclass(slots=True)
class RayEngine:
    """Runs workers as Ray actors; a lost actor is restored elsewhere from its last save."""

    n_workers: int
    folder: Path  # for saves of actors; shared by all machines
    n_threads: int | None = 1
    n_revived: int = 0  # actors that were lost and restored
    _make: Make | None = None
    _seats: list[_Seat] = field(default_factory=list)
    _own: Path | None = None  # subfolder of the current workers

    @classmethod
    def start(
        cls,
        *,
        address: str | None = None,
        n_workers: int | None = None,
        folder: Path | None = None,
    ) -> RayEngine:
        """Join a cluster, or start a local one; by default with one worker per CPU."""
        connect(address)
        place = Path(tempfile.gettempdir()) if folder is None else folder
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineError(
                f"folder {place} cannot be made ({error.strerror}); name another"
            ) from None
        return cls(n_processors() if n_workers is None else n_workers, place.absolute())

    def open(self, make: Make) -> None:
        """Create all workers, replacing existing ones."""
        self.close()
        self._make = make
        self._own = Path(tempfile.mkdtemp(prefix="retrasyn-workers-", dir=self.folder))
        self._seats = [_Seat(index) for index in range(self.n_workers)]
        for seat in self._seats:
            self._place(seat)

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same question."""
        n_bytes = sum(map(_size, arguments))
        if self.n_workers > 1 and n_bytes > _LARGE:
            arguments = tuple(ray.put(one) if _size(one) > _LARGE else one for one in arguments)
        for seat in self._seats:
            seat.submit(question, arguments, n_bytes)
        return [self._answer(seat) for seat in self._seats]

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask once per row of arguments, round-robin over workers."""
        answers: list[Any] = []
        for first in range(0, len(arguments), self.n_workers):
            wave = list(zip(self._seats, arguments[first : first + self.n_workers], strict=False))
            for seat, one in wave:
                seat.submit(question, one, sum(map(_size, one)))
            answers += [self._answer(seat) for seat, _ in wave]
        return answers

    def usage(self) -> list[dict[str, Any]]:
        """Return the machine, process and memory in bytes of every actor."""
        found: list[dict[str, Any]] = ray.get([seat.actor.usage.remote() for seat in self._seats])
        return found

    def close(self) -> None:
        """Drop all workers and delete their saves."""
        for seat in self._seats:
            ray.kill(seat.actor)
        self._seats = []
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = None

    def _place(self, seat: _Seat) -> None:
        """Start an actor; machines take turns, but the one on which it was lost comes last.

        The cluster takes some time to notice that a machine is gone.
        """
        nodes = sorted(node["NodeID"] for node in _untyped.nodes() if node["Alive"])
        nodes = [node for node in nodes if node != seat.node] or nodes
        seat.node = nodes[seat.index % len(nodes)]
        kind = ray.remote(_Actor).options(
            num_cpus=_SLICE,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(seat.node, soft=True),
        )
        seat.actor = kind.remote(self._make, seat.index, self.n_workers, str(self._own))

    def _answer(self, seat: _Seat) -> Any:
        """Wait for an answer, restoring the worker and retrying if it is lost."""
        cause = ""
        for _ in range(_TRIES):
            try:
                with _causes():
                    answer, saved = ray.get(seat.pending)
            except (RayActorError, ObjectLostError) as error:
                _log.warning("worker lost index=%d cause=%s", seat.index, type(error).__name__)
                cause = next((line for line in reversed(str(error).splitlines()) if line), "")
                self._revive(seat)
                continue
            seat.trim(saved)
            if seat.n_bytes > _HELD:
                self._save(seat)
            return answer
        raise EngineError(
            f"worker {seat.index} was lost {_TRIES} times over one question ({cause.strip()}); see "
            "Ray's own logs; all machines need the same version of retrasyn, and enough memory"
        )

    def _save(self, seat: _Seat) -> None:
        """Tell a worker to save, so that fewer questions have to be kept."""
        seat.n_bytes = 0
        with contextlib.suppress(RayActorError):  # the next question will detect the loss
            seat.trim(ray.get(seat.actor.save.remote()))

    def _revive(self, seat: _Seat) -> None:
        """Restore a lost worker and repeat the questions asked since its save."""
        with contextlib.suppress(Exception):  # the actor may still be partly alive
            ray.kill(seat.actor)
        self.n_revived += 1
        self._place(seat)
        try:
            with _causes():
                number = ray.get(seat.actor.restore.remote(seat.number))
        except (RayActorError, ObjectLostError):
            return  # lost again: the pending question will fail, too
        again = [row for row in seat.asked if row[0] > number]
        if [row[0] for row in again] != list(range(number + 1, seat.number + 1)):
            raise CheckpointError(
                f"worker {seat.index} was lost, and {self._own} holds no save it can begin from; "
                "all machines have to see this folder: name a shared one"
            )
        for row_number, question, arguments in again:
            seat.pending = seat.actor.ask.remote(row_number, question, *arguments)


class _Actor(Host):
    """A host that also reports its machine and memory use."""

    def __init__(self, make: Make, index: int, n_workers: int, folder: str) -> None:
        opened = Host.open(make, index, n_workers, folder)
        super().__init__(opened.worker, opened.saves)

    def usage(self) -> dict[str, Any]:
        """Return the machine, process and memory in bytes."""
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return {
            "node": ray.get_runtime_context().get_node_id(),
            "pid": os.getpid(),
            "bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        }


class RayTasks:
    """Runs functions on a cluster, each as a task on one CPU."""

    def __init__(self, address: str | None) -> None:
        connect(address)
        self.n_tasks = n_processors()

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        """Run a function on any machine; all machines need the same files."""
        future: Future[_T] = ray.remote(function).options(num_cpus=1).remote(*arguments).future()
        return future


@contextlib.contextmanager
def _causes() -> Iterator[None]:
    """Re-raise the original exception of a worker."""
    try:
        yield
    except RayTaskError as error:
        raise error.cause from None


def _size(argument: Any) -> int:
    """Return the size in bytes of an array or a dictionary of arrays."""
    if isinstance(argument, dict):
        return sum(_size(value) for value in argument.values())
    return argument.nbytes if isinstance(argument, np.ndarray) else 0
