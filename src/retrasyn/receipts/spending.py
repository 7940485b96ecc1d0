"""Rounds and recount: whether they fit each other and the promise."""

from __future__ import annotations

from itertools import pairwise

from retrasyn.curator import MAX_ROUNDS
from retrasyn.messages import MICRO
from retrasyn.privacy.receipt import Receipt
from retrasyn.receipts.check import Check, judge

NO_USERS = "stream (the data names no users)"


def check_rounds(receipt: Receipt) -> Check:
    """Add the rounds up, and hold them against the time covered and the budget."""
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
    """Say which rounds spent what their division does not allow."""
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
    """Hold the worst windows against what the rounds make possible."""
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
    """Return the least and the most that somebody's worst window may have spent."""
    spends = _spends(receipt)
    least = max(spends.values(), default=0)
    bound = highest_sum(spends, span) if receipt.division == "budget" else sum(spends.values())
    if receipt.holds is not None and receipt.n_reports > sum(receipt.rounds.n_reports):
        bound = max(bound, round(receipt.epsilon * MICRO))  # rounds that are not told any more
    once = receipt.jump != "authors" and (receipt.ledger == "user" or _nameless(receipt))
    return least, bound if once else max(bound, 1) * (1 + receipt.n_reports)


def _nameless(receipt: Receipt) -> bool:
    """Whether the data names no users, so that a stream is all a person can be."""
    return receipt.worst_window.person_position.per == NO_USERS


def _spends(receipt: Receipt) -> dict[int, int]:
    """Return what each reporter of a round spent, in micro-nats."""
    rounds = receipt.rounds
    return {t: round(spent * MICRO) for t, spent in zip(rounds.t, rounds.epsilon, strict=False)}


def highest_sum(spends: dict[int, int], span: int) -> int:
    """Return the most that any `span` consecutive timestamps spent together.

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
