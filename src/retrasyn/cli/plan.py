"""``retrasyn plan``: forecasts accuracy and privacy for a number of users."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrasyn.cli import options
from retrasyn.cli.interrupts import interruptible_progress, saying_stopped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from retrasyn.planning.forecast import Forecast, Prospect

_WIDTH = 104  # below it, a table would break its figures
_MANY = 1.05  # people behind a simulated one from which on it is worth saying


@saying_stopped()
def plan(
    users: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="People active at a time, on average; not all who ever take part.",
        ),
    ],
    epsilon: options.Epsilon = 1.0,
    window: options.Window = 20,
    method: Annotated[str, typer.Option(help="See: retrasyn methods.")] = "steered",
    period: Annotated[
        str, typer.Option(metavar="10min", help="Time between two timestamps.")
    ] = "10min",
    no_simulation: Annotated[
        bool, typer.Option("--no-simulation", help="Closed forms only: no errors, no K, at once.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg|png", help="Draw the errors into a file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    quiet: options.NoBar = False,
    seed: Annotated[int, typer.Option(help="Other cities, other noise.")] = 0,
) -> None:
    """Say what to expect with N users: reports, errors by grid, a grid, privacy over time.

    With --method steered-roads or steered-map, the roads of the built-in city are the public map.

    Example: retrasyn plan --users 5000 --plot plan.svg
    """
    from retrasyn.data.discretise import read_period
    from retrasyn.errors import SettingError
    from retrasyn.planning.figure import check_figure, draw_figure
    from retrasyn.planning.forecast import forecast

    if plot is not None:
        if no_simulation:
            raise SettingError("--plot draws simulated errors; leave --no-simulation away")
        check_figure(plot)
    between = read_period(period)
    with interruptible_progress(quiet=quiet or as_json or no_simulation) as progress:
        shown = forecast(
            users,
            method,
            epsilon=epsilon,
            window=window,
            period=between,
            seed=seed,
            simulates=not no_simulation,
            progress=progress,
        )
    if plot is not None:
        draw_figure(shown, plot)
    if as_json:
        print(json.dumps({**shown.to_dict(), "period": between / 1_000_000}, indent=2))
        return
    _show(shown, period)
    if plot is not None:
        print(f"plot: {plot}")


def _show(shown: Forecast, period: str) -> None:
    """Print everything, for people."""
    from rich.console import Console

    console = Console(highlight=False)
    console.width = max(console.width, _WIDTH)
    _show_noise(console, shown)
    console.print(_grids(shown))
    if shown.recommended is None:
        console.print("Errors and a recommended grid need the simulation.\n")
    else:
        _show_choice(console, shown)
    _show_outlook(console, shown)
    console.print(_changes(shown))
    console.print(_lifetime(shown, period))
    console.print(
        f"Any {shown.window} consecutive positions are protected by epsilon {shown.epsilon:g}, "
        "whenever they are.\nMore positions are protected less: who stays spends epsilon again in "
        "every window, and\nthe totals grow without end. They are those of somebody always present."
    )
    _show_usual_place(console, shown)


def _show_noise(console: Console, shown: Forecast) -> None:
    """Print what to expect of one timestamp."""
    noise = shown.noise
    console.print(
        f"[bold]{shown.method}[/bold], {shown.n_users:,} people active at a time, "
        f"epsilon {shown.epsilon:g}, w = {shown.window}\n"
    )
    cells = f" and {_number(noise.n_cell_reports)} of cells" if noise.n_cell_reports else ""
    console.print(
        f"One timestamp brings about {_number(noise.n_reports)} reports of states{cells}, each "
        f"with epsilon {noise.epsilon:.3g}."
    )
    if shown.simulated_reports is not None:
        console.print(
            f"In the simulation it was {_number(shown.simulated_reports)} reports of all kinds."
        )
    console.print(
        "From reports of states alone, the share of one state is known to "
        f"+- {_percent(noise.state_error)} (one standard error).\n"
    )


def _grids(shown: Forecast) -> Table:
    """Return a row per grid."""
    columns = ["K", "cell\nholds", "known\nto +-", "home in\nnights"]
    if shown.recommended is not None:
        cities = ["at\nrest", "rush\nhours"]
        columns += ["density\nerror", *cities, "transition\nerror", *cities, "detail\nlost"]
    table = _table("What each grid would do", columns)
    for row in shown.rows:
        place = row.usual_place
        nights = "-" if place is None else f"{place.nights:,}"
        cells = [str(row.side), _percent(row.cell_share), _percent(row.cell_error), nights]
        if row.density is not None and row.transition is not None:
            cells += [*_errors(row.density), *_errors(row.transition), f"{row.lost_detail:.4f}"]
        chosen = row.side == shown.recommended
        table.add_row(*cells, style="bold" if chosen else None)
    return table


def _show_choice(console: Console, shown: Forecast) -> None:
    """Print which grid to choose, and what the figures are based on."""
    n_simulated = shown.n_simulated or math.nan
    scaled = (
        f", each for {shown.n_users / n_simulated:,.3g}"
        if shown.n_users > _MANY * n_simulated
        else ""
    )
    console.print(
        f"Recommended: [bold]--grid {shown.recommended}[/bold]. There, density error and lost "
        "detail add up to the least.\n"
        f"Simulated: two built-in cities, at rest and with rush hours, {shown.n_timestamps} "
        f"timestamps,\n{n_simulated:,.0f} people at a time{scaled}. Expected is the mean of both.\n"
        "Of errors, 0 is perfect and 0.693 has nothing in common.\n"
    )


def _show_outlook(console: Console, shown: Forecast) -> None:
    """Print what can be learnt with so many people."""
    outlook = shown.outlook
    words = outlook.words if outlook.finest is None else f"{outlook.words}. {outlook.limits}"
    console.print(f"{words[0].upper()}{words[1:]}.\n", soft_wrap=True)


def _changes(shown: Forecast) -> Table:
    """Return a row for each way to have more."""
    side = shown.recommended
    columns = ["", "users", "epsilon", "window", "as good as\nusers x"]
    if side is not None:
        columns += ["density\nerror", "transition\nerror"]
    title = "What doubling and a public map change" + ("" if side is None else f", with K = {side}")
    table = _table(title, columns)
    if side is not None:
        row = shown.row(side)
        now = ["now", f"{shown.n_users:,}", f"{shown.epsilon:g}", f"{shown.window:,}", "1"]
        table.add_row(*now, _errors(row.density)[0], _errors(row.transition)[0])
    for change in shown.changes:
        cells = [change.what, f"{change.n_users:,}", f"{change.epsilon:g}", f"{change.window:,}"]
        cells.append("-" if math.isnan(change.worth) else f"{change.worth:.3g}")
        if side is not None:
            cells += [_errors(change.density)[0], _errors(change.transition)[0]]
        table.add_row(*cells)
    return table


def _show_usual_place(console: Console, shown: Forecast) -> None:
    """Print after how many nights a usual place is known, and what devices do about it."""
    from retrasyn.planning.forecast import USUAL_SIDE

    row = shown.row(shown.recommended or USUAL_SIDE)
    if (place := row.usual_place) is None:
        return
    within = (place.reports - 1) * shown.epsilon
    cap = (
        f"Unless lifetime_cap is set, devices stop before that, at epsilon {within:g}."
        if within
        else "No lifetime_cap hides it: one report is enough."
    )
    console.print(
        f"A report names its device, so reports add up. With K = {row.side} a usual place is known "
        f"after\n{place.words}.\n{cap}"
    )


def _lifetime(shown: Forecast, period: str) -> Table:
    """Return a row for each span of time."""
    title = f"What privacy adds up to, a timestamp every {period}"
    table = _table(title, ["at most, over", "timestamps", "windows", "epsilon in total"])
    for total in shown.lifetime:
        row = (f"{total.n_timestamps:,}", f"{total.n_windows:,}", f"{total.epsilon:,.6g}")
        table.add_row(total.span, *row)
    return table


def _table(title: str, columns: list[str]) -> Table:
    """Return a table of words on the left and figures on the right."""
    from rich.box import ROUNDED
    from rich.table import Table

    table = Table(box=ROUNDED, title=title, title_justify="left")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def _errors(error: Prospect | None) -> list[str]:
    """Return an error as expected, at rest and with rush hours."""
    if error is None:
        return ["-"] * 3
    return [f"{value:.4f}" for value in (error.expected, error.at_rest, error.rush_hours)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"  # noqa: PLR2004 - two digits


def _percent(share: float) -> str:
    """Return a share in percent, two digits of it."""
    if not math.isfinite(share):
        return "unknown"
    percent = 100 * share
    digits = max(0, 1 - math.floor(math.log10(percent))) if percent > 0 else 0
    return f"{percent:,.{digits}f} %"
