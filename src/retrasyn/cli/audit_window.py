"""``retrasyn audit window``: a malicious curator against real devices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress, saying_stopped

if TYPE_CHECKING:
    from retrasyn.audit.window import WindowVerdict


def audit_window(
    unit: Annotated[
        Literal["position", "transition"],
        typer.Option(help="What the devices are told a window protects."),
    ] = "position",
    epsilon: Annotated[float, typer.Option(help="Budget of a window.")] = 1.0,
    window: Annotated[int, typer.Option(help="Positions a window has.")] = 3,
    runs: Annotated[
        int, typer.Option(metavar="N", help="Devices of each of two persons, for every attack.")
    ] = 5_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: options.NoBar = False,
) -> None:
    """Attack real devices and measure what one window of positions gives away.

    Exits 1 if it gives away more than epsilon, as it does with --unit transition.

    Example: retrasyn audit window --runs 200
    """
    from retrasyn.audit.window import audit_window as attack_devices
    from retrasyn.curator import micro_nats

    with saying_stopped(), interruptible_progress(quiet or as_json, unit="devices") as progress:
        verdict = attack_devices(
            unit=unit, window=window, epsilon=micro_nats(epsilon), runs=runs, progress=progress
        )
    print(json.dumps(verdict.to_dict(), indent=2) if as_json else _tell(verdict))
    if verdict.violated:
        raise typer.Exit(1)


def _tell(verdict: WindowVerdict) -> str:
    """Say what was tried, what it brought, and what it could and could not have brought."""
    epsilon, worst = verdict.epsilon, verdict.worst
    rows = "\n".join(
        f"  {'FAIL' if finding.exceeds(epsilon) else 'ok  '} {finding.attack:<10} "
        f"{finding.reports} sent, {finding.spent:.4g} spent, at least "
        f"{finding.epsilon_lower_bound:.3f}: {finding.about}"
        for finding in verdict.findings
    )
    outcome = "no violation found"
    if verdict.violated:
        outcome = f"VIOLATION: a window of positions gives away more than {epsilon:g}"
        if verdict.unit == "transition":
            outcome += " (unit transition protects transitions, of which a window touches one more)"
    return f"""What was tested
  two persons who differ in {verdict.window} positions in a row, {verdict.runs_per_input:,} devices
  of each for every attack, with real ledgers; unit {verdict.unit}, epsilon {epsilon:g}
What came out
{rows}
  at worst epsilon is at least {worst.epsilon_lower_bound:.4f} (alpha {verdict.alpha:g} over all)
What it could have caught
  any report more than the ledger allows; and reports that give away more than they spend
What it could not
  attacks nobody thought of; a device whose memory or code the curator can change
{outcome}"""
