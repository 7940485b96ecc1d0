"""What follows from other figures of the same receipt."""

from __future__ import annotations

from retrasyn.curator import micro_nats
from retrasyn.errors import SettingError
from retrasyn.messages import MICRO
from retrasyn.methods import find_method
from retrasyn.privacy.receipt import Lifetime, Receipt
from retrasyn.receipts.check import Check, judge
from retrasyn.simulation.plan import noise_of
from retrasyn.space import Box, Grid, StateSpace


def check_gap(receipt: Receipt) -> Check:
    """Recompute the gap from unit and window."""
    faults = []
    if receipt.unit not in ("position", "transition"):
        faults.append(f"unit is {receipt.unit!r}, neither position nor transition")
    gap = receipt.window + (receipt.unit == "position")
    if receipt.window < 1:
        faults.append(f"window is {receipt.window}, below 1")
    if receipt.gap != gap:
        faults.append(f"gap is {receipt.gap}, {receipt.window} {receipt.unit}s need {gap}")
    fine = f"{receipt.window} {receipt.unit}s show in {gap} consecutive reports"
    return judge("gap", ["unit", "window", "gap"], faults, fine)


def check_noise(receipt: Receipt) -> Check:
    """Recompute the exact law of a report from oracle, grid and epsilon."""
    fields = ["epsilon", "oracle", "noise"]
    try:
        micro = micro_nats(receipt.epsilon)
    except SettingError as error:
        return judge("noise", fields, [str(error)], "")
    if not receipt.private:
        bare = receipt.oracle == "none" and receipt.noise is None
        faults = [] if bare else ["a method that is not private has no oracle and no noise"]
        return judge("noise", fields, faults, "none: the method is not private")
    try:
        grid = Grid(Box(0.0, 0.0, 1.0, 1.0), receipt.grid)
        states = StateSpace(grid, endpoints=find_method(receipt.method).endpoints)
        exact = noise_of(receipt.oracle, micro, states.n_states)
    except SettingError as error:
        return judge("noise", fields, [str(error)], "")
    if receipt.noise != exact:
        fault = (
            f"noise is not {exact.answers} answers, T = {exact.threshold}, p = {exact.p!r}, "
            f"q = {exact.q!r}, as oracle, grid and epsilon demand"
        )
        return judge("noise", fields, [fault], "")
    fine = f"epsilon {receipt.epsilon:g} gives T = {exact.threshold}, so q = {exact.q:.6f}"
    return judge("noise", fields, [], fine)


def check_lifetime(receipt: Receipt) -> Check:
    """Recompute the time covered and the worst case over all of it."""
    fields = ["timestamps", "first_t", "last_t", "lifetime"]
    timestamps = receipt.last_t - receipt.first_t + 1
    faults = []
    if receipt.timestamps != timestamps:
        faults.append(
            f"timestamps is {receipt.timestamps}, {receipt.first_t} to {receipt.last_t} are "
            f"{timestamps}"
        )
    if timestamps < 0:
        faults.append(f"the last timestamp, {receipt.last_t}, comes before the first")
    if receipt.gap < 1:
        return judge("lifetime", fields, [*faults, f"gap is {receipt.gap}, below 1"], "")
    exact = Lifetime.of(
        per=receipt.ledger,
        timestamps=timestamps,
        gap=receipt.gap,
        epsilon=receipt.epsilon,
        private=receipt.private,
    )
    if receipt.lifetime != exact:
        faults.append(f"lifetime is not {exact.windows} windows with epsilon {exact.epsilon}")
    if exact.epsilon is None:
        return judge("lifetime", fields, faults, "unbounded: the method is not private")
    fine = (
        f"{timestamps:,} timestamps hold {exact.windows:,} gaps: at most epsilon "
        f"{exact.epsilon:g} per {exact.per}"
    )
    return judge("lifetime", fields, faults, fine)


def check_counts(receipt: Receipt) -> Check:
    """Compare what was counted with what can be."""
    fields = ["n_reports", "n_users", "n_points_in", "n_points_dropped", "n_points_out"]
    faults = [
        f"{name} is {getattr(receipt, name)}, below 0"
        for name in (*fields, "n_streams_out")
        if (getattr(receipt, name) or 0) < 0
    ]
    hidden = receipt.presence.startswith("hidden")
    if (receipt.n_points_in is None) != hidden:
        faults.append("n_points_in is told exactly where presence is not hidden")
    elif receipt.n_points_in is not None and receipt.n_points_dropped > receipt.n_points_in:
        faults.append("more points were dropped than read")
    if receipt.n_streams_out > receipt.n_points_out:
        faults.append("there are more synthetic streams than points")
    most = receipt.n_users * receipt.lifetime.windows
    if receipt.division == "population" and receipt.ledger == "user" and receipt.n_reports > most:
        faults.append(
            f"{receipt.n_reports:,} reports are more than {receipt.n_users:,} users may send in "
            f"{receipt.lifetime.windows:,} windows"
        )
    return judge("counts", [*fields, "n_streams_out"], faults, "possible")


def check_verdicts(receipt: Receipt) -> Check:
    """Recompute the two verdicts from the recount."""
    worst = receipt.worst_window
    faults = []
    for name, stated, window in (
        ("within_guarantee", receipt.within_guarantee, worst.declared),
        ("within_epsilon_per_person", receipt.within_epsilon_per_person, worst.person_position),
    ):
        spent = window.epsilon
        holds = spent is not None and round(spent * MICRO) <= round(receipt.epsilon * MICRO)
        if stated != holds:
            faults.append(f"{name} is {stated}, the recount says {holds}")
    if receipt.private and not receipt.within_guarantee:
        faults.append("more was spent than was promised")
    fine = "as the recount says" if receipt.private else "none: the method is not private"
    return judge("verdicts", ["within_guarantee", "within_epsilon_per_person"], faults, fine)
