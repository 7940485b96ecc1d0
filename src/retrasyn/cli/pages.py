"""``retrasyn help``: the documents, wherever the program is installed, and which one explains what.

A wheel carries the pages (`hatch_build.py` puts them in); a clone has them in `docs/`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from retrasyn import errors
from retrasyn.errors import InputError, RetraSynError, SettingError

_HERE = Path(__file__).parents[1]
_FIRST_STEPS = "first-steps"

BY_ERROR: dict[type[RetraSynError], str | None] = {
    errors.BudgetExceeded: "privacy",
    errors.EngineError: "scaling",
    errors.EntropyError: "device",
    errors.LedgerError: "device",
    errors.ServerError: "operations",
    errors.ConsentError: "device",
    errors.WireError: "wire",
    errors.CheckpointError: _FIRST_STEPS,
    errors.StoreError: "operations",
    errors.Busy: "operations",
    errors.UnknownToken: "operations",
    errors.MissingExtra: None,  # says what to type
}
"""Errors that one page explains, whichever command they end."""

BY_COMMAND: dict[str, str] = {
    "synthesize": _FIRST_STEPS,
    "stream": _FIRST_STEPS,
    "methods": "method",
    "ask": "ask",
    "evaluate": "evaluation",
    "compare": "evaluation",
    "convert": "formats",
    "validate": "formats",
    "generate": "generator",
    "roads": "public-maps",
    "watch": "map",
    "demo": _FIRST_STEPS,
    "plan": "planning",
    "suggest": "planning",
    "reproduce": "reproduction",
    "gateway": "gateway",
    "fleet": "fleet",
    "serve": "operations",
    "invite": "operations",
    "rotate-key": "operations",
    "audit": "audit",
    "receipt": "receipts",
    "device": "device",
    "doctor": "operations",
    "help": _FIRST_STEPS,
}
"""The page about each command, for errors about what it was given."""


def explaining(error: RetraSynError, arguments: Sequence[str]) -> str:
    """Return where an error is explained, as the end of a line, or nothing.

    >>> explaining(SettingError("no"), ["plan", "--users", "0"])
    '; see retrasyn help planning'
    """
    for kind, topic in BY_ERROR.items():
        if isinstance(error, kind):
            return f"; see retrasyn help {topic}" if topic else ""
    command = next((word for word in arguments if word in BY_COMMAND), None)
    return f"; see retrasyn help {BY_COMMAND[command]}" if command else ""


_SETTING = re.compile(r'`([a-z_]+)(?:=(?:True|"([^`"]*)"|([^`"]*)))?`')


def in_flags(message: str) -> str:
    """Return a message of the library with its settings named as the command line calls them.

    >>> in_flags('give `length_scale`, drop them with `outside="drop"`, or go on by `resume=True`')
    'give --length-scale, drop them with --outside drop, or go on by --resume'
    """

    def flag(found: re.Match[str]) -> str:
        value = found[2] or found[3]
        name = f"--{found[1].replace('_', '-')}"
        if not value:
            return name
        return f"{name} {value}" if re.fullmatch(r"[\w%+:./-]+", value) else f"{name} '{value}'"

    return _SETTING.sub(flag, message)


def show_page(
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Name of a page; all names if absent.")
    ] = None,
) -> None:
    """Show a page of the documents, or list them.

    Example: retrasyn help privacy
    """
    pages = find_pages()
    if topic is None:
        width = max(map(len, pages))
        for name, path in pages.items():
            print(f"{name:<{width}}  {_title(path)}")
        return
    if topic not in pages:
        raise SettingError(f"there is no page {topic!r}; choose from {', '.join(pages)}")
    text = pages[topic].read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))


def find_pages() -> dict[str, Path]:
    """Return every page by its name."""
    carried = _HERE / "pages"
    clone = _HERE.parents[1]
    if carried.is_dir():
        found = [*carried.glob("*.md")]
    else:
        found = [*(clone / "docs").glob("*.md"), *clone.glob("README.md")]
    if not found:
        raise InputError("this installation has no documents; read them in a clone, in docs/")
    return {path.stem.lower(): path for path in sorted(found, key=lambda path: path.stem.lower())}


def _title(path: Path) -> str:
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


STEPS = (
    ("See it work, in a minute", "retrasyn demo"),
    (
        "Your own CSV, made private",
        "retrasyn synthesize trips.csv -o synthetic.parquet --box 0,0,10,10",
    ),
    (
        "How close that is to the real data",
        "retrasyn evaluate trips.csv synthetic.parquet --report report.html",
    ),
    (
        "A campaign with real devices, and its live map at http://127.0.0.1:8700/",
        "retrasyn serve",
    ),
    ("What to expect with so many people, before anybody reports", "retrasyn plan --users 5000"),
)


def first_steps(version: str) -> str:
    """Return them as a text, with the commands to type."""
    steps = "\n".join(f"  {about}\n    $ {command}" for about, command in STEPS)
    return (
        f"RetraSyn {version}: private synthetic trajectory streams, in real time.\n\n{steps}\n\n"
        "All commands: retrasyn --help. Whether all is well: retrasyn doctor. Pages: retrasyn help"
    )
