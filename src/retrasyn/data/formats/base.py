"""`Fixes`, which every reader of raw positions yields, and the options of readers.

A reader yields `Rows`, columns as the file has them; `checking.check` turns them into `Fixes`,
columns that can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.errors import InputError, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

LABELS = pa.dictionary(pa.int32(), pa.string())
"""How identifiers are held: every text once, and a number per row."""
WGS84 = "EPSG:4326"
_DEGREES = {"EPSG:4326", "OGC:CRS84", "CRS84", "WGS84"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a raw file is to be read."""

    user: str | None = None  # names of columns; None: found by their usual names
    time: str | None = None
    x: str | None = None
    y: str | None = None
    traj: str | None = None
    timezone: str = "UTC"  # of times without an offset
    numbers: Literal["steps", "seconds"] = "seconds"  # what a number in a time column counts
    on_error: Literal["fail", "skip"] = "fail"
    from_crs: str | None = None  # of x and y, where the file does not say or is wrong

    def __post_init__(self) -> None:
        try:
            pc.assume_timezone(pa.array([0], pa.timestamp("us")), self.timezone)
        except pa.ArrowException:
            raise SettingError(
                f"timezone {self.timezone!r} is not known; use a name such as Asia/Shanghai or UTC"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows of a file, as they stand there: columns of one length."""

    path: Path
    user: pa.Array
    time: pa.Array
    x: pa.Array
    y: pa.Array
    trip: pa.Array | None = None
    lines: npt.NDArray[np.int64] | None = None  # [n_rows], where each row stands
    place: str = "line"  # what `lines` counts
    names: dict[str, str] = field(default_factory=dict)  # what the file calls its columns
    crs: str | None = None
    steps: bool = False  # time is a step already, whatever the options say
    n_skipped: int = 0  # rows left out before these


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """Positions in columns: who, when, where; every row is good."""

    user: pa.DictionaryArray  # [n_fixes], of LABELS
    time: npt.NDArray[np.int64]  # [n_fixes], microseconds since 1970 UTC, or a step
    x: npt.NDArray[np.float64]  # [n_fixes]
    y: npt.NDArray[np.float64]  # [n_fixes]
    trip: pa.DictionaryArray | None = None  # [n_fixes], of LABELS
    kind: Literal["steps", "instants"] = "instants"
    zoned: bool | None = None  # whether times had an offset; None where that means nothing
    crs: str | None = None
    path: Path = Path()
    n_skipped: int = 0

    @property
    def n_fixes(self) -> int:
        """Number of positions."""
        return self.x.size


Read = Callable[[Path, Options], Iterator[Fixes]]


def refusal(path: Path, line: int | None, message: str, place: str = "line") -> InputError:
    """Say what is wrong and where.

    >>> str(refusal(Path("a.csv"), 3, "x is empty"))
    'a.csv, line 3: x is empty'
    """
    where = "" if line is None else f", {place} {line}"
    return InputError(f"{path}{where}: {message}")


def is_degrees(crs: str | None) -> bool:
    """Whether a coordinate system is longitude and latitude in degrees, as far as we can tell."""
    return crs is not None and crs.upper() in _DEGREES


def labels(column: Any) -> pa.DictionaryArray:
    """Return identifiers as LABELS, whatever type the file holds them in."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.type == LABELS:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    coded = column.dictionary_encode()  # texts are made once per identifier, not once per row
    texts = coded.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int32()), texts)


def constant(text: str, n_rows: int) -> pa.DictionaryArray:
    """Return one identifier for all rows."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n_rows, np.int32)), pa.array([text], pa.string())
    )
