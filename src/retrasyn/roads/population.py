"""Reads rasters of public population, as sums over the squares of a public map."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from retrasyn.errors import InputError
from retrasyn.roads import rasters
from retrasyn.space import Box
from retrasyn.space.grid import format_box

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.coordinates import Coordinates

ENDINGS = (".csv",)
_COLUMNS = (("x", "y", "weight"), ("lon", "lat", "population"))


def read_population(path: Path, box: Box, coordinates: Coordinates) -> npt.NDArray[np.float64]:
    """Return the population in every square of a box: [SIDE, SIDE]."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"population {path} ends in none of {', '.join(ENDINGS)}")
    del coordinates
    x, y, weights = _read_csv(path)
    laid = rasters.of_places(box, x, y, weights)
    if not laid.any():
        raise InputError(
            f"nobody of {path.name} is inside the box {format_box(box)}; its own is "
            f"{format_box(Box.around(x, y))}: is it of another place, or in other coordinates?"
        )
    return laid


def _read_csv(path: Path) -> npt.NDArray[np.float64]:
    """Return places and weights: [3, n_places]."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = np.array(list(_rows(path, file)), np.float64)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a table of plain text"
        raise InputError(f"{path} cannot be read: {why}") from None
    if not rows.size:
        raise InputError(f"{path} has no rows; one per place is needed")
    return rows.T


def _rows(path: Path, file: IO[str]) -> Iterator[tuple[float, ...]]:
    """Yield x, y and weight of every row."""
    table = csv.reader(file)
    names = [name.strip().lower() for name in next(table, [])]
    columns = next((wanted for wanted in _COLUMNS if set(wanted) <= set(names)), None)
    if columns is None:
        forms = " or ".join(",".join(wanted) for wanted in _COLUMNS)
        raise InputError(f"{path} has the columns {','.join(names)[:80]!r}; it needs {forms}")
    places = [names.index(name) for name in columns]
    for row in table:
        if not row:
            continue
        try:
            values = tuple(float(row[place]) for place in places)
        except (ValueError, IndexError):
            values = (math.nan,)
        if not all(map(math.isfinite, values)) or values[-1] < 0:
            raise InputError(
                f"{path}, line {table.line_num}: {','.join(columns)} is {','.join(row)[:80]!r}; "
                "three finite numbers are needed, the last not below 0"
            )
        yield values
