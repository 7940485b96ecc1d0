"""One running campaign: the parts that opening, closing and the web routes share."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrasyn.messages import MICRO
from retrasyn.poisoning.evidence import from_bytes
from retrasyn.privacy.receipt import state_guarantee
from retrasyn.service.admission.admission import Admission
from retrasyn.service.aggregation import HERE, Engines
from retrasyn.service.alerts.alerting import Alerting
from retrasyn.service.calendar import Calendar, ServiceClock
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import CampaignState, Snapshots
from retrasyn.service.enrolment import EnrolledDevices
from retrasyn.service.folded_round import from_bytes as read_folded
from retrasyn.service.releases import Releases
from retrasyn.service.settings import Settings
from retrasyn.service.store import CampaignStore
from retrasyn.service.store.base import keys_in
from retrasyn.service.viewing.source import Feed
from retrasyn.service.write_queue import WriteQueue
from retrasyn.wire.layout import DEVICE_BYTES

_LATEST = 1000  # rounds that can be asked for again


@dataclass(slots=True)
class Counters:
    """Totals since the process started; nothing here tells one device from another."""

    rounds_opened: int = 0
    rounds_folded: int = 0
    rounds_missed: int = 0  # that never opened, because the service was not running
    rounds_recovered: int = 0  # stepped through again after a restart
    reports_folded: int = 0
    reports_dropped: int = 0  # that the curator's own ledger refused when they were folded
    heartbeats_folded: int = 0
    alarms: int = 0  # poisoning tests that raised an alarm
    releases_written: int = 0
    snapshots_saved: int = 0
    devices_enrolled: int = 0
    devices_removed: int = 0
    alerts_raised: int = 0  # zones that were unusual
    alerts_sent: int = 0
    alerts_failed: int = 0  # tries to send one
    alerts_dropped: int = 0  # too old, or too many waited
    failures: int = 0  # of opening, folding or releasing, each tried again
    fold_seconds: float = 0.0  # that the last fold took, release included

    def to_dict(self) -> dict[str, float]:
        """Return all totals by name."""
        return dataclasses.asdict(self)


@dataclass(slots=True, kw_only=True)
class CampaignRuntime:
    """A campaign with its store, its devices, its open rounds and its releases."""

    settings: Settings
    campaign: Campaign
    clock: ServiceClock
    counters: Counters
    store: CampaignStore
    admission: Admission
    write_queue: WriteQueue
    devices: EnrolledDevices
    calendar: Calendar
    state: CampaignState
    snapshots: Snapshots
    releases: Releases
    feed: Feed
    alarms: dict[int, tuple[str, ...]]  # of the rounds of the last gap that raised any
    not_tested: tuple[str, ...] = ()  # by the last inspection
    state_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # one step or decision at a time
    alerting: Alerting | None = None
    troubles: dict[str, str] = field(default_factory=dict)  # what fails at the moment, and why
    stopped: bool = False

    @classmethod
    async def open(
        cls,
        campaign: Campaign,
        store: CampaignStore,
        *,
        settings: Settings,
        clock: ServiceClock,
        counters: Counters,
        engines: Engines = HERE,
    ) -> CampaignRuntime:
        """Load a campaign from its store and its newest snapshot.

        The rounds folded since that snapshot are still to be stepped through:
        `Closing.catch_up` does that.
        """
        admission = Admission(campaign.manifest, campaign.id)
        limit = settings.limits.queue_frames
        write_queue = WriteQueue(admission, store, clock=clock.now, queue_frames=limit)
        folder, name = settings.server.folder, campaign.id.hex()
        try:
            await write_queue.run(store.enter, campaign.id)
            devices = EnrolledDevices(campaign.id, store, admission, write_queue, counters)
            await devices.load()
            calendar, until = await _load_calendar(campaign, store, write_queue, clock.now())
            await _refill(admission, store, write_queue, calendar)
            snapshots = Snapshots.open(folder / "snapshots" / name)
            state = await asyncio.to_thread(snapshots.load, campaign, until=until, engines=engines)
            releases = Releases.open(folder / "releases" / name, campaign)
            for t, body in await write_queue.run(lambda: list(store.evidence())):
                state.evidence.pieces[t] = from_bytes(body)
            alarms = await write_queue.run(_latest_alarms, campaign, store, until)
        except BaseException:
            await write_queue.close()
            raise
        return cls(
            settings=settings,
            campaign=campaign,
            clock=clock,
            counters=counters,
            store=store,
            admission=admission,
            write_queue=write_queue,
            devices=devices,
            calendar=calendar,
            state=state,
            snapshots=snapshots,
            releases=releases,
            feed=Feed(releases.after),
            alarms=alarms,
        )

    @property
    def ready(self) -> bool:
        """Whether reports are accepted and rounds go on."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why the service is not ready, in words for anybody; empty if it is."""
        if self.stopped:
            return "the service is not running"
        if not self.write_queue.healthy:
            return "reports cannot be written"
        if self.troubles:
            return f"the service cannot {' or '.join(sorted(self.troubles))} rounds"
        return ""

    def current_round(self) -> bytes | None:
        """Return the signed round that is open; None if there is none."""
        row = self.calendar.current(self.clock.now())
        return None if row is None else row.envelope

    def seconds_to_next_round(self) -> float:
        """Return how long it is until a round opens, for Retry-After."""
        now = self.clock.now()
        return max(self.calendar.next_opening(now) - now, 0.0)

    def n_reports_in(self, t: int) -> int:
        """Return how many reports a release was made of."""
        summary = self.releases.summary(t)
        return 0 if summary is None else int(summary["n_reports"])

    def asked(self, t: int, ids: bytes) -> bytes:
        """Return one byte per device id, 16 bytes each: 1 if round t is meant for it."""
        row = self.calendar.row(t)
        n = len(ids) // DEVICE_BYTES
        keys = [
            self.devices.key_of(ids[place * DEVICE_BYTES : (place + 1) * DEVICE_BYTES])
            for place in range(n)
        ]
        known = np.array([-1 if key is None else key for key in keys], np.int64)
        meant = known >= 0
        if row is None or not row.portion:
            meant[:] = False
        elif row.drawn is not None:
            meant &= np.isin(known, keys_in(row.drawn))
        return bytes(meant.astype(np.uint8))

    def status(self) -> dict[str, Any]:
        """Return what /v1/status tells everybody."""
        manifest = self.campaign.manifest
        row = self.calendar.current(self.clock.now())
        return {
            "campaign": manifest.name,
            "manifest": self.campaign.id.hex(),
            "method": self.campaign.run_settings.method.name,
            "guarantee": state_guarantee(
                private=True,
                epsilon=manifest.epsilon / MICRO,
                window=manifest.window,
                unit=manifest.unit,
                ledger="user",
                presence=manifest.presence,
            ),
            "epsilon": manifest.epsilon / MICRO,
            "window": manifest.window,
            "unit": manifest.unit,
            "presence": manifest.presence,
            "period": manifest.period,
            "epoch": manifest.epoch,
            "box": list(self.releases.grid.box),
            "grid": manifest.side,
            "round": None if row is None else row.t,
            "next_round_in": self.seconds_to_next_round(),
            "n_reports": self.state.n_reports,
            "n_releases": len(self.releases.timestamps),
            "oldest_release": self.releases.oldest,
            "newest_release": self.releases.newest,
            "ready": self.ready,
            "reason": self.reason,
        }

    def note_inspection(self, t: int, alarms: tuple[str, ...], not_tested: tuple[str, ...]) -> None:
        """Remember for the operator what the inspection of a round found, for one gap."""
        self.not_tested = not_tested
        if alarms:
            self.alarms[t] = alarms
        gap = self.campaign.manifest.gap
        self.alarms = {then: found for then, found in self.alarms.items() if then > t - gap}

    def operator_status(self) -> dict[str, Any]:
        """Return what /v1/operator/status tells the operator besides."""
        return {
            **self.status(),
            "n_enrolled": self.devices.n,
            "n_ever_enrolled": self.devices.n_ever,
            "n_waiting_rounds": len(self.calendar.waiting),
            "n_waiting_frames": self.write_queue.n_waiting,
            "n_waiting_reports": self.state.curator.state.n_waiting,
            "alarms": {str(t): list(names) for t, names in sorted(self.alarms.items())},
            "not_tested": list(self.not_tested),
            "alerts": None if self.alerting is None else self.alerting.status,
            "troubles": dict(self.troubles),
            "counters": self.counters.to_dict(),
        }


async def _load_calendar(
    campaign: Campaign, store: CampaignStore, write_queue: WriteQueue, now: float
) -> tuple[Calendar, int]:
    """Return the latest rounds, and the timestamp of the last one that was folded."""
    calendar = Calendar(campaign)
    waiting = set(await write_queue.run(store.unfolded))
    first = max(min([campaign.round_at(now) - _LATEST, *waiting]), 0)
    rows = await write_queue.run(store.rounds, first)
    if first and not any(row.t not in waiting for row in rows):  # it was down for long
        rows = await write_queue.run(store.rounds, 0)
    for row in rows:
        calendar.add(row, waits=row.t in waiting)
    return calendar, max((row.t for row in rows if row.t not in waiting), default=-1)


def _latest_alarms(
    campaign: Campaign, store: CampaignStore, until: int
) -> dict[int, tuple[str, ...]]:
    """Return the alarms of the rounds of the last gap, by timestamp."""
    manifest = campaign.manifest
    rows = store.folded(max(until + 1 - manifest.gap, 0))
    found = {row.t: read_folded(row.body, manifest).alarms for row in rows}
    return {t: alarms for t, alarms in found.items() if alarms}


async def _refill(
    admission: Admission, store: CampaignStore, write_queue: WriteQueue, calendar: Calendar
) -> None:
    """Tell admission who reported lately, and what open rounds have accepted."""
    first = max((calendar.newest or 0) - admission.marks_kept, 0)
    for t, marks in await write_queue.run(lambda: list(store.marks(first))):
        admission.restore_marks(t, marks)
    for t in sorted(calendar.waiting):
        admission.open_round(calendar.waiting[t])
        admission.restore(t, await write_queue.run(store.frames, t))
