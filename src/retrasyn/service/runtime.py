"""All parts of one running campaign, set up from what its store and its snapshots hold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from retrasyn.service.admission.gate import Admission
from retrasyn.service.aggregation import HERE, Engines
from retrasyn.service.calendar import Calendar, ServiceClock
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import Snapshots
from retrasyn.service.closing import Closing
from retrasyn.service.counters import Counters
from retrasyn.service.enrolment import EnrolledDevices
from retrasyn.service.folded_round import from_bytes
from retrasyn.service.opening import Opening
from retrasyn.service.releases import Feed, Releases
from retrasyn.service.scheduler import Scheduler
from retrasyn.service.settings import LimitSettings
from retrasyn.service.store import CampaignStore
from retrasyn.service.write_queue import WriteQueue

PATIENCE = 10.0
"""Seconds to wait for a fold to end."""
_LATEST = 1000  # rounds that are told again


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRuntime:
    """A campaign and everything that moves it."""

    campaign: Campaign
    gate: Admission
    ingest: WriteQueue
    devices: EnrolledDevices
    calendar: Calendar
    releases: Releases
    feed: Feed
    rounds: Scheduler

    @classmethod
    async def recover(
        cls,
        campaign: Campaign,
        store: CampaignStore,
        *,
        folder: Path,
        limits: LimitSettings,
        counters: Counters,
        clock: ServiceClock,
        engines: Engines = HERE,
    ) -> CampaignRuntime:
        """Set a campaign up where it was left: the newest snapshot, and the rounds since.

        Releases that are missing after the snapshot are written again, with the same bytes.
        """
        gate = Admission(campaign.manifest, campaign.id)
        ingest = WriteQueue(gate, store, clock=clock.now, queue_frames=limits.queue_frames)
        try:
            return await cls._recover(
                campaign, store, gate, ingest, folder, limits, counters, clock, engines
            )
        except BaseException:
            await ingest.close()
            raise

    @classmethod
    async def _recover(
        cls,
        campaign: Campaign,
        store: CampaignStore,
        gate: Admission,
        ingest: WriteQueue,
        folder: Path,
        limits: LimitSettings,
        counters: Counters,
        clock: ServiceClock,
        engines: Engines,
    ) -> CampaignRuntime:
        await ingest.run(store.enter, campaign.id)
        devices = await _devices(campaign, store, gate, ingest, counters)
        calendar, until = await _calendar(campaign, store, ingest, clock.now())
        snapshots = Snapshots.open(folder / "snapshots" / campaign.id.hex())
        account = await asyncio.to_thread(snapshots.load, campaign, until=until, engines=engines)
        releases = Releases.open(folder / "releases" / campaign.id.hex(), campaign)
        feed, lock = Feed(releases.after), asyncio.Lock()
        closing = Closing(
            campaign=campaign,
            calendar=calendar,
            account=account,
            store=store,
            gate=gate,
            ingest=ingest,
            devices=devices,
            releases=releases,
            snapshots=snapshots,
            feed=feed,
            counters=counters,
            lock=lock,
            snapshot_every=limits.snapshot_every,
        )
        opening = Opening(
            campaign=campaign,
            calendar=calendar,
            account=account,
            store=store,
            gate=gate,
            ingest=ingest,
            devices=devices,
            counters=counters,
            clock=clock,
            lock=lock,
        )
        await ingest.run(_step_again, store, closing)
        await _refill(gate, store, ingest, calendar)
        feed.newest = releases.newest
        rounds = Scheduler(
            calendar=calendar, opening=opening, closing=closing, counters=counters, clock=clock
        )
        return cls(
            campaign=campaign,
            gate=gate,
            ingest=ingest,
            devices=devices,
            calendar=calendar,
            releases=releases,
            feed=feed,
            rounds=rounds,
        )

    async def halt(self, running: asyncio.Task[None]) -> None:
        """End the clockwork, between two steps of the curator unless that takes too long."""
        lock = self.rounds.closing.lock
        try:
            await asyncio.wait_for(lock.acquire(), PATIENCE)
        except TimeoutError:  # the store fails, and folding waits for it
            running.cancel()
        else:
            running.cancel()
            lock.release()
        await asyncio.gather(running, return_exceptions=True)

    async def stop(self) -> None:
        """Finish what was taken in, save a snapshot and let the readers go."""
        self.feed.close()
        await self.ingest.close()
        await self.rounds.closing.save()


async def _devices(
    campaign: Campaign,
    store: CampaignStore,
    gate: Admission,
    ingest: WriteQueue,
    counters: Counters,
) -> EnrolledDevices:
    """Let everybody in who is enrolled."""
    devices = EnrolledDevices(campaign.id, store, gate, ingest, counters)
    devices.n_ever = await ingest.run(store.n_ever_enrolled)
    for row in await ingest.run(lambda: list(store.devices())):
        devices.add(row)
    return devices


async def _calendar(
    campaign: Campaign, store: CampaignStore, ingest: WriteQueue, now: float
) -> tuple[Calendar, int]:
    """Return the latest rounds, and the timestamp of the last one that was folded."""
    calendar = Calendar(campaign)
    waiting = set(await ingest.run(store.unfolded))
    first = max(min([campaign.round_at(now) - _LATEST, *waiting]), 0)
    rows = await ingest.run(store.rounds, first)
    if first and not any(row.t not in waiting for row in rows):  # it was down for long
        rows = await ingest.run(store.rounds, 0)
    for row in rows:
        calendar.add(row, waits=row.t in waiting)
    return calendar, max((row.t for row in rows if row.t not in waiting), default=-1)


def _step_again(store: CampaignStore, closing: Closing) -> None:
    """Step through the rounds that were folded after the snapshot."""
    account, manifest = closing.account, closing.campaign.manifest
    for row in store.folded(0 if account.t is None else account.t + 1):
        closing.step_again(from_bytes(row.body, manifest))


async def _refill(
    gate: Admission, store: CampaignStore, ingest: WriteQueue, calendar: Calendar
) -> None:
    """Tell the gate who reported lately, and what open rounds have taken in."""
    first = max((calendar.newest or 0) - gate.marks_kept, 0)
    for t, marks in await ingest.run(lambda: list(store.marks(first))):
        gate.restore_marks(t, marks)
    for t in sorted(calendar.waiting):
        gate.open_round(calendar.waiting[t])
        gate.restore(t, await ingest.run(store.frames, t))
