"""From single reports to sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.engines.base import Engine
from retrasyn.messages import Manifest, Question
from retrasyn.poisoning import inspect
from retrasyn.privacy.division import Ledger
from retrasyn.privacy.ledger import UserLedger
from retrasyn.service.account import Account
from retrasyn.service.folded import FoldedRound
from retrasyn.service.presence import Heard
from retrasyn.service.store import RoundRow
from retrasyn.service.summing import BINARY, add_up
from retrasyn.service.taking import Taken
from retrasyn.simulation.recorded import Answers, Folded
from retrasyn.wire.frames import n_answers, question_code, question_of

Reports = dict[Question, tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]
"""Bits [n, bytes] and keys [n] by question."""


def fold(
    row: RoundRow, taken: Taken, account: Account, *, n_enrolled: int, n_ever: int
) -> tuple[FoldedRound, int]:
    """Return what remains of a round, and how many reports the curator's ledger refuses.

    The gate refuses them, too, when they come; this is the second look.
    """
    manifest, curator = account.campaign.manifest, account.recorded.curator
    heard, flags, changes = Heard(taken.keys, taken.kinds), None, Heard.nothing()
    if manifest.presence == "flags":
        flags, changes = account.presence.flags(row.t, heard), account.presence.changes(heard)
    size = 0 if manifest.presence == "hidden" else heard.n_here
    if manifest.presence == "flags" and curator.reading.size_target == "active-and-quitting":
        size += heard.n_quitting
    reports, n_dropped = _rested(row, taken, manifest, curator.state.ledger)
    folded = Folded(
        t=row.t,
        epsilon=row.epsilon,
        size=size,
        n_enrolled=n_enrolled,
        answers=_add_up(reports, manifest, row, account.engines.sums),
        flags=flags,
    )
    alarms = _look_for_poison(reports, manifest, row.epsilon, curator.state.memory.released)
    return FoldedRound(folded=folded, n_ever=n_ever, changes=changes, alarms=alarms), n_dropped


def _rested(row: RoundRow, taken: Taken, manifest: Manifest, ledger: Ledger) -> tuple[Reports, int]:
    """Return the reports of those who may report by the curator's own ledger."""
    reports: Reports = {}
    n_dropped = 0
    for code, (bits, keys) in sorted(taken.answers.items()):
        question = question_of(code, manifest.ages)
        may = np.full(len(keys), row.epsilon > 0)
        if isinstance(ledger, UserLedger):
            may &= ledger.available(row.t, keys, question.lookback)
        n_dropped += int(np.count_nonzero(~may))
        if may.any():
            reports[question] = np.ascontiguousarray(bits[may]), keys[may].astype(np.int64)
    return reports, n_dropped


def _add_up(
    reports: Reports, manifest: Manifest, row: RoundRow, engine: Engine | None
) -> dict[Question, Answers]:
    """Add the reports on each question up."""
    answers: dict[Question, Answers] = {}
    for question, (bits, keys) in reports.items():
        name = BINARY if question.binary else manifest.oracle
        total = add_up(
            engine,
            bits,
            t=row.t,
            code=question_code(question, manifest.ages),
            oracle=(name, row.epsilon, n_answers(question, manifest)),
        )
        answers[question] = Answers(aggregate=total, keys=keys)
    if engine is not None:
        engine.each("forget", row.t)
    return answers


def _look_for_poison(
    reports: Reports,
    manifest: Manifest,
    epsilon: int,
    expected: npt.NDArray[np.float64] | None,
) -> tuple[str, ...]:
    """Name the tests that honest reports would hardly have failed; unary reports only."""
    found: list[str] = []
    for question, (bits, _) in reports.items():
        if question.binary or manifest.oracle != "oue":
            continue
        n = n_answers(question, manifest)
        plausible = expected if question.about == "transition" else None
        inspection = inspect(bits, n, epsilon=epsilon, expected=plausible)
        found += [f"{question.about}/{alarm.test}" for alarm in inspection.alarms]
    return tuple(found)
