"""Validates raw rows of a file and turns them into fixes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import Fixes, Options, Rows, bad_row, is_degrees, labels, refusal
from retrasyn.data.formats.times import Times, is_text, parse_times
from retrasyn.data.formats.understanding import SINCE_1970, Understanding

if TYPE_CHECKING:
    import numpy.typing as npt


_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*$"
_WITH_COMMA = r"\s*-?[0-9]+,[0-9]+\s*"
_DEGREES = r"[0-9]\s*(?:°|º|deg|'|[NSEWOnsewo]\s*$)"
_TIME_OF_DAY = r"\s*[0-9]{1,2}:[0-9]{2}"
_POLE = 90.0
_AROUND = 360.0
_MOSTLY = 0.5  # swapped columns break most rows, a bad row is isolated


@dataclass(frozen=True, slots=True)
class _Fault:
    """Rows that break one rule, and a function that describes the fault."""

    bad: npt.NDArray[np.bool_]  # [n_rows]
    describe: Callable[[int], str]  # of a row


def check(rows: Rows, options: Options) -> Fixes:
    """Convert rows to fixes; rows that break a rule raise an error or are skipped and counted."""
    x, y = _floats(rows.x, options.decimal), _floats(rows.y, options.decimal)
    times = parse_times(rows.time, options, steps=rows.steps, day_first=rows.day_first)
    _refuse_mixed(rows, times)
    crs = options.from_crs or rows.crs
    faults = [
        _missing(rows, "user", rows.user),
        _Fault(times.bad, lambda row: _time_fault(rows, row, times)),
        _Fault(~np.isfinite(x), lambda row: _number_fault(rows, "x", rows.x, row)),
        _Fault(~np.isfinite(y), lambda row: _number_fault(rows, "y", rows.y, row)),
    ]
    if is_degrees(crs):
        beyond = np.abs(y) > _POLE
        faults.append(_Fault(beyond, lambda row: _pole_fault(rows, y[row])))
        faults.append(_Fault(np.abs(x) > _AROUND, lambda row: _around_fault(rows, x[row])))
        if beyond.size and beyond.mean() > _MOSTLY:
            row = int(np.argmax(beyond))
            raise refusal(rows.path, _line(rows, row), _pole_fault(rows, y[row]), rows.place)
    good = _good(rows, faults, options)
    zoned = None if times.zoned is None else bool(times.zoned[good].any())
    return Fixes(
        user=_kept(labels(rows.user), good),
        time=times.values[good],
        x=x[good],
        y=y[good],
        trip=None if rows.trip is None else _kept(labels(rows.trip), good),
        kind=times.kind,
        zoned=zoned if times.values[good].size else None,
        crs=crs,
        path=rows.path,
        n_skipped=rows.n_skipped + times.bad.size - _count(good, times.bad.size),
        understood=Understanding(rows.columns, _zone(times, zoned=zoned, options=options), crs),
    )


def _zone(times: Times, *, zoned: bool | None, options: Options) -> str:
    """Return how times were read: as steps, with their offsets, or as local times."""
    if times.kind == "steps":
        return "steps"
    if times.zoned is None:
        return SINCE_1970
    return "with offsets" if zoned else options.timezone


def _good(rows: Rows, faults: list[_Fault], options: Options) -> Any:
    """Return the valid rows as a mask or a full slice, or raise at the first bad row."""
    bad = np.logical_or.reduce([fault.bad for fault in faults])
    if not bad.any():
        return slice(None)
    if options.on_error == "fail":
        row = int(np.argmax(bad))
        fault = next(fault for fault in faults if fault.bad[row])
        raise bad_row(rows.path, _line(rows, row), fault.describe(row), rows.place)
    return ~bad


def _kept(column: pa.DictionaryArray, good: Any) -> pa.DictionaryArray:
    return column if isinstance(good, slice) else column.filter(pa.array(good))


def _count(good: Any, n_rows: int) -> int:
    return n_rows if isinstance(good, slice) else int(good.sum())


def _line(rows: Rows, row: int) -> int | None:
    return None if rows.lines is None else int(rows.lines[row])


def _floats(column: pa.Array, decimal: str) -> npt.NDArray[np.float64]:
    """Return floats, NaN where null or not a number."""
    kind = column.type
    if is_text(kind):
        column = pc.replace_substring(column.cast(pa.string()), decimal, ".")
        numeric = pc.match_substring_regex(column, _NUMBER)
        column = pc.utf8_trim_whitespace(pc.if_else(numeric, column, None))
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return np.full(len(column), np.nan)
    numbers = column.cast(pa.float64(), safe=False)
    return numbers.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _missing(rows: Rows, role: str, column: pa.Array) -> _Fault:
    name = rows.columns.names.get(role, role)
    return _Fault(
        column.is_null().to_numpy(zero_copy_only=False),
        lambda _: f"{name} is empty; remove this row or fill it in",
    )


def _refuse_mixed(rows: Rows, times: Times) -> None:
    """Reject a mix of times with and without an offset: no single time zone fits both."""
    if times.zoned is None:
        return
    zoned, naive = ~times.bad & times.zoned, ~times.bad & ~times.zoned
    if zoned.any() and naive.any():
        row = int(max(np.argmax(zoned), np.argmax(naive)))
        name = rows.columns.names.get("time", "time")
        this, others = ("an", "none") if zoned[row] else ("no", "one")
        message = f"has {this} offset, earlier rows have {others}; write all alike"
        raise refusal(
            rows.path, _line(rows, row), f"{name} {_short(rows.time[row])} {message}", rows.place
        )


def _time_fault(rows: Rows, row: int, times: Times) -> str:
    name, value = rows.columns.names.get("time", "time"), rows.time[row]
    if not value.is_valid or value.as_py() == "":
        return f"{name} is empty; remove this row or fill it in"
    if times.kind == "steps":
        return f"{name} {_short(value)} is not a whole number; without `every` it counts steps"
    if re.match(_TIME_OF_DAY, str(value.as_py())):
        return (
            f"{name} {_short(value)} is a time of day; if dates stand in another column, name "
            'both: `date="COLUMN"` and `clock="COLUMN"`'
        )
    return (
        f"{name} {_short(value)} is not a time such as 2008-02-02 15:36:08 or a Unix time; say "
        'how it is written, for example `time_format="%d.%m.%y %H:%M"`'
    )


def _number_fault(rows: Rows, role: str, column: pa.Array, row: int) -> str:
    name, value = rows.columns.names.get(role, role), column[row]
    if rows.columns.geometry and not rows.columns.x:
        return f"{name} is no point; give every row one point"
    if not value.is_valid or value.as_py() == "":
        return f"{name} is empty; remove this row or fill it in"
    text = str(value.as_py())
    cure = "check the delimiter and the columns"
    if re.fullmatch(_WITH_COMMA, text):
        cure = 'if its comma marks decimals, say `decimal=","`'
    elif re.search(_DEGREES, text):
        cure = "write degrees as decimal numbers, those to the south and west with a minus"
    return f"{name} {_short(value)} is not a finite number; {cure}"


def _pole_fault(rows: Rows, value: float) -> str:
    x, y = rows.columns.names.get("x", "longitude"), rows.columns.names.get("y", "latitude")
    return (
        f"latitude {value:g} in {y} is beyond 90 degrees; perhaps {x} and {y} are swapped "
        f'(`x="{y}"` and `y="{x}"`), or the coordinates are projected (`from_crs`)'
    )


def _around_fault(rows: Rows, value: float) -> str:
    name = rows.columns.names.get("x", "longitude")
    return f"longitude {value:g} in {name} is beyond 360 degrees; is it projected (`from_crs`)?"


def _short(value: Any) -> str:
    return repr(str(value.as_py())[:40])
