"""The audit of an oracle: measures how much its reports reveal about their senders.

Nothing is assumed about how reports are made. Many are generated for two states, and for twenty
more and null, and examined. Only the exact law looks inside, by choosing the random words.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import numpy as np

from retrasyn.audit.checks import (
    Verdict,
    check_bias,
    check_independence,
    check_marginals,
    check_variance,
    epsilon_lower_bound,
    group_estimates,
)
from retrasyn.audit.laws import law_holds, law_of
from retrasyn.audit.subject import DevicePath, Simulated, Subject, Tick
from retrasyn.errors import SettingError
from retrasyn.messages import MICRO
from retrasyn.oracles.registry import PAPER_ORACLE, ReportMaker, find_oracle
from retrasyn.oracles.single import NULL
from retrasyn.randomness.words import Words, system_bytes

ALPHA = 1e-6
"""Upper bound on the probability that a correct oracle's lower bound exceeds its epsilon."""
N_ANSWERS = 28
"""Default number of answers of an audited report: four bytes, with padding."""
N_INPUTS = 20
"""Number of inputs whose marginals are checked, besides null."""
N_MARGINAL = 20_000
"""Maximum number of reports for each of them."""
FIRST, SECOND = 1, 2
"""The two states that the lower bound distinguishes."""
_FEWEST = 1_000
_FORKED = 64  # reports of parent and child compared
Progress = Callable[[int, int], None]


def audit_oracle(
    oracle: str = PAPER_ORACLE,
    *,
    epsilon: int = MICRO,
    reports: int = 1_000_000,
    n_answers: int = N_ANSWERS,
    simulated: bool = False,
    report: ReportMaker | None = None,
    words: Words = system_bytes,
    progress: Progress | None = None,
) -> Verdict:
    """Audit the code that devices run, or the compiled code of simulated devices.

    `report` and `words` are for tests: a function to audit instead of the shipped one, and
    reproducible words.

    >>> verdict = audit_oracle("grr", epsilon=2_000_000, reports=2_000)
    >>> verdict.epsilon_lower_bound <= 2.0, verdict.exact_fault is None
    (True, True)
    """
    _check_settings(oracle, epsilon, reports, n_answers)
    own = find_oracle(oracle).report if report is None else report
    subject = Subject(
        name=oracle,
        epsilon=epsilon,
        n_answers=n_answers,
        path=Simulated(words=words) if simulated else DevicePath(report=own, words=words),
    )
    inputs = [NULL, *np.linspace(0, n_answers - 1, min(N_INPUTS, n_answers), dtype=int).tolist()]
    tick = _counter(progress, 2 * reports + len(inputs) * min(N_MARGINAL, reports))
    ours, theirs = (
        subject.events(subject.sample(state, reports, tick)) for state in (FIRST, SECOND)
    )
    hits, other_hits = (
        int((events[:, FIRST] & ~events[:, SECOND]).sum()) for events in (ours, theirs)
    )
    bound = epsilon_lower_bound(hits, other_hits, reports, alpha=ALPHA)
    tables = []
    for state in inputs:
        n = min(N_MARGINAL, reports)
        counts = subject.events(subject.sample(state, n, tick)).sum(axis=0)
        tables.append((counts, subject.chances(state), n))
    estimates, size = group_estimates(subject, ours, theirs, FIRST)
    return Verdict(
        oracle=oracle,
        path="simulated devices" if simulated else "devices",
        epsilon=epsilon / MICRO,
        n_answers=n_answers,
        reports_per_input=reports,
        alpha=ALPHA,
        epsilon_lower_bound=bound,
        margin=float(np.log((hits + 0.5) / (other_hits + 0.5))) - bound,
        exact_fault=None
        if simulated
        else law_holds(oracle, own, epsilon=epsilon, n_answers=n_answers),
        repeats_after_fork=not simulated and _repeats_after_fork(own, n_answers),
        marginals=check_marginals(tables),
        independence=check_independence(subject, ours, FIRST),
        unbiased=check_bias(subject, estimates, size),
        variance=check_variance(subject, estimates, size),
    )


def _check_settings(oracle: str, epsilon: int, reports: int, n_answers: int) -> None:
    law_of(oracle)  # raises if there is none
    if epsilon < 1:
        raise SettingError(f"epsilon of {epsilon} micro-nats must be positive; 1000000 is usual")
    if reports < _FEWEST:
        raise SettingError(f"{reports} reports show nothing; take {_FEWEST:,} or more")
    if not 3 <= n_answers <= 4096:  # noqa: PLR2004
        raise SettingError(f"{n_answers} answers are outside 3..4096; {N_ANSWERS} is usual")


def _counter(progress: Progress | None, total: int) -> Tick:
    done = 0

    def tick(n: int) -> None:
        nonlocal done
        done += n
        if progress is not None:
            progress(done, total)

    return tick


def _repeats_after_fork(report: ReportMaker, n_answers: int) -> bool:
    """Tell whether parent and child make the same reports after a fork, at epsilon 1."""

    def several() -> bytes:
        return b"".join(
            report(FIRST, n_answers, epsilon=MICRO, words=system_bytes) for _ in range(_FORKED)
        )

    several()  # fills whatever buffer there may be before the fork
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of other threads
        child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            os.write(writing, several())
        finally:
            os._exit(0)
    os.close(writing)
    parents = several()
    with os.fdopen(reading, "rb") as pipe:
        childs = pipe.read()
    os.waitpid(child, 0)
    return childs == parents
