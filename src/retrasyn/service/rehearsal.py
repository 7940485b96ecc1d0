"""Rounds that nobody takes part in, played before the first real one.

Kernels are compiled the first time they are called, which takes seconds and stops everything
else. Better before reports come than while they do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.messages import MOVING, Question
from retrasyn.service.account import Account
from retrasyn.service.campaign import Campaign
from retrasyn.service.folding import fold
from retrasyn.service.store import RoundRow
from retrasyn.service.taking import Taken
from retrasyn.wire.frames import body_bytes, n_answers, question_code

_ROUNDS = 3
_EACH = 20  # made-up reports on each question


def rehearse(campaign: Campaign) -> None:
    """Fold and release a few rounds of made-up reports, and forget them."""
    manifest, account = campaign.manifest, Account(campaign)
    whole = manifest.division == "population"
    for t in range(_ROUNDS):
        row = RoundRow(
            t=t, epsilon=manifest.epsilon if whole else 1, portion=0, ends=0, envelope=b""
        )
        taken = _made_up(campaign, row)
        n = taken.keys.size
        round_, _ = fold(row, taken, account, n_enrolled=n, n_ever=n)
        account.receipt(account.step(round_))


def _made_up(campaign: Campaign, row: RoundRow) -> Taken:
    """Return reports that say nothing, each from a device of its own."""
    manifest, answers = campaign.manifest, {}
    abouts = [about for about in manifest.strata if about != "older"]
    questions = [Question(about=about) for about in abouts]  # type: ignore[arg-type]  # strata are questions
    questions += [Question(about="older", threshold=age) for age in manifest.ages]
    n_rounds = len(questions) * _EACH
    for place, question in enumerate(questions):
        n, code = n_answers(question, manifest), question_code(question, manifest.ages)
        bits = np.zeros((_EACH, body_bytes(code, n, row.epsilon, manifest.oracle)), np.uint8)
        first = row.t * n_rounds + place * _EACH
        answers[code] = bits, np.arange(first, first + _EACH)
    keys: npt.NDArray[np.int64] = np.arange((row.t + 1) * n_rounds)
    kinds = np.full(keys.size, MOVING, np.uint8)
    return Taken(answers=answers, kinds=kinds, keys=keys, marks=b"")
