"""Renders the evaluation report and the receipt page, each as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrasyn._version import __version__
from retrasyn.data.writing_files import check_place
from retrasyn.errors import MissingExtra, OutputError
from retrasyn.files import replacing
from retrasyn.report.content import Content, gather
from retrasyn.report.statement import state
from retrasyn.report.verdict import in_words

if TYPE_CHECKING:
    from pathlib import Path

    from retrasyn.data.metadata import Clock
    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import Scores
    from retrasyn.report.uncertainty import CellErrors
    from retrasyn.roads.network import RoadNetwork


STYLES = ("base", "layout", "charts")
# Order matters: a script may use those before it, and the last one starts the page.
PROGRAMS = (
    "data",
    "drawing",
    "axes",
    "player",
    "streets",
    "maps",
    "fine",
    "flows",
    "curves",
    "glyphs",
    "hotspots",
    "patterns",
    "trips",
    "tracks",
    "main",
)


def check_available() -> None:
    """Raise early, before anything is computed, if the report cannot be rendered."""
    _load_jinja2()


def check_page(path: Path) -> None:
    """Refuse a page that cannot be rendered or written, or whose suffix is not .html or .htm."""
    check_available()
    if path.suffix.lower() not in {".html", ".htm"}:
        raise OutputError(f"page {path} ends in {path.suffix or 'nothing'}; use .html")
    check_place(path)


def write_report(
    path: Path,
    pair: Pair,
    scores: Scores,
    *,
    receipt: dict[str, Any] | None,
    title: str,
    span: int,
    top_cells: int,
    top_patterns: int,
    seed: int,
    clock: Clock | None = None,
    roads: RoadNetwork | None = None,
    baselines: Mapping[str, Scores] | None = None,
    errors: CellErrors | None = None,
    crs: str | None = None,
) -> Content:
    """Write the report on a real and a synthetic data set to an HTML file; return what it shows.

    The page opens with a verdict, then says that it shows exact counts and a few trajectories of
    the real data. `receipt` is the parsed receipt of the synthetic data; the page says so if there
    is none. `roads` are public ones, in the coordinates of the data: they are drawn under the maps.
    `baselines` are scores by the names of `YARDSTICKS` and "half"; without them, those are made
    that need the real data alone. `errors` were collected with the release; `crs` is the coordinate
    system of the data.
    """
    check_available()
    check_place(path)
    content = gather(
        pair,
        scores,
        receipt=receipt,
        title=title,
        span=span,
        top_cells=top_cells,
        top_patterns=top_patterns,
        seed=seed,
        clock=clock,
        roads=roads,
        baselines=baselines,
        errors=errors,
        crs=crs,
    )
    page = render(content)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return content


def render(content: Content) -> str:
    """Return the page as HTML; all external text is escaped."""
    environment = open_templates()
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    program = _program()
    page: str = environment.get_template("report.html").render(
        content=content,
        sentence=in_words(content.grades),
        style="\n".join(source_of(f"css/{name}.css") for name in STYLES),
        dark=source_of("css/dark.css"),
        print_style=source_of("css/print.css"),
        program=program,
        program_hash=_hash(program),
    )
    return page


def open_templates() -> Any:
    """Return the template engine: autoescaping is on, and a missing value is an error."""
    jinja2 = _load_jinja2()
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(source_of),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _program() -> str:
    """Join the scripts, wrapped in one function scope."""
    parts = "\n".join(source_of(f"js/{name}.js") for name in PROGRAMS)
    return f'(function () {{\n"use strict";\n{parts}\n}})();\n'


def _hash(program: str) -> str:
    """Return the Content-Security-Policy hash of a script."""
    digest = hashlib.sha256(program.encode()).digest()
    return base64.b64encode(digest).decode()


def source_of(name: str) -> str:
    """Read a file from the templates folder."""
    place = resources.files("retrasyn.report") / "templates" / name
    return place.read_text(encoding="utf-8")


def _load_jinja2() -> Any:
    """Import jinja2, or raise with the install command."""
    try:
        import jinja2  # noqa: PLC0415 - only the report needs it
    except ImportError:
        raise MissingExtra('jinja2 is not installed: pip install "retrasyn[report]"') from None
    return jinja2


Row = tuple[str, str, str]
"""A check: verdict, name, finding."""


def write_receipt_page(path: Path, receipt: dict[str, Any], *, checks: Sequence[Row] = ()) -> None:
    """Write a receipt and its check results to an HTML file."""
    page = render_receipt(receipt, checks=checks)
    check_place(path)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render_receipt(receipt: dict[str, Any], *, checks: Sequence[Row] = ()) -> str:
    """Return the page as HTML; all text is escaped."""
    page: str = (
        open_templates()
        .get_template("receipt.html")
        .render(
            statement=state(receipt),
            worst=list((receipt.get("worst_window") or {}).values()),
            lifetime=receipt.get("lifetime") or {},
            checks=checks,
            version=__version__,
            style=source_of("css/receipt.css"),
        )
    )
    return page
