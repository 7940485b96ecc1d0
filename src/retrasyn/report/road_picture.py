"""Picture of a public map: its roads by class, and where it has people."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.writing_files import check_place
from retrasyn.errors import MissingExtra, OutputError
from retrasyn.files import replacing
from retrasyn.roads.coordinates import is_degrees
from retrasyn.roads.network import CLASS_NAMES, N_CLASSES

if TYPE_CHECKING:
    from retrasyn.roads.network import RoadNetwork
    from retrasyn.roads.public_map import PublicMap

FORMATS = (".png", ".svg")
_COLOURS = ("#a3182f", "#d9582b", "#eaa221", "#3f6f8c", "#5d93ad", "#8fb0bf", "#b9c6cf")
_WIDTHS = (2.4, 2.0, 1.6, 0.9, 0.8, 0.6, 0.5)
_PLAIN, _INK, _FAINT = "#3d5a78", "#22303c", "#8a98a5"
_STYLE = {"font.size": 10.0, "svg.hashsalt": "retrasyn", "svg.fonttype": "none"}
_WIDE = 5.2  # inches of each panel
_MANY = 50_000  # roads above which they are drawn finer


def check_picture(path: Path) -> None:
    """Refuse early a picture that cannot be drawn or written."""
    if path.suffix.lower() not in FORMATS:
        raise OutputError(f"plot {path} ends in {path.suffix or 'nothing'}; use .png or .svg")
    _load_matplotlib()
    check_place(path)


def draw_map(known: PublicMap, path: Path) -> None:
    """Write a picture of a public map that has roads, as PNG or SVG."""
    check_picture(path)
    assert known.roads is not None  # noqa: S101 - whoever has no roads has nothing to draw
    matplotlib = _load_matplotlib()
    x0, y0, x1, y1 = known.box
    # A degree of longitude is shorter than one of latitude.
    aspect = 1 / math.cos(math.radians((y0 + y1) / 2)) if is_degrees(None, known.box) else 1.0
    tall = _WIDE * min(max((y1 - y0) * aspect / (x1 - x0), 0.4), 2.0)
    with matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(figsize=(2 * _WIDE, tall + 1.2), layout="constrained")
        streets, people = figure.subplots(1, 2, sharex=True, sharey=True)
        _draw_roads(matplotlib, streets, known.roads)
        _draw_raster(matplotlib, figure, people, known)
        for axes in (streets, people):
            axes.set(xlim=(x0, x1), ylim=(y0, y1), aspect=aspect, anchor="N", xticks=[], yticks=[])
            axes.spines[:].set_color(_FAINT)
        kind = path.suffix.lower().removeprefix(".")
        metadata = {"Date": None} if kind == "svg" else None
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)


def _draw_roads(matplotlib: Any, axes: Any, roads: RoadNetwork) -> None:
    """Draw every road, the slowest first."""
    ends = np.stack([roads.tail, roads.head], axis=1)
    lines = np.stack([roads.x[ends], roads.y[ends]], axis=-1)  # [n_edges, 2, 2]
    thin = 0.5 if roads.n_edges > _MANY else 1.0
    shares = np.bincount(roads.road_class, roads.length, N_CLASSES) / roads.length.sum()
    for number in reversed(range(N_CLASSES)) if roads.classed else ():
        chosen = lines[roads.road_class == number]
        if chosen.size:
            label = f"{number} {CLASS_NAMES[number]}, {100 * shares[number]:.0f} %"
            drawn = matplotlib.collections.LineCollection(
                list(chosen),
                colors=_COLOURS[number],
                linewidths=thin * _WIDTHS[number],
                label=label,
                capstyle="round",
            )
            axes.add_collection(drawn)
    if not roads.classed:
        drawn = matplotlib.collections.LineCollection(
            list(lines), colors=_PLAIN, linewidths=0.7 * thin, label="roads, no classes"
        )
        axes.add_collection(drawn)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        labels[::-1],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=3,
        fontsize=8.5,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.2,
    )
    axes.set_title(
        f"{roads.n_edges:,} roads, {roads.n_nodes:,} nodes", fontsize=11, loc="left", color=_INK
    )


def _draw_raster(matplotlib: Any, figure: Any, axes: Any, known: PublicMap) -> None:
    """Draw how likely every square is, compared with an even map."""
    x0, y0, x1, y1 = known.box
    relative = known.raster * known.raster.size
    top = float(np.quantile(relative, 0.995))
    image = axes.imshow(
        relative,
        origin="lower",
        extent=(x0, x1, y0, y1),
        cmap="GnBu",
        norm=matplotlib.colors.PowerNorm(0.5, vmin=0.0, vmax=top),  # quiet streets show, too
        interpolation="nearest",
    )
    axes.set_title(
        f"where people are likely: {known.weighting}", fontsize=11, loc="left", color=_INK
    )
    bar = figure.colorbar(
        image, ax=axes, orientation="horizontal", shrink=0.7, aspect=40, pad=0.03, extend="max"
    )
    bar.set_label("times the even share", fontsize=8.5, color=_INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8.5)


def _load_matplotlib() -> Any:
    """Import matplotlib, or raise with the install command."""
    try:
        import matplotlib.collections  # noqa: PLC0415 - only the picture needs it
        import matplotlib.colors  # noqa: PLC0415 - the same
        import matplotlib.figure  # noqa: PLC0415 - the same
    except ImportError:
        raise MissingExtra('matplotlib is not installed: pip install "retrasyn[report]"') from None
    return matplotlib
