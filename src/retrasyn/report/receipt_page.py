"""A receipt as a page of its own: one HTML file that needs nothing else and runs no program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrasyn._version import __version__
from retrasyn.data.writing_files import check_place
from retrasyn.replacing import replacing
from retrasyn.report.page import open_templates, source_of
from retrasyn.report.statement import state

Row = tuple[str, str, str]
"""A check: its verdict, its name and what it found."""


def write_receipt_page(path: Path, receipt: dict[str, Any], *, checks: Sequence[Row] = ()) -> None:
    """Write a receipt and the checks made on it to an HTML file."""
    page = render_receipt(receipt, checks=checks)
    check_place(path)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render_receipt(receipt: dict[str, Any], *, checks: Sequence[Row] = ()) -> str:
    """Return the page as text; everything in it is escaped."""
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
