"""Runs missing cells in several processes and stores each result immediately."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from retrasyn.data.trajectories import Trajectories
from retrasyn.experiments.cells import Cell, ResultFile, Timing
from retrasyn.experiments.measuring import clock, measure
from retrasyn.experiments.sources import DataSource

Told = Callable[[str, int, int], None]
"""Called with the last finished run, the number of finished runs and their total."""
Rows = list[dict[str, float]]
Keep = Callable[["Task", Rows], None]
Running = dict[Future[Rows], "Task"]


class Pool(Protocol):
    """Runs tasks in parallel: in processes of this machine, or on a cluster."""

    def submit(self, function: Callable[[Task], Rows], task: Task, /) -> Future[Rows]:
        """Schedule a task; return the future of its rows."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class Task:
    """Cells that differ only in their span, so that one run serves them all."""

    source: DataSource
    cells: tuple[Cell, ...]

    @property
    def label(self) -> str:
        """A short label for the progress display."""
        cell = self.cells[0]
        reading = " as the authors run it" if cell.faithful else ""
        return (
            f"{cell.data} {cell.method}{reading}, epsilon {cell.epsilon:g}, w {cell.window}, "
            f"K {cell.side}, seed {cell.seed}"
        )


def tasks_for(cells: Iterable[Cell], done: Iterable[Cell], sources: list[DataSource]) -> list[Task]:
    """Group missing cells into runs: data set by data set, otherwise in the given order."""
    missing = dict.fromkeys(cells)
    for cell in done:
        missing.pop(cell, None)
    by_run: dict[Cell, list[Cell]] = {}
    for cell in missing:
        by_run.setdefault(cell.run, []).append(cell)
    return [
        Task(source, tuple(group))
        for source in sources
        for run, group in by_run.items()
        if run.data == source.name
    ]


def run_cells(
    tasks: list[Task],
    store: ResultFile[Cell],
    *,
    jobs: int,
    told: Told,
    stopping: Callable[[], None] = lambda: None,
    pool: Pool | None = None,
) -> None:
    """Run all tasks, in the given pool or in a pool of processes, storing each as it finishes.

    With several processes the first Ctrl-C calls `stopping` and lets running tasks finish.
    """
    done = 0

    def keep(task: Task, rows: Rows) -> None:
        nonlocal done
        for cell, row in zip(task.cells, rows, strict=True):
            store.append(cell, row)
        done += 1
        told(task.label, done, len(tasks))

    if pool is not None:
        _run_in_pool(tasks, pool, jobs, keep, stopping)
        return
    if jobs > 1 and len(tasks) > 1:
        with _threads_shared(jobs), _pool(jobs) as processes:
            _run_in_pool(tasks, processes, jobs, keep, stopping)
        return
    for task in tasks:
        keep(task, work(task))


def _run_in_pool(
    tasks: list[Task], pool: Pool, jobs: int, keep: Keep, stopping: Callable[[], None]
) -> None:
    """Keep `jobs` processes busy until all tasks are done."""
    running: Running = {}
    try:
        for task in tasks:
            running[pool.submit(work, task)] = task
            if len(running) > jobs:  # one task is always queued, so that no process is ever idle
                _keep_finished(running, keep)
        while running:
            _keep_finished(running, keep)
    except KeyboardInterrupt:
        stopping()
        _finish_runs_in_hand(running, keep)
        raise


def _finish_runs_in_hand(running: Running, keep: Keep) -> None:
    """Cancel queued tasks and store running ones as they finish; a second Ctrl-C does not wait."""
    try:
        hands = {future: task for future, task in running.items() if not future.cancel()}
        while hands:
            _keep_finished(hands, keep)
    except KeyboardInterrupt:
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _keep_finished(running: Running, keep: Keep) -> None:
    """Wait until a run finishes, and store it."""
    finished, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in finished:
        keep(running.pop(future), future.result())


_loaded: dict[DataSource, Trajectories] = {}  # the data set this process read last


def work(task: Task) -> Rows:
    """Run one task; return its rows."""
    began = time.perf_counter()
    rows = measure(load(task.source), task.cells)
    rows[0]["seconds"] = time.perf_counter() - began
    return rows


def load(source: DataSource) -> Trajectories:
    """Read a data set, unless it was the last one read."""
    if source not in _loaded:
        _loaded.clear()
        _loaded[source] = source.read()
    return _loaded[source]


def run_timings(
    timings: list[Timing], store: ResultFile[Timing], sources: list[DataSource], *, told: Told
) -> None:
    """Run the timed runs one after the other, alone on the machine."""
    by_name = {source.name: source for source in sources}
    for done, timing in enumerate(timings, start=1):
        store.append(timing, clock(load(by_name[timing.data]), timing))
        label = f"{timing.data} {timing.method}, K {timing.side}, {timing.share:.0%} of the users"
        told(f"stopwatch: {label}", done, len(timings))


def _pool(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)


def _begin() -> None:
    """Ignore Ctrl-C, which the parent handles, and exit when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _threads_shared(jobs: int) -> Iterator[None]:
    """Divide the cores among the processes; results do not depend on it."""
    name = "NUMBA_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = str(max((os.cpu_count() or 1) // jobs, 1))
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
