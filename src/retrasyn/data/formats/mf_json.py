"""OGC Moving Features JSON (19-045r3): MovingPoint features and the simpler trajectory form.

A feature with ``temporalGeometry`` has coordinates and datetimes side by side; one in trajectory
form is a LineString whose properties hold the datetimes. Numbers are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options, Rows, bad_row, constant, stem
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import EITHER, TRAJECTORIES, USERS, plain
from retrasyn.data.formats.geojson import crs_of, read_features, texts
from retrasyn.data.formats.understanding import Columns
from retrasyn.errors import InputError

_COLUMNS = Columns("id", "datetimes", "coordinates[0]", "coordinates[1]")


def read_mf_json(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file, or all ``.json`` and ``.mfjson`` files of a folder."""
    for file in files_of(path, ".json", ".mfjson"):
        for number, (line, feature, crs) in enumerate(read_features(file)):
            try:
                parts = list(_parts(feature))
                columns, user = _user(feature, options, f"{stem(file)} {number}")
                for coordinates, datetimes in parts:
                    rows = _rows(file, line, user, coordinates, datetimes, _crs(feature, crs))
                    yield check(replace(rows, columns=columns), options)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                if options.on_error == "fail":
                    raise bad_row(
                        file, line, f"this is no moving point: {_reason(error)}"
                    ) from None
                yield _skipped(file, options)


def _parts(feature: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield coordinates and datetimes of a feature."""
    if feature.get("type") != "Feature":
        raise ValueError("its type is not Feature")
    moving = feature.get("temporalGeometry")
    if moving is None:
        if feature["geometry"]["type"] != "LineString":
            raise ValueError("it has neither temporalGeometry nor a LineString")
        yield _pair(feature["geometry"]["coordinates"], feature["properties"]["datetimes"])
        return
    members = moving.get("prisms") or moving.get("members") or [moving]
    for member in members:
        if member["type"] != "MovingPoint":
            raise ValueError(f"its temporalGeometry is a {str(member['type'])[:40]}")
        yield _pair(member["coordinates"], member["datetimes"])


def _pair(coordinates: Any, datetimes: Any) -> tuple[list[Any], list[Any]]:
    if not isinstance(coordinates, list) or not isinstance(datetimes, list):
        raise TypeError("coordinates and datetimes must be lists")
    if len(coordinates) != len(datetimes):
        raise ValueError(f"{len(coordinates)} coordinates but {len(datetimes)} datetimes")
    return coordinates, datetimes


def _user(feature: Any, options: Options, otherwise: str) -> tuple[Columns, str]:
    """Return the user, a property with a usual name or the feature's id, and where it stands."""
    properties = feature.get("properties") or {}
    asked = [name for name in (options.user, options.traj) if name]
    lowered = {plain(str(name)): name for name in reversed(properties)}
    users, streams, late = (
        [lowered[name] for name in names if name in lowered]
        for names in (USERS, TRAJECTORIES, EITHER)
    )
    values = [(name, properties.get(name)) for name in (*asked, *users, *streams)]
    values += [("id", feature.get("id")), *((name, properties.get(name)) for name in late)]
    values += [("the feature", otherwise)]
    for name, value in values:
        single = value[0] if isinstance(value, list) and value else value
        if isinstance(single, (str, int, float)) and str(single):
            sure = name == options.user or name in users
            return replace(_COLUMNS, user=name, doubt="" if sure else "column"), str(single)
    raise AssertionError  # pragma: no cover - the last value is a text


def _rows(
    path: Path, line: int, user: str, coordinates: list[Any], datetimes: list[Any], crs: str | None
) -> Rows:
    n_rows = len(coordinates)
    places = np.array([place[:2] for place in coordinates], np.float64).reshape(n_rows, 2)
    if all(type(value) in (int, float) for value in datetimes):
        millis = np.array(datetimes, np.float64)
        if not np.all(np.abs(millis) < 1e15):  # noqa: PLR2004 - beyond the year 30000
            raise ValueError("datetimes hold a number too large for milliseconds")
        times = pa.array(np.round(millis * 1000).astype(np.int64)).cast(pa.timestamp("us", "UTC"))
    else:
        times = texts(datetimes)
    return Rows(
        path=path,
        user=constant(user, n_rows),
        time=times,
        x=pa.array(places[:, 0]),
        y=pa.array(places[:, 1]),
        lines=np.full(n_rows, line),
        crs=crs,
    )


def _crs(feature: Any, crs: str | None) -> str | None:
    return crs_of(feature["crs"]) if isinstance(feature.get("crs"), dict) else crs


def _skipped(path: Path, options: Options) -> Fixes:
    """Return empty fixes that count one skipped feature."""
    nothing = pa.array([], pa.string())
    rows = Rows(
        path=path, user=nothing, time=nothing, x=nothing, y=nothing, lines=None, n_skipped=1
    )
    return check(rows, options)


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):  # pragma: no cover - not among those caught
        raise error
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)[:120]
