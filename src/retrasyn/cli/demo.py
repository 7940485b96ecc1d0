"""``retrasyn demo``: a small city becomes a private synthetic stream, with a report."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress


def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demo makes.")] = Path("demo-out"),
    seed: Annotated[int, typer.Option(help="Another seed, another city.")] = 0,
    oracle: options.Oracle = "oue",
) -> None:
    """Make a small city with a rush hour, synthesise it privately, compare both in a report."""
    from retrasyn.data.writing_files import write
    from retrasyn.errors import OutputError, SettingError
    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import evaluate_pair
    from retrasyn.receipts.files import receipt_place, write_with_receipt
    from retrasyn.replacing import replacing
    from retrasyn.report.page import check_available, write_report
    from retrasyn.simulation.city import CITY_BOX, demo_city
    from retrasyn.simulation.run import synthesize
    from retrasyn.space import Grid

    if seed < 0:
        raise SettingError(f"seed={seed} must be a whole number from 0 on")
    check_available()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"folder {out} cannot be made ({error.strerror}); name another with --out"
        ) from None
    real = demo_city(seed=seed)
    grid = Grid(CITY_BOX, 6)
    with interruptible_progress(quiet=False) as progress:
        synthetic, receipt = synthesize(
            real, grid=grid, seed=seed, oracle=oracle, progress=progress
        )
    write(real, out / "real.parquet")
    with replacing(receipt_place(out / "synthetic.parquet")) as temporary:
        receipt = write_with_receipt(synthetic, receipt, out / "synthetic.parquet", temporary)
    pair = Pair.of(real, synthetic, grid)
    scores = evaluate_pair(pair, seed=seed)
    report = out / "report.html"
    write_report(
        report,
        pair,
        scores,
        receipt=receipt.to_dict(),
        title="A small city, real and synthetic",
        span=20,
        top_cells=10,
        top_patterns=100,
        seed=seed,
        clock=real.clock,
    )
    worst = receipt.worst_window.declared.epsilon
    print(
        f"""What happened
  {receipt.n_users:,} simulated commuters moved through a city for {receipt.timestamps} timestamps
  ({real.n_points:,} positions). Each reported rarely and noisily: {receipt.n_reports:,} reports
  in all, {receipt.n_reports / receipt.n_users:.1f} per person. From these alone
  {receipt.n_streams_out:,} synthetic trips with {receipt.n_points_out:,} points were made,
  one timestamp at a time.
What is protected
{_wrap(receipt.guarantee)}
  An independent recount found at most {worst:g} spent by anyone in any window.
What is not
{_bullets(receipt.not_protected)}
How close it is
  Density error {scores.density_error:.3f} and transition error {scores.transition_error:.3f},
  where 0 is the same and 0.693 has nothing in common; {scores.pattern_f1:.0%} of the most
  frequent routes are the same.
Look at
  {report}
  {out / "synthetic.parquet"} and its .receipt.json"""
    )


def _wrap(text: str, first: str = "  ") -> str:
    return textwrap.fill(text, 92, initial_indent=first, subsequent_indent=" " * len(first))


def _bullets(items: tuple[str, ...]) -> str:
    return "\n".join(_wrap(item, "  - ") for item in items)
