"""Projects fixes (extra [geo]) and keeps those inside a box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from retrasyn.data.formats.base import Fixes, constant, is_degrees
from retrasyn.errors import SettingError
from retrasyn.space import Box
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

_TURN = 360.0  # degrees


class Placing:
    """Projects fixes, drops those outside the box, and counts what was dropped."""

    def __init__(self, box: Box | None, from_crs: str | None, to_crs: str | None) -> None:
        self._box, self.crs, self._to_crs = box, from_crs, to_crs
        self._project: Projection | None = None
        self.n_outside = self.n_lost = 0
        if from_crs and to_crs:  # rejects a wrong name before reading anything
            self._project = Projection(from_crs, to_crs)

    def __call__(self, chunk: Fixes) -> pa.Table:
        """Return the remaining rows as a table."""
        x, y = chunk.x, chunk.y
        self.crs = self.crs or chunk.crs
        keep = np.ones(x.size, np.bool_)
        if self._to_crs is not None:
            x, y = self._projection(chunk)(x, y)
            keep = np.isfinite(x) & np.isfinite(y)
            self.n_lost += int(x.size - keep.sum())
        if self._box is not None:
            x0, y0, x1, y1 = self._box
            if is_degrees(self._to_crs or self.crs):
                x = _turned(x, x0, x1)
            inside = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
            self.n_outside += int((keep & ~inside).sum())
            keep &= inside
        trip = constant("", x.size) if chunk.trip is None else chunk.trip
        table = pa.table({"user": chunk.user, "trip": trip, "time": chunk.time, "x": x, "y": y})
        return table if keep.all() else table.filter(pa.array(keep))

    def _projection(self, chunk: Fixes) -> Projection:
        if self._project is None:
            if self.crs is None or self._to_crs is None:
                raise SettingError(
                    f"{chunk.path} does not say its coordinate system; give "
                    "`from_crs`, for example EPSG:4326"
                )
            self._project = Projection(self.crs, self._to_crs)
        return self._project


def _turned(x: npt.NDArray[np.float64], x0: float, x1: float) -> npt.NDArray[np.float64]:
    """Return longitudes as a box counts them that reaches beyond 180 degrees, east or west."""
    if x1 > _TURN / 2:
        return np.where(x < x0, x + _TURN, x)
    return np.where(x > x1, x - _TURN, x) if x0 < -_TURN / 2 else x
