"""Reading raw files in tests and looking at what came."""

from __future__ import annotations

import datetime as dt

import pytest

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
    message = str(caught.value)
    assert "\n" not in message
    missing = [word for word in words if word not in message]
    assert not missing, f"{message!r} does not name {missing}"
