"""`Trajectories`: position streams stored as columns, for real and synthetic data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from retrasyn.answers.table import AnswerTable
    from retrasyn.data.folding import Fold, Folding
    from retrasyn.space.grid import Box, Grid

MAX_SPAN = 10_000_000
"""Maximum number of timestamps a file may span; more suggests clock times not yet binned."""
MAX_TIME = 2_000_000_000
"""Largest allowed timestamp: streams count time in 32 bits."""
_BLOCK = 1 << 18  # rows processed together, so that temporaries stay in cache


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """Points sorted by (traj_id, t), with consecutive t inside every stream.

    Because t is consecutive, the columns `traj_id` and `t` follow from one entry per stream and
    are built on demand. Use `from_columns` to create an instance: it sorts and validates, and
    its errors say what is wrong. As of a table of points, the length is the number of points.

    >>> real = Trajectories.from_columns(traj_id=[7, 7, 9], t=[0, 1, 1], x=[0, 1, 2], y=[0, 0, 1])
    >>> real.n_points, real.n_streams, real.first_t, real.last_t
    (3, 2, 0, 1)
    >>> len(real)
    3
    >>> real.traj_id.tolist(), real.t.tolist()
    ([7, 7, 9], [0, 1, 1])
    """

    stream_ids: npt.NDArray[np.int64]  # [n_streams], ascending
    begins: npt.NDArray[np.int64]  # [n_streams], timestamp of the first point
    starts: npt.NDArray[np.int64]  # [n_streams + 1], first row of every stream, then n_points
    x: npt.NDArray[np.float64]  # [n_points]
    y: npt.NDArray[np.float64]  # [n_points]
    user_of_stream: npt.NDArray[np.int64] | None = None  # [n_streams]
    labels: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # text behind coded ids
    clock: Clock | None = None  # real time of a timestamp, if known
    crs: str | None = None  # coordinate system of x and y, such as EPSG:4326, if known
    notes: tuple[str, ...] = ()  # what was repaired when reading
    fold: Folding | None = None  # of many days into one

    @classmethod
    def from_columns(
        cls,
        *,
        traj_id: npt.ArrayLike,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        user_id: npt.ArrayLike | None = None,
        clock: Clock | None = None,
        crs: str | None = None,
    ) -> Trajectories:
        """Validate and sort columns; identifiers may be integers or text."""
        labels: dict[str, npt.NDArray[Any]] = {}
        columns = {
            "traj_id": _identifiers("traj_id", traj_id, labels),
            "t": _whole_numbers("t", np.asarray(t)),
            "x": _finite("x", x),
            "y": _finite("y", y),
        }
        if user_id is not None:
            columns["user_id"] = _identifiers("user_id", user_id, labels)
        n_points = columns["t"].size
        for name, column in columns.items():
            if column.shape != (n_points,):
                raise InputError(f"column {name} has shape {column.shape}, column t ({n_points},)")
        if n_points == 0:
            raise InputError("there are no rows: nothing to synthesise from")
        _refuse_clock_times(columns["t"])
        notes: tuple[str, ...] = ()
        scan = _scan(columns["traj_id"], columns["t"])
        if scan is None:
            order = np.lexsort((columns["t"], columns["traj_id"]))
            columns = {name: column[order] for name, column in columns.items()}
            notes = ("rows were not sorted by (traj_id, t); they have been sorted",)
            scan = _scan(columns["traj_id"], columns["t"])
        if scan is None:  # pragma: no cover - sorting sorts
            raise AssertionError
        starts = np.concatenate([[0], scan.changes, [n_points]]).astype(np.int64)
        real = cls(
            stream_ids=columns["traj_id"][starts[:-1]].astype(np.int64),
            begins=columns["t"][starts[:-1]].astype(np.int64),
            starts=starts,
            x=columns["x"],
            y=columns["y"],
            labels=labels,
            clock=clock,
            crs=crs,
            notes=notes,
        )
        real._refuse_faults(scan, columns["traj_id"], columns["t"])
        if "user_id" not in columns:
            return real
        object.__setattr__(real, "user_of_stream", real._users(columns["user_id"]))
        return real

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        time: str | None = None,
        x: str | None = None,
        y: str | None = None,
        traj: str | None = None,
        every: float | str | None = None,
        traj_id: str = "traj_id",
        t: str = "t",
        user_id: str | None = "user_id",
        clock: Clock | None = None,
        crs: str | None = None,
        **options: Any,
    ) -> Trajectories:
        """Read the frame of another library: pandas, polars, GeoPandas, pyarrow and others.

        A frame that has the columns `traj_id` and `t`, in steps, is checked and taken as it is,
        with what its metadata says of clock and coordinate system. Any other is read as
        `retrasyn.convert` reads it: columns are recognised, and clock times become steps.

        Args:
            frame: Whatever has the Arrow interface, or a MovingPandas collection.
            user: The column that says who a person is, if its name is unusual.
            time: Likewise the time.
            x: Likewise the easting or longitude.
            y: Likewise the northing or latitude.
            traj: Likewise the trip, at whose end a stream ends.
            every: Length of a time step, in seconds or as text (``10min``), for clock times.
            traj_id: The column of streams in a frame that is taken as it is.
            t: Likewise the column of steps.
            user_id: Likewise that of users; None leaves them aside.
            clock: What a step means in real time.
            crs: The coordinate system.
            **options: Others of `retrasyn.convert`, such as ``box`` and ``timezone``.
        """
        from retrasyn.data import converting, frames  # noqa: PLC0415 - avoids an import cycle

        table = frames.as_table(frame)
        named = (traj_id, t, user_id or "user_id") != ("traj_id", "t", "user_id")
        raw = any(each is not None for each in (user, time, traj, every)) or bool(options)
        if named or (not raw and frames.is_numbered(table, traj_id=traj_id, t=t)):
            if raw:
                raise SettingError(
                    "traj_id, t and user_id name the columns of a frame with numbered steps; "
                    "name those of any other by user, time and traj"
                )
            names = {"traj_id": traj_id, "t": t, "x": x or "x", "y": y or "y", "user_id": user_id}
            return frames.trajectories_of(table, names, clock=clock, crs=crs)
        steps: dict[str, Any] = {"every": every}
        steps |= {name: options.pop(name) for name in ("box", "to_crs", "dense") if name in options}
        columns = {"user": user, "time": time, "x": x, "y": y, "traj": traj, "from_crs": crs}
        real, summary = converting.convert_with_summary(
            frame, "auto", steps, {**columns, **options}
        )
        converting.warn_of(summary)
        return real if clock is None else replace(real, clock=clock)

    def folded(self, by: Fold = "day") -> Trajectories:
        """Return all days on one day's timestamps, as `synthesize` with `fold` sees them."""
        from retrasyn.data import folding  # noqa: PLC0415 - as above

        return folding.folded(self, by)

    def to_frame(self, *, datetime: bool = False) -> pa.Table:
        """Return a pyarrow table, which pandas, polars and duckdb read directly.

        With `datetime`, a column ``time`` holds the start of each timestamp.
        """
        from retrasyn.data import frames  # noqa: PLC0415 - as above

        return frames.table_of(self, datetime=datetime)

    def to_geodataframe(self) -> Any:
        """Return a GeoDataFrame of points, with their times if the clock is known."""
        from retrasyn.data import frames  # noqa: PLC0415 - as above

        return frames.to_geodataframe(self)

    def to_trajectory_collection(self) -> Any:
        """Return a MovingPandas collection of all streams with two points or more."""
        from retrasyn.data import frames  # noqa: PLC0415 - as above

        return frames.to_trajectory_collection(self)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame, a row per point; with ``time`` if the clock is known."""
        from retrasyn.data import frames  # noqa: PLC0415 - as above

        return frames.to_pandas(self)

    def head(self, n: int = 5) -> Any:
        """Return the first points as a pandas DataFrame, without turning the others into one."""
        last = int(np.searchsorted(self.starts[:-1], n))
        return self._of_streams(0, last).to_pandas().head(n)

    def ask(self, what: str, **options: Any) -> AnswerTable:
        """Return the answer to a question; `options` are those of `retrasyn.ask`.

        Trajectories alone have no replicas: ask the result of `synthesize` for standard errors.
        """
        from retrasyn.answers.asking import ask  # noqa: PLC0415 - as above

        return ask(self, what, **options)

    def counts(self, **options: Any) -> Any:
        """Return how many people are present by zone and period, as a pandas DataFrame."""
        return self.ask("counts", **options).to_pandas()

    def od(self, **options: Any) -> Any:
        """Return how many trips lead from zone to zone, as a pandas DataFrame."""
        return self.ask("od", **options).to_pandas()

    def plot(
        self,
        *,
        ax: Any = None,
        grid: int | Grid = 24,
        box: Box | tuple[float, float, float, float] | None = None,
        n_paths: int = 60,
    ) -> Any:
        """Draw the share of points in each cell and a sample of paths, with matplotlib.

        Args:
            ax: Axes to draw on; new ones if none are given.
            grid: A grid, or the cells to a side of one over the box.
            box: The box; without one, that of the points.
            n_paths: How many paths to draw; evenly chosen, the same every time.

        Returns:
            The axes.
        """
        from retrasyn.data import pictures  # noqa: PLC0415 - as above

        shown = pictures.Picture.of(self, grid=grid, box=box, n_paths=n_paths)
        return pictures.plot(self, shown, ax=ax)

    def explore(
        self,
        *,
        grid: int | Grid = 24,
        box: Box | tuple[float, float, float, float] | None = None,
        n_paths: int = 60,
        **options: Any,
    ) -> Any:
        """Return a map of the same to pan and zoom, made by folium (extra ``geo``).

        It needs a network: the browser that shows it fetches Leaflet from cdn.jsdelivr.net, and
        nothing else. Streets are drawn beneath with for example `tiles="OpenStreetMap"`; whoever
        serves them then learns which area is looked at. The points stay in the page: who gets the
        notebook, or what `.save("map.html")` wrote, has those that are drawn. Coordinates of an
        unknown system are taken for degrees if they could be. `options` are those of `folium.Map`.
        """
        from retrasyn.data import pictures  # noqa: PLC0415 - as above

        shown = pictures.Picture.of(self, grid=grid, box=box, n_paths=n_paths)
        return pictures.explore(self, shown, options)

    def __len__(self) -> int:
        return self.n_points

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.x.size

    @property
    def n_streams(self) -> int:
        """Number of streams."""
        return self.begins.size

    @property
    def first_t(self) -> int:
        """The earliest timestamp."""
        return int(self.begins.min())

    @property
    def last_t(self) -> int:
        """The latest timestamp."""
        return int((self.begins + self.lengths).max()) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of points of every stream: [n_streams]."""
        return np.diff(self.starts)

    @property
    def traj_id(self) -> npt.NDArray[np.int64]:
        """The stream of every point: [n_points]."""
        return np.repeat(self.stream_ids, self.lengths)

    @property
    def t(self) -> npt.NDArray[np.int64]:
        """The timestamp of every point: [n_points]."""
        return np.arange(self.n_points) + np.repeat(self.begins - self.starts[:-1], self.lengths)

    @property
    def user_id(self) -> npt.NDArray[np.int64] | None:
        """The user of every point, if the data names users: [n_points]."""
        if self.user_of_stream is None:
            return None
        return np.repeat(self.user_of_stream, self.lengths)

    def blocks(self, n_rows: int) -> Iterator[Trajectories]:
        """Split into blocks of whole streams with about n_rows points each."""
        edges = np.searchsorted(self.starts, np.arange(n_rows, self.n_points, n_rows))
        edges = np.unique(np.concatenate([[0], edges, [self.n_streams]]))
        for a, b in pairwise(edges):
            yield self._of_streams(a, b)

    def _of_streams(self, first: int, end: int) -> Trajectories:
        """Return the streams from one position up to another, without copying their points."""
        rows = slice(self.starts[first], self.starts[end])
        users = None if self.user_of_stream is None else self.user_of_stream[first:end]
        return Trajectories(
            self.stream_ids[first:end],
            self.begins[first:end],
            self.starts[first : end + 1] - self.starts[first],
            self.x[rows],
            self.y[rows],
            users,
            self.labels,
            clock=self.clock,
            crs=self.crs,
        )

    def __repr__(self) -> str:
        if not self.n_points:
            return "Trajectories(no points)"
        return (
            f"Trajectories({self.n_points:,} points, {self.n_streams:,} streams, "
            f"t {self.first_t}..{self.last_t})"
        )

    def _repr_html_(self) -> str:
        from retrasyn.data.notebook_html import html_of  # noqa: PLC0415 - as above

        return html_of(self)

    def name(self, column: str, identifier: int) -> str:
        """Return an identifier in its original spelling."""
        labels = self.labels.get(column)
        return str(identifier) if labels is None else str(labels[identifier])

    def _refuse_faults(self, scan: _Scan, traj_id: npt.NDArray[Any], t: npt.NDArray[Any]) -> None:
        """Reject duplicate points and gaps inside a stream."""
        if scan.twice is not None:
            name = self.name("traj_id", int(traj_id[scan.twice]))
            raise InputError(
                f"traj_id {name} has two points at t={t[scan.twice]}; keep one row per (traj_id, t)"
            )
        if scan.gap is not None:
            name = self.name("traj_id", int(traj_id[scan.gap]))
            raise InputError(
                f"traj_id {name} is missing between t={t[scan.gap - 1]} and t={t[scan.gap]} "
                f"({scan.n_gaps} such gaps); give the part after a gap another traj_id and keep "
                "user_id"
            )

    def _users(self, user_id: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the user of every stream; a user with overlapping streams is an error."""
        users: npt.NDArray[np.int64] = user_id[self.starts[:-1]].astype(np.int64)
        inside = np.ones(self.n_points, np.bool_)
        inside[self.starts[:-1]] = False
        changed = np.flatnonzero((user_id[1:] != user_id[:-1]) & inside[1:])
        if changed.size:
            row = int(changed[0]) + 1
            stream = int(np.searchsorted(self.starts, row, side="right")) - 1
            t = self.begins[stream] + row - self.starts[stream]
            raise InputError(
                f"traj_id {self.name('traj_id', int(self.stream_ids[stream]))} changes its "
                f"user_id at t={t}; give each user's part its own traj_id"
            )
        order = np.lexsort((self.begins, users))
        begins, ends = self.begins[order], (self.begins + self.lengths)[order]
        same = users[order][1:] == users[order][:-1]
        overlap = np.flatnonzero(same & (begins[1:] < ends[:-1]))
        if overlap.size:
            at = int(overlap[0]) + 1
            raise InputError(
                f"user_id {self.name('user_id', int(users[order[at]]))} has two points at "
                f"t={begins[at]}; keep one row per (user_id, t)"
            )
        return users


def _refuse_clock_times(t: npt.NDArray[Any]) -> None:
    """Reject timestamps that look like clock seconds or milliseconds."""
    first, last = int(t.min()), int(t.max())
    for extreme in (first, last):
        if abs(extreme) > MAX_TIME:
            raise InputError(
                f"t={extreme} is beyond {MAX_TIME:,}; number the time steps 0, 1, 2, ... "
                "(one per collection round) instead of using clock times"
            )
    if last - first + 1 > MAX_SPAN:
        raise InputError(
            f"timestamps span {last - first + 1:,} steps, more than {MAX_SPAN:,}; number the time "
            "steps 0, 1, 2, ... (one per collection round) instead of using clock times"
        )


@dataclass(frozen=True, slots=True)
class _Scan:
    """Result of one pass over sorted rows: stream boundaries and the first faulty rows."""

    changes: npt.NDArray[np.int64]
    twice: int | None
    gap: int | None
    n_gaps: int


def _scan(traj_id: npt.NDArray[Any], t: npt.NDArray[Any]) -> _Scan | None:
    """Scan all rows once; None if they are not sorted by (traj_id, t)."""
    changes: list[npt.NDArray[np.int64]] = []
    twice = gap = None
    n_gaps = 0
    for low in range(0, t.size, _BLOCK):
        ids = traj_id[low : low + _BLOCK + 1].astype(np.int64)
        steps = np.diff(t[low : low + _BLOCK + 1].astype(np.int64))
        same = ids[1:] == ids[:-1]
        if np.any(ids[1:] < ids[:-1]) or np.any(same & (steps < 0)):
            return None
        changes.append(np.flatnonzero(~same) + low + 1)
        faulty = np.flatnonzero(same & (steps != 1))
        for row in faulty[steps[faulty] == 0][:1]:
            twice = low + int(row) + 1 if twice is None else twice
        gaps = faulty[steps[faulty] > 1]
        if gaps.size and gap is None:
            gap = low + int(gaps[0]) + 1
        n_gaps += gaps.size
    return _Scan(np.concatenate(changes), twice, gap, n_gaps)


def _identifiers(
    name: str, values: npt.ArrayLike, labels: dict[str, npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Return integer identifiers; text is coded in sorted order and kept as labels."""
    array = np.asarray(values)
    if array.dtype.kind not in "OUST":
        return _whole_numbers(name, array)
    for row, value in enumerate(array.tolist()):
        if not isinstance(value, str) or not value:
            raise InputError(
                f"column {name} holds {value!r} in row {row + 1} among text; "
                "remove this row or fill it in"
            )
    labels[name], codes = np.unique(array.astype(str), return_inverse=True)
    return codes


def _whole_numbers(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return integers; 3.0 is accepted, 3.5 is an error."""
    if array.dtype.kind in "mM":
        way = "number the time steps 0, 1, 2, ..." if name == "t" else "use numbers or text"
        raise InputError(f"column {name} holds clock times; {way} instead")
    if array.dtype.kind in "iu":
        if array.dtype.itemsize == 8 and array.dtype.kind == "u" and array.size:  # noqa: PLR2004
            row = int(array.argmax())
            if int(array[row]) >= 1 << 63:
                raise InputError(
                    f"column {name} holds {array[row]} in row {row + 1}; "
                    "the largest number is 2^63 - 1"
                )
        return array
    numbers = _finite(name, array)
    odd = np.flatnonzero((numbers != np.floor(numbers)) | (np.abs(numbers) > 2**53))
    if odd.size:
        rule = "whole numbers are needed, at most 2^53 where they are written as fractions"
        raise InputError(f"column {name} holds {numbers[odd[0]]:.16g} in row {odd[0] + 1}; {rule}")
    return numbers.astype(np.int64)


def _finite(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return finite floats; NaN, infinity and text raise an error that names the row."""
    array = np.asarray(values)
    try:
        if array.dtype.kind in "USOTmM":
            raise ValueError  # noqa: TRY301 - numeric text is rejected, too
        numbers = np.ascontiguousarray(array, np.float64)
    except (TypeError, ValueError):
        raise InputError(_describe_word(name, array)) from None
    finite = np.isfinite(numbers)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise InputError(
            f"column {name} holds {numbers[bad[0]]} in row {bad[0] + 1} ({bad.size} such rows); "
            "remove these rows or fill them in"
        )
    return numbers


def _describe_word(name: str, array: npt.NDArray[Any]) -> str:
    """Describe the first value that is not a number."""
    for row, value in enumerate(array.ravel().tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"column {name} holds {value!r} in row {row + 1}; numbers are needed"
    return f"column {name} holds numbers written as text; write them without quotation marks"
