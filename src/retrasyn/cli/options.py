"""Options shared by several commands, and how their values are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.errors import SettingError

if TYPE_CHECKING:
    from retrasyn.engines.base import Engine

Epsilon = Annotated[float, typer.Option(help="Privacy budget over any window.")]
Window = Annotated[int, typer.Option(help="Length w of the protected window, in timestamps.")]
Side = Annotated[int, typer.Option("--grid", help="Side K of the grid, 1 to 64.")]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="See: retrasyn methods. (default: steered; with --faithful, retrasyn-p)",
        show_default=False,
    ),
]
Unit = Annotated[
    Literal["position", "transition"] | None,
    typer.Option(help="What a window protects. (default: position)", show_default=False),
]
LedgerKey = Annotated[
    Literal["user", "stream"] | None,
    typer.Option("--ledger", help="Whose spending is counted. (default: user)", show_default=False),
]
Jump = Annotated[
    Literal["clamp", "split"] | None,
    typer.Option(
        help="A step beyond the neighbours. (default: clamp for steered, else split)",
        show_default=False,
    ),
]
LengthScale = Annotated[
    str | None,
    typer.Option(
        help="released, data (with --faithful), or a public number. (default: released)",
        show_default=False,
    ),
]
OutsideBox = Annotated[
    Literal["refuse", "drop"], typer.Option("--outside", help="Points outside the box.")
]
Faithful = Annotated[
    bool, typer.Option("--faithful", help="Read the paper as its authors' program does.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Further settings: alpha, kappa, p_max and the like."
    ),
]
Oracle = Annotated[
    Literal["oue", "grr", "olh", "auto", "small"],
    typer.Option(help="How states are hidden; auto: least variance, small: smallest report."),
]
Seed = Annotated[
    str, typer.Option(metavar="INTEGER|random", help="Repeats a run; random keeps it secret.")
]

EngineName = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="Where it runs: here, or on Ray.")
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="auto|ADDRESS",
        help="With --engine ray: the cluster. (default: one on this machine)",
        show_default=False,
    ),
]
Shards = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10_000,
        help="Shards of the synthetic streams. (default: one; with Ray, one per processor)",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar and no summary.")]
NoBar = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
Silent = Annotated[bool, typer.Option("--quiet", help="Print nothing: the exit code says it.")]

_SEED_DIGITS = 100


def open_engine(
    name: str, address: str | None, shards: int | None, folder: Path | None = None
) -> Engine:
    """Open the engine that was asked for; on a cluster, all machines have to see the folder."""
    if name == "ray":
        from retrasyn.engines.ray import RayEngine

        return RayEngine.start(address=address, n_workers=shards, folder=folder)
    from retrasyn.engines.base import LocalEngine

    if address is not None:
        raise SettingError(f"--address {address} needs --engine ray")
    return LocalEngine(shards or 1)


def read_length_scale(text: str | None) -> str | float | None:
    """Read a word or a number, if given."""
    from retrasyn.interpretation import Interpretation

    return None if text is None else Interpretation.parse_length_scale(text)


def read_settings(pairs: list[str] | None) -> dict[str, str]:
    """Read NAME=VALUE pairs."""
    settings = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise SettingError(f"--set {pair!r} is not NAME=VALUE; for example --set alpha=8")
        settings[name.strip()] = value.strip()
    return settings


def read_seed(text: str) -> int | Literal["random"]:
    """Read a whole number or the word random."""
    if text == "random":
        return "random"
    if text.isdecimal() and len(text) <= _SEED_DIGITS:
        return int(text)
    raise SettingError(
        f"--seed {text[:_SEED_DIGITS]!r} must be a whole number from 0 on, or random"
    )
