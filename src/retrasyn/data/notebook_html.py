"""What a notebook shows of trajectories: a table of facts beside a small picture of density.

There is no script in it, and all text is escaped. A notebook that is saved keeps what it shows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.data.metadata import instants, iso_texts
from retrasyn.data.pictures import N_LEVELS, Picture, stretch
from retrasyn.errors import OutputError
from retrasyn.space.grid import Box

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories

_WIDTH = 220.0  # of the picture, and its greatest height
_FILL = "#00798c"


def html_of(data: Trajectories) -> str:
    """Return the facts and the picture as HTML."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in _facts(data)
    )
    picture = _svg(data) if data.n_points else ""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
        f"<table><caption>Trajectories</caption>{rows}</table>{picture}</div>"
    )


def _facts(data: Trajectories) -> Iterator[tuple[str, str]]:
    yield "points", f"{data.n_points:,}"
    yield "streams", f"{data.n_streams:,}"
    if data.user_of_stream is not None:
        yield "users", f"{np.unique(data.user_of_stream).size:,}"
    if data.n_points:
        yield "timestamps", f"{data.first_t:,} to {data.last_t:,}"
        if data.clock is not None:
            yield "time", _time(data)
        box = Box.around(data.x, data.y)
        yield "x", f"{box.x0:.6g} to {box.x1:.6g}"
        yield "y", f"{box.y0:.6g} to {box.y1:.6g}"
    yield "coordinate system", data.crs or "not known"
    for note in data.notes:
        yield "note", note


def _time(data: Trajectories) -> str:
    """Return when the first timestamp begins and the last one ends."""
    if data.clock is None:  # pragma: no cover - asked before
        raise AssertionError
    try:
        ends = instants(data.clock, np.array([data.first_t, data.last_t + 1]))
        texts = iso_texts(ends, whole_seconds=True).tolist()
        first, last = (text.replace("T", " ").removesuffix("Z") for text in texts)
        return f"{first} to {last} UTC, {dt.timedelta(seconds=data.clock.period)} each"
    except (OutputError, OverflowError) as error:
        return str(error)


def _svg(data: Trajectories) -> str:
    """Return density as an inline picture: a path for each shade."""
    picture = Picture.of(data, n_paths=0)
    x0, y0, x1, y1 = box = picture.grid.box
    tall = (y1 - y0) * stretch(box, data.crs) / (x1 - x0)
    width, height = (_WIDTH, _WIDTH * tall) if tall < 1 else (_WIDTH / tall, _WIDTH)
    side, levels = picture.grid.side, picture.levels()
    shades = []
    for level in range(1, N_LEVELS + 1):
        rows, columns = np.nonzero(levels == level)
        squares = "".join(
            f"M{column} {side - 1 - row}h1v1h-1z"
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        )
        if squares:
            shades.append(f'<path fill-opacity="{level / N_LEVELS:.2f}" d="{squares}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 1):.0f}" '
        f'height="{max(height, 1):.0f}" viewBox="0 0 {side} {side}" preserveAspectRatio="none" '
        f'fill="{_FILL}" style="border:1px solid" role="img" aria-label="density of points">'
        f"<title>Density of points: fuller is denser</title>{''.join(shades)}</svg>"
    )
