"""Validates a whole file against every rule of `synthesize`, without stopping at a fault."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data import frames, geoparquet
from retrasyn.data.activity import Activity
from retrasyn.data.reading_files import Raw, read_raw
from retrasyn.data.trajectories import MAX_SPAN, MAX_TIME, Trajectories
from retrasyn.errors import InputError
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    import numpy.typing as npt

RULES = {
    "columns": "the columns traj_id, t, x and y are there, once each",
    "cells": "every row has as many cells as the header",
    "kind": "t, x and y hold numbers; traj_id and user_id hold whole numbers or text",
    "empty": "no cell is empty",
    "finite": "numbers are finite",
    "whole": "t, traj_id and user_id are whole, at most 2^53 where written as fractions",
    "clock": f"t numbers time steps: at most {MAX_TIME:,}, and {MAX_SPAN:,} from first to last",
    "twice": "a traj_id has one row per t",
    "gap": "a traj_id has consecutive t; after a gap it takes another traj_id",
    "user": "a traj_id keeps its user_id",
    "two places": "a user_id has one row per t",
    "outside": "points lie in the box",
}
"""Description of every rule by its name."""

N_SHOWN = 5
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$|^\s*[+-]?(?i:nan|inf|infinity)\s*$"
_WHOLE_NUMBER = r"^\s*[+-]?\d{1,18}\s*$"


@dataclass(frozen=True, slots=True)
class Offence:
    """A row that breaks a rule, or a whole column if `row` is None."""

    row: int | None  # counted from 1, the header not included
    why: str
    cells: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule, the number of violations and the first of them."""

    rule: str
    count: int
    first: tuple[Offence, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of `validate`; figures are None if their columns are missing."""

    n_points: int
    n_streams: int | None
    n_users: int | None
    n_timestamps: int | None
    n_jumps: int | None  # steps beyond the neighbouring cells of the grid
    side: int
    box: Box | None  # box that the grid covers
    extent: Box | None  # of all points
    activity: Activity | None  # people, or streams if no users are named
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Whether `synthesize` accepts the file as it is."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Return all findings by name, ready for JSON."""
        faults = [
            {
                "rule": fault.rule,
                "meaning": RULES[fault.rule],
                "count": fault.count,
                "first": [
                    {"row": offence.row, "why": offence.why, "cells": dict(offence.cells)}
                    for offence in fault.first
                ],
            }
            for fault in self.faults
        ]
        counts = {
            "points": self.n_points,
            "streams": self.n_streams,
            "users": self.n_users,
            "timestamps": self.n_timestamps,
            "jumps": self.n_jumps,
        }
        grid = {"side": self.side, "box": None if self.box is None else list(self.box)}
        return {
            "usable": self.usable,
            "counts": counts,
            "active": None if self.activity is None else asdict(self.activity),
            "extent": None if self.extent is None else list(self.extent),
            "grid": grid,
            "faults": faults,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Return all findings as JSON."""
        return json.dumps(self.to_dict(), indent=2)


def validate(
    source: str | os.PathLike[str] | Trajectories | Mapping[str, Any] | Any,
    *,
    box: Box | tuple[float, float, float, float] | None = None,
    grid: int = 6,
) -> Findings:
    """Check a file, a data frame or named columns against every rule of `RULES`.

    Without a box no point counts as outside, and jumps are counted on a grid over the data
    itself. Unreadable input raises the same error as in `read`.

    >>> found = validate({"traj_id": [7, 7, 7], "t": [0, 1, 3], "x": [0, 1, 2], "y": [0, 0, 1]})
    >>> [(fault.rule, fault.first[0].row, fault.first[0].why) for fault in found.faults]
    [('gap', 3, 'traj_id 7 goes from t=1 (row 2) to t=3')]
    """
    public = None if box is None else Grid(Box(*box), grid).box
    Grid(public or Box(0, 0, 1, 1), grid)
    return _Examination(_raw(source)).findings(public, grid)


def _raw(source: Any) -> Raw:
    """Return the unvalidated columns of any supported source."""
    if isinstance(source, str | os.PathLike):
        return read_raw(source)
    if isinstance(source, Trajectories):
        source = source.to_frame()
    if isinstance(source, Mapping):
        try:
            source = pa.table({name: pa.array(values) for name, values in source.items()})
        except (pa.ArrowException, TypeError) as error:
            raise InputError(f"the columns are no table: {error}") from None
    table = frames.as_table(source)
    return Raw(table, table.column_names)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as numbers, with a mask of its valid rows."""

    values: npt.NDArray[Any]  # [n_rows]
    good: npt.NDArray[np.bool_]  # [n_rows]


@dataclass(slots=True)
class _Examination:
    """Checks raw columns and collects the faults."""

    raw: Raw
    faults: dict[str, Fault] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def findings(self, public: Box | None, side: int) -> Findings:
        """Check every rule and return the findings."""
        self._check_table()
        stream, user = self._identifiers("traj_id"), self._identifiers("user_id")
        t = self._timestamps()
        x, y = self._positions()
        used, n_jumps, extent = public, None, None
        if x is not None and y is not None:
            extent = _bounds(x, y)
            used = public or extent
            if public is not None:
                self._check_box(x, y, public)
        if stream is not None and t is not None:
            rows = self._check_streams(stream, t, user)
            if x is not None and y is not None and used is not None:
                n_jumps = _count_jumps(rows, x, y, Grid(used, side))
        if self.raw.refusal is not None and not self.faults:
            self._blame_column("kind", self.raw.refusal)
        return Findings(
            n_points=self.raw.table.num_rows,
            n_streams=None if stream is None else _n_different(stream),
            n_users=None if user is None else _n_different(user),
            n_timestamps=None if t is None else _extent(t),
            n_jumps=n_jumps,
            side=side,
            box=used,
            extent=extent,
            activity=None if t is None else _activity(t),
            faults=tuple(self.faults[rule] for rule in RULES if rule in self.faults),
            notes=tuple(self.notes),
        )

    # Recording faults

    def _blame(self, rule: str, rows: npt.NDArray[np.intp], why: Callable[[int], str]) -> None:
        """Record rows that break a rule; `why` explains a given row."""
        first = tuple(
            Offence(self.raw.row_number(row), why(row), self.raw.values(row))
            for row in rows[:N_SHOWN].tolist()
        )
        self._add(rule, rows.size, first)

    def _blame_pairs(
        self, rule: str, rows: npt.NDArray[np.intp], before: npt.NDArray[np.intp], why: str
    ) -> None:
        """Record rows that conflict with an earlier one; `why` is a template with cells of both."""
        nearest = np.argsort(rows, kind="stable")[:N_SHOWN]
        partner = dict(zip(rows[nearest].tolist(), before[nearest].tolist(), strict=True))

        def explain(row: int) -> str:
            other = {f"{name}_before": cell for name, cell in self.raw.values(partner[row]).items()}
            place = self.raw.row_number(partner[row])
            return why.format(**self.raw.values(row), **other, row_before=place)

        rest = np.delete(rows, nearest)
        self._blame(rule, np.concatenate([rows[nearest], rest]), explain)

    def _blame_column(self, rule: str, why: str, count: int = 1) -> None:
        """Record a whole column that breaks a rule."""
        self._add(rule, count, (Offence(None, why, {}),))

    def _add(self, rule: str, count: int, first: tuple[Offence, ...]) -> None:
        if count:
            known = self.faults.get(rule, Fault(rule, 0, ()))
            together = sorted(known.first + first, key=lambda offence: offence.row or 0)
            self.faults[rule] = Fault(rule, known.count + count, tuple(together[:N_SHOWN]))

    # One column at a time

    def _check_table(self) -> None:
        """Check that no column is missing and no row is malformed."""
        names = self.raw.names
        for name in (*frames.COLUMNS, *frames.OPTIONAL):
            if names.count(name) > 1:
                self._blame_column("columns", f"{name} is there {names.count(name)} times")
            pointed = name in {"x", "y"} and self.raw.points is not None
            if name in frames.COLUMNS and name not in names and not pointed:
                there = ", ".join(map(repr, names))
                self._blame_column("columns", f"{name} is missing; there are {there}")
        first = tuple(
            Offence(odd.row, f"{odd.n_cells} cells instead of {odd.n_expected}", {})
            for odd in self.raw.odd[:N_SHOWN]
        )
        self._add("cells", len(self.raw.odd), first)

    def _column(self, name: str) -> tuple[pa.ChunkedArray, npt.NDArray[np.bool_]] | None:
        """Return a column and the mask of its filled cells; None if it is unusable."""
        if name not in self.raw.table.column_names:
            return None
        column = self.raw.table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        filled = np.ones(len(column), np.bool_)
        if _is_text(column.type):
            column = column.cast(pa.large_string())
            filled = pc.fill_null(pc.not_equal(column, _text("")), False).to_numpy()
        elif column.null_count:
            filled = column.is_valid().to_numpy()
        self._blame("empty", np.flatnonzero(~filled), lambda _: f"{name} is empty")
        if pa.types.is_temporal(column.type):
            rule = "clock" if name == "t" else "kind"
            self._blame_column(rule, f"{name} holds clock times ({column.type})", len(column))
            return None
        if not (_is_number(column.type) or _is_text(column.type)):
            self._blame_column("kind", f"{name} holds {column.type}", len(column))
            return None
        return column, filled

    def _numbers(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None:
        """Read a numeric column: its values and the mask of those present."""
        found = self._column(name)
        if found is None:
            return None
        column, filled = found
        if _is_text(column.type):
            like = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False).to_numpy()
            words = np.flatnonzero(filled & ~like)
            self._blame("kind", words, lambda row: f"{name}={column[row].as_py()!r} is no number")
            if not words.size and filled.any() and self.raw.refusal is None:
                self._blame_column("kind", f"{name} holds numbers written as text", len(column))
            filled = filled & like
            kept = pc.if_else(pa.array(filled), column, _text("0"))
            column = pc.utf8_trim_whitespace(kept).cast(pa.float64())
        return self._finite(name, column, filled)

    def _finite(
        self, name: str, column: pa.ChunkedArray, filled: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return numbers as an array; non-finite ones are recorded as faults and become 0."""
        if column.type == pa.null() or pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        if column.null_count:
            column = pc.fill_null(column, pa.scalar(0, column.type))
        values = column.to_numpy()
        if values.dtype.kind != "f":
            return values, filled
        finite = np.isfinite(values)
        if finite.all():
            return values, filled
        wrong = np.flatnonzero(filled & ~finite)
        self._blame("finite", wrong, lambda row: f"{name}={values[row]}")
        return np.where(finite, values, 0), filled & finite

    def _whole(self, name: str, values: npt.NDArray[Any], good: npt.NDArray[np.bool_]) -> _Column:
        """Check that numbers are integers."""
        if values.dtype.kind == "f":
            odd = (values != np.floor(values)) | (np.abs(values) > 2**53)
        elif values.dtype == np.uint64:
            odd = values >= 1 << 63
        else:
            return _Column(values.astype(np.int64, copy=False), good)
        wrong = np.flatnonzero(good & odd)
        self._blame("whole", wrong, lambda row: f"{name}={values[row]}")
        return _Column(np.where(odd, 0, values).astype(np.int64), good & ~odd)

    def _identifiers(self, name: str) -> _Column | None:
        """Read a column of integers or text; text is coded in sorted order."""
        found = self._column(name)
        if found is None:
            return None
        column, filled = found
        if not _is_text(column.type):
            return self._whole(name, *self._finite(name, column, filled))
        if self.raw.refusal is not None:
            whole = pc.match_substring_regex(column, _WHOLE_NUMBER)
            if pc.all(pc.fill_null(whole, True)).as_py():
                kept = pc.if_else(pa.array(filled), column, _text("0"))
                numbers = pc.utf8_trim_whitespace(kept).cast(pa.int64()).to_numpy()
                return _Column(numbers, filled)
        coded = pc.fill_null(column, _text("")).combine_chunks().dictionary_encode()
        rank = np.argsort(np.argsort(coded.dictionary.to_numpy(zero_copy_only=False)))
        return _Column(rank[coded.indices.to_numpy()], filled)

    def _timestamps(self) -> _Column | None:
        """Read t; invalid timestamps are left out of all further checks."""
        found = self._numbers("t")
        if found is None:
            return None
        t = self._whole("t", *found)
        far = (t.values > MAX_TIME) | (t.values < -MAX_TIME)
        self._blame("clock", np.flatnonzero(t.good & far), lambda row: f"t={t.values[row]}")
        t = _Column(t.values, t.good & ~far)
        if _extent(t) > MAX_SPAN:
            low, high = t.values[t.good].min(), t.values[t.good].max()
            why = f"t goes from {low} to {high}, {_extent(t):,} steps"
            ends = t.good & ((t.values == low) | (t.values == high))
            self._blame("clock", np.flatnonzero(ends), lambda _: why)
        return t

    def _positions(self) -> tuple[_Column | None, _Column | None]:
        """Read x and y, or the geometry column used in their place."""
        points = self.raw.points
        if points is None:
            found = [self._numbers(name) for name in "xy"]
            columns = [None if pair is None else _Column(*pair) for pair in found]
            return columns[0], columns[1]
        column = self.raw.table.column(points)
        filled = column.is_valid().to_numpy()
        self._blame("empty", np.flatnonzero(~filled), lambda _: f"{points} is empty")
        try:
            x, y = geoparquet.coordinates(_with_points_everywhere(column))
        except InputError as error:
            self._blame_column("kind", str(error))
            return None, None
        finite = np.isfinite(x) & np.isfinite(y)
        wrong = np.flatnonzero(filled & ~finite)
        self._blame("finite", wrong, lambda row: f"{points} is ({x[row]}, {y[row]})")
        good = filled & finite
        return _Column(np.where(finite, x, 0), good), _Column(np.where(finite, y, 0), good)

    def _check_box(self, x: _Column, y: _Column, public: Box) -> None:
        """Check that points lie in the box."""
        off = x.good & ((x.values < public.x0) | (x.values > public.x1))
        off |= y.good & ((y.values < public.y0) | (y.values > public.y1))
        wrong = np.flatnonzero(off)
        self._blame("outside", wrong, lambda row: f"({x.values[row]}, {y.values[row]})")

    # Several rows

    def _check_streams(self, stream: _Column, t: _Column, user: _Column | None) -> _Rows:
        """Check the rules between rows of a stream; return the rows sorted."""
        rows = _Rows.of(stream, t)
        if not rows.were_sorted:
            self.notes.append("rows are not sorted by (traj_id, t); synthesize sorts them")
        steps = rows.steps[rows.same]
        if ((steps < 1) | (steps > 1)).any():
            twice, gaps = rows.same & (rows.steps == 0), rows.same & (rows.steps > 1)
            why = "traj_id {traj_id} has t={t} in row {row_before} already"
            self._blame_pairs("twice", *rows.pairs(twice), why)
            why = "traj_id {traj_id} goes from t={t_before} (row {row_before}) to t={t}"
            self._blame_pairs("gap", *rows.pairs(gaps), why)
        if user is not None:
            self._check_users(rows, stream, t, user)
        return rows

    def _check_users(self, rows: _Rows, stream: _Column, t: _Column, user: _Column) -> None:
        """Check that a stream has one user and that a user has one position at a time."""
        users, known = user.values[rows.numbers], user.good[rows.numbers]
        if not users.size:
            return
        changes = rows.same & (users[1:] != users[:-1]) & known[1:] & known[:-1]
        why = "traj_id {traj_id} has user_id {user_id_before} in row {row_before}, {user_id} here"
        self._blame_pairs("user", *rows.pairs(changes), why)
        if not {"twice", "gap", "user"} & set(self.faults) and known.all():
            firsts = np.flatnonzero(np.concatenate([[True], ~rows.same]))
            lengths = np.diff(np.append(firsts, users.size))
            if _never_meet(users[firsts], rows.t[firsts], lengths):
                return
        numbers = np.flatnonzero(stream.good & t.good & user.good)
        numbers = numbers[np.lexsort((t.values[numbers], user.values[numbers]))]
        meet = np.ones(max(numbers.size - 1, 0), np.bool_)
        for column in (user, t):
            meet &= column.values[numbers[1:]] == column.values[numbers[:-1]]
        meet &= stream.values[numbers[1:]] != stream.values[numbers[:-1]]
        why = "user_id {user_id} has t={t} in row {row_before} already, in traj_id {traj_id_before}"
        self._blame_pairs("two places", numbers[1:][meet], numbers[:-1][meet], why)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows with a stream and a timestamp, sorted by both."""

    numbers: npt.NDArray[np.intp]  # [n], row number in the table
    t: npt.NDArray[np.int64]  # [n]
    same: npt.NDArray[np.bool_]  # [n - 1], whether the next row is of the same stream
    steps: npt.NDArray[np.int64]  # [n - 1], difference in t to the next row
    were_sorted: bool

    @classmethod
    def of(cls, stream: _Column, t: _Column) -> _Rows:
        """Sort the valid rows."""
        numbers = np.flatnonzero(stream.good & t.good)
        ids, times = stream.values[numbers], t.values[numbers]
        ahead = ids[1:] > ids[:-1]
        same = ids[1:] == ids[:-1]
        if (ahead | (same & (times[1:] >= times[:-1]))).all():
            return cls(numbers, times, same, np.diff(times), were_sorted=True)
        order = np.lexsort((times, ids))
        ids, times = ids[order], times[order]
        same = ids[1:] == ids[:-1]
        return cls(numbers[order], times, same, np.diff(times), were_sorted=False)

    def pairs(
        self, chosen: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the later and the earlier row of every chosen consecutive pair."""
        at = np.flatnonzero(chosen)
        return self.numbers[at + 1], self.numbers[at]


def _count_jumps(rows: _Rows, x: _Column, y: _Column, grid: Grid) -> int:
    """Count the steps to a cell that is not a neighbour."""
    cells = grid.cells_of(x.values, y.values)[rows.numbers].astype(np.int32)
    down, across = np.divmod(cells, np.int32(grid.side))
    far = (np.abs(np.diff(down)) > 1) | (np.abs(np.diff(across)) > 1)
    placed = (x.good & y.good)[rows.numbers]
    return int(np.count_nonzero(far & rows.same & (rows.steps == 1) & placed[1:] & placed[:-1]))


def _never_meet(
    users: npt.NDArray[np.int64], begins: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> bool:
    """Whether no user has overlapping streams; all arguments are [n_streams]."""
    order = np.lexsort((begins, users))
    ends = (begins + lengths)[order]
    same = users[order][1:] == users[order][:-1]
    return not np.any(same & (begins[order][1:] < ends[:-1]))


def _with_points_everywhere(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Fill empty cells with a dummy point, so that the others can be read."""
    if not column.null_count or column.type not in {pa.binary(), pa.large_binary()}:
        return column
    point = geoparquet.points(np.zeros(1), np.zeros(1))[0].as_py()
    return pc.fill_null(column, pa.scalar(point, column.type))


def _bounds(x: _Column, y: _Column) -> Box | None:
    """Return the bounding box of all points."""
    placed = x.good & y.good
    return Box.around(x.values[placed], y.values[placed]) if placed.any() else None


def _activity(t: _Column) -> Activity | None:
    """Count the rows of every timestamp; None if there are none, or far too many."""
    times = t.values[t.good]
    if not times.size or _extent(t) > MAX_SPAN:
        return None
    return Activity.of_counts(np.bincount(times - times.min()))


def _extent(t: _Column) -> int:
    """Return the number of timestamps from the first to the last."""
    times = t.values if t.good.all() else t.values[t.good]
    return int(times.max() - times.min()) + 1 if times.size else 0


def _n_different(column: _Column) -> int:
    return int(pc.count_distinct(pa.array(column.values[column.good])).as_py())


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return kind in {pa.string(), pa.large_string(), pa.string_view()}


def _is_number(kind: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    return any(check(kind) for check in checks)
