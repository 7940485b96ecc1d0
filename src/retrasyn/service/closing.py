"""Closes rounds: reports become sums and are deleted, the curator steps, the release is written."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retrasyn.engines.base import Workers
from retrasyn.errors import CheckpointError
from retrasyn.messages import Manifest, Question, Release
from retrasyn.oracles.registry import row_for
from retrasyn.poisoning import inspect
from retrasyn.poisoning.evidence import EvidencePool, Piece
from retrasyn.poisoning.evidence import to_bytes as evidence_bytes
from retrasyn.privacy.ledger import Ledger
from retrasyn.privacy.receipt import Receipt
from retrasyn.service.admission.open_rounds import AcceptedReports
from retrasyn.service.aggregation import Sums, add_up
from retrasyn.service.calendar import check_silence
from retrasyn.service.enrolment import RoundHeartbeats
from retrasyn.service.folded_round import FoldedRound, from_bytes, to_bytes
from retrasyn.service.store import EvidenceRow, FoldedRow, RoundRow
from retrasyn.simulation.rounds import Answers, Folded
from retrasyn.wire.frames import n_answers, question_code, question_of

if TYPE_CHECKING:
    from retrasyn.service.campaign_state import CampaignState
    from retrasyn.service.runtime import CampaignRuntime

Reports = dict[Question, tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]
"""Bits [n, bytes] and keys [n] by question."""
FALSE_ALARMS = 0.01
"""Probability that the rounds of one gap, all of them honest, raise any alarm."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Closing:
    """Folds and releases the rounds of a running campaign, one after the other."""

    runtime: CampaignRuntime
    stepping: bool = False  # still set after a step: it did not end well
    _ready: dict[int, ReadyRound] = field(default_factory=dict)
    _unwritten: list[tuple[Release, Receipt, Sequence[Release]]] = field(default_factory=list)

    async def fold_due(self, now: float) -> None:
        """Fold every round whose time is over, and step over those that never opened."""
        async with self.runtime.state_lock:
            self._check_whole()
            await self._release()
            await self._fold_ended(now)
            await self._step_over(before=self.runtime.campaign.round_at(now))

    async def fold_rest(self) -> None:
        """Fold every round there is, whatever the clock says: the campaign is over."""
        async with self.runtime.state_lock:
            await self._release()
            await self._fold_ended(float("inf"))

    async def catch_up(self) -> None:
        """Step through the rounds that were folded after the snapshot.

        Releases that are missing since then are written again, with the same bytes.
        """
        await self.runtime.write_queue.run(self._step_again)
        self.runtime.feed.newest = self.runtime.releases.newest

    async def save(self) -> None:
        """Save a snapshot, once everything before it is released."""
        if not self._unwritten and not self.stepping:
            await asyncio.to_thread(self.runtime.snapshots.save, self.runtime.state)
            self.runtime.counters.snapshots_saved += 1

    def _check_whole(self) -> None:
        """Refuse to go on with a state that was left in the middle of a step."""
        if self.stepping:
            raise CheckpointError(
                "the curator did not finish its last step; restart the service, which steps again"
            )

    async def _fold_ended(self, now: float) -> None:
        waiting = self.runtime.calendar.waiting
        for t in sorted(waiting):
            if waiting[t].ends <= now:
                await self._step_over(before=t)
                await self._fold(waiting[t])

    async def _fold(self, row: RoundRow) -> None:
        """Fold a round and release it."""
        begin, t, runtime = time.perf_counter(), row.t, self.runtime
        admission, counters = runtime.admission, runtime.counters
        if t not in self._ready:  # should the store fail, it gets the very same again
            self._ready[t] = await self._add_up(row)
        ready = self._ready[t]
        forget = max(t - admission.marks_kept, 0)
        await runtime.write_queue.run(
            runtime.store.fold,
            ready.row,
            marks=ready.marks,
            forget_before=forget,
            evidence=ready.evidence_row(t, runtime.state.evidence),
        )
        admission.forget_round(t)
        admission.restore_marks(t, ready.marks)  # it may have read an empty round after a failure
        runtime.state.evidence.keep(t, ready.piece)
        del self._ready[t], runtime.calendar.waiting[t]
        self.stepping = True
        release = await asyncio.to_thread(self._step, ready.round)
        self.stepping = False
        await self._release()
        counters.rounds_folded += 1
        if counters.rounds_folded % runtime.settings.limits.snapshot_every == 0:
            await self.save()
        counters.fold_seconds = time.perf_counter() - begin
        _log.info(
            "round folded t=%d reports=%d points=%d seconds=%.3f",
            *(t, release.n_reports, release.n_points, counters.fold_seconds),
        )

    async def _add_up(self, row: RoundRow) -> ReadyRound:
        """Accept no more reports for a round, and compute what remains of it."""
        runtime, counters = self.runtime, self.runtime.counters
        runtime.admission.close_round(row.t)
        await runtime.write_queue.settle()
        accepted, devices = runtime.admission.accepted(row.t), runtime.devices
        round_, n_dropped, found = await asyncio.to_thread(
            fold,
            row,
            accepted,
            runtime.state,
            n_enrolled=devices.n,
            n_ever=devices.n_ever,
        )
        counters.reports_dropped += n_dropped
        counters.reports_folded += sum(
            found.aggregate.n for found in round_.folded.answers.values()
        )
        counters.heartbeats_folded += accepted.keys.size
        counters.alarms += len(round_.alarms)
        runtime.note_inspection(row.t, round_.alarms, found.not_tested)
        if n_dropped or round_.alarms:
            alarms = ",".join(round_.alarms) or "none"
            _log.warning("reports look odd t=%d dropped=%d alarms=%s", row.t, n_dropped, alarms)
        manifest = runtime.campaign.manifest
        folded_row = FoldedRow(
            t=row.t, body=to_bytes(round_, manifest), digest=round_.digest(manifest)
        )
        piece = runtime.state.evidence.joined(row.t, found.evidence)
        return ReadyRound(round=round_, row=folded_row, marks=accepted.marks, piece=piece)

    def _step(self, round_: FoldedRound) -> Release:
        """Let the curator step, and hold its release ready to be written."""
        release = self.runtime.state.step(round_)
        self._hold(release)
        return release

    def _hold(self, release: Release) -> None:
        """Hold a release and its replicas ready to be written, unless they are on the disk."""
        state = self.runtime.state
        if self.runtime.releases.lacks(release.t):
            self._unwritten.append((release, state.receipt(release), state.replicas))

    async def _step_over(self, *, before: int) -> None:
        """Step through the rounds that never opened, up to the one before."""
        begun = self.runtime.state.t
        if begun is None:
            return
        check_silence(before, begun)
        t = begun + 1
        while t < before and t not in self.runtime.calendar.waiting:
            self.stepping = True
            await asyncio.to_thread(self._step_missed, t)
            self.stepping = False
            await self._release()
            t += 1
        if t > begun + 1:
            self.runtime.counters.rounds_missed += t - begun - 1
            _log.warning("rounds never opened first=%d n=%d", begun + 1, t - begun - 1)

    def _step_missed(self, t: int) -> None:
        """Step through one round that never opened; a release of nobody is not written."""
        release = self.runtime.state.step_missed(t)
        if release.n_points:
            self._hold(release)

    def _step_again(self) -> None:
        """Read the folded rounds after the snapshot, step, and write what is missing."""
        state, manifest = self.runtime.state, self.runtime.campaign.manifest
        for row in self.runtime.store.folded(0 if state.t is None else state.t + 1):
            while state.t is not None and state.t + 1 < row.t:
                self._step_missed(state.t + 1)
            self._step(from_bytes(row.body, manifest))
            self._write_all()
            self.runtime.counters.rounds_recovered += 1

    async def _release(self) -> None:
        """Write pending releases, and tell the readers of the feed."""
        if self._unwritten:
            newest = self._unwritten[-1][0].t
            await asyncio.to_thread(self._write_all)
            self.runtime.feed.publish(newest)

    def _write_all(self) -> None:
        """Write releases, oldest first; what cannot be written is tried again later."""
        while self._unwritten:
            self.runtime.releases.write(*self._unwritten[0])
            del self._unwritten[0]
            self.runtime.counters.releases_written += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRound:
    """A round that is added up, as the store and the curator get it."""

    round: FoldedRound
    row: FoldedRow
    marks: bytes
    piece: Piece  # evidence of the round, and of those that share a piece of the pool with it

    def evidence_row(self, t: int, pool: EvidencePool) -> EvidenceRow:
        """Return the evidence as the store keeps it."""
        oldest = t + 2 - pool.gap
        return EvidenceRow(t=pool.first_of(t), body=evidence_bytes(self.piece), oldest=oldest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundInspection:
    """What the inspection of a round's reports found, over all questions."""

    alarms: tuple[str, ...]
    not_tested: tuple[str, ...]
    evidence: Piece


def fold(
    row: RoundRow,
    accepted: AcceptedReports,
    state: CampaignState,
    *,
    n_enrolled: int,
    n_ever: int,
) -> tuple[FoldedRound, int, RoundInspection]:
    """Return what remains of a round, how many reports the ledger refuses, and what looks odd.

    Admission refuses them, too, when they arrive; this is the second check.
    """
    manifest, curator = state.campaign.manifest, state.curator
    heard = RoundHeartbeats(accepted.keys, accepted.kinds)
    flags, changes = None, RoundHeartbeats.nothing()
    if manifest.presence == "flags":
        flags, changes = state.presence.flags(row.t, heard), state.presence.changes(heard)
    size = 0 if manifest.presence == "hidden" else heard.n_here
    if manifest.presence == "flags" and curator.reading.size_target == "active-and-quitting":
        size += heard.n_quitting
    reports, n_dropped = _rested(row, accepted, manifest, curator.state.ledger)
    folded = Folded(
        t=row.t,
        epsilon=row.epsilon,
        size=size,
        n_enrolled=n_enrolled,
        answers=_add_up(reports, manifest, row, state.engines.sums),
        flags=flags,
    )
    found = _look_for_poison(reports, manifest, row, state)
    round_ = FoldedRound(folded=folded, n_ever=n_ever, changes=changes, alarms=found.alarms)
    return round_, n_dropped, found


def _rested(
    row: RoundRow, accepted: AcceptedReports, manifest: Manifest, ledger: Ledger
) -> tuple[Reports, int]:
    """Return the reports that the curator's own ledger allows."""
    reports: Reports = {}
    n_dropped = 0
    for code, (bits, keys) in sorted(accepted.answers.items()):
        question = question_of(code, manifest)
        may = (row.epsilon > 0) & ledger.available(row.t, keys, question.lookback)
        n_dropped += int(np.count_nonzero(~may))
        if may.any():
            reports[question] = np.ascontiguousarray(bits[may]), keys[may].astype(np.int64)
    return reports, n_dropped


def _add_up(
    reports: Reports, manifest: Manifest, row: RoundRow, workers: Workers[Sums] | None
) -> dict[Question, Answers]:
    """Add up the reports on each question."""
    answers: dict[Question, Answers] = {}
    for question, (bits, keys) in reports.items():
        hidden_by = row_for(question, manifest.oracle)
        total = add_up(
            workers,
            bits,
            t=row.t,
            code=question_code(question, manifest),
            oracle=(hidden_by.name, row.epsilon, n_answers(question, manifest)),
        )
        answers[question] = Answers(aggregate=total, keys=keys)
    if workers is not None:
        workers.each(Sums.forget, row.t)
    return answers


def _look_for_poison(
    reports: Reports,
    manifest: Manifest,
    row: RoundRow,
    state: CampaignState,
) -> RoundInspection:
    """Inspect the reports on each question, with the evidence of the rounds before.

    All inspections of a gap share one probability of a false alarm. Of cells no frequencies are
    expected: they need not stay within the drift of a single state, least of all large ones.
    """
    expected = state.curator.state.memory.released
    alarms, not_tested, evidence = list[str](), list[str](), {}
    n_kinds = sum(not Question(about=about).binary for about in manifest.strata)
    for question, (bits, _) in reports.items():
        if not row_for(question, manifest.oracle).poisoning_tests:
            continue
        code = question_code(question, manifest)
        inspection = inspect(
            bits,
            n_answers(question, manifest),
            epsilon=row.epsilon,
            expected=expected if question.about == "transition" else None,
            false_alarms=FALSE_ALARMS / (manifest.gap * n_kinds),
            before=state.evidence.before(row.t, code, row.epsilon),
        )
        alarms += [f"{question.about}/{alarm.test}" for alarm in inspection.alarms]
        not_tested += [f"{question.about}/{line}" for line in inspection.not_tested]
        evidence[code, row.epsilon] = inspection.evidence
    return RoundInspection(alarms=tuple(alarms), not_tested=tuple(not_tested), evidence=evidence)
