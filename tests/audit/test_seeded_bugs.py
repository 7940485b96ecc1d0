"""Every seeded bug of the oracle is found by the audit, and what is right is not accused.

Words come from a seeded generator, so every run finds the same; the two bugs that bring words of
their own are found by the exact law and by the fork, which no chance can hide.
"""

import random

import pytest

from retrasyn.audit.oracle import audit_oracle
from support.oracle_bugs import BUGS, GOOD

pytestmark = pytest.mark.system

PROOFS = {"exact", "epsilon", "marginals", "independence"}  # P1 to P4
REPORTS = 6_000


def find(oracle, report, epsilon=1_000_000):
    return audit_oracle(
        oracle,
        epsilon=epsilon,
        reports=REPORTS,
        report=report,
        words=random.Random(11).randbytes,
    )


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.oracle}-{bug.name}")
def test_every_seeded_bug_is_caught_by_the_checks_that_should(bug):
    found = set(find(bug.oracle, bug.report).violations)
    assert found & PROOFS
    assert bug.caught_by <= found


@pytest.mark.parametrize("oracle", GOOD)
@pytest.mark.parametrize("epsilon", [500_000, 1_000_000, 2_500_000])
def test_what_is_shipped_is_found_without_fault(oracle, epsilon):
    verdict = find(oracle, GOOD[oracle], epsilon)
    assert verdict.violations == ()
    assert verdict.exact_fault is None


def test_a_shared_random_number_passes_all_but_independence_and_the_exact_law():
    (bug,) = [bug for bug in BUGS if bug.name == "one_number_for_two_bits"]
    assert set(find(bug.oracle, bug.report).violations) == {"exact", "independence"}


def test_there_are_bugs_enough():
    assert len([bug for bug in BUGS if bug.oracle == "oue"]) >= 13
    assert {bug.oracle for bug in BUGS} == set(GOOD)
    assert set.union(*(set(bug.caught_by) for bug in BUGS)) == PROOFS
