"""``retrasyn doctor``: checks the installation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options

if TYPE_CHECKING:
    from retrasyn.cli.installation import InstalledPart


def doctor(
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="The port that serve would listen on.")
    ] = 8700,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    quiet: options.Silent = False,
) -> None:
    """Check this installation: exit code 0 if the base works, 1 if something required is broken.

    Example: retrasyn doctor
    """
    from retrasyn.cli.installation import examine

    findings = examine(port)
    broken = [finding for finding in findings if finding.verdict == "FAIL"]
    if as_json:
        rows = [
            {
                "name": finding.name,
                "verdict": finding.verdict,
                "detail": finding.detail,
                "type": finding.remedy or None,
            }
            for finding in findings
        ]
        print(json.dumps({"ok": not broken, "checks": rows}, indent=2))
    elif not quiet:
        print(_tell(findings, n_broken=len(broken)))
    if broken:
        raise typer.Exit(1)


def _tell(findings: list[InstalledPart], *, n_broken: int) -> str:
    """Say one line per finding, with what to type below it."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.verdict:<4}  {finding.name:<{width}}  {finding.detail}")
        if finding.remedy:
            lines.append(f"{'':<{width + 8}}{finding.remedy}")
    n_missing = sum(finding.verdict == "miss" for finding in findings)
    extras = f"; optional parts that are missing: {n_missing}" if n_missing else ""
    outcome = f"broken, though required: {n_broken}" if n_broken else "the base works"
    return "\n".join([*lines, outcome + extras])
