"""Reading raw files in tests and looking at what came."""

from __future__ import annotations

import datetime as dt
import struct

import pytest

from retrasyn.cli.pages import in_flags
from retrasyn.data.formats import Options, read_fixes
from retrasyn.errors import InputError


def rows_of(path, kind="auto", **options):
    """Return (user, time, x, y) of every fix; instants as ISO text in UTC, steps as numbers."""
    rows = []
    for chunk in read_fixes(path, kind, Options(**options)):
        times = chunk.time.tolist()
        if chunk.kind == "instants":
            times = [instant(time) for time in times]
        columns = chunk.user.to_pylist(), times, chunk.x.tolist(), chunk.y.tolist()
        rows += list(zip(*columns, strict=True))
    return rows


def instant(micros):
    begin = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return (begin + dt.timedelta(microseconds=micros)).replace(tzinfo=None).isoformat()


def skipped(path, kind="auto", **options):
    """Return how many rows were skipped."""
    chunks = read_fixes(path, kind, Options(on_error="skip", **options))
    return sum(chunk.n_skipped for chunk in chunks)


def crs_of(path, kind="auto", **options):
    """Return the one coordinate system of all chunks."""
    (crs,) = {chunk.crs for chunk in read_fixes(path, kind, Options(**options))}
    return crs


def refuse(path, kind, *words, **options):
    """Check that reading is refused in one line with all the words."""
    with pytest.raises(InputError) as caught:
        rows_of(path, kind, **options)
    message = in_flags(str(caught.value))
    assert "\n" not in message
    missing = [word for word in words if word not in message]
    assert not missing, f"{message!r} does not name {missing}"


def fit_file(points):
    """Return the bytes of a FIT file with a record for each (seconds since 1970, x, y)."""
    define = struct.pack("<BBBHB", 0x40, 0, 0, 20, 3)  # local message 0 is global message 20
    define += bytes([253, 4, 0x86, 0, 4, 0x85, 1, 4, 0x85])  # timestamp, latitude, longitude
    records = b"".join(
        struct.pack("<BIii", 0, second - FIT_EPOCH, *(round(d * 2**31 / 180) for d in (y, x)))
        for second, x, y in points
    )
    head = struct.pack("<BBHI4s", 14, 0x20, 2100, len(define + records), b".FIT")
    data = head + struct.pack("<H", fit_crc(head)) + define + records
    return data + struct.pack("<H", fit_crc(data))


FIT_EPOCH = 631_065_600  # 31 December 1989


def fit_crc(data):
    """Return the check sum of the format: CRC-16 with the reversed polynomial 0x8005."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc
