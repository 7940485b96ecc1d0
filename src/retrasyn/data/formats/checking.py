"""Validates raw rows of a file and turns them into fixes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import Fixes, Options, Rows, is_degrees, labels, refusal
from retrasyn.data.formats.understanding import Understanding

if TYPE_CHECKING:
    import numpy.typing as npt


_TIME_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?$"
_STAMP = (
    r"^(?P<date>[0-9]{4}[-/][0-9]{2}[-/][0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r" ?(?P<offset>Z|z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
_MOST = 9.2e18  # limit of 64-bit integers
_MICRO = 1_000_000
_SCALES = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (np.inf, 1e-3))  # up to here, times this


@dataclass(frozen=True, slots=True)
class Times:
    """Parsed times of a column, with a mask of those that could not be parsed."""

    values: npt.NDArray[np.int64]  # [n_rows]
    bad: npt.NDArray[np.bool_]  # [n_rows]
    zoned: npt.NDArray[np.bool_] | None  # [n_rows], has an offset; None for numbers
    kind: Literal["steps", "instants"]


def parse_times(column: pa.Array, options: Options, *, steps: bool = False) -> Times:
    """Parse a column of texts, numbers, dates or timestamps."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _from_stamps(column, options)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _from_numbers(column, options, steps=steps)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
        first = next((value.as_py() for value in text if value.is_valid), "")
        if steps or pc.match_substring_regex(pa.scalar(first), _TIME_NUMBER).as_py():
            numeric = pc.match_substring_regex(text, _TIME_NUMBER)
            numbers = pc.if_else(numeric, text, None).cast(pa.float64())
            return _from_numbers(numbers, options, steps=steps)
        return _from_text(text, options)
    return Times(np.zeros(len(column), np.int64), np.ones(len(column), np.bool_), None, "instants")


def _from_stamps(column: pa.Array, options: Options) -> Times:
    """Convert Arrow timestamps."""
    n_rows = len(column)
    zoned = getattr(column.type, "tz", None) is not None
    zone = column.type.tz if zoned else None
    stamps = column.cast(pa.timestamp("us", zone), safe=False)
    values = _micros(stamps if zoned else _localised(stamps, options.timezone))
    return Times(values, _mask(stamps.is_null()), np.full(n_rows, zoned), "instants")


def _from_numbers(column: pa.Array, options: Options, *, steps: bool) -> Times:
    """Convert numbers: steps, or seconds (milli-, micro-, nanoseconds by size) since 1970."""
    bad = _mask(column.is_null())
    if steps or options.numbers == "steps":
        if pa.types.is_integer(column.type) and column.type != pa.uint64():
            return Times(_filled(column.cast(pa.int64())), bad, None, "steps")
        numbers = _filled(column.cast(pa.float64()))
        whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < _MOST)
        return Times(np.where(whole, numbers, 0).astype(np.int64), bad | ~whole, None, "steps")
    numbers = _filled(column.cast(pa.float64(), safe=False))
    size = np.abs(numbers)
    bad |= ~(size < _MOST)
    exact = pa.types.is_integer(column.type) and column.type != pa.uint64()
    counts = _filled(column.cast(pa.int64())) if exact else None
    values = np.zeros(numbers.size, np.int64)
    low = -1.0
    for high, scale in _SCALES:
        here = ~bad & (size >= low) & (size < high)
        low = high
        if counts is None:
            values[here] = np.round(numbers[here] * scale).astype(np.int64)
        elif scale >= 1:
            values[here] = counts[here] * np.int64(scale)
        else:
            values[here] = counts[here] // np.int64(round(1 / scale))
    return Times(values, bad, None, "instants")


def _from_text(text: pa.Array, options: Options) -> Times:
    """Parse time texts: ISO 8601, with or without offset, T or space, - or /."""
    parts = pc.extract_regex(text, _STAMP)
    date, hour, second, fraction, offset = (
        pc.struct_field(parts, name) for name in ("date", "hour", "second", "fraction", "offset")
    )
    clock = pc.binary_join_element_wise(_or(hour, "00:00"), _or(second, "00"), ":")
    written = pc.binary_join_element_wise(pc.replace_substring(date, "/", "-"), clock, " ")
    stamps = pc.strptime(written, format="%Y-%m-%d %H:%M:%S", unit="us", error_is_null=True)
    again = pc.utf8_slice_codeunits(pc.strftime(stamps, format="%Y-%m-%d %H:%M:%S"), 0, 19)
    bad = ~_mask(pc.equal(again, written).fill_null(False))  # rejects 30 February
    zoned = _mask(pc.greater(pc.utf8_length(offset), 0).fill_null(False))
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(_or(fraction, "0"), 9, "0"), 0, 6)
    values = np.where(
        zoned, _micros(stamps), _micros(_localised(stamps, options.timezone))
    ) + _filled(digits.cast(pa.int64()))
    return Times(values - _offsets(offset), bad, zoned, "instants")


def _offsets(offset: pa.Array) -> npt.NDArray[np.int64]:
    """Convert +02:00, +0200 or +02 to microseconds; a missing offset is zero."""
    plain = pc.replace_substring(offset, ":", "")
    signed = pc.match_substring_regex(plain, r"^[+-]").fill_null(False)
    digits = pc.if_else(signed, pc.utf8_rpad(plain, 5, "0"), "+0000")
    hours = _filled(pc.utf8_slice_codeunits(digits, 1, 3).cast(pa.int64()))
    minutes = _filled(pc.utf8_slice_codeunits(digits, 3, 5).cast(pa.int64()))
    behind = _mask(pc.starts_with(digits, "-").fill_null(False))
    micros: npt.NDArray[np.int64] = np.where(behind, -1, 1) * (hours * 3600 + minutes * 60) * _MICRO
    return micros


def _or(texts: pa.Array, default: str) -> pa.Array:
    """Replace missing parts by a default."""
    return pc.if_else(pc.equal(pc.utf8_length(texts), 0), default, texts)


def _localised(stamps: pa.Array, zone: str) -> pa.Array:
    """Convert local times to instants; skipped or repeated times resolve to the earlier one."""
    if zone == "UTC":
        return stamps
    return pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="earliest")


def _micros(stamps: pa.Array) -> npt.NDArray[np.int64]:
    return _filled(stamps.cast(pa.int64()))


def _filled(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return integers, zero where null."""
    filled = column.fill_null(0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*$"
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
    x, y = _floats(rows.x), _floats(rows.y)
    times = parse_times(rows.time, options, steps=rows.steps)
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
        return "since 1970, UTC"
    return "with offsets" if zoned else options.timezone


def _good(rows: Rows, faults: list[_Fault], options: Options) -> Any:
    """Return the valid rows as a mask or a full slice, or raise at the first bad row."""
    bad = np.logical_or.reduce([fault.bad for fault in faults])
    if not bad.any():
        return slice(None)
    if options.on_error == "fail":
        row = int(np.argmax(bad))
        fault = next(fault for fault in faults if fault.bad[row])
        raise refusal(rows.path, _line(rows, row), fault.describe(row), rows.place)
    return ~bad


def _kept(column: pa.DictionaryArray, good: Any) -> pa.DictionaryArray:
    return column if isinstance(good, slice) else column.filter(pa.array(good))


def _count(good: Any, n_rows: int) -> int:
    return n_rows if isinstance(good, slice) else int(good.sum())


def _line(rows: Rows, row: int) -> int | None:
    return None if rows.lines is None else int(rows.lines[row])


def _floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """Return floats, NaN where null or not a number."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
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
        return f"{name} {_short(value)} is not a whole number; without --every it counts steps"
    return f"{name} {_short(value)} is not a time such as 2008-02-02 15:36:08 or a Unix time"


def _number_fault(rows: Rows, role: str, column: pa.Array, row: int) -> str:
    name, value = rows.columns.names.get(role, role), column[row]
    if not value.is_valid or value.as_py() == "":
        return f"{name} is empty; remove this row or fill it in"
    return f"{name} {_short(value)} is not a finite number; check the delimiter and the columns"


def _pole_fault(rows: Rows, value: float) -> str:
    x, y = rows.columns.names.get("x", "longitude"), rows.columns.names.get("y", "latitude")
    return (
        f"latitude {value:g} in {y} is beyond 90 degrees; perhaps {x} and {y} are swapped "
        f"(--x '{y}' --y '{x}'), or the coordinates are projected (--from-crs)"
    )


def _around_fault(rows: Rows, value: float) -> str:
    name = rows.columns.names.get("x", "longitude")
    return f"longitude {value:g} in {name} is beyond 360 degrees; is it projected (--from-crs)?"


def _short(value: Any) -> str:
    return repr(str(value.as_py())[:40])
