"""Rounds end: reports become sums and are dropped, the curator steps, the release is written."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.engines.base import Workers
from retrasyn.errors import CheckpointError
from retrasyn.messages import Manifest, Question, Release
from retrasyn.oracles.registry import row_for
from retrasyn.poisoning import inspect
from retrasyn.privacy.ledger import Ledger
from retrasyn.privacy.receipt import Receipt
from retrasyn.service.admission.gate import Admission
from retrasyn.service.admission.open_rounds import AcceptedReports
from retrasyn.service.aggregation import Sums, add_up
from retrasyn.service.calendar import Calendar
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import CampaignState, Snapshots
from retrasyn.service.counters import Counters
from retrasyn.service.enrolment import EnrolledDevices, RoundHeartbeats
from retrasyn.service.folded_round import FoldedRound, to_bytes
from retrasyn.service.opening import check_silence
from retrasyn.service.releases import Feed, Releases
from retrasyn.service.store import CampaignStore, FoldedRow, RoundRow
from retrasyn.service.write_queue import WriteQueue
from retrasyn.simulation.rounds import Answers, Folded
from retrasyn.wire.frames import n_answers, question_code, question_of

Reports = dict[Question, tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]
"""Bits [n, bytes] and keys [n] by question."""


def fold(
    row: RoundRow, taken: AcceptedReports, account: CampaignState, *, n_enrolled: int, n_ever: int
) -> tuple[FoldedRound, int]:
    """Return what remains of a round, and how many reports the curator's ledger refuses.

    The gate refuses them, too, when they come; this is the second look.
    """
    manifest, curator = account.campaign.manifest, account.recorded.curator
    heard, flags, changes = (
        RoundHeartbeats(taken.keys, taken.kinds),
        None,
        RoundHeartbeats.nothing(),
    )
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


def _rested(
    row: RoundRow, taken: AcceptedReports, manifest: Manifest, ledger: Ledger
) -> tuple[Reports, int]:
    """Return the reports of those who may report by the curator's own ledger."""
    reports: Reports = {}
    n_dropped = 0
    for code, (bits, keys) in sorted(taken.answers.items()):
        question = question_of(code, manifest.ages)
        may = (row.epsilon > 0) & ledger.available(row.t, keys, question.lookback)
        n_dropped += int(np.count_nonzero(~may))
        if may.any():
            reports[question] = np.ascontiguousarray(bits[may]), keys[may].astype(np.int64)
    return reports, n_dropped


def _add_up(
    reports: Reports, manifest: Manifest, row: RoundRow, workers: Workers[Sums] | None
) -> dict[Question, Answers]:
    """Add the reports on each question up."""
    answers: dict[Question, Answers] = {}
    for question, (bits, keys) in reports.items():
        hidden_by = row_for(question, manifest.oracle)
        total = add_up(
            workers,
            bits,
            t=row.t,
            code=question_code(question, manifest.ages),
            oracle=(hidden_by.name, row.epsilon, n_answers(question, manifest)),
        )
        answers[question] = Answers(aggregate=total, keys=keys)
    if workers is not None:
        workers.each(Sums.forget, row.t)
    return answers


def _look_for_poison(
    reports: Reports,
    manifest: Manifest,
    epsilon: int,
    expected: npt.NDArray[np.float64] | None,
) -> tuple[str, ...]:
    """Name the tests that honest reports would hardly have failed, where there are any."""
    found: list[str] = []
    for question, (bits, _) in reports.items():
        if not row_for(question, manifest.oracle).poisoning_tests:
            continue
        n = n_answers(question, manifest)
        plausible = expected if question.about == "transition" else None
        inspection = inspect(bits, n, epsilon=epsilon, expected=plausible)
        found += [f"{question.about}/{alarm.test}" for alarm in inspection.alarms]
    return tuple(found)


_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Closing:
    """Folds and releases, one round after the other."""

    campaign: Campaign
    calendar: Calendar
    account: CampaignState
    store: CampaignStore
    gate: Admission
    ingest: WriteQueue
    devices: EnrolledDevices
    releases: Releases
    snapshots: Snapshots
    feed: Feed
    counters: Counters
    lock: asyncio.Lock  # of the account
    snapshot_every: int
    stepping: bool = False  # still set after a step: it did not end well
    _ready: dict[int, tuple[FoldedRound, FoldedRow, bytes]] = field(default_factory=dict)
    _unwritten: list[tuple[Release, Receipt]] = field(default_factory=list)

    async def fold_due(self, now: float) -> None:
        """Fold every round whose time is over, and step over those that never opened."""
        async with self.lock:
            self._check_whole()
            await self._release()
            await self._fold_ended(now)
            await self._step_over(before=self.campaign.round_at(now))

    async def fold_rest(self) -> None:
        """Fold every round there is, whatever the clock says: the campaign is over."""
        async with self.lock:
            await self._release()
            await self._fold_ended(float("inf"))

    def _check_whole(self) -> None:
        """Refuse to go on with an account that was left in the middle of a step."""
        if self.stepping:
            raise CheckpointError(
                "the curator did not finish its last step; restart the service, which steps again"
            )

    async def _fold_ended(self, now: float) -> None:
        for t in sorted(self.calendar.waiting):
            if self.calendar.waiting[t].ends <= now:
                await self._step_over(before=t)
                await self._fold(self.calendar.waiting[t])

    async def _fold(self, row: RoundRow) -> None:
        """Fold a round and release it."""
        begin, t = time.perf_counter(), row.t
        if t not in self._ready:  # should the store fail, it gets the very same again
            self._ready[t] = await self._add_up(row)
        round_, kept, marks = self._ready[t]
        forget = max(t - self.gate.marks_kept, 0)
        await self.ingest.run(self.store.fold, kept, marks=marks, forget_before=forget)
        self.gate.forget_round(t)
        self.gate.restore_marks(t, marks)  # should it have read an empty round after a failure
        del self._ready[t], self.calendar.waiting[t]
        self.stepping = True
        release = await asyncio.to_thread(self._step, round_)
        self.stepping = False
        await self._release()
        self.counters.rounds_folded += 1
        if self.counters.rounds_folded % self.snapshot_every == 0:
            await self.save()
        self.counters.fold_seconds = time.perf_counter() - begin
        _log.info(
            "round folded t=%d reports=%d points=%d seconds=%.3f",
            *(t, release.n_reports, release.n_points, self.counters.fold_seconds),
        )

    async def _add_up(self, row: RoundRow) -> tuple[FoldedRound, FoldedRow, bytes]:
        """Take no more reports for a round, and compute what remains of it."""
        self.gate.close_round(row.t)
        await self.ingest.settle()
        taken, n_enrolled, n_ever = self.gate.taken(row.t), self.devices.n, self.devices.n_ever
        round_, n_dropped = await asyncio.to_thread(
            fold, row, taken, self.account, n_enrolled=n_enrolled, n_ever=n_ever
        )
        manifest = self.campaign.manifest
        self.counters.reports_dropped += n_dropped
        self.counters.reports_folded += sum(
            found.aggregate.n for found in round_.folded.answers.values()
        )
        self.counters.heartbeats_folded += taken.keys.size
        self.counters.alarms += len(round_.alarms)
        if n_dropped or round_.alarms:
            alarms = ",".join(round_.alarms) or "none"
            _log.warning("reports look odd t=%d dropped=%d alarms=%s", row.t, n_dropped, alarms)
        kept = FoldedRow(
            t=row.t,
            body=to_bytes(round_, manifest),
            digest=round_.digest(manifest.ages),
        )
        return round_, kept, taken.marks

    def _step(self, round_: FoldedRound) -> Release:
        """Let the curator step, and hold its release ready to be written."""
        release = self.account.step(round_)
        if not self.releases.path(release.t).exists():
            self._unwritten.append((release, self.account.receipt(release)))
        return release

    async def _step_over(self, *, before: int) -> None:
        """Step through the rounds that never opened, up to the one before."""
        begun = self.account.t
        if begun is None:
            return
        check_silence(before, begun)
        t = begun + 1
        while t < before and t not in self.calendar.waiting:
            self.stepping = True
            await asyncio.to_thread(self.step_over, t)
            self.stepping = False
            await self._release()
            t += 1
        if t > begun + 1:
            self.counters.rounds_missed += t - begun - 1
            _log.warning("rounds never opened first=%d n=%d", begun + 1, t - begun - 1)

    def step_over(self, t: int) -> None:
        """Step through one round that never opened; a release of nobody is not written."""
        release = self.account.step_missed(t)
        if release.n_points and not self.releases.path(t).exists():
            self._unwritten.append((release, self.account.receipt(release)))

    def step_again(self, round_: FoldedRound) -> None:
        """Step through a round that was folded before a restart; write what is missing."""
        while self.account.t is not None and self.account.t + 1 < round_.folded.t:
            self.step_over(self.account.t + 1)
        self._step(round_)
        self.write_all()
        self.counters.rounds_recovered += 1

    async def _release(self) -> None:
        """Write what is to be released, and tell those who wait for it."""
        if self._unwritten:
            newest = self._unwritten[-1][0].t
            await asyncio.to_thread(self.write_all)
            self.feed.publish(newest)

    def write_all(self) -> None:
        """Write releases, oldest first; what cannot be written is tried again later."""
        while self._unwritten:
            self.releases.write(*self._unwritten[0])
            del self._unwritten[0]
            self.counters.releases_written += 1

    async def save(self) -> None:
        """Save a snapshot, once everything before it is released."""
        if not self._unwritten and not self.stepping:
            await asyncio.to_thread(self.snapshots.save, self.account)
            self.counters.snapshots_saved += 1
