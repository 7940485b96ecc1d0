"""Pictures of trajectories: how dense they are on a grid, and a sample of their paths.

For whoever holds the data: a picture of real trajectories is as little private as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.geoparquet import load_extra
from retrasyn.errors import InputError, MissingExtra
from retrasyn.roads.coordinates import WGS84, is_degrees
from retrasyn.space.grid import Box, Grid, grid_around
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories

SIDE = 24
"""Cells to a side, if none are asked for: finer than the grid of a run, so that streets show."""
N_PATHS = 60
"""Paths drawn, if no number is asked for; more could not be told apart."""
N_LEVELS = 6
"""Shades of density."""
_MOST = 2_000_000  # points counted for a picture: of more, every second, third, ...
_LINE = "#e4572e"
_FILL = "#00798c"


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What every picture is drawn from."""

    grid: Grid
    shares: npt.NDArray[np.float64]  # [side, side], share of points in each cell, lowest row first
    paths: list[npt.NDArray[np.float64]]  # [n, 2] each, the points of a stream

    @classmethod
    def of(
        cls,
        data: Trajectories,
        *,
        grid: int | Grid = SIDE,
        box: Box | tuple[float, float, float, float] | None = None,
        n_paths: int = N_PATHS,
    ) -> Picture:
        """Count points in cells, and choose paths evenly among the streams that have one."""
        if not data.n_points:
            raise InputError(
                "there are no points to draw; those of a release in parts are in its folder"
            )
        cells = grid_around(data.x, data.y, grid, box)
        every = slice(None, None, -(-data.n_points // _MOST))
        found, _ = cells.locate(data.x[every], data.y[every])
        counts = np.bincount(found[found < cells.n_cells], minlength=cells.n_cells)
        moving = np.flatnonzero(data.lengths > 1)
        n_drawn = max(0, min(n_paths, moving.size))
        chosen = moving[np.linspace(0, moving.size - 1, n_drawn).astype(int)]
        rows = [slice(data.starts[one], data.starts[one + 1]) for one in chosen]
        return cls(
            grid=cells,
            shares=(counts / found.size).reshape(cells.side, cells.side),
            paths=[np.stack([data.x[some], data.y[some]], axis=1) for some in rows],
        )

    def levels(self) -> npt.NDArray[np.int64]:
        """Return the shade of each cell from 0 for an empty one to `N_LEVELS`: [side, side].

        Shades follow the square root of a share, or a single crowd would leave the rest blank.
        """
        highest = self.shares.max() or 1.0
        shades = np.ceil(N_LEVELS * np.sqrt(self.shares / highest))
        return np.asarray(shades, np.int64)


def stretch(box: Box, crs: str | None) -> float:
    """Return how much longer a unit of y is than one of x: where they are degrees, by latitude.

    >>> round(stretch(Box(13, 59, 14, 61), "EPSG:4326"), 6), stretch(Box(0, 0, 1, 1), "EPSG:3857")
    (2.0, 1.0)
    """
    if not is_degrees(crs, box):
        return 1.0
    return 1 / max(math.cos(math.radians((box.y0 + box.y1) / 2)), 0.1)  # the poles have none


def plot(data: Trajectories, picture: Picture, *, ax: Any = None) -> Any:
    """Draw density, and paths over it, with matplotlib; return the axes."""
    collections, plt = _load_matplotlib()
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    x0, y0, x1, y1 = box = picture.grid.box
    image = ax.imshow(
        picture.shares, origin="lower", extent=(x0, x1, y0, y1), cmap="YlGnBu", vmin=0
    )
    lines = collections.LineCollection(picture.paths, colors=_LINE, linewidths=0.9, alpha=0.8)
    ax.add_collection(lines, autolim=False)
    ax.set(xlim=(x0, x1), ylim=(y0, y1), aspect=stretch(box, data.crs))
    ax.locator_params(axis="x", nbins=5)  # long degrees would run into each other
    if is_degrees(data.crs):
        ax.set(xlabel="longitude", ylabel="latitude")
    ax.set_title(
        f"{data.n_points:,} points in {data.n_streams:,} streams, "
        f"{len(picture.paths):,} of them as lines",
        fontsize="medium",
    )
    ax.figure.colorbar(image, ax=ax, label="share of points", format="{x:.1%}")
    return ax


def explore(data: Trajectories, picture: Picture, options: dict[str, Any]) -> Any:
    """Draw density and paths on a map of folium's; return the map."""
    folium = load_extra("folium", "for a map to explore")
    degrees = is_degrees(data.crs, picture.grid.box)
    to_degrees = None if degrees or data.crs is None else Projection(data.crs, WGS84)
    if not degrees and to_degrees is None:
        raise InputError(
            "the coordinate system of these trajectories is not known, so they have no place on "
            "a map; say it when they are read, for example crs='EPSG:3857', or use plot()"
        )

    def on_earth(points: npt.NDArray[np.float64]) -> list[list[float]]:
        x, y = points[:, 0], points[:, 1]
        there = (x, y) if to_degrees is None else to_degrees(x, y)
        return np.stack(there, axis=1).round(6).tolist()  # type: ignore[no-any-return]

    shown = folium.Map(**{"tiles": None, "prefer_canvas": True} | options)
    # What we draw needs Leaflet alone; the rest would be asked of three more servers.
    shown.default_js = [one for one in shown.default_js if one[0] == "leaflet"]
    shown.default_css = [one for one in shown.default_css if one[0] == "leaflet_css"]
    folium.GeoJson(
        {"type": "FeatureCollection", "features": _cells(picture, on_earth)},
        name="share of points",
        style_function=_style,
        tooltip=folium.GeoJsonTooltip(["share"], labels=False),
    ).add_to(shown)
    folium.GeoJson(
        {"type": "MultiLineString", "coordinates": [on_earth(path) for path in picture.paths]},
        name=f"{len(picture.paths):,} of {data.n_streams:,} paths",
        style_function=lambda _: {"color": _LINE, "weight": 1.5, "opacity": 0.8},
    ).add_to(shown)
    folium.LayerControl(collapsed=False).add_to(shown)
    x0, y0, x1, y1 = picture.grid.box
    low, high = on_earth(np.array([[x0, y0], [x1, y1]]))
    shown.fit_bounds([low[::-1], high[::-1]])
    return shown


def _cells(picture: Picture, on_earth: Any) -> list[dict[str, Any]]:
    """Return the cells that hold points, as features of GeoJSON."""
    grid, levels = picture.grid, picture.levels().ravel()
    round_it = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    ring = round_it * [grid.cell_width, grid.cell_height]
    return [
        {
            "type": "Feature",
            "properties": {
                "share": f"{picture.shares.flat[cell]:.2%} of the points",
                "opacity": round(0.75 * int(levels[cell]) / N_LEVELS, 3),
            },
            "geometry": {"type": "Polygon", "coordinates": [on_earth(grid.corners[cell] + ring)]},
        }
        for cell in np.flatnonzero(levels).tolist()
    ]


def _style(feature: dict[str, Any]) -> dict[str, Any]:
    return {"fillColor": _FILL, "fillOpacity": feature["properties"]["opacity"], "weight": 0}


def _load_matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only a picture needs it
        from matplotlib import collections  # noqa: PLC0415 - as above
    except ImportError:
        raise MissingExtra('matplotlib is not installed: pip install "retrasyn[report]"') from None
    return collections, plt
