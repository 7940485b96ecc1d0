"""A malicious curator against real devices, over one window of positions."""

from dataclasses import replace

import pytest

from retrasyn.audit.game import ATTACKS, FIRST_AT, Game, manifest_of
from retrasyn.audit.window import audit_window
from retrasyn.device import ledger, rules
from retrasyn.errors import SettingError

EPSILON = 1_000_000


def game_of(name, unit="position", window=3):
    attack = next(attack for attack in ATTACKS if attack.name == name)
    return Game(manifest_of(unit, window=window, epsilon=EPSILON), attack)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.parametrize("window", [1, 3, 6])
def test_no_attack_makes_a_device_spend_more_than_epsilon_on_a_window(attack, window):
    game = game_of(attack.name, window=window)
    for person in (0, 1):
        run = game.run(person)
        assert 0 < run.spent <= EPSILON


def test_where_transitions_are_protected_a_window_of_positions_costs_twice():
    assert game_of("edges", unit="transition").run(0).spent == 2 * EPSILON


def test_the_two_persons_differ_in_exactly_the_states_that_touch_the_window():
    game = game_of("always")
    window = range(FIRST_AT, FIRST_AT + game.manifest.window)
    ends = (FIRST_AT, FIRST_AT + game.manifest.window)
    for name, inside in (("always", (*window, ends[1])), ("cells", window), ("speeds", ends)):
        game = game_of(name)
        differ = [one != other for one, other in zip(*list(game.answers.values())[-1], strict=True)]
        assert differ == [real in inside for real in range(len(differ))]


@pytest.mark.parametrize(("attack", "role"), [("cells", "cell"), ("speeds", "faster")])
def test_a_device_that_reports_its_cell_or_how_far_it_moved_speaks_for_it(attack, role):
    game = game_of(attack)
    assert game.manifest.strata == ("transition", role)
    scores = {person: sum(game.run(person).score for _ in range(400)) for person in (0, 1)}
    assert scores[0] > 0 > scores[1]


def test_a_report_scores_for_the_person_it_speaks_for():
    game = game_of("edges")
    scores = {person: sum(game.run(person).score for _ in range(400)) for person in (0, 1)}
    # Each mean is +-(1/2 - q) = +-0.23 with a standard error of 0.033.
    assert scores[0] > 0 > scores[1]


def test_the_verdict_names_the_attack_that_learnt_most():
    verdict = audit_window(runs=500, attacks=ATTACKS[:2])
    assert {finding.attack for finding in verdict.findings} == {"edges", "always"}
    assert verdict.worst.epsilon_lower_bound <= verdict.epsilon
    assert not verdict.violated
    assert verdict.to_dict()["attacks"]["edges"]["reports"] == 1


def test_progress_counts_every_device():
    told = []
    audit_window(runs=500, attacks=ATTACKS[:1], progress=lambda *place: told.append(place))
    assert told[-1] == (1000, 1000)


@pytest.mark.parametrize(("runs", "window"), [(10, 3), (500, 0)])
def test_what_shows_nothing_is_refused(runs, window):
    with pytest.raises(SettingError, match=r"take 100|outside 1"):
        audit_window(runs=runs, window=window)


def by_round_only(entry, wish):
    return wish.t - entry.t < wish.rest


def sooner_by_one(entry, wish):
    return by_round_only(entry, replace(wish, gap=wish.gap - 1))


def of_this_campaign(entry, wish):
    return entry.manifest == wish.manifest and by_round_only(entry, wish)


def anything_goes(*_):
    return None


def nothing_before(case, wish):
    return replace(wish, epsilon=0)


NO_QUARANTINE = [(rules, "quarantine_left", lambda *_: 0), (rules, "_unknown", nothing_before)]
FAULTS = {
    "edges": [(ledger, "counts", sooner_by_one)],
    "always": [(rules, "check_budget", anything_goes)],
    "cells": [(rules, "check_budget", anything_goes)],
    "speeds": [(rules, "check_budget", anything_goes)],
    "ceiling": [
        (rules, "BEFORE_RESENDING", rules.BEFORE_RESENDING[:2]),
        (rules, "check_budget", anything_goes),
    ],
    "clock": [(ledger, "counts", by_round_only)],
    "wipe": NO_QUARANTINE,
    "campaign": [*NO_QUARANTINE, (ledger, "counts", of_this_campaign)],
}


@pytest.mark.parametrize("attack", FAULTS)
def test_a_device_without_one_of_its_rules_is_caught(attack, monkeypatch):
    for place, name, faulty in FAULTS[attack]:
        monkeypatch.setattr(place, name, faulty)
    assert game_of(attack).run(0).spent > EPSILON


@pytest.mark.long
def test_positions_are_protected_by_epsilon_and_transitions_are_not_enough():
    few = tuple(attack for attack in ATTACKS if attack.name in ("edges", "always", "clock"))
    transition = audit_window(unit="transition", runs=50_000, attacks=few[:1])
    position = audit_window(unit="position", runs=50_000, attacks=few)
    assert transition.worst.epsilon_lower_bound > 1.5
    assert 0.85 < position.worst.epsilon_lower_bound < 1.0
    assert not position.violated
    assert transition.violated
