"""``retrasyn stream``: one JSON line per timestamp in, one release per timestamp out."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from retrasyn.cli import options
from retrasyn.errors import InputError

if TYPE_CHECKING:
    from retrasyn.messages import Release
    from retrasyn.simulation.live import Live

_KEYS = {"t", "traj_id", "x", "y", "user_id"}


def stream(
    box: Annotated[str, typer.Option(metavar="x0,y0,x1,y1", help="The public bounding box.")],
    source: Annotated[
        Path | None, typer.Argument(metavar="[INPUT]", help="JSON lines; standard input if absent.")
    ] = None,
    method: options.MethodName = "retrasyn-p",
    epsilon: options.Epsilon = 1.0,
    window: options.Window = 20,
    grid: options.Side = 6,
    unit: options.Unit = None,
    ledger: options.LedgerKey = None,
    jump: options.Jump = None,
    length_scale: options.LengthScale = None,
    outside: options.OutsideBox = "refuse",
    faithful: options.Faithful = False,
    setting: options.Setting = None,
    seed: options.Seed = "0",
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the receipt here at the end.")
    ] = None,
) -> None:
    """Synthesise in real time: a line of positions in, a line of synthetic points out.

    A line in: {"t": 0, "traj_id": [7, 9], "x": [0.1, 0.9], "y": [0.2, 0.8]} and, where one person
    has several streams, "user_id". Timestamps ascend; those left out are empty. Each release is
    flushed at once.

    Example: retrasyn stream --box 0,0,1,1 < positions.jsonl
    """
    from retrasyn.data.writing_files import check_place, replacing
    from retrasyn.simulation.live import Live
    from retrasyn.simulation.plan import Plan
    from retrasyn.space import Box, Grid

    plan = Plan.of(
        method,
        unit=unit,
        ledger=ledger,
        jump=jump,
        length_scale=options.read_length_scale(length_scale),
        faithful=faithful,
        settings=options.read_settings(setting),
    )
    number = options.read_seed(seed)
    live = Live.start(
        plan,
        Grid(Box.parse(box), grid),
        epsilon=epsilon,
        window=window,
        seed=secrets.randbits(128) if number == "random" else number,
        secret=number == "random",
        outside=outside,
    )
    if receipt is not None:
        check_place(receipt)
    if source is not None and not source.is_file():
        raise InputError(f"{source} does not exist; check the path")
    try:
        if source is None:
            _pump(sys.stdin, "standard input", live)
        else:
            with source.open() as lines:
                _pump(lines, str(source), live)
    finally:
        if receipt is not None:
            with replacing(receipt) as temporary:
                temporary.write_text(live.receipt().to_json() + "\n")


def _pump(lines: IO[str], name: str, live: Live) -> None:
    """Answer every line with the releases it brings."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = _parse(line)
            releases = live.step(**message)
        except InputError as error:
            raise InputError(f"{name}, line {number}: {error}") from None
        for release in releases:
            sys.stdout.write(_format(release) + "\n")
            sys.stdout.flush()


def _parse(line: str) -> dict[str, Any]:
    """Read one timestamp, refusing what is not one."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise InputError(f"not JSON ({error})") from None
    if not isinstance(message, dict) or not _KEYS - {"user_id"} <= message.keys():
        raise InputError('needs "t", "traj_id", "x" and "y"')
    message = {key: value for key, value in message.items() if key in _KEYS}
    if type(message["t"]) is not int:
        raise InputError(f"t={message['t']!r} is not a whole number")
    for key, kinds in (
        ("traj_id", (int, str)),
        ("user_id", (int, str)),
        ("x", (int, float)),
        ("y", (int, float)),
    ):
        values = message.get(key, [])
        if not isinstance(values, list) or not all(type(value) in kinds for value in values):
            what = "numbers" if float in kinds else "whole numbers or text"
            raise InputError(f"{key} must be a list of {what}")
    return message


def _format(release: Release) -> str:
    """Write one release as JSON."""
    return json.dumps(
        {
            "t": release.t,
            "n_points": release.ids.size,
            "n_born": release.n_born,
            "n_ended": release.n_ended,
            "n_reports": release.n_reports,
            "epsilon_t": release.epsilon_t,
            "traj_id": release.ids.tolist(),
            "x": release.x.tolist(),
            "y": release.y.tolist(),
        }
    )
