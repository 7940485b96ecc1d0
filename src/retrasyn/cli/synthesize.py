"""``retrasyn synthesize``: a recorded file in, a private synthetic one out."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress, saying_stopped

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.data.uncertainty_files import UncertaintyTable
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.run_settings import RunSettings
    from retrasyn.simulation.result import Synthesis

_NOTHING = "nothing was written"


@options.takes_run_settings
def synthesize(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A .parquet, .csv or .geoparquet file.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            *("-o", "--out"),
            help="Where to write: .parquet, .csv, .geoparquet, .geojson or .mfjson.",
        ),
    ],
    settings: RunSettings,
    box: options.PublicBox = None,
    fold: Annotated[
        Literal["day", "person-day"] | None,
        typer.Option(
            help="Make one day of all days; person-day gives each day of a person its own budget.",
            show_default=False,
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Run even if hardly anybody is ever there.")
    ] = False,
    datetime: Annotated[
        bool, typer.Option("--datetime", help="Add a column of real times to the output.")
    ] = False,
    replicates: options.Replicates = 0,
    errors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Standard errors of cells and flows: .parquet or .csv."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the receipt, and nothing else.")
    ] = False,
    quiet: options.Quiet = False,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep finished timestamps here.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    engine: options.EngineName = "local",
    address: options.Address = None,
    shards: options.Shards = None,
    parts: Annotated[
        bool, typer.Option("--parts", help="Make OUT a folder; every shard writes its own parts.")
    ] = False,
    ledger_file: options.LedgerFile = None,
    budget: options.Budget = None,
    no_ledger: options.NoLedger = False,
) -> None:
    """Turn recorded positions into a private synthetic stream.

    INPUT needs the columns traj_id, t, x, y and, where one person has several streams, user_id.

    Example: retrasyn synthesize trips.csv -o synthetic.parquet --box 116.15,39.75,116.60,40.10
    """
    from retrasyn.data.reading_files import read
    from retrasyn.data.uncertainty_files import UncertaintyTable
    from retrasyn.data.writing_files import check_apart, check_expressible, check_place
    from retrasyn.errors import SettingError
    from retrasyn.receipts.files import receipt_place
    from retrasyn.simulation import checkpoint as checkpoints
    from retrasyn.simulation import run

    # Everything that can be refused without reading the data is refused first.
    settings = dataclasses.replace(settings, fold=fold, replicates=replicates)
    _check_output(out, parts=parts, datetime=datetime, replicates=replicates)
    receipt_path = receipt_place(out)
    check_place(receipt_path)
    check_apart(out, source, named="input")
    if errors is not None:
        check_apart(errors, source, named="input")
        check_apart(errors, out, named="synthetic file")
        _check_errors(errors, settings, checkpoint)
    counted_in = options.ledger_place(source, ledger_file, budget, no_ledger=no_ledger)
    for other, named in ((source, "input"), (out, "synthetic file"), (receipt_path, "receipt")):
        if counted_in is not None:
            check_apart(counted_in, other, named=named)
    if resume and checkpoint is None:
        raise SettingError("--resume needs --checkpoint DIR, the folder to go on from")
    left = f"go on with --checkpoint {checkpoint} --resume" if checkpoint else _NOTHING
    with (
        saying_stopped(left),
        contextlib.closing(options.open_engine(engine, address, shards, checkpoint)) as home,
        _folder_of_parts(out, wanted=parts, kept=checkpoint is not None) as folder,
    ):
        real = read(source)
        check_expressible(real, out, datetime=datetime)
        for note in real.notes:
            sys.stderr.write(f"note: {source}: {note}\n")
        if box is None and settings.public_map is None:
            settings = run.over_data(settings, real)
        table = None if errors is None else UncertaintyTable(settings.grid)
        with interruptible_progress(quiet or as_json) as progress:
            made = run.synthesize(
                real,
                settings,
                checkpoint=checkpoint,
                resume=resume,
                progress=progress,
                on_ways=partial(progress, unit="ways to anchors"),
                on_release=None if table is None else table.add,
                engine=home,
                parts=folder,
                ledger_file=counted_in,
                budget=budget,
                anyway=anyway,
            )
        receipt = _write(made, out, receipt_path, folder, errors, table, datetime=datetime)
    if checkpoint is not None:
        checkpoints.discard(checkpoint)
    options.warn_of_seed(settings)
    if as_json or not quiet:
        outlook = _outlook(real, settings)
        print(receipt.to_json() if as_json else _summary(receipt, out, receipt_path, outlook))


def _write(
    made: Synthesis,
    out: Path,
    receipt_path: Path,
    folder: Path | None,
    errors: Path | None,
    table: UncertaintyTable | None,
    *,
    datetime: bool,
) -> Receipt:
    """Write all that belongs to a release; return its receipt, which is in place before it."""
    from retrasyn.data.replica_files import replacing_replicas, replica_folder
    from retrasyn.files import replacing
    from retrasyn.receipts.files import bind_parts, describe_replicas, write_with_receipt

    with (
        replacing_replicas(made.replicas, out, datetime=datetime) as replicas,
        replacing(receipt_path) as temporary,
    ):
        known = describe_replicas(replicas, name=replica_folder(out).name)
        receipt = dataclasses.replace(made.receipt, replicas=known)
        if errors is not None and table is not None:
            table.write(errors)
        if folder is not None:
            return bind_parts(receipt, folder, out, temporary)
        return write_with_receipt(made.synthetic, receipt, out, temporary, datetime=datetime)


def _outlook(real: Trajectories, settings: RunSettings) -> Iterator[str]:
    """Say who is there and what can be learnt, to who holds the data: it is in no receipt."""
    from retrasyn.data.activity import Activity
    from retrasyn.data.folding import folded_as
    from retrasyn.planning.outlook import Outlook

    active = Activity.of(folded_as(real, settings.fold))
    yield active.words
    if settings.method.division.private:
        yield Outlook.of(settings, active.mean, active.n_timestamps).words


@contextlib.contextmanager
def _folder_of_parts(out: Path, *, wanted: bool, kept: bool) -> Iterator[Path | None]:
    """Make a hidden folder beside OUT for what shards write, until it can take its place.

    What is left of a run that was stopped stays only where a checkpoint belongs to it.
    """
    from retrasyn.errors import OutputError

    folder = out.with_name(f".{out.name}.unfinished")
    if not wanted:
        yield None
        return
    if not kept:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror}") from None
    try:
        yield folder
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _check_output(out: Path, *, parts: bool, datetime: bool, replicates: int) -> None:
    """Refuse a place where the result could not be put."""
    from retrasyn.data.parts import check_new_folder
    from retrasyn.data.replica_files import check_replica_folder
    from retrasyn.data.writing_files import check_writable
    from retrasyn.errors import SettingError

    if parts and datetime:
        raise SettingError("--datetime cannot go with --parts: every shard writes its own points")
    if parts and replicates:
        raise SettingError("--replicates cannot go with --parts: a replica is one file")
    check_new_folder(out) if parts else check_writable(out)
    check_replica_folder(out)


def _check_errors(errors: Path, settings: RunSettings, checkpoint: Path | None) -> None:
    """Refuse standard errors that cannot be known or written."""
    from retrasyn.data.uncertainty_files import check_errors_file
    from retrasyn.errors import SettingError

    check_errors_file(errors)
    method = settings.method
    if method.of_paper:
        raise SettingError(f"{method.name} does not know its standard errors: no --errors")
    if checkpoint is not None:
        raise SettingError(
            "--errors cannot go with --checkpoint: a resumed run knows only its own releases"
        )


def _summary(receipt: Receipt, out: Path, receipt_path: Path, outlook: Iterable[str]) -> str:
    """Say what happened in a few lines."""
    from retrasyn.privacy.receipt import describe_composition

    worst = receipt.worst_window
    spent = (
        "NOT PRIVATE: true frequencies were used"
        if worst.declared.epsilon is None
        else f"worst window found by the replay: {worst.declared.epsilon:g} of {receipt.epsilon:g}"
        f" per {worst.declared.per} and {worst.declared.unit}"
        f" ({worst.person_position.epsilon:g} per person and position)"
    )
    composition = receipt.composition
    counted = (
        "not counted among the releases of this data"
        if composition is None
        else describe_composition(composition, window=receipt.window)
    )
    return (
        f"{out}: {receipt.n_points_out:,} points in {receipt.n_streams_out:,} streams over "
        f"{receipt.timestamps:,} timestamps\n"
        f"{receipt.method}, epsilon {receipt.epsilon:g}, window {receipt.window}, gap "
        f"{receipt.gap}: {receipt.n_reports:,} reports of {receipt.n_users:,} users\n"
        f"{spent}\n"
        f"{counted}\n"
        f"{receipt_path}: what is and what is not protected\n" + "\n".join(outlook)
    )
