"""Reads the times of a column: texts, numbers, dates or timestamps."""

from __future__ import annotations

import datetime as dt
import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import Options

if TYPE_CHECKING:
    import numpy.typing as npt

_TIME_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?$"
_CLOCK = (
    r"(?:(?:T| |, ?)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)? ?(?P<half>[AaPp][Mm])?"
    r" ?(?P<offset>Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
_STAMP = r"^(?P<year>[0-9]{4})[-/](?P<month>[0-9]{2})[-/](?P<day>[0-9]{2})" + _CLOCK
_DAY = r"(?P<day>[0-9]{1,2})"
_MONTH = r"(?P<month>[0-9]{1,2})"
_YEAR = r"(?P<year>[0-9]{4})"
_SLASHED = rf"^{_DAY}[/.-]{_MONTH}[/.-]{_YEAR}"
_DAY_FIRST = _SLASHED + _CLOCK
_MONTH_FIRST = rf"^{_MONTH}[/.-]{_DAY}[/.-]{_YEAR}{_CLOCK}"
_PARTS = ("year", "month", "day", "hour", "minute", "second", "fraction", "half", "offset")
_MONTHS = _HALF_DAY = 12
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of times whose zone is known apart
_STEP = dt.timedelta(microseconds=1)
_DATES = ((19_000_101, 21_001_231), (19_000_101_000_000, 21_001_231_235_959))
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


def parse_times(
    column: pa.Array, options: Options, *, steps: bool = False, day_first: bool | None = None
) -> Times:
    """Parse a column of texts, numbers, dates or timestamps."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _from_stamps(column, options)
    if options.time_format is not None:
        return _from_format(column, options)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _from_numbers(column, options, steps=steps)
    if is_text(kind):
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
        first = next((value.as_py() for value in text if value.is_valid), "")
        if steps or pc.match_substring_regex(pa.scalar(first), _TIME_NUMBER).as_py():
            numeric = pc.match_substring_regex(text, _TIME_NUMBER)
            numbers = pc.if_else(numeric, text, None).cast(pa.float64())
            return _from_numbers(numbers, options, steps=steps)
        return _from_text(text, options, day_first=day_first)
    return Times(np.zeros(len(column), np.int64), np.ones(len(column), np.bool_), None, "instants")


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds texts."""
    return kind in {pa.string(), pa.large_string(), pa.string_view()}


def has_slashed_date(text: str) -> bool:
    """Whether a text begins with a date such as 31/12/2020 or 1.2.2020."""
    return re.match(_SLASHED, text.strip()) is not None


def is_day_first(column: pa.Array) -> bool | None:
    """Whether dates such as 31/12/2020 begin with the day; None if there are none.

    >>> is_day_first(pa.array(["01/12/2020", "31/12/2020"]))
    True

    Raises:
        ValueError: Every date could begin with either; the message is such a date.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not is_text(column.type):
        return None
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = text.filter(pc.match_substring_regex(text, _DAY_FIRST).fill_null(False))
    if not len(text):
        return None
    parts = pc.extract_regex(text, _DAY_FIRST)
    first, second = (
        pc.max(pc.struct_field(parts, name).cast(pa.int64())).as_py() for name in ("day", "month")
    )
    if max(first, second) <= _MONTHS:
        raise ValueError(text[0].as_py())
    return bool(first > _MONTHS)


def formats_of(text: str) -> tuple[str, str]:
    """Return the formats of a time that may begin with the day or with the month.

    >>> formats_of("05.06.2020 10:00")
    ('%d.%m.%Y %H:%M', '%m.%d.%Y %H:%M')
    """
    date, gap, clock = re.match(r"(\S+)(\D*)(.*)", text).groups()  # type: ignore[union-attr]
    mark = re.search(r"\D", date)[0]  # type: ignore[index]
    hour = "%I" if text[-1] in "mM" else "%H"
    tail = ":".join((hour, "%M", "%S")[: clock.count(":") + 1]) if clock else ""
    tail += "" if hour == "%H" else clock[-3:-2].strip(string.digits) + "%p"
    first, second = (f"{mark}".join((*order, "%Y")) for order in (("%d", "%m"), ("%m", "%d")))
    return f"{first}{gap}{tail}", f"{second}{gap}{tail}"


def _from_format(column: pa.Array, options: Options) -> Times:
    """Parse by the format that was given, each distinct text once."""
    coded = column.cast(pa.string()).dictionary_encode()
    moments = [_moment(text, str(options.time_format)) for text in coded.dictionary.to_pylist()]
    micros = [0 if moment is None else (moment - _EPOCH) // _STEP for moment, _ in moments]
    zoned = np.array([has_offset for _, has_offset in moments], np.bool_)
    stamps = pa.array(micros, pa.timestamp("us"))
    values = np.where(zoned, _micros(stamps), _micros(_localised(stamps, options.timezone)))
    bad = np.array([moment is None for moment, _ in moments], np.bool_)
    rows = _filled(coded.indices)
    if not moments:
        return Times(np.zeros(rows.size, np.int64), np.ones(rows.size, np.bool_), None, "instants")
    return Times(values[rows], bad[rows] | _mask(column.is_null()), zoned[rows], "instants")


def _moment(text: str, form: str) -> tuple[dt.datetime | None, bool]:
    """Return a time without its offset, in UTC if it has one, and whether it has one."""
    try:
        moment = dt.datetime.strptime(text.strip(), form)  # noqa: DTZ007 - the option says the zone
        if moment.tzinfo is None:
            return moment, False
        return moment.astimezone(dt.UTC).replace(tzinfo=None), True
    except (ValueError, OverflowError):
        return None, False


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
    bad |= _written_as_dates(numbers[~bad])
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


def _written_as_dates(numbers: npt.NDArray[Any]) -> bool:
    """Whether the numbers are dates such as 20201231 or 20201231235959, not counts of seconds."""
    return any(bool(np.all((numbers >= low) & (numbers <= high))) for low, high in _DATES)


def _from_text(text: pa.Array, options: Options, *, day_first: bool | None) -> Times:
    """Parse time texts: ISO 8601, or day, month and year in an order that is known."""
    pattern = {None: _STAMP, True: _DAY_FIRST, False: _MONTH_FIRST}[day_first]
    parts = pc.extract_regex(text, pattern)
    part = {name: pc.struct_field(parts, name) for name in _PARTS}
    hour = _from_halves(_or(part["hour"], "00"), part["half"])
    date = pc.binary_join_element_wise(
        part["year"], _two_digits(part["month"]), _two_digits(part["day"]), "-"
    )
    clock = pc.binary_join_element_wise(
        _two_digits(hour), _or(part["minute"], "00"), _or(part["second"], "00"), ":"
    )
    written = pc.binary_join_element_wise(date, clock, " ")
    stamps = pc.strptime(written, format="%Y-%m-%d %H:%M:%S", unit="us", error_is_null=True)
    again = pc.utf8_slice_codeunits(pc.strftime(stamps, format="%Y-%m-%d %H:%M:%S"), 0, 19)
    bad = ~_mask(pc.equal(again, written).fill_null(False))  # rejects 30 February
    zoned = _mask(pc.greater(pc.utf8_length(part["offset"]), 0).fill_null(False))
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(_or(part["fraction"], "0"), 9, "0"), 0, 6)
    values = np.where(
        zoned, _micros(stamps), _micros(_localised(stamps, options.timezone))
    ) + _filled(digits.cast(pa.int64()))
    return Times(values - _offsets(part["offset"]), bad, zoned, "instants")


def _from_halves(hour: pa.Array, half: pa.Array) -> pa.Array:
    """Return hours of 24 from hours of 12 with AM or PM; 13 PM becomes an hour nobody has."""
    said = pc.greater(pc.utf8_length(half), 0)
    if not pc.any(said, min_count=0).as_py():
        return hour
    number = hour.cast(pa.int64())
    full = pc.if_else(pc.equal(number, _HALF_DAY), 0, number)
    full = pc.add(full, pc.if_else(pc.equal(pc.utf8_upper(half), "PM"), _HALF_DAY, 0))
    known = pc.and_(pc.greater(number, 0), pc.less_equal(number, _HALF_DAY))
    return pc.if_else(said, pc.if_else(known, full, 99).cast(pa.string()), hour)


def _two_digits(texts: pa.Array) -> pa.Array:
    return pc.utf8_lpad(texts, 2, "0")


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
