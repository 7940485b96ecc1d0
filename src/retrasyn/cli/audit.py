"""``retrasyn audit``: measures what reports give away."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress, saying_stopped
from retrasyn.errors import SettingError
from retrasyn.oracles.registry import PAPER_ORACLE, OracleName

if TYPE_CHECKING:
    from retrasyn.audit.checks import Verdict
    from retrasyn.audit.window import WindowVerdict


audit = typer.Typer(name="audit", invoke_without_command=True)


@audit.callback()
def audit_reports(
    context: typer.Context,
    oracle: Annotated[OracleName, typer.Option(help="How answers are hidden.")] = PAPER_ORACLE,
    epsilon: Annotated[float, typer.Option(help="Budget of one report.")] = 1.0,
    reports: Annotated[
        int, typer.Option(metavar="N", help="Reports about each of two states.")
    ] = 1_000_000,
    answers: Annotated[
        int, typer.Option(metavar="N", help="Answers a report has to choose from.")
    ] = 28,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Audit the compiled path of simulations instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: options.NoBar = False,
) -> None:
    """Measure what single reports give away, on the code that devices run.

    Exits 1 if anything is found. See also: retrasyn audit COMMAND --help

    Example: retrasyn audit --reports 20000
    """
    if context.invoked_subcommand is not None:
        _refuse_options_before(context)
        return
    from retrasyn.audit.oracle import audit_oracle
    from retrasyn.run_settings import micro_nats

    with saying_stopped(), interruptible_progress(quiet or as_json, unit="reports") as progress:
        verdict = audit_oracle(
            oracle,
            epsilon=micro_nats(epsilon),
            reports=reports,
            n_answers=answers,
            simulated=simulated,
            progress=progress,
        )
    print(json.dumps(verdict.to_dict(), indent=2) if as_json else _tell(verdict))
    if verdict.violations:
        raise typer.Exit(1)


def _refuse_options_before(context: typer.Context) -> None:
    """Refuse options of single reports in front of another audit, which would not see them."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            name, other = parameter.opts[0], context.invoked_subcommand
            raise SettingError(
                f"{name} stands before {other}, which would not see it; put it after"
            )


def _tell(verdict: Verdict) -> str:
    """Format what was tested, the result, and what the audit could and could not have caught."""
    from retrasyn.audit.checks import N_CORRELATED
    from retrasyn.audit.oracle import N_INPUTS, N_MARGINAL

    failed = verdict.violations
    epsilon, bound = verdict.epsilon, verdict.epsilon_lower_bound
    n = verdict.reports_per_input
    exact = "exact law: not asked of simulated devices (tests compare them word by word)"
    if verdict.path == "devices":
        exact = f"exact law: {verdict.exact_fault or 'every threshold is the least that keeps it'}"
    rows = [
        ("epsilon", f"epsilon is at least {bound:.4f}; stated is {epsilon:g}"),
        ("exact", exact),
        (
            "marginals",
            f"every chance right: p = {-verdict.marginals.value:.2g} over all, at least 1e-04",
        ),
        (
            "independence",
            f"independence: top eigenvalue {verdict.independence.value:.3f} of what chance "
            f"makes it, at most {verdict.independence.limit:g}"
            + ("; reports repeat after a fork" if verdict.repeats_after_fork else ""),
        ),
        (
            "unbiased",
            f"bias: {verdict.unbiased.value:.2f} standard errors, at most 4",
        ),
        (
            "variance",
            f"variance: {verdict.variance.value:.2%} off, at most {verdict.variance.limit:.1%}",
        ),
    ]
    lines = "\n".join(f"  {'FAIL' if name in failed else 'ok  '} {text}" for name, text in rows)
    outcome = f"VIOLATION: {', '.join(failed)}" if failed else "no violation found"
    return f"""What was tested
  {verdict.oracle} on the path of {verdict.path}, {verdict.n_answers} answers, {n:,} reports about
  each of two states; {min(n, N_MARGINAL):,} about each of {min(N_INPUTS, verdict.n_answers)} \
states and null
What came out
{lines}
What it could have caught
  a real epsilon of {epsilon + verdict.margin:.3f} or more, in the event that one answer is spoken
  for and the other is not (alpha {verdict.alpha:g}); a single wrong word in 2^64, by handing
  words in; answers, bits or reports that go together, in {min(n, N_CORRELATED):,} reports
What it could not
  an operating system whose generator lies, what the time of a report gives away, and what many
  reports add up to: for that there is the ledger
{outcome}"""


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
    from retrasyn.run_settings import micro_nats

    with saying_stopped(), interruptible_progress(quiet or as_json, unit="devices") as progress:
        verdict = attack_devices(
            unit=unit, window=window, epsilon=micro_nats(epsilon), runs=runs, progress=progress
        )
    print(json.dumps(verdict.to_dict(), indent=2) if as_json else _tell_window(verdict))
    if verdict.violated:
        raise typer.Exit(1)


def _tell_window(verdict: WindowVerdict) -> str:
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
