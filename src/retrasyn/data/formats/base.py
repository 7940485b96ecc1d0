"""`Fixes`, the output of every reader of raw positions, and the options of readers.

A reader produces `Rows`, the unchecked columns of a file; `checking.check` turns them into
validated `Fixes`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.understanding import FILE, FOLDER, Columns, Understanding
from retrasyn.errors import InputError, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

LABELS = pa.dictionary(pa.int32(), pa.string())
"""Arrow type of identifiers: each distinct text once, and an index per row."""
_USUAL = Columns("user", "time", "x", "y")
_DEGREES = {"EPSG:4326", "OGC:CRS84", "CRS84", "WGS84"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options for reading a raw file."""

    user: str | None = None  # column names; None: find them by their usual names
    time: str | None = None
    x: str | None = None
    y: str | None = None
    traj: str | None = None
    date: str | None = None  # in the place of time: a column of dates,
    clock: str | None = None  # and one of times of day
    timezone: str = "UTC"  # for times without an offset
    time_format: str | None = None  # of strptime; None: ISO 8601 and what else is unambiguous
    decimal: Literal[".", ","] = "."
    numbers: Literal["steps", "seconds"] = "seconds"  # unit of numbers in a time column
    on_error: Literal["fail", "skip"] = "fail"
    from_crs: str | None = None  # CRS of x and y, if missing or wrong in the file

    def __post_init__(self) -> None:
        if (self.date is None) != (self.clock is None) or (self.date and self.time):
            raise SettingError(
                "`date` and `clock` stand together, in the place of `time`; name both columns"
            )
        if self.decimal not in {".", ","}:
            raise SettingError(f"`decimal` {self.decimal!r} is neither a point nor a comma")
        if self.time_format is not None:
            _check_format(self.time_format)
        try:
            pc.assume_timezone(pa.array([0], pa.timestamp("us")), self.timezone)
        except pa.ArrowException:
            raise SettingError(
                f"timezone {self.timezone!r} is not known; use a name such as Asia/Shanghai or UTC"
            ) from None


def _check_format(form: str) -> None:
    """Reject a format that strptime cannot have made, or that gives no date."""
    some = dt.datetime(2020, 12, 31, 23, 59, 58, 123456, dt.UTC)
    try:
        read = dt.datetime.strptime(some.strftime(form), form)  # noqa: DTZ007 - compared by date
    except ValueError as error:
        raise SettingError(
            f"`time_format` {form!r} is not understood ({error}); write, for example, "
            "'%d/%m/%Y %H:%M:%S'"
        ) from None
    if read.date() != some.date():
        raise SettingError(
            f"`time_format` {form!r} has no year, month and day; where they stand in another "
            'column, name both: `date="COLUMN"` and `clock="COLUMN"`'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Unchecked rows of a file, as columns of equal length."""

    path: Path
    user: pa.Array
    time: pa.Array
    x: pa.Array
    y: pa.Array
    trip: pa.Array | None = None
    lines: npt.NDArray[np.int64] | None = None  # [n_rows], position of each row in the file
    place: str = "line"  # what `lines` counts
    columns: Columns = _USUAL  # as the file names them
    crs: str | None = None
    day_first: bool | None = None  # order of dates such as 31/12/2020; None: there are none
    steps: bool = False  # times are already steps, whatever the options say
    n_skipped: int = 0  # rows dropped before these


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """Validated positions as columns: user, time, x and y."""

    user: pa.DictionaryArray  # [n_fixes], of LABELS
    time: npt.NDArray[np.int64]  # [n_fixes], microseconds since 1970 UTC, or a step
    x: npt.NDArray[np.float64]  # [n_fixes]
    y: npt.NDArray[np.float64]  # [n_fixes]
    trip: pa.DictionaryArray | None = None  # [n_fixes], of LABELS
    kind: Literal["steps", "instants"] = "instants"
    zoned: bool | None = None  # whether times had an offset; None if not applicable
    crs: str | None = None
    path: Path = Path()
    n_skipped: int = 0
    understood: Understanding | None = None

    @property
    def n_fixes(self) -> int:
        """Number of positions."""
        return self.x.size


Read = Callable[[Path, Options], Iterator[Fixes]]


@dataclass(frozen=True, slots=True)
class Format:
    """A raw file format and its reader."""

    name: str
    summary: str
    read: Read
    columns: tuple[str, ...] = ()  # options about columns that fit it
    suffixes: tuple[str, ...] = ()  # suffixes unique to this format


def refusal(path: Path, line: int | None, message: str, place: str = "line") -> InputError:
    """Return an error that names the file, the line and the problem.

    >>> str(refusal(Path("a.csv"), 3, "x is empty"))
    'a.csv, line 3: x is empty'
    """
    where = "" if line is None else f", {place} {line}"
    return InputError(f"{path}{where}: {message}")


def bad_row(path: Path, line: int | None, message: str, place: str = "line") -> InputError:
    """Return a refusal of a row that could be left out."""
    return refusal(path, line, f'{message}; `on_error="skip"` leaves such rows out', place)


def stem(path: Path) -> str:
    """Return a file's name without its suffixes.

    >>> stem(Path("a/run.gpx.gz"))
    'run'
    """
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def owner_of(path: Path, columns: Columns) -> str:
    """Return the person whose file or folder it is; empty if a column names persons."""
    if columns.owner == FOLDER:
        return path.absolute().parent.name
    return stem(path) if columns.owner == FILE else ""


def is_degrees(crs: str | None) -> bool:
    """Whether a coordinate system is known to be longitude and latitude in degrees."""
    return crs is not None and crs.upper() in _DEGREES


def labels(column: Any) -> pa.DictionaryArray:
    """Return identifiers of any type as LABELS."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.type == LABELS:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    coded = column.dictionary_encode()  # formats each identifier once, not each row
    texts = coded.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int32()), texts)


def constant(text: str, n_rows: int) -> pa.DictionaryArray:
    """Return n_rows copies of one identifier."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n_rows, np.int32)), pa.array([text], pa.string())
    )
