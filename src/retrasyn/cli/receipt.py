"""``retrasyn receipt``: shows and verifies a receipt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import saying_stopped

if TYPE_CHECKING:
    from retrasyn.receipts.checks import Check

receipt = typer.Typer(help="Show what a receipt promises, or recompute it.", no_args_is_help=True)

ReceiptFile = Annotated[Path, typer.Argument(metavar="FILE", help="A .receipt.json file.")]
DataFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The released file; the one beside it if absent."),
]


@receipt.command("show")
def show_receipt(
    file: ReceiptFile,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page of its own instead.")
    ] = None,
    data: DataFile = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the receipt as JSON, checked and complete.")
    ] = False,
) -> None:
    """Say what was promised, what was spent and what is not protected.

    Example: retrasyn receipt show demo-out/synthetic.parquet.receipt.json --html receipt.html
    """
    from retrasyn.errors import SettingError
    from retrasyn.receipts.files import open_receipt
    from retrasyn.receipts.words import show

    opened = open_receipt(file)
    if html is None:
        if data is not None:
            raise SettingError(
                "--data goes into a page with --html; retrasyn receipt verify checks it as well"
            )
        print(opened.to_json() if as_json else show(opened))
        return
    if as_json:
        raise SettingError("--json prints and --html writes a page; give one of them")
    from retrasyn.receipts.verify import find_release, verify
    from retrasyn.report.page import check_page, write_receipt_page

    check_page(html)
    checks = verify(opened, data=_existing(data) or find_release(file))
    rows = [(check.verdict, check.name, check.detail) for check in checks]
    write_receipt_page(html, opened.to_dict(), checks=rows)
    print(f"{html}: the receipt as a page")


@receipt.command("verify")
@saying_stopped("nothing was found out")
def verify_receipt(
    file: ReceiptFile,
    data: DataFile = None,
    source: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE", help="The input of the run, to run it again."),
    ] = None,
    roads: options.Roads = None,
    prior: options.Prior = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
    quiet: options.Silent = False,
) -> None:
    """Recompute what can be recomputed; exit code 1 if anything does not hold.

    Example: retrasyn receipt verify demo-out/synthetic.parquet.receipt.json
    """
    from retrasyn.data.reading_files import read
    from retrasyn.receipts.files import open_receipt
    from retrasyn.receipts.verify import find_release, verify
    from retrasyn.space import Box

    opened = open_receipt(file)
    real = None if source is None else read(source)
    known = options.open_public_map(Box(*opened.box), roads=roads, prior=prior, source=source)
    checks = verify(opened, data=_existing(data) or find_release(file), real=real, known=known)
    failed = [check for check in checks if check.verdict == "FAIL"]
    if as_json or not quiet:
        print(_as_json(checks) if as_json else _as_text(checks))
    if failed:
        raise typer.Exit(1)


def _existing(path: Path | None) -> Path | None:
    """Refuse a release that is not there; one of many shards is a folder."""
    from retrasyn.data.parts import parts_in
    from retrasyn.errors import InputError

    if path is not None and not (path.is_file() or (path.is_dir() and parts_in(path))):
        raise InputError(f"{path} is no file; name the released file, or leave --data out")
    return path


def _as_json(checks: list[Check]) -> str:
    return json.dumps(
        {
            "ok": all(check.verdict != "FAIL" for check in checks),
            "checks": [
                {
                    "name": check.name,
                    "verdict": check.verdict,
                    "detail": check.detail,
                    "fields": check.fields,
                }
                for check in checks
            ],
        },
        indent=2,
    )


def _as_text(checks: list[Check]) -> str:
    counts = {
        verdict: sum(check.verdict == verdict for check in checks)
        for verdict in ("ok", "FAIL", "unknown")
    }
    summary = (
        f"{counts['ok']} hold, {counts['FAIL']} FAIL, {counts['unknown']} cannot be recomputed"
    )
    return "\n".join([*map(str, checks), summary])
