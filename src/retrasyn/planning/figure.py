"""Plot of a forecast: errors by grid, and the effect of more users, epsilon or window, or a map."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from retrasyn.data.writing_files import check_place
from retrasyn.errors import MissingExtra, OutputError
from retrasyn.files import replacing
from retrasyn.planning.forecast import Forecast, Prospect

FORMATS = (".png", ".svg")
# Okabe and Ito's palette, distinguishable by the colour-blind; in grey, markers differ.
_DENSITY, _TRANSITION, _DETAIL, _CHOICE = "#0072B2", "#D55E00", "#009E73", "#000000"
_STYLE = {
    "font.size": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "retrasyn",  # the same forecast gives the same file
    "svg.fonttype": "none",
}


def check_figure(path: Path) -> None:
    """Refuse early a plot that cannot be drawn or written."""
    if path.suffix.lower() not in FORMATS:
        raise OutputError(f"plot {path} ends in {path.suffix or 'nothing'}; use .svg or .png")
    _load_matplotlib()
    check_place(path)


def draw_figure(shown: Forecast, path: Path) -> None:
    """Write a plot of a simulated forecast as SVG or PNG."""
    check_figure(path)
    matplotlib = _load_matplotlib()
    with matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(figsize=(11.0, 5.0), layout="constrained")
        by_grid, by_change = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_grids(by_grid, shown)
        _draw_changes(by_change, shown)
        figure.suptitle(
            f"{shown.method}: {shown.n_users:,} people at a time, "
            f"epsilon {shown.epsilon:g}, w = {shown.window}"
        )
        kind = path.suffix.lower().removeprefix(".")
        metadata = {"Date": None} if kind == "svg" else None
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)


def _draw_grids(axes: Any, shown: Forecast) -> None:
    """Draw errors by grid side, shaded between the city at rest and the one with rush hours."""
    sides = [row.side for row in shown.rows]
    for name, colour, marker in (
        ("density", _DENSITY, "o"),
        ("transition", _TRANSITION, "s"),
    ):
        errors: list[Prospect] = [getattr(row, name) for row in shown.rows]
        low = [min(error.at_rest, error.rush_hours) for error in errors]
        high = [max(error.at_rest, error.rush_hours) for error in errors]
        label = f"{name} error, from at rest to rush hours"
        expected = [error.expected for error in errors]
        axes.plot(sides, expected, color=colour, marker=marker, label=f"{name} error, expected")
        axes.fill_between(sides, low, high, color=colour, alpha=0.2, linewidth=0, label=label)
    lost = [row.lost_detail for row in shown.rows[:-1]]  # the finest grid loses nothing
    axes.plot(sides[:-1], lost, color=_DETAIL, marker="^", linestyle=":", label="detail lost")
    axes.axvline(
        shown.recommended,
        color=_CHOICE,
        linestyle="--",
        linewidth=1.2,
        label=f"recommended: K = {shown.recommended}",
    )
    axes.set(xscale="log", yscale="log", xlabel="side K of the grid", ylabel="divergence (nats)")
    axes.set_xticks(sides, [str(side) for side in sides])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=9, ncols=2, frameon=False)


def _draw_changes(axes: Any, shown: Forecast) -> None:
    """Draw the errors on the recommended grid, now and after each change."""
    now = shown.row(shown.recommended or shown.rows[0].side)
    named = [("now", now), *((change.what, change) for change in shown.changes)]
    for name, colour, marker, shift in (
        ("density", _DENSITY, "o", -0.12),
        ("transition", _TRANSITION, "s", 0.12),
    ):
        errors: list[Prospect] = [getattr(one, name) for _, one in named]
        expected = [error.expected for error in errors]
        away = [
            [error.expected - min(error.at_rest, error.rush_hours) for error in errors],
            [max(error.at_rest, error.rush_hours) - error.expected for error in errors],
        ]
        axes.errorbar(
            [place + shift for place in range(len(named))],
            expected,
            yerr=away,
            color=colour,
            marker=marker,
            linestyle="none",
            capsize=4,
            label=f"{name} error",
        )
    axes.set(xlim=(-0.5, len(named) - 0.5), title=f"on the grid with K = {now.side}")
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(named)), [textwrap.fill(what, 10) for what, _ in named], fontsize=9)
    axes.set_ylabel("divergence (nats)")
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        fontsize=9,
        ncols=2,
        frameon=False,
        title="point: expected; bar: at rest to rush hours",
        title_fontsize=9,
    )


def _load_matplotlib() -> Any:
    """Import matplotlib, or raise with the install command."""
    try:
        import matplotlib.figure  # noqa: PLC0415 - only the picture needs it
    except ImportError:
        raise MissingExtra('matplotlib is not installed: pip install "retrasyn[report]"') from None
    return matplotlib
