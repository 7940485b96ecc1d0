"""All parts of one running campaign, set up from what its store and its snapshots hold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from retrasyn.service.calendar import Calendar
from retrasyn.service.campaign import Campaign
from retrasyn.service.clock import Clock
from retrasyn.service.closing import Closing
from retrasyn.service.counters import Counters
from retrasyn.service.devices import Devices
from retrasyn.service.feed import Feed
from retrasyn.service.folded import from_bytes
from retrasyn.service.gate import Gate
from retrasyn.service.ingest import Ingest
from retrasyn.service.opening import Opening
from retrasyn.service.releases import Releases
from retrasyn.service.rounds import Rounds
from retrasyn.service.settings import LimitSettings
from retrasyn.service.snapshots import Snapshots
from retrasyn.service.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A campaign and everything that moves it."""

    campaign: Campaign
    gate: Gate
    ingest: Ingest
    devices: Devices
    calendar: Calendar
    releases: Releases
    feed: Feed
    rounds: Rounds

    @classmethod
    async def recover(
        cls,
        campaign: Campaign,
        store: Store,
        *,
        folder: Path,
        limits: LimitSettings,
        counters: Counters,
        clock: Clock,
    ) -> Machine:
        """Set a campaign up where it was left: the newest snapshot, and the rounds since.

        Releases that are missing after the snapshot are written again, with the same bytes.
        """
        gate = Gate(campaign.manifest, campaign.id)
        ingest = Ingest(gate, store, clock=clock.now, queue_frames=limits.queue_frames)
        await ingest.run(store.enter, campaign.id)
        devices = Devices(campaign.id, store, gate, ingest, counters)
        devices.n_ever = await ingest.run(store.n_ever_enrolled)
        for device in await ingest.run(lambda: list(store.devices())):
            devices.add(device)
        calendar = Calendar(campaign)
        waiting = set(await ingest.run(store.unfolded))
        rows = await ingest.run(store.rounds)
        for row in rows:
            calendar.add(row, waits=row.t in waiting)
        snapshots = Snapshots.open(folder / "snapshots" / campaign.id.hex())
        until = max((row.t for row in rows if row.t not in waiting), default=-1)
        account = await asyncio.to_thread(snapshots.load, campaign, until=until)
        releases = Releases.open(folder / "releases" / campaign.id.hex(), campaign)
        feed = Feed(releases.after)
        lock = asyncio.Lock()
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
            lock=lock,
        )
        first = 0 if account.t is None else account.t + 1

        def step_again() -> None:
            for row in store.folded(first):
                closing.step_again(from_bytes(row.body, campaign.manifest))

        await ingest.run(step_again)
        marks_from = max((calendar.newest or 0) - gate.marks_kept, 0)
        for t, marks in await ingest.run(lambda: list(store.marks(marks_from))):
            gate.restore_marks(t, marks)
        for t in sorted(waiting):
            gate.open_round(calendar.waiting[t])
            gate.restore(t, await ingest.run(store.frames, t))
        feed.newest = releases.newest
        return cls(
            campaign=campaign,
            gate=gate,
            ingest=ingest,
            devices=devices,
            calendar=calendar,
            releases=releases,
            feed=feed,
            rounds=Rounds(
                calendar=calendar,
                opening=opening,
                closing=closing,
                counters=counters,
                clock=clock,
            ),
        )

    async def stop(self) -> None:
        """Finish what was taken in, save a snapshot and let the readers go."""
        self.feed.close()
        await self.ingest.close()
        await self.rounds.closing.save()
