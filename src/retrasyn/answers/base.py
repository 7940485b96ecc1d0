"""What every question is made of: what it is broken down by, and values with the key of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from retrasyn.answers.zones import OUTSIDE
from retrasyn.errors import SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.answers.periods import Periods
    from retrasyn.answers.zones import Zones
    from retrasyn.data.metadata import Clock
    from retrasyn.data.trajectories import Trajectories

    Columns = dict[str, npt.NDArray[Any]]

MAX_ROWS = 1_000_000
_DENSE = 1 << 22  # keys that are counted in an array of all of them
_ROWS = 1 << 20  # points looked at together


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """What an answer is broken down by."""

    periods: Periods
    zones: Zones | None = None  # None: everywhere
    top: int = 10  # hotspots of each period
    clock: Clock | None = None
    degrees: bool = False  # whether coordinates are degrees

    @property
    def n_codes(self) -> int:
        """Number of zones, with what is outside."""
        return 1 if self.zones is None else self.zones.n_codes

    def zones_of(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """Return the zone of points: [n_points]."""
        return np.zeros(x.size, np.int32) if self.zones is None else self.zones.locate(x, y)

    def zone_columns(self, **codes: npt.NDArray[np.int64]) -> Columns:
        """Return the names of zones; none if all is one."""
        if self.zones is None:
            return {}
        names = np.array([*self.zones.names, OUTSIDE])
        return {column: names[zones] for column, zones in codes.items()}

    def period_columns(self, periods: npt.NDArray[np.int64]) -> Columns:
        """Return what tells periods."""
        return {name: label[periods] for name, label in self.periods.labels.items()}


@dataclass(frozen=True, slots=True, eq=False)
class KeyedValues:
    """Values by ascending keys; a key that is missing has the value `missing`."""

    keys: npt.NDArray[np.int64]  # [n_rows]
    values: npt.NDArray[np.float64]  # [n_rows]

    def at(
        self, keys: npt.NDArray[np.int64], missing: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return the values of other keys: [n]."""
        if not self.keys.size:
            return missing
        place = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[place] == keys, self.values[place], missing)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One thing that can be asked."""

    name: str
    explanation: str
    zones: Literal["grid", "everywhere"]  # what it is broken down by if nothing is said
    value: str  # what a value is, in words
    tally: Callable[[Trajectories, Breakdown], KeyedValues]
    columns: Callable[[npt.NDArray[np.int64], Breakdown], Columns]
    shape: Literal["zone", "line"] = "zone"  # what stands for a row on a map
    by_day: bool = False  # whether periods are of the day
    sorted_by_value: bool = True  # whether the highest values come first on a terminal
    missing: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]] = lambda keys: np.zeros(
        keys.size
    )
    select: Callable[[KeyedValues, Breakdown], npt.NDArray[np.int64]] | None = None  # rows shown
    rank: Callable[[npt.NDArray[np.float64], npt.NDArray[np.int64], Breakdown], Columns] | None = (
        None
    )


def blocks(data: Trajectories) -> Iterator[Trajectories]:
    """Split data into blocks of whole streams, so that what is made of them stays small."""
    return data.blocks(_ROWS)


def count_keys(found: Iterable[npt.NDArray[np.int64]], n_keys: int) -> KeyedValues:
    """Count how often each key was found; those that were not are left out."""
    if n_keys <= _DENSE:
        counts = np.zeros(n_keys, np.int64)
        for keys in found:
            counts += np.bincount(keys, minlength=n_keys)
        seen = np.flatnonzero(counts)
        return KeyedValues(seen, counts[seen].astype(np.float64))
    parts = [np.unique(keys, return_counts=True) for keys in found]
    seen, places = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    times = np.concatenate([counts for _, counts in parts]) if parts else np.empty(0)
    return check_rows(KeyedValues(seen, np.bincount(places, times, seen.size).astype(np.float64)))


def check_rows(found: KeyedValues) -> KeyedValues:
    """Refuse an answer with too many rows."""
    if found.keys.size > MAX_ROWS:
        raise SettingError(
            f"the answer has {found.keys.size:,} rows, more than {MAX_ROWS:,}; ask for fewer or "
            "larger zones, longer periods or a shorter time"
        )
    return found
