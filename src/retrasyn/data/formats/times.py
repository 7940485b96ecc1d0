"""Columns of times, in whatever form, to microseconds since 1970 UTC or to steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import Options

if TYPE_CHECKING:
    import numpy.typing as npt

_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?$"
_STAMP = (
    r"^(?P<date>[0-9]{4}[-/][0-9]{2}[-/][0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r" ?(?P<offset>Z|z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
_MOST = 9.2e18  # what 64 bits hold
_MICRO = 1_000_000
_SCALES = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (np.inf, 1e-3))  # up to here, times this


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times that were understood, and which were not."""

    values: npt.NDArray[np.int64]  # [n_rows]
    bad: npt.NDArray[np.bool_]  # [n_rows]
    zoned: npt.NDArray[np.bool_] | None  # [n_rows], with an offset; None for numbers
    kind: Literal["steps", "instants"]


def parse_times(column: pa.Array, options: Options, *, steps: bool = False) -> Times:
    """Understand a column of texts, numbers, dates or timestamps."""
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
        if steps or pc.match_substring_regex(pa.scalar(first), _NUMBER).as_py():
            numeric = pc.match_substring_regex(text, _NUMBER)
            numbers = pc.if_else(numeric, text, None).cast(pa.float64())
            return _from_numbers(numbers, options, steps=steps)
        return _from_text(text, options)
    return Times(np.zeros(len(column), np.int64), np.ones(len(column), np.bool_), None, "instants")


def _from_stamps(column: pa.Array, options: Options) -> Times:
    """Read timestamps as Arrow holds them."""
    n_rows = len(column)
    zoned = getattr(column.type, "tz", None) is not None
    zone = column.type.tz if zoned else None
    stamps = column.cast(pa.timestamp("us", zone), safe=False)
    values = _micros(stamps if zoned else _localised(stamps, options.timezone))
    return Times(values, _mask(stamps.is_null()), np.full(n_rows, zoned), "instants")


def _from_numbers(column: pa.Array, options: Options, *, steps: bool) -> Times:
    """Read numbers: steps, or seconds (milli-, micro-, nanoseconds by their size) since 1970."""
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
    """Read written times: ISO 8601, with or without offset, T or space, - or /."""
    parts = pc.extract_regex(text, _STAMP)
    date, hour, second, fraction, offset = (
        pc.struct_field(parts, name) for name in ("date", "hour", "second", "fraction", "offset")
    )
    clock = pc.binary_join_element_wise(_or(hour, "00:00"), _or(second, "00"), ":")
    written = pc.binary_join_element_wise(pc.replace_substring(date, "/", "-"), clock, " ")
    stamps = pc.strptime(written, format="%Y-%m-%d %H:%M:%S", unit="us", error_is_null=True)
    again = pc.utf8_slice_codeunits(pc.strftime(stamps, format="%Y-%m-%d %H:%M:%S"), 0, 19)
    bad = ~_mask(pc.equal(again, written).fill_null(False))  # 30 February is no date
    zoned = _mask(pc.greater(pc.utf8_length(offset), 0).fill_null(False))
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(_or(fraction, "0"), 9, "0"), 0, 6)
    values = np.where(
        zoned, _micros(stamps), _micros(_localised(stamps, options.timezone))
    ) + _filled(digits.cast(pa.int64()))
    return Times(values - _offsets(offset), bad, zoned, "instants")


def _offsets(offset: pa.Array) -> npt.NDArray[np.int64]:
    """Return +02:00, +0200 or +02 in microseconds; zero where there is none."""
    plain = pc.replace_substring(offset, ":", "")
    signed = pc.match_substring_regex(plain, r"^[+-]").fill_null(False)
    digits = pc.if_else(signed, pc.utf8_rpad(plain, 5, "0"), "+0000")
    hours = _filled(pc.utf8_slice_codeunits(digits, 1, 3).cast(pa.int64()))
    minutes = _filled(pc.utf8_slice_codeunits(digits, 3, 5).cast(pa.int64()))
    behind = _mask(pc.starts_with(digits, "-").fill_null(False))
    micros: npt.NDArray[np.int64] = np.where(behind, -1, 1) * (hours * 3600 + minutes * 60) * _MICRO
    return micros


def _or(texts: pa.Array, default: str) -> pa.Array:
    """Put a default where a part was not written."""
    return pc.if_else(pc.equal(pc.utf8_length(texts), 0), default, texts)


def _localised(stamps: pa.Array, zone: str) -> pa.Array:
    """Return the instants of local times; a time the clock skips or repeats is the earlier one."""
    if zone == "UTC":
        return stamps
    return pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="earliest")


def _micros(stamps: pa.Array) -> npt.NDArray[np.int64]:
    return _filled(stamps.cast(pa.int64()))


def _filled(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return numbers, zero where there is none."""
    filled = column.fill_null(0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
