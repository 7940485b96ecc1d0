"""Options shared by several commands, and how their values are parsed."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from retrasyn.errors import SettingError
from retrasyn.oracles.registry import OracleWish
from retrasyn.roads import NOT_PUBLIC

if TYPE_CHECKING:
    from retrasyn.engines.base import Engine
    from retrasyn.roads.public_map import PublicMap
    from retrasyn.run_settings import RunSettings
    from retrasyn.space import Box

Epsilon = Annotated[float, typer.Option(help="Privacy budget over any window.")]
Window = Annotated[int, typer.Option(help="Length w of the protected window, in timestamps.")]
Side = Annotated[int, typer.Option("--grid", help="Side K of the grid, 1 to 64.")]
PublicBox = Annotated[
    str | None, typer.Option("--box", metavar="x0,y0,x1,y1", help="The public bounding box.")
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="See: retrasyn methods. (default: steered, or with a public map steered-map or "
        "steered-roads; with --faithful, retrasyn-p)",
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
    OracleWish,
    typer.Option(help="How states are hidden; auto: least variance, small: smallest report."),
]
Seed = Annotated[
    str,
    typer.Option(
        metavar="INTEGER|random",
        help="A number repeats a run, for experiments only.",
    ),
]

Roads = Annotated[
    Path | None,
    typer.Option(
        metavar="NETWORK",
        help=f"Public roads, which streams drive on; {NOT_PUBLIC}. See: retrasyn help public-maps.",
    ),
]
Prior = Annotated[
    str | None,
    typer.Option(
        metavar="MAP",
        help="Where people are likely to be: between, class or length (of roads), "
        f"centre:x,y,scale, or a file of public population; {NOT_PUBLIC}.",
    ),
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

Replicates = Annotated[
    int,
    typer.Option(metavar="N", help="Replicas to make beside it: 20 tell standard errors of all."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Counts the releases of the same data. (default: INPUT.spent.json)",
        show_default=False,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        metavar="EPSILON", help="Refuse if all releases of the data would cost more in total."
    ),
]
NoLedger = Annotated[
    bool, typer.Option("--no-ledger", help="Do not count this run; its receipt says so.")
]

_SEED_DIGITS = 100


def ledger_place(
    source: Path | None, ledger_file: Path | None, budget: float | None, *, no_ledger: bool
) -> Path | None:
    """Return where the releases of the input are counted; None if they are not."""
    from retrasyn.simulation.composition import ledger_beside

    asked = {"--ledger-file": ledger_file is not None, "--budget": budget is not None}
    flag = next((name for name, given in asked.items() if given), None)
    if no_ledger and flag:
        raise SettingError(f"{flag} counts releases and --no-ledger does not; give one of them")
    if source is None and flag:
        raise SettingError(
            f"{flag} needs an INPUT file: standard input cannot be told from other data before "
            "it has been read"
        )
    if no_ledger or source is None:
        return None
    return ledger_beside(source) if ledger_file is None else ledger_file


def warn_of_seed(settings: RunSettings) -> None:
    """Say on the terminal what a number as the seed means."""
    from retrasyn.privacy.receipt import GUESSABLE, GUESSING

    if not settings.seed_is_secret:
        sys.stderr.write(f"WARNING: {GUESSABLE}: {GUESSING}\n")


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


def run_settings(
    *,
    method: MethodName = None,
    epsilon: Epsilon = 1.0,
    window: Window = 20,
    grid: Side = 6,
    box: PublicBox = None,
    unit: Unit = None,
    ledger: LedgerKey = None,
    jump: Jump = None,
    length_scale: LengthScale = None,
    outside: OutsideBox = "refuse",
    faithful: Faithful = False,
    setting: Setting = None,
    oracle: Oracle = "oue",
    seed: Seed = "random",
    roads: Roads = None,
    prior: Prior = None,
    source: Path | None = None,
) -> RunSettings:
    """Build the settings of a run from the command line.

    Without a box it is that of the roads, and without roads the unit square.
    """
    from retrasyn.interpretation import Interpretation
    from retrasyn.run_settings import RunSettings
    from retrasyn.space import Box, Grid
    from retrasyn.space.grid import format_box

    extent = None if box is None else Box.parse(box)
    found = None
    if roads is None and prior is None and method is None and not faithful:
        roads = found = own_roads(source)
    known = open_public_map(extent, roads=roads, prior=prior, source=source)
    if extent is None:
        extent = Box(0, 0, 1, 1) if known is None else known.box
    scale: Any = None if length_scale is None else Interpretation.parse_length_scale(length_scale)
    settings = RunSettings.of(
        method,
        grid=Grid(extent, grid),
        epsilon=epsilon,
        window=window,
        seed=read_seed(seed),
        unit=unit,
        ledger=ledger,
        jump=jump,
        length_scale=scale,
        outside=outside,
        faithful=faithful,
        settings=read_settings(setting),
        oracle=oracle,
        public_map=known,
    )
    if found is not None:
        sys.stderr.write(
            f"note: streams drive on {found}, which lies beside the data and is taken to be "
            "public; --method steered leaves it\n"
        )
    if box is None and known is not None:
        sys.stderr.write(
            f"note: without --box, the box is that of the roads: {format_box(extent)}\n"
        )
    return settings


def own_roads(source: Path | None) -> Path | None:
    """Return the network that generated data were driven on, if it lies beside them."""
    from retrasyn.data.writing_roads import roads_beside

    beside = None if source is None else roads_beside(source)
    return beside if beside is not None and os.path.exists(beside) else None  # noqa: PTH110 - as in reading files


def open_public_map(
    box: Box | None, *, roads: Path | None, prior: str | None, source: Path | None = None
) -> PublicMap | None:
    """Open the public map that was asked for, in the coordinates of the input."""
    if roads is None and prior is None:
        return None
    from retrasyn.data.reading_files import system_of
    from retrasyn.roads.opening import open_map

    if roads is None and box is None:
        raise SettingError("--prior needs --box x0,y0,x1,y1, or --roads, whose box it then is")
    crs = None if source is None else system_of(source)
    return open_map(box, roads=roads, prior=prior, crs=crs)


def takes_run_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of `run_settings` in the place of its parameter `settings`.

    An option that the command names as well is given to both; named before `settings`, it is the
    command's own, such as a box that has to be given.
    """
    names = {"RunSettings": object}  # imported for type checkers only
    own = inspect.signature(command, eval_str=True, locals=names).parameters
    shared = inspect.signature(run_settings, eval_str=True, locals=names).parameters
    listed: dict[str, inspect.Parameter] = {}
    for name, parameter in own.items():
        for option in shared.values() if name == "settings" else [parameter]:
            keyword = option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            listed.setdefault(option.name, keyword)

    @functools.wraps(command)
    def call(**given: Any) -> None:
        settings = run_settings(**{name: given[name] for name in shared})
        command(settings=settings, **{name: given[name] for name in own if name != "settings"})

    vars(call)["__signature__"] = inspect.Signature(list(listed.values()))
    call.__annotations__ = {name: option.annotation for name, option in listed.items()}
    return call


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
