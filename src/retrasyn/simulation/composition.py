"""Releases of the same recorded data add up: they are counted in a small file beside the data.

The file has a line for every run that gave something away: a digest of its data, a digest of the
run, and what it cost one person. A run is counted, durably, before anything of it leaves. So a
crash may count a release that never was, and never misses one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import math
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrasyn._version import __version__
from retrasyn.bounded_json import parse_json
from retrasyn.errors import BudgetExceeded, InputError, OutputError, SettingError
from retrasyn.files import is_there, write_durably
from retrasyn.messages import MICRO
from retrasyn.privacy.receipt import Composition, describe_composition
from retrasyn.run_settings import RunSettings

SUFFIX = ".spent.json"
FORMAT = 1


class ReleasedBeforeWarning(UserWarning):
    """The same data, or other data of the same owner, was released before."""


def ledger_beside(source: Path) -> Path:
    """Return the path of the file that counts the releases of a data file.

    Links are followed: the same file by another way is the same file.

    >>> ledger_beside(Path("/data/trips.csv")).name
    'trips.csv.spent.json'
    """
    source = source.resolve()
    return source.with_name(f"{source.name}{SUFFIX}")


@dataclass(frozen=True, slots=True)
class CountedRun:
    """One line of the file: a run, its data, and what it cost."""

    data: str  # digest of what was read
    run: str  # digest of data, settings and seed: equal runs give equal points
    method: str
    epsilon: int | None  # micro-nats one person spent over any window; None: not private
    window: int
    guessable: bool  # whether the seed is a number that somebody chose

    @classmethod
    def of(cls, settings: RunSettings, data: str) -> CountedRun:
        """Describe a run before it begins. A random seed is in no line: only its digest is."""
        identity = {
            "retrasyn": __version__,
            "numpy": np.__version__,  # simulated noise is drawn by it
            **dataclasses.replace(settings, replicates=0).to_dict(),  # they give nothing away
            "seed": str(settings.seed),
            "data": data,
        }
        text = json.dumps(identity, sort_keys=True)
        return cls(
            data=data,
            run=hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
            method=settings.method.name,
            epsilon=settings.budget if settings.method.division.private else None,
            window=settings.window,
            guessable=not settings.seed_is_secret,
        )

    def costing(self, spent: int) -> CountedRun:
        """Return a copy that costs at least so much."""
        if self.epsilon is None or self.epsilon >= spent:
            return self
        return dataclasses.replace(self, epsilon=spent)


@dataclass(slots=True)
class ReleaseCount:
    """The count of one run among the releases of its data."""

    place: Path
    run: CountedRun
    budget: int | None  # most micro-nats all releases of the data may cost; None: no limit
    composition: Composition  # foreseen at first, then as counted
    _counted: bool = False

    @classmethod
    def open(
        cls, place: Path, settings: RunSettings, data: str, *, budget: float | None = None
    ) -> ReleaseCount:
        """Look up what was released before and say it; refuse what would exceed the budget."""
        most = None if budget is None else _micro(budget)
        _check_writable(place)
        run = CountedRun.of(settings, data)
        lines = _read(place)
        composition = _compose(_add(lines, run), run, most, place)
        said = []
        if composition.n_releases > 1:
            said.append(describe_composition(composition, window=run.window))
        if others := sum(line.data != data for line in lines):
            said.append(f"{others:,} of other data: whoever is in both has spent on both")
        if said:
            text = f"{'; '.join(said)} (counted in {place})"
            warnings.warn(text, ReleasedBeforeWarning, stacklevel=3)
        return cls(place, run, most, composition)

    def cover(self, spent: int) -> Composition:
        """Count the run, before anything of it leaves, as costing at least so many micro-nats.

        Called again, it does something only if somebody has spent more since.
        """
        run = self.run.costing(spent)
        if not self._counted or run != self.run:
            with _locked(self.place):
                lines = _read(self.place)
                after = _add(lines, run)
                self.composition = _compose(after, run, self.budget, self.place)
                if after != lines:
                    _write(self.place, after)
            self.run, self._counted = run, True
        return self.composition


def _micro(budget: float) -> int:
    """Return a budget for all releases in micro-nats, rounded down."""
    if not math.isfinite(budget) or budget <= 0:
        raise SettingError(f"budget={budget:g} must be a number above 0, such as 3")
    return int(budget * MICRO + 1e-6)


def _add(lines: list[CountedRun], run: CountedRun) -> list[CountedRun]:
    """Return the lines with a run; one that is there already stays a single line."""
    if all(line.run != run.run for line in lines):
        return [*lines, run]
    return [line.costing(run.epsilon or 0) if line.run == run.run else line for line in lines]


def _compose(
    lines: list[CountedRun], run: CountedRun, budget: int | None, place: Path
) -> Composition:
    """Add up the releases of a run's data; refuse more than the budget."""
    same = [line for line in lines if line.data == run.data]
    spends = [line.epsilon for line in same]
    total = None if None in spends else sum(spend or 0 for spend in spends)
    if budget is not None and (total is None or total > budget):
        what = "no bound, as one is not private" if total is None else f"{total / MICRO:.12g}"
        raise BudgetExceeded(
            f"release {len(same)} of this data would bring its epsilon to {what}, "
            f"above `budget={budget / MICRO:.12g}`; {place} lists the releases so far: publish "
            "what there is, or raise the budget"
        )
    return Composition(
        n_releases=len(same),
        epsilon=None if total is None else total / MICRO,
        window=min(line.window for line in same),
        n_unprotected=sum(line.guessable or line.epsilon is None for line in same),
    )


def _check_writable(place: Path) -> None:
    """Refuse a place at which releases could not be counted, by trying to make a file there."""
    try:
        with tempfile.TemporaryFile(prefix=f".{place.name}.", dir=place.parent):
            return
    except OSError as error:
        raise OutputError(
            f"{place}, where releases of this data are counted, cannot be written "
            f"({error.strerror}); name another place as `ledger_file`"
        ) from None


def _read(place: Path) -> list[CountedRun]:
    """Read all lines; a file that is not as it was written is refused."""
    try:
        if not is_there(place):
            return []
        return _lines(parse_json(place.read_bytes()))
    except OSError as error:
        raise InputError(f"{place} cannot be read ({error.strerror})") from None
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{place}, where releases of this data are counted, is damaged; put it back from a "
            "copy, or count anew elsewhere with another `ledger_file`"
        ) from None


def _lines(values: Any) -> list[CountedRun]:
    """Return the lines of a file; what `_write` does not write raises."""
    if values["format_version"] != FORMAT or type(values["releases"]) is not list:
        raise ValueError("other format")
    lines = [CountedRun(**entry) for entry in values["releases"]]
    for line in lines:
        numbers = (line.window, 1 if line.epsilon is None else line.epsilon)
        fine = (
            all(type(text) is str for text in (line.data, line.run, line.method))
            and all(type(number) is int and number > 0 for number in numbers)
            and type(line.guessable) is bool
        )
        if not fine:
            raise ValueError("odd line")
    return lines


def _write(place: Path, lines: list[CountedRun]) -> None:
    """Write all lines at once and durably; only the owner of the data may read them."""
    told = {
        "format_version": FORMAT,
        "about": "Counts the releases of recorded data. Keep it beside the data, as private.",
        "releases": [dataclasses.asdict(line) for line in lines],
    }
    write_durably(place, (json.dumps(told, indent=2) + "\n").encode(), private=True)


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Keep other runs away from the file; nothing is left behind.

    The lock is a file of its own, as the counted one is replaced whole. Whoever waited for a lock
    that was removed meanwhile tries the new one.
    """
    lock = place.with_name(f".{place.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), lock.stat()):
                break
        os.close(handle)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
