"""`retrasyn audit`: figures for people and programs, and an exit code for scripts."""

import json
from dataclasses import replace

import pytest

from retrasyn.oracles import single
from retrasyn.oracles.registry import ORACLES
from support.command_line import assert_one_line, run

QUICK = ("--reports", "1000")


def faulty(state, n_answers, *, epsilon, words):
    """Report twice the epsilon that was asked for."""
    return single.report_unary(state, n_answers, epsilon=2 * epsilon, words=words)


def test_the_audit_says_what_was_tested_and_what_it_could_have_caught():
    outcome = run("audit", *QUICK, "--oracle", "grr", "--answers", "6")

    assert outcome.err == ""
    for heading in ("What was tested", "What came out", "What it could have caught"):
        assert heading in outcome.out
    assert "grr on the path of devices, 6 answers, 1,000 reports" in outcome.out
    assert "every threshold is the least that keeps it" in outcome.out


@pytest.mark.parametrize("oracle", ["oue", "grr", "olh"])
def test_the_figures_are_json_on_request(oracle):
    outcome = run("audit", *QUICK, "--oracle", oracle, "--epsilon", "2", "--json")

    figures = json.loads(outcome.out)
    assert figures["epsilon"] == 2.0
    assert figures["epsilon_lower_bound"] <= 2.0
    assert (figures["alpha"], figures["reports_per_input"]) == (1e-6, 1000)
    checks = ("marginals_ok", "independence_ok", "unbiased_ok", "variance_ok")
    assert all(isinstance(figures[name], bool) for name in checks)
    assert outcome.code == (1 if figures["violations"] else 0)


def test_the_path_of_simulations_can_be_audited_too():
    outcome = run("audit", *QUICK, "--simulated")

    assert "on the path of simulated devices" in outcome.out
    assert "exact law: not asked of simulated devices" in outcome.out


def test_a_violation_is_named_and_ends_with_1(monkeypatch):
    monkeypatch.setitem(ORACLES, "oue", replace(ORACLES["oue"], report=faulty))
    outcome = run("audit", "--reports", "5000")

    assert outcome.code == 1
    assert "FAIL epsilon is at least" in outcome.out
    assert "VIOLATION: epsilon, exact, marginals" in outcome.out


def test_reports_that_repeat_after_a_fork_are_told(monkeypatch):
    def stuck(state, n_answers, *, epsilon, words):
        return bytes(4)

    monkeypatch.setitem(ORACLES, "oue", replace(ORACLES["oue"], report=stuck))
    outcome = run("audit", *QUICK)

    assert outcome.code == 1
    assert "reports repeat after a fork" in outcome.out


@pytest.mark.parametrize(
    "flags", [("--reports", "10"), ("--epsilon", "0"), ("--answers", "2"), ("--oracle", "rappor")]
)
def test_what_makes_no_audit_is_refused_in_a_line(flags):
    outcome = run("audit", *flags)

    assert_one_line(outcome, *flags[1:])


def test_the_audit_of_windows_names_every_attack_and_its_outcome():
    outcome = run("audit", "window", "--runs", "100", "--window", "2")

    assert outcome.code == 0
    assert outcome.err == ""
    for attack in ("edges", "clock", "wipe", "campaign"):
        assert f"  ok   {attack}" in outcome.out
    assert outcome.out.endswith("no violation found\n")


def test_windows_of_positions_are_violated_where_transitions_are_protected():
    outcome = run("audit", "window", "--runs", "100", "--unit", "transition", "--json")

    figures = json.loads(outcome.out)
    assert outcome.code == 1
    assert figures["violated"]
    assert figures["attacks"]["edges"]["spent"] == 2.0


def test_too_few_runs_are_refused_with_one_line():
    assert_one_line(run("audit", "window", "--runs", "3"), "3 runs show nothing")


@pytest.mark.parametrize("option", [("--epsilon", "2"), ("--json",), ("--oracle", "grr")])
def test_an_option_that_a_window_would_not_see_is_refused(option):
    assert_one_line(run("audit", *option, "window", "--runs", "100"), option[0], "put it after")
