"""``retrasyn stream``: one JSON line per timestamp in, one release per timestamp out."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from retrasyn.bounded_json import parse_json
from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped
from retrasyn.errors import InputError

if TYPE_CHECKING:
    from retrasyn.messages import Release
    from retrasyn.receipts.files import Written
    from retrasyn.run_settings import RunSettings
    from retrasyn.simulation.stream import Live

_KEYS = {"t", "traj_id", "x", "y", "user_id"}


@options.takes_run_settings
@saying_stopped("what was released stays released")
def stream(
    box: Annotated[str, typer.Option(metavar="x0,y0,x1,y1", help="The public bounding box.")],
    source: Annotated[
        Path | None, typer.Argument(metavar="[INPUT]", help="JSON lines; standard input if absent.")
    ] = None,
    *,
    settings: RunSettings,
    replicates: options.Replicates = 0,
    errors: Annotated[
        bool, typer.Option("--errors", help="Add the share and standard error of every cell.")
    ] = False,
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole receipt here at the end.")
    ] = None,
    ledger_file: options.LedgerFile = None,
    budget: options.Budget = None,
    no_ledger: options.NoLedger = False,
) -> None:
    """Synthesise in real time: a line of positions in, a line of synthetic points out.

    A line in: {"t": 0, "traj_id": [7, 9], "x": [0.1, 0.9], "y": [0.2, 0.8]} and, where one person
    has several streams, "user_id". Timestamps ascend; those left out are empty. Each release is
    flushed at once and carries a short receipt of all that was done so far. With --replicates, a
    line for each replica follows it, with its number as "replica" and no receipt.

    Example: retrasyn stream --box 0,0,1,1 < positions.jsonl
    """
    from retrasyn.data.writing_files import check_apart, check_place
    from retrasyn.files import replacing
    from retrasyn.receipts.files import Written, describe
    from retrasyn.simulation.composition import ReleaseCount
    from retrasyn.simulation.stream import Live

    del box  # a part of the settings
    live = Live.start(dataclasses.replace(settings, replicates=replicates))
    if receipt is not None:
        check_place(receipt)
        if source is not None:
            check_apart(receipt, source, named="input")
    if source is not None and not os.path.exists(source):  # noqa: PTH110 - as in reading files
        raise InputError(f"{source} does not exist; check the path")
    if source is not None and source.is_dir():
        raise InputError(f"{source} is a folder; name a file")
    recorded = source if source is not None and source.is_file() else None  # a pipe is not
    counted_in = options.ledger_place(recorded, ledger_file, budget, no_ledger=no_ledger)
    if recorded is not None and counted_in is not None:
        check_apart(counted_in, recorded, named="input")
        if receipt is not None:
            check_apart(counted_in, receipt, named="receipt")
        data = describe(recorded).sha256
        live.count = ReleaseCount.open(counted_in, settings, data, budget=budget)
    options.warn_of_seed(settings)
    out = Written()
    try:
        if source is None:
            incoming: Any = getattr(sys.stdin, "buffer", sys.stdin)
            _pump(incoming, "standard input", live, out, errors=errors)
        else:
            with source.open("rb") as lines:
                _pump(lines, str(source), live, out, errors=errors)
    finally:
        if receipt is not None:
            with replacing(receipt) as temporary:
                stated = live.receipt().travelling_with(out.described())
                temporary.write_text(stated.to_json() + "\n")


def _pump(lines: IO[bytes], name: str, live: Live, out: Written, *, errors: bool) -> None:
    """Write the releases for every input line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = _parse(line)
            releases = live.step(**message)
        except InputError as error:
            raise InputError(f"{name}, line {number}: {error}") from None
        stamp = live.stamp() if releases else {}
        for release, replicas in zip(releases, live.repeated, strict=True):
            lines_out = [_format(release, stamp, errors=errors)]
            lines_out += [_format_replica(*one) for one in enumerate(replicas, 1)]
            text = "\n".join(lines_out) + "\n"
            sys.stdout.write(text)
            sys.stdout.flush()
            out.add(text)


def _parse(line: bytes) -> dict[str, Any]:
    """Read one timestamp, refusing what is not one."""
    try:
        message = parse_json(line)
    except UnicodeDecodeError:
        raise InputError("not JSON (not UTF-8 text)") from None
    except ValueError as error:
        raise InputError(f"not JSON ({error})") from None
    if not isinstance(message, dict) or not _KEYS - {"user_id"} <= message.keys():
        raise InputError('needs "t", "traj_id", "x" and "y", and "user_id" where it is known')
    message = {key: value for key, value in message.items() if key in _KEYS}
    if type(message["t"]) is not int:
        raise InputError(f"t={message['t']!r} is not a whole number")
    for key in ("traj_id", "user_id"):
        _check_identifiers(key, message.get(key, []))
    for key in ("x", "y"):
        values = message[key]
        if not isinstance(values, list) or not all(type(v) in (int, float) for v in values):
            raise InputError(f"{key} must be a list of numbers")
        if not all(abs(v) <= sys.float_info.max for v in values):
            bad = next(v for v in values if not abs(v) <= sys.float_info.max)
            raise InputError(f"{key} holds {str(bad)[:40]}; finite numbers are needed")
    return message


def _check_identifiers(key: str, values: Any) -> None:
    """Refuse invalid identifiers."""
    if not isinstance(values, list) or not all(type(v) in (int, str) for v in values):
        raise InputError(f"{key} must be a list of whole numbers or text")
    for value in values:
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise InputError(f"{key} holds a number beyond 64 bits; use text")
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InputError(f"{key} holds text that cannot be written") from None


def _format(release: Release, stamp: dict[str, Any], *, errors: bool) -> str:
    """Write one release and its stamp; errors are null while the method does not know them."""
    known = release.uncertainty
    extra: dict[str, list[float] | None] = {}
    if errors:
        extra["cell_share"] = None if known is None else known.cell_shares.tolist()
        extra["cell_error"] = None if known is None else known.cell_errors.tolist()
    return json.dumps(
        {
            "t": release.t,
            "n_points": release.n_points,
            "n_born": release.n_born,
            "n_ended": release.n_ended,
            "n_reports": release.n_reports,
            "epsilon_t": release.epsilon_t,
            **_points(release),
            **extra,
            "receipt": stamp,
        }
    )


def _format_replica(number: int, release: Release) -> str:
    """Write what one replica has at a timestamp."""
    told = {"t": release.t, "replica": number, "n_points": release.n_points}
    return json.dumps(told | _points(release))


def _points(release: Release) -> dict[str, list[Any]]:
    return {
        "traj_id": release.ids.tolist(),
        "x": release.x.tolist(),
        "y": release.y.tolist(),
    }
