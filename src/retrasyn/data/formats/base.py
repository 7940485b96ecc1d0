"""`Fixes`, the output of every reader of raw positions, and the options of readers.

A reader produces `Rows`, the unchecked columns of a file; `checking.check` turns them into
validated `Fixes`.
"""

from __future__ import annotations

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
    timezone: str = "UTC"  # for times without an offset
    numbers: Literal["steps", "seconds"] = "seconds"  # unit of numbers in a time column
    on_error: Literal["fail", "skip"] = "fail"
    from_crs: str | None = None  # CRS of x and y, if missing or wrong in the file

    def __post_init__(self) -> None:
        try:
            pc.assume_timezone(pa.array([0], pa.timestamp("us")), self.timezone)
        except pa.ArrowException:
            raise SettingError(
                f"timezone {self.timezone!r} is not known; use a name such as Asia/Shanghai or UTC"
            ) from None


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


def refusal(path: Path, line: int | None, message: str, place: str = "line") -> InputError:
    """Return an error that names the file, the line and the problem.

    >>> str(refusal(Path("a.csv"), 3, "x is empty"))
    'a.csv, line 3: x is empty'
    """
    where = "" if line is None else f", {place} {line}"
    return InputError(f"{path}{where}: {message}")


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
