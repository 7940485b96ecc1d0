"""Ctrl-C between two timestamps, and a progress bar."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def saying_stopped(consequence: str = "nothing was written") -> Iterator[None]:
    """Say what it means when Ctrl-C ends a command; the innermost knows best, and says it alone."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not stop.args:
            sys.stderr.write(f"stopped: {consequence}\n")
            stop.args = (consequence,)
        raise


@contextmanager
def interruptible_progress(
    quiet: bool, *, unit: str = "timestamps"
) -> Iterator[Callable[..., None]]:
    """Give a progress callback that draws a bar and turns Ctrl-C into a clean stop.

    It takes how much is done, of how much, and of what if that is something else than `unit`.
    The first Ctrl-C lets the timestamp in hand finish; a second one does not wait.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    asked: list[int] = []

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        del frame
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    task = bar.add_task(unit, total=None, rate="")

    def progress(done: int, total: int, unit: str = unit) -> None:
        speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
        rate = f"{speed:,.0f}/s" if speed else ""
        bar.update(task, completed=done, total=total, rate=rate, description=unit)
        if asked:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # whoever started us may want Ctrl-C ignored
        signal.signal(signal.SIGINT, ask_to_stop)
    try:
        with bar:
            yield progress
        if asked:  # after the last timestamp, but before anything was written
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)
