"""``retrasyn suggest``: settings that fit a file, as a command line to copy."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.planning.suggestion import Suggestion

Column = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Of raw positions, if its name is unusual.")
]


@saying_stopped("nothing was suggested")
def suggest(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Raw positions that convert recognises, or what it made of them."
        ),
    ],
    epsilon: options.Epsilon = 1.0,
    finest: Annotated[
        str, typer.Option(metavar="1min", help="The shortest step to look at, of raw positions.")
    ] = "1min",
    user: Column = None,
    time: Column = None,
    x: Column = None,
    y: Column = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Suggest step, box, grid and window for a file, with the reason for each.

    The suggestion was read off raw data, so it is not public; it says what that means.

    Example: retrasyn suggest trips.parquet --epsilon 2
    """
    from retrasyn.planning import suggestion

    named = {"user": user, "time": time, "x": x, "y": y}
    columns = {name: column for name, column in named.items() if column is not None}
    real, converted = _read(source, finest, columns)
    found = suggestion.suggest(real, epsilon=epsilon)
    commands = _commands(found, source, columns, converted=converted)
    if as_json:
        print(json.dumps({**found.to_dict(), "commands": commands}, indent=2))
        return
    _show(found, commands)


def _read(source: Path, finest: str, columns: dict[str, str]) -> tuple[Trajectories, bool]:
    """Read a file, and tell whether it was converted before."""
    from retrasyn.data.frames import COLUMNS
    from retrasyn.data.reading_files import SUFFIXES, read, read_raw

    known = source.suffix.lower() in SUFFIXES
    if known and not columns and {"traj_id", "t"} <= set(read_raw(source).names) & set(COLUMNS):
        return read(source), True
    return read(source, "auto", every=finest, **columns), False


def _commands(
    found: Suggestion, source: Path, columns: dict[str, str], *, converted: bool
) -> list[str]:
    """Return what to type: the conversion, unless that was done as suggested, and the run."""
    place, name = source, shlex.quote(str(source))
    first = []
    if not (converted and (found.as_recorded or found.every is None)):
        place = Path(f"{source.stem or source.name}.{found.every}.parquet")
        raw = "RAW" if converted else name
        told = "".join(f" --{name} {shlex.quote(column)}" for name, column in columns.items())
        made = shlex.quote(str(place))
        first = [f"retrasyn convert {raw} -o {made} --every {found.every}{told}"]
    made = shlex.quote(str(place))
    return [*first, f"retrasyn synthesize {made} -o synthetic.parquet {found.options}"]


def _show(found: Suggestion, commands: list[str]) -> None:
    """Print the commands, the reason for each setting, and what is not public."""
    from rich.console import Console

    from retrasyn.planning.suggestion import PRIVACY
    from retrasyn.space.grid import format_box

    console = Console(highlight=False, markup=False)
    values = {
        "every": found.every,
        "fold": found.fold,
        "box": format_box(found.box),
        "grid": found.grid,
        "window": found.window,
    }
    console.print(found.active.words, soft_wrap=True)
    for name, reason in found.reasons.items():
        value = values[name]
        option = name if value is None else f"--{name} {value}"
        console.print(f"{option}: {reason}", soft_wrap=True)
    console.print()
    for command in commands:
        console.print(command, soft_wrap=True)
    if commands[0].startswith("retrasyn convert RAW "):
        console.print("(RAW: the file it was converted from, at another step)", soft_wrap=True)
    console.print(f"\n{PRIVACY}", soft_wrap=True)
