"""Rechecks what a receipt states: its arithmetic, its spending, its wording."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from retrasyn.curator import MAX_ROUNDS
from retrasyn.errors import SettingError
from retrasyn.interpretation import SAFE, Interpretation
from retrasyn.messages import MICRO
from retrasyn.methods import METHODS, find_method, parts_of, settings_of
from retrasyn.oracles.registry import PAPER_ORACLE
from retrasyn.privacy.receipt import (
    Composition,
    Lifetime,
    Receipt,
    describe_presence,
    left_open,
    state_guarantee,
)
from retrasyn.run_settings import RunSettings, micro_nats
from retrasyn.simulation.accounting import DEVICES, ledger_of, noise_of, usual_place_of
from retrasyn.space import Box, Grid, StateSpace

Verdict = Literal["ok", "FAIL", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, its verdict, and the fields it covers."""

    name: str
    verdict: Verdict  # unknown: the data at hand is not enough to recompute it
    detail: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        word = {"ok": "ok  ", "FAIL": "FAIL", "unknown": "?   "}[self.verdict]
        return f"{word}  {self.name}: {self.detail}"


def judge(name: str, fields: Sequence[str], faults: Sequence[str], fine: str) -> Check:
    """Return a failed check if there are faults, otherwise a passed one."""
    if faults:
        return Check(name, "FAIL", "; ".join(faults), tuple(fields))
    return Check(name, "ok", fine, tuple(fields))


def unknown(name: str, fields: Sequence[str], needs: str) -> Check:
    """Return a check that cannot be made, saying what it would need."""
    return Check(name, "unknown", f"cannot be recomputed: needs {needs}", tuple(fields))


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
    """Recompute the covered time and the worst case over all of it."""
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


def check_usual_place(receipt: Receipt) -> Check:
    """Recompute after how many reports a usual place is known."""
    stated = receipt.usual_place
    period = cap = None
    if stated is not None and receipt.door == DEVICES:
        period, cap = stated.period, stated.lifetime_cap
    try:
        # What a public map is needed for tells no place, and the map is not here.
        row = dataclasses.replace(find_method(receipt.method), speeds=False, roads=False)
        settings = RunSettings.of(
            row,
            grid=Grid(Box(0.0, 0.0, 1.0, 1.0), receipt.grid),
            epsilon=receipt.epsilon,
            window=receipt.window,
            unit=receipt.unit,  # type: ignore[arg-type]  # an unknown one is refused
            oracle=receipt.oracle if receipt.private else PAPER_ORACLE,
        )
        exact = usual_place_of(settings, period=period, lifetime_cap=cap)
    except SettingError as error:
        return judge("usual place", ["usual_place"], [str(error)], "")
    known = "never: there is one place, or no privacy" if exact is None else f"after {exact.words}"
    faults = [] if stated == exact else [f"it should be known {known}"]
    return judge("usual place", ["usual_place"], faults, f"known {known}")


def check_counts(receipt: Receipt) -> Check:
    """Check the counts for consistency."""
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
    """Recompute the two verdicts from the worst windows."""
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


NO_USERS = "stream (the data names no users)"


def check_rounds(receipt: Receipt) -> Check:
    """Sum up the rounds, and check them against the covered time and the budget."""
    rounds = receipt.rounds
    fields = ["rounds", "n_reports", "division"]
    if not len(rounds.t) == len(rounds.n_reports) == len(rounds.epsilon):
        return judge("rounds", fields, ["the columns of rounds differ in length"], "")
    faults = []
    if any(one >= other for one, other in pairwise(rounds.t)):
        faults.append("the timestamps of rounds do not ascend")
    if any(not receipt.first_t <= t <= receipt.last_t for t in rounds.t):
        faults.append(f"a round lies outside {receipt.first_t} to {receipt.last_t}")
    if any(n < 1 for n in rounds.n_reports):
        faults.append("a round has no reports")
    total = sum(rounds.n_reports)
    whole = len(rounds.t) < MAX_ROUNDS and receipt.holds is None
    if total > receipt.n_reports or (whole and total != receipt.n_reports):
        faults.append(f"n_reports is {receipt.n_reports:,}, the rounds add up to {total:,}")
    faults += _overspent(receipt)
    which = "the latest " if receipt.holds is not None else ""
    fine = f"{which}{len(rounds.t):,} rounds with {total:,} reports, none above its budget"
    return judge("rounds", fields, faults, fine)


def _overspent(receipt: Receipt) -> list[str]:
    """Describe spending that the division does not allow."""
    spends, epsilon = _spends(receipt), round(receipt.epsilon * MICRO)
    match receipt.division:
        case "none":
            return ["a method without noise spends nothing"] if any(spends.values()) else []
        case "population":
            other = [t for t, spend in spends.items() if spend != epsilon]
            return [f"a report at t={other[0]} did not spend all of epsilon"] if other else []
    if any(spend < 1 for spend in spends.values()):
        return ["a round spent nothing"]
    most = highest_sum(spends, receipt.gap)
    if most > epsilon:
        return [f"{receipt.gap} timestamps in a row spent {most / MICRO:g}"]
    return []


def check_recount(receipt: Receipt) -> Check:
    """Check that the worst windows are possible, given the rounds."""
    declared, personal = receipt.worst_window.declared, receipt.worst_window.person_position
    faults = []
    if (declared.unit, declared.per, declared.timestamps) != (
        receipt.unit,
        receipt.ledger,
        receipt.gap,
    ):
        faults.append("the declared window is not that of unit, ledger and gap")
    if personal.unit != "position" or personal.timestamps != receipt.window + 1:
        faults.append(f"the personal window is not {receipt.window + 1} timestamps of positions")
    if personal.per not in ("person", NO_USERS):
        faults.append(f"the personal window is per {personal.per!r}")
    for name, window in (("declared", declared), ("personal", personal)):
        if (window.epsilon is not None) != receipt.private:
            faults.append(f"the {name} window has epsilon {window.epsilon}")
        elif window.epsilon is not None:
            least, most = possible(receipt, window.timestamps)
            spent = round(window.epsilon * MICRO)
            whole = max(round(receipt.epsilon * MICRO), 1)
            part = receipt.division == "population" and spent % whole
            if part or not least <= spent <= most:
                faults.append(
                    f"the {name} window spent {window.epsilon:g}, the rounds allow "
                    f"{least / MICRO:g} to {most / MICRO:g}"
                )
    fine = f"at most {declared.epsilon} per {declared.per}, {personal.epsilon} per {personal.per}"
    return judge("recount", ["worst_window", "ledger"], faults, fine)


def possible(receipt: Receipt, span: int) -> tuple[int, int]:
    """Return the least and the most that a worst window may have spent, in micro-nats."""
    spends = _spends(receipt)
    least = max(spends.values(), default=0)
    bound = highest_sum(spends, span) if receipt.division == "budget" else sum(spends.values())
    if receipt.holds is not None and receipt.n_reports > sum(receipt.rounds.n_reports):
        bound = max(bound, round(receipt.epsilon * MICRO))  # rounds no longer listed
    once = receipt.jump != "authors" and (receipt.ledger == "user" or _nameless(receipt))
    return least, bound if once else max(bound, 1) * (1 + receipt.n_reports)


def _nameless(receipt: Receipt) -> bool:
    """Whether the data names no users, so that every stream counts as a person."""
    return receipt.worst_window.person_position.per == NO_USERS


def _spends(receipt: Receipt) -> dict[int, int]:
    """Return what each reporter of a round spent, in micro-nats, by timestamp."""
    rounds = receipt.rounds
    return {t: round(spent * MICRO) for t, spent in zip(rounds.t, rounds.epsilon, strict=False)}


def highest_sum(spends: dict[int, int], span: int) -> int:
    """Return the largest sum over any `span` consecutive timestamps.

    >>> highest_sum({0: 5, 2: 4, 3: 3}, 3), highest_sum({0: 5, 2: 4, 3: 3}, 2), highest_sum({}, 1)
    (9, 7, 0)
    """
    highest = total = 0
    waiting = sorted(spends)
    first = 0
    for t in waiting:
        total += spends[t]
        while waiting[first] <= t - max(span, 1):
            total -= spends[waiting[first]]
            first += 1
        highest = max(highest, total)
    return highest


def check_method(receipt: Receipt) -> Check:
    """Compare the method with its row in the table of methods."""
    fields = ["method", "summary", "private", "division", "presence", "door"]
    row = METHODS.get(receipt.method)
    if row is None:
        return judge("method", fields, [f"there is no method {receipt.method!r}"], "")
    faults = [
        f"{name} is {stated!r}, that of {row.name} is {right!r}"
        for name, stated, right in (
            ("summary", receipt.summary, row.summary),
            ("private", receipt.private, row.division.private),
            ("division", receipt.division, row.division.name),
            (
                "presence",
                receipt.presence,
                describe_presence(row.presence, clipped=receipt.n_points_dropped > 0),
            ),
        )
        if stated != right
    ]
    doors = ("counts", "reports", DEVICES) if row.division.private else ("truth",)
    if receipt.door not in doors:
        faults.append(f"door is {receipt.door!r}, {row.name} knows {', '.join(doors)}")
    return judge("method", fields, faults, f"{row.name} divides the {row.division.name}")


def check_reading(receipt: Receipt) -> Check:
    """Compare the reading and the settings with the other fields."""
    fields = ["reading", "settings", "jump", "ledger", "length_scale", "length_scale_from_data"]
    row = METHODS.get(receipt.method)
    faults = []
    try:
        reading = _reading_of(receipt)
    except (SettingError, KeyError, TypeError) as error:
        return judge("reading", fields, [f"the reading is none: {error}"], "")
    named = receipt.worst_window.person_position.per == "person"
    ledger = ledger_of(reading.ledger, receipt.folded) if named else "stream"
    for name, stated, right in (
        ("unit", receipt.unit, reading.unit),
        ("jump", receipt.jump, reading.jump),
        ("ledger", receipt.ledger, ledger),
        ("length_scale_from_data", receipt.length_scale_from_data, reading.length_scale == "data"),
    ):
        if stated != right:
            faults.append(f"{name} is {stated!r}, the reading says {right!r}")
    if row is not None:
        names = {name for part in parts_of(row) for name in settings_of(part)}
        if set(receipt.settings) != names:
            faults.append(f"{row.name} has the settings {', '.join(sorted(names)) or 'none'}")
        scale: str | float = reading.length_scale
        if scale == "released" and not row.lifecycle.uses_length:
            scale = "not used"
        known = not isinstance(receipt.length_scale, str) if scale == "data" else None
        if not (known or receipt.length_scale == scale):
            faults.append(f"length_scale is {receipt.length_scale!r}, the reading says {scale!r}")
        if receipt.faithful and not row.of_paper:
            faults.append(f"{row.name} is not a method of the paper, so it cannot be faithful")
    if reading.length_scale == "data" and not receipt.faithful:
        faults.append("a length scale from the data goes with faithful only")
    return judge("reading", fields, faults, f"unit {reading.unit}, jump {reading.jump}")


def _reading_of(receipt: Receipt) -> Interpretation:
    """Return the reading, refusing unknown answers."""
    return Interpretation(**receipt.reading) and SAFE.answer(**receipt.reading)


def check_composition(receipt: Receipt) -> Check:
    """Check what the first release of its data cost in all; of later ones, what it cannot be."""
    fields, stated = ["composition"], receipt.composition
    if stated is None:
        return judge("composition", fields, [], "not counted: other releases are not known")
    worst = receipt.worst_window.person_position.epsilon
    least = None if worst is None else max(worst, receipt.epsilon)
    unprotected = receipt.seed is not None or not receipt.private
    first = Composition(1, least, receipt.window, int(unprotected))
    faults = []
    if receipt.door == DEVICES:
        faults.append("devices count what they send themselves")
    if stated.n_releases < 1 or (stated.n_releases == 1 and stated != first):
        faults.append(f"a first release costs epsilon {least}")
    if not unprotected <= stated.n_unprotected <= stated.n_releases:
        faults.append(f"n_unprotected is {stated.n_unprotected}")
    if not 1 <= stated.window <= receipt.window:
        faults.append(f"the shortest window is {stated.window}, that of this run {receipt.window}")
    if (stated.epsilon is None and not stated.n_unprotected) or (
        stated.epsilon is not None and (least is None or stated.epsilon < least)
    ):
        faults.append(f"all releases cost {stated.epsilon}, this one alone {least}")
    if stated.n_releases > 1 and not faults:
        needs = "the list of releases, which is kept with the input"
        return unknown("composition", fields, needs)
    return judge("composition", fields, faults, "the first release of its data that was counted")


def check_guarantee(receipt: Receipt) -> Check:
    """Regenerate the opening line and the guarantee's sentence, and compare."""
    stated = state_guarantee(
        private=receipt.private,
        epsilon=receipt.epsilon,
        window=receipt.window,
        unit=receipt.unit,
        ledger=receipt.ledger,
        presence=receipt.presence.partition(":")[0],
        folded=receipt.folded,
    )
    faults = [] if receipt.guarantee == stated else [f"it should read: {stated}"]
    if receipt.headline != receipt.due_headline:
        faults.append(f"the receipt should open with: {receipt.due_headline}")
    return judge("guarantee", ["headline", "guarantee"], faults, stated)


def check_left_open(receipt: Receipt) -> Check:
    """Regenerate the list of what is not protected and compare."""
    fields = ["not_protected", "seed", "box_inferred_from_data"]
    presence = receipt.presence.partition(":")[0]
    named = receipt.worst_window.person_position.per == "person"
    lists = [
        left_open(
            private=receipt.private,
            presence=presence,
            unit=receipt.unit,
            ledger=receipt.ledger,
            jump=receipt.jump,
            seeded=receipt.seed is not None,
            counted=receipt.composition is not None or receipt.door == DEVICES,
            has_users=named,
            box_inferred=receipt.box_inferred_from_data,
            length_from_data=receipt.length_scale_from_data,
            enrols_on_sight=on_sight,
            clipped=receipt.n_points_dropped > 0,
            usual_place=receipt.usual_place,
            mapped=receipt.public_map is not None,
            folded=() if receipt.folded is None else receipt.folded.limits(receipt.lifetime),
        )
        for on_sight in (False, True)
    ]
    right = next((one for one in lists if one == receipt.not_protected), lists[0])
    missing = [line for line in right if line not in receipt.not_protected]
    faults = [f"it does not say: {line}" for line in missing]
    if not missing and receipt.not_protected != right:
        faults = ["it says more, or in another order, than this run calls for"]
    return judge("not protected", fields, faults, f"{len(right)} things, all stated")
