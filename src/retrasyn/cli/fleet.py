"""``retrasyn fleet``: recorded trajectories as thousands of real devices."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.device import Insecure
from retrasyn.cli.interrupts import interruptible_progress
from retrasyn.errors import BudgetExceeded, InputError, OutputError
from retrasyn.messages import MICRO

if TYPE_CHECKING:
    from retrasyn.fleet.device_pool import Positions
    from retrasyn.fleet.fleet import Fleet, Tally
    from retrasyn.fleet.ledger import Recount


def fleet(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Trajectories; the built-in city if absent."),
    ] = None,
    server: Annotated[str, typer.Option(metavar="URL", help="The curator's address.")] = (
        "http://127.0.0.1:8700"
    ),
    devices: Annotated[
        int | None,
        typer.Option(min=1, help="The first so many users. (default: all; of the city 1000)"),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="So many timestamps; beyond the last it begins again."),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where all identities and ledgers are kept.")
    ] = Path("retrasyn-fleet"),
    operator_token: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file of the operator's token, to enrol with."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every frame sent and what became of it."),
    ] = None,
    insecure: Insecure = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON, and nothing else.")
    ] = False,
    quiet: options.NoBar = False,
) -> None:
    """Replay trajectories as real devices: a load test, a demonstration, and a check of ledgers.

    Each user is a device with an identity and a ledger of its own. It never enrols real people:
    use it with recorded or made-up data, in a campaign of your own.

    Example: retrasyn fleet --server http://127.0.0.1:8700 --operator-token operator.token
    """
    from retrasyn.client.curator_client import CuratorClient
    from retrasyn.data.writing_files import check_apart
    from retrasyn.fleet.fleet import Fleet

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    if source is not None and record is not None:
        check_apart(record, source, named="input")
    positions = _positions(source, devices)
    token = None if operator_token is None else _read_token(operator_token)
    with ExitStack() as stack:
        recorder = None if record is None else _Recorder(stack.enter_context(_open(record)))
        curator = stack.enter_context(CuratorClient(server, insecure=insecure))
        crowd = Fleet.muster(curator, positions, folder, operator_token=token, record=recorder)
        stack.callback(crowd.close)
        n_rounds = rounds or positions.n_timestamps
        try:
            _drive(crowd, n_rounds, quiet=quiet or as_json, tells=not as_json)
        finally:
            _sum_up(crowd, crowd.tally, as_json=as_json)


def _drive(crowd: Fleet, n_rounds: int, *, quiet: bool, tells: bool) -> None:
    """Wait for the quarantine, then follow the rounds."""
    from retrasyn.client.consent import rounds_until_cap

    left, manifest = crowd.pool.rounds_left(), crowd.pool.manifest
    last = rounds_until_cap(manifest)
    if last < n_rounds and tells:
        print(
            f"devices stop after {last} rounds of sharing, at the campaign's lifetime_cap of "
            f"{manifest.lifetime_cap / MICRO:g}",
            flush=True,
        )
    if left and tells:
        print(f"{crowd.tally.n_devices:,} devices are silent for {left} more rounds", flush=True)
    with interruptible_progress(quiet, unit="rounds") as progress:
        crowd.wait_for_quarantine(lambda _left: progress(0, n_rounds))
        crowd.run(n_rounds, progress)


def _sum_up(crowd: Fleet, tally: Tally, *, as_json: bool) -> None:
    """Say what was done, and what the ledgers say about it."""
    counted = crowd.recount() if as_json else _tell(crowd, tally)
    if as_json:
        ledgers = {
            "reports": counted.n_reports,
            "worst_window": counted.worst / MICRO,
            "epsilon": counted.ceiling / MICRO,
            "within": counted.within,
        }
        statuses = dict(sorted(tally.statuses.items()))  # asdict would count a counter
        done = {**asdict(tally), "statuses": statuses, "ledgers": ledgers}
        print(json.dumps(done, indent=2), flush=True)
    if not counted.within and sys.exc_info()[0] is None:
        raise BudgetExceeded(f"the devices' own ledgers show too much: {counted}")


def _tell(crowd: Fleet, tally: Tally) -> Recount:
    """Say what was done in words, then count the ledgers, which takes a moment."""
    became = ", ".join(f"{n:,} {status}" for status, n in sorted(tally.statuses.items()))
    print(
        f"{tally.n_devices:,} devices, {tally.n_rounds} rounds ({tally.n_missed} missed, the "
        f"slowest took {tally.slowest:.2f} s)\n"
        f"sent      {tally.n_reports:,} reports and {tally.n_heartbeats:,} heartbeats\n"
        f"became    {became or 'nothing'}",
        flush=True,
    )
    counted = crowd.recount()
    print(f"ledgers   {counted}", flush=True)
    return counted


def _positions(source: Path | None, devices: int | None) -> Positions:
    from retrasyn.fleet.device_pool import Positions

    if source is not None:
        from retrasyn.data.reading_files import read

        return Positions.of(read(source), devices)
    from retrasyn.simulation.city import demo_city

    n = devices or 1000
    return Positions.of(demo_city(n_users=n), n)  # so few trips may have more drivers than asked


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        raise InputError(f"{path} holds no operator's token; the server says where it keeps it")
    return token


def _open(path: Path) -> IO[str]:
    try:
        return path.open("w", encoding="ascii")
    except OSError as fault:
        raise OutputError(f"{path} cannot be written ({fault.strerror}); name another") from None


class _Recorder:
    """Writes one JSON line per round: t, frames as hexadecimal digits, statuses."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out

    def __call__(self, t: int, frames: Sequence[bytes], statuses: Sequence[str]) -> None:
        line = {"t": t, "frames": [frame.hex() for frame in frames], "statuses": list(statuses)}
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()
