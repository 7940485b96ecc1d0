"""``retrasyn reproduce``: runs the paper's experiments."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress
from retrasyn.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table

    from retrasyn.engines.ray import RayTasks

_MOST = 1000  # runs of a cell, and processes
_WIDEST = 1_000  # characters of a table
_EVERY = 30.0  # seconds between two lines where there is no terminal to draw on


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="table1, table3, table4, table5, allocation, complexity, window, span, grid, "
            "scale, or all.",
        ),
    ] = "table3",
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE", help="A data set: tdrive, oldenburg or sanjoaquin, and its file."
        ),
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Generate a data set on a road network: oldenburg or sanjoaquin.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these data sets.")
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="Only these budgets in table3. (default: 0.5, 1, 1.5, 2)"),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Runs of every cell. (default: 3; with --quick, 1)")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for results, tables and plots. Runs in it are kept.")
    ] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(help="Processes side by side.")] = 2,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list of files that were written as JSON.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress; only the files that were written.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed; without data, one small built-in city.")
    ] = False,
    engine: options.EngineName = "local",
    address: options.Address = None,
) -> None:
    """Run the paper's experiments again, with our methods beside.

    The first table of a single study is printed. What was already run in the folder is kept: stop
    at any time and go on later with the same command. Data sets that are not given are generated,
    and labelled so.

    Example: retrasyn reproduce table3 --quick
    """
    from retrasyn.experiments.reproduction import Folder, Reproduction
    from retrasyn.experiments.sources import find_sources
    from retrasyn.experiments.studies import EPSILONS, Scope, find_studies

    studies = find_studies(what)
    if not 1 <= jobs <= _MOST:
        raise SettingError(f"--jobs {jobs} must be at least 1 and at most {_MOST}")
    n_seeds = (1 if quick else 3) if seeds is None else seeds
    if not 1 <= n_seeds <= _MOST:
        raise SettingError(
            f"--seeds {n_seeds} must be at least 1 and at most {_MOST}; 3 show a spread"
        )
    for one in epsilon or []:
        if not 0 < one <= 40:  # noqa: PLR2004 - what the curator takes
            raise SettingError(f"--epsilon {one:g} must lie above 0 and at most 40")
    names = tuple(dict.fromkeys(name for study in studies for name in study.data))
    sources = find_sources(
        names if not only else _restricted(names, only),
        files=_pairs("--data", data),
        networks=_pairs("--network", network),
        folder=out,
        quick=quick,
    )
    pool = _pool(engine, address)
    scope = Scope(seeds=n_seeds, epsilons=tuple(epsilon) if epsilon else EPSILONS)
    work = Reproduction(studies, sources, Folder.open(out), scope)
    began = time.monotonic()
    try:
        with interruptible_progress(quiet) as progress:
            work.prepare(_stay_silent if quiet else _say, progress)
        with _display(quiet=quiet) as told:
            work.run(
                jobs=jobs if pool is None else pool.n_tasks,
                told=told,
                stopping=_say_stopping,
                pool=pool,
            )
    except KeyboardInterrupt:
        sys.stderr.write(f"stopped: what is finished is kept in {out}; run again to go on\n")
        raise
    written = [str(path) for path in work.write()]
    if len(studies) == 1 and written and not (quiet or as_json):
        _show(Path(written[0]).read_text("utf-8"))
    print(json.dumps(written, indent=2) if as_json else "\n".join(written))
    if not quiet:
        _say(f"in {time.monotonic() - began:.0f} s")


def _show(page: str) -> None:
    """Print the first table of a page, rather too wide than folded; the file has the others."""
    from rich.console import Console

    lines = dropwhile(lambda line: line[:1] != "|", page.splitlines())
    table = _table(list(takewhile(lambda line: line[:1] == "|", lines)))
    console = Console()
    console.width = _WIDEST
    console.width = console.measure(table).maximum
    console.print(table)


def _table(lines: list[str]) -> Table:
    """Return a table as it is written in Markdown: heads, a rule, and rows, some of them titles."""
    from rich.box import ROUNDED
    from rich.table import Table
    from rich.text import Text

    heads, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    table = Table(box=ROUNDED)
    for place, head in enumerate(heads):
        table.add_column(
            head.replace(" ", "\n"), justify="right" if place else "left", no_wrap=True
        )
    for row in rows:
        if not any(row[1:]):
            table.add_section()
        else:
            cells = (Text(cell.replace("**", ""), "bold" if "**" in cell else "") for cell in row)
            table.add_row(*cells)
    return table


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _stay_silent(_: str) -> None:
    pass


def _pool(engine: str, address: str | None) -> RayTasks | None:
    """Return where runs go if not to processes of this machine."""
    if engine == "ray":
        from retrasyn.engines.ray import RayTasks

        return RayTasks(address)
    if address is not None:
        raise SettingError(f"--address {address} needs --engine ray")
    return None


def _say_stopping() -> None:
    sys.stderr.write("stopping when the runs in hand are done; Ctrl-C again stops at once\n")


def _pairs(option: str, texts: list[str] | None) -> dict[str, Path]:
    """Read NAME=FILE pairs."""
    pairs: dict[str, Path] = {}
    for text in texts or []:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise SettingError(f"{option} {text!r} is not NAME=FILE; for example tdrive=tdrive.csv")
        if name in pairs:
            raise SettingError(f"{option} names {name} twice")
        pairs[name] = Path(file)
    return pairs


def _restricted(names: tuple[str, ...], only: list[str]) -> tuple[str, ...]:
    """Return the data sets that were asked for."""
    for name in only:
        if name not in names:
            raise SettingError(f"--only {name}: this is about {', '.join(names)}")
    return tuple(name for name in names if name in only)


@contextmanager
def _display(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show what was finished last and what is left: a bar, or a line now and then."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    live = sys.stderr.isatty()
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not live,
    )
    task = bar.add_task("starting", total=None)
    began = last = time.monotonic()

    def told(label: str, done: int, total: int) -> None:
        nonlocal last
        bar.update(task, description=label, completed=done, total=total)
        now = time.monotonic()
        if not (live or quiet) and (now - last > _EVERY or done == total):
            left = (now - began) / done * (total - done)
            sys.stderr.write(f"{done} of {total} runs, about {left:.0f} s left; last: {label}\n")
            last = now

    with bar:
        yield told
