"""FIT, which sports watches record (extra [geo]): a file is one person's unless it is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options
from retrasyn.data.formats.blocks import files_of, whole_file
from retrasyn.data.formats.gpx import whose
from retrasyn.data.formats.tables import fixes_of
from retrasyn.data.geoparquet import load_extra
from retrasyn.errors import InputError

_FIELDS = ("timestamp", "position_long", "position_lat")
_DEGREES = 180 / 2**31  # of a semicircle


def read_fit(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.fit`` files of a folder."""
    columns = replace(whose(options.user), time=_FIELDS[0], x=_FIELDS[1], y=_FIELDS[2], traj="")
    for file in files_of(path, ".fit"):
        with whole_file(file) as whole:
            rows = list(_positions(file, whole))
        if not rows:
            raise InputError(f"{file} records no position; it was made indoors, or with GPS off")
        time, x, y = zip(*rows, strict=True)
        moments = pa.array(time, pa.timestamp("us", "UTC"))
        batch = pa.RecordBatch.from_arrays([moments, pa.array(x), pa.array(y)], _FIELDS)
        yield from fixes_of([batch], columns, file, options)


def _positions(path: Path, whole: Path) -> Iterator[tuple[Any, float, float]]:
    """Yield time, longitude and latitude of every record that has a position."""
    fitdecode = load_extra("fitdecode", f"to read {path.name}")
    try:
        with fitdecode.FitReader(
            str(whole),
            check_crc=fitdecode.CrcCheck.RAISE,
            error_handling=fitdecode.ErrorHandling.IGNORE,
        ) as file:
            for frame in file:
                if frame.frame_type != fitdecode.FIT_FRAME_DATA or frame.name != "record":
                    continue
                time, x, y = (frame.get_value(name, fallback=None) for name in _FIELDS)
                if x is not None and y is not None:
                    yield time, x * _DEGREES, y * _DEGREES
    except (fitdecode.FitError, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as fit: {error}; is the file whole?") from None
