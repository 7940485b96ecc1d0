"""Lines with times, as kepler.gl and the TripsLayer of deck.gl take them.

A collection of GeoJSON with a LineString per stream; each vertex is longitude, latitude, height and
seconds since 1970.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from retrasyn.data.geojson import timed_lines
from retrasyn.exports.systems import in_degrees
from retrasyn.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from retrasyn.data.trajectories import Trajectories

_DIGITS = 7  # of degrees: a centimetre
_AT_ONCE = 1 << 18  # points made as text before they are written


def write_lines(data: Trajectories, path: Path) -> None:
    """Write a line per stream."""
    data = in_degrees(data, "kepler.gl")
    data = replace(data, x=data.x.round(_DIGITS), y=data.y.round(_DIGITS))
    with (
        replacing(path) as temporary,
        temporary.open("wb") as file,
        timed_lines(data, file) as write_block,
    ):
        for block in data.blocks(_AT_ONCE):
            write_block(block)
