"""Plot style: colour-blind-safe colours, panels, legends, reproducible files.

The only module that imports matplotlib. Colours are those of Okabe and Ito, which colour-blind
readers can tell apart; markers, dashes and hatches repeat the distinction without colour.
"""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from retrasyn.data.writing_files import check_place
from retrasyn.errors import MissingExtra
from retrasyn.experiments.tables.markdown import METRIC, SeedSummary, spread_text
from retrasyn.experiments.tables.utility import DIRECTION
from retrasyn.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FONT = "font-family:'DejaVu Sans', sans-serif"
"""The font style.py sets; written once for the whole file instead of on every text element."""
_NUMBER = re.compile(r"-?\d+\.\d+")
_MEASURES = re.compile(r'\b(d|x|y|width|height|transform)="([^"]*)"')
_STYLE = re.compile(r'style="([^"]*)"')
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
_BARE_GROUP = re.compile(r"<g>((?:(?!</?g\b).)*)</g>", re.DOTALL)
_NAME = re.compile(r' id="([^"]*)"')


def slim(svg: str) -> str:
    r"""Return the same SVG picture in fewer bytes.

    >>> slim('<path id="a" d="M 1.23456 2.0 \n   L 3.00001 4.5"/>')
    '<path d="M 1.23 2 L 3 4.5"/>'
    """
    svg = _NO_TURN.sub("", svg)
    svg = _MEASURES.sub(lambda found: f'{found[1]}="{_short(found[2])}"', svg)
    svg = _STYLE.sub(lambda found: f'style="{found[1].replace("; ", ";").replace(": ", ":")}"', svg)
    svg = _NAME.sub(lambda found: found[0] if f"#{found[1]}" in svg else "", svg)
    svg = svg.replace(f"{FONT};", "").replace("<svg ", f'<svg style="{FONT}" ', 1)
    found = 1
    while found:  # from the innermost out
        svg, found = _BARE_GROUP.subn(r"\1", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def _short(text: str) -> str:
    """Round every number to hundredths and join the text into one line."""
    text = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)
    return " ".join(text.split())


Parameters = ParamSpec("Parameters")

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "svg.fonttype": "none",  # keeps text as text: small, searchable files
    "svg.hashsalt": "retrasyn",
    "xtick.major.size": 0,  # grid lines show the positions
    "ytick.major.size": 0,
}
DARK = "#444444"
SPREAD = "Error bars: sample standard deviation over"
MEANS = "Means over"
HANDLE, LETTER = 62, 6.2  # points: a legend handle with its gaps, and one letter
NARROWEST = 6.5  # inches; leaves room for the legend and the note around a single panel


@dataclass(frozen=True, slots=True)
class Look:
    """How one method is drawn, as a line and as a bar."""

    colour: str
    marker: str
    dash: str = "-"
    hatch: str = ""
    width: float = 1.5


LOOKS = {
    "lbd": Look("#E69F00", "v", "--", "//"),
    "lba": Look("#CC79A7", "^", "--", "\\\\"),
    "lpd": Look("#009E73", "<", "-.", ".."),
    "lpa": Look("#777777", ">", "-.", "xx"),
    "retrasyn-b": Look("#56B4E9", "s", "-", "||"),
    "retrasyn-p": Look("#0072B2", "o", "-", "--"),
    "steered": Look("#D55E00", "D", "-", "", 2.2),
    "allupdate-b": Look("#E69F00", "v", "--", "//"),
    "allupdate-p": Look("#CC79A7", "^", "--", "\\\\"),
    "noeq-b": Look("#009E73", "<", "-.", ".."),
    "noeq-p": Look("#777777", ">", "-.", "xx"),
    "published": Look("#000000", "x", ":"),
    "Adaptive": Look("#0072B2", "o", "-", "--"),
    "Uniform": Look("#E69F00", "v", "-", "//"),
    "Sample": Look("#009E73", "<", "-", ".."),
    "Random": Look("#CC79A7", "^", "-", "xx"),
}


def load_matplotlib() -> Any:
    """Import matplotlib, or raise with the install command."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only plots need it
    except ImportError:
        raise MissingExtra('matplotlib is not installed: pip install "retrasyn[report]"') from None
    return mpl


def drawn(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Run a drawing function in our style, whatever style the process has set."""

    @functools.wraps(draw)
    def styled(*args: Parameters.args, **options: Parameters.kwargs) -> Figure:
        with load_matplotlib().rc_context(STYLE):
            return draw(*args, **options)

    return styled


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a plot as SVG and PNG and return both paths; equal plots give equal files."""
    with load_matplotlib().rc_context(STYLE):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once: both files, and files to come, are alike
    written = []
    for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        place = check_place(path.with_name(f"{path.name}.{kind}"))
        with load_matplotlib().rc_context(STYLE), replacing(place) as temporary:
            figure.savefig(temporary, format=kind, dpi=120, metadata=metadata)
            if kind == "svg":
                temporary.write_text(slim(temporary.read_text("utf-8")), "utf-8")
        written.append(place)
    return written


def panels(
    n_rows: int, n_columns: int, *, width: float = 2.85, height: float = 2.4
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a grid of equal panels, as rows; sizes in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only plots need it

    size = max(n_columns * width, NARROWEST), max(n_rows, 1) * height + 0.7
    figure = Figure(figsize=size, layout="constrained")
    if not n_rows:
        return figure, []
    return figure, figure.subplots(n_rows, n_columns, squeeze=False).tolist()


def label(axes: Axes, *, title: str, across: str, up: str) -> None:
    """Set the title and axis labels of a panel."""
    axes.set_title("\n".join(textwrap.wrap(title, 30)))
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    if not axes.has_data():
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not computed yet", ha="center", transform=axes.transAxes, color=DARK)


def axis_title(metric: str) -> str:
    """Return a metric's title and which direction is better, on two lines."""
    return f"{METRIC[metric].title}\n({DIRECTION[METRIC[metric].better]})"


def line(
    axes: Axes, name: str, x: list[float], figures: list[SeedSummary | None], *, what: str = ""
) -> None:
    """Draw means as a line with error bars over seeds; missing values are left out."""
    known = [(a, figure) for a, figure in zip(x, figures, strict=True) if figure is not None]
    if not known:
        return
    look = LOOKS[name]
    above = 3 if name == "steered" else 2
    axes.plot(
        [a for a, _ in known],
        [figure.mean for _, figure in known],
        label=name + what,
        color=look.colour,
        marker=look.marker,
        linestyle=look.dash,
        linewidth=look.width,
        zorder=above,
    )
    # All error bars in one path with gaps: matplotlib's own would be one element each.
    ends = [(a, figure.mean, figure.spread or 0.0) for a, figure in known]
    across = [value for a, *_ in ends for value in (a, a, math.nan)]
    up = [value for _, y, half in ends for value in (y - half, y + half, math.nan)]
    axes.plot(across, up, color=look.colour, linewidth=1.0, zorder=above)


def legend(figure: Figure, rows: Iterable[Iterable[Axes]]) -> None:
    """Put one legend above all panels, with every name once."""
    entries: dict[str, Any] = {}
    for row in rows:
        for axes in row:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                entries.setdefault(name, handle)
    names = sorted(entries, key=lambda name: "published" in name)
    if names:
        n_columns = _columns(names, 72 * float(figure.get_figwidth()))
        # Legends are filled column by column, but read row by row.
        names = [name for column in range(n_columns) for name in names[column::n_columns]]
        handles = [entries[name] for name in names]
        figure.legend(handles, names, loc="outside upper center", ncols=n_columns)


def _columns(names: list[str], width: float) -> int:
    """Return how many legend columns fit, with rows of equal length; sizes in points."""
    widths = [HANDLE + LETTER * len(name) for name in names]
    if sum(widths) <= width:
        return len(names)
    n_rows = math.ceil(len(names) / max(width // max(widths), 1))
    return math.ceil(len(names) / n_rows)


def note(
    figure: Figure, summaries: Iterable[SeedSummary | None], *, text: str = "", known: str = SPREAD
) -> None:
    """Add a note below the panels: what the error bars mean, and the number of seeds."""
    figure.supxlabel(f"{text}{spread_text(summaries, known)}.", fontsize=9, color=DARK)
