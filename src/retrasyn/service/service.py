"""The curator service without a web server: one campaign, its rounds, devices and releases."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import numpy as np

from retrasyn.errors import SettingError
from retrasyn.messages import MICRO
from retrasyn.privacy.receipt import state_guarantee
from retrasyn.service.admission.gate import Admission
from retrasyn.service.aggregation import HERE, Engines
from retrasyn.service.calendar import ServiceClock, SystemClock
from retrasyn.service.campaign import Campaign
from retrasyn.service.counters import Counters
from retrasyn.service.enrolment import EnrolledDevices, NewDevice
from retrasyn.service.opening import keys_in
from retrasyn.service.releases import Feed, Releases
from retrasyn.service.runtime import CampaignRuntime
from retrasyn.service.scheduler import Scheduler, rehearse
from retrasyn.service.secrets import Secrets
from retrasyn.service.settings import Settings
from retrasyn.service.store import CampaignStore, open_store
from retrasyn.service.write_queue import WriteQueue
from retrasyn.wire.layout import DEVICE_BYTES

__all__ = ["NewDevice", "Service"]
_log = logging.getLogger(__name__)


class Service:
    """Everything behind the web server. All methods belong to one event loop.

    `start` sets `campaign`, `store`, `gate`, `ingest`, `rounds`, `releases`, `feed` and `devices`.
    """

    campaign: Campaign
    store: CampaignStore
    gate: Admission
    ingest: WriteQueue
    devices: EnrolledDevices
    rounds: Scheduler
    releases: Releases
    feed: Feed

    def __init__(self, settings: Settings, clock: ServiceClock | None = None) -> None:
        self.settings = settings
        self.clock: ServiceClock = clock or SystemClock()
        self.counters = Counters()
        self.operator_token = ""
        self._vault: Secrets | None = None
        self._machine: CampaignRuntime | None = None
        self._running: asyncio.Task[None] | None = None
        self._engines = HERE

    async def start(self, *, runs: bool = True) -> None:
        """Open the folder and the store, recover, and let the rounds run.

        With `runs=False` nothing happens by itself: `rounds.tick` does what is due.
        """
        folder = self.settings.server.folder
        self._vault = Secrets.open(folder)
        try:
            self.operator_token = self._vault.operator_token(
                self.settings.server.operator_token_file
            )
            before = Campaign.kept(self._vault)
            now = self.clock.now()
            campaign = Campaign.open(self.settings, self._vault, now)
            where = self.settings.server.store
            path = str(folder / "service.sqlite") if where == "sqlite" else where
            self.store = await asyncio.to_thread(open_store, path)
            self._engines = await asyncio.to_thread(Engines.open, self.settings.server)
            if before is not None and before.id != campaign.id:
                await self._finish(before)
            campaign.keep(self._vault)
            self._take(await self._recover(campaign))
            self._check_clock(now)
        except BaseException:
            await self.stop()
            raise
        if runs:
            _log.info("getting ready; the first start of an installation takes some seconds")
            await asyncio.to_thread(rehearse, campaign)
            self._running = asyncio.create_task(self.rounds.run())
        _log.info("campaign opened manifest=%s", campaign.id.hex())

    async def _recover(self, campaign: Campaign) -> CampaignRuntime:
        return await CampaignRuntime.recover(
            campaign,
            self.store,
            folder=self.settings.server.folder,
            limits=self.settings.limits,
            counters=self.counters,
            clock=self.clock,
            engines=self._engines,
        )

    async def _finish(self, campaign: Campaign) -> None:
        """Fold and release what a campaign has taken in before another one replaces it."""
        machine = await self._recover(campaign)
        await machine.rounds.closing.fold_rest()
        await machine.stop()

    def _take(self, machine: CampaignRuntime) -> None:
        self._machine, self.campaign = machine, machine.campaign
        self.gate, self.ingest, self.devices = machine.gate, machine.ingest, machine.devices
        self.rounds, self.releases, self.feed = machine.rounds, machine.releases, machine.feed

    def _check_clock(self, now: float) -> None:
        """Refuse a clock that shows a time before rounds that were opened."""
        newest = self.rounds.calendar.newest
        if newest is not None and now < self.campaign.opening_of(newest):
            early = self.campaign.opening_of(newest) - now
            raise SettingError(
                f"the clock is {early:.0f} s before the opening of round {newest}, which was "
                "opened already; set the clock"
            )

    async def stop(self) -> None:
        """Stop asking, save a snapshot, close the store and leave the folder."""
        machine, self._machine = self._machine, None
        if self._running is not None and machine is not None:
            await machine.halt(self._running)
            self._running = None
        try:
            if machine is not None:
                await machine.stop()
            if hasattr(self, "store"):
                await asyncio.to_thread(self.store.close)
        finally:
            engines, self._engines = self._engines, HERE
            await asyncio.to_thread(engines.close)
            if self._vault is not None:
                self._vault.close()
                self._vault = None

    @property
    def ready(self) -> bool:
        """Whether reports can be taken."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why the service is not ready, in words for anybody; empty if it is."""
        if self._machine is None:
            return "the service is not running"
        if not self.ingest.healthy:
            return "reports cannot be written"
        if self.rounds.troubles:
            return f"the service cannot {' or '.join(sorted(self.rounds.troubles))} rounds"
        return ""

    # Rounds

    def current_round(self) -> bytes | None:
        """Return the signed round that is open, if one is."""
        row = self.rounds.calendar.current(self.clock.now())
        return None if row is None else row.envelope

    def seconds_to_next_round(self) -> float:
        """Return how long it is until a round opens, for Retry-After."""
        now = self.clock.now()
        return max(self.rounds.calendar.next_opening(now) - now, 0.0)

    def round_envelope(self, t: int) -> bytes | None:
        """Return one of the latest signed rounds."""
        row = self.rounds.calendar.row(t)
        return None if row is None else row.envelope

    def asked(self, t: int, ids: bytes) -> bytes:
        """Return one byte per device id, 16 bytes each: 1 if round t is meant for it."""
        row = self.rounds.calendar.row(t)
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

    # Devices

    async def mint(self, n: int) -> list[str]:
        """Make single-use enrolment tokens."""
        return await self.devices.mint(n)

    async def enrol(self, tokens: list[str]) -> list[NewDevice]:
        """Use tokens up, one device each; all of them or none (`UnknownToken`)."""
        return await self.devices.enrol(tokens)

    async def leave(self, device: bytes, tag: bytes) -> bool:
        """Forget a device that asks for it with its own tag; False if the tag is wrong."""
        return await self.devices.leave(device, tag)

    async def revoke(self, device: bytes) -> bool:
        """Forget a device; False if there is none of that id."""
        return await self.devices.revoke(device)

    # Status

    def status(self) -> dict[str, Any]:
        """Return what anybody may know."""
        manifest, now = self.campaign.manifest, self.clock.now()
        row = self.rounds.calendar.current(now)
        newest = self.releases.newest
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
            "box": list(self.campaign.grid.box),
            "grid": manifest.side,
            "round": None if row is None else row.t,
            "next_round_in": self.seconds_to_next_round(),
            "n_reports": self.rounds.closing.account.recorded.curator.state.n_reports,
            "n_releases": len(self.releases.timestamps),
            "oldest_release": self.releases.oldest,
            "newest_release": newest,
            "ready": self.ready,
            "reason": self.reason,
        }

    def operator_status(self) -> dict[str, Any]:
        """Return what the operator may know besides."""
        return {
            **self.status(),
            "n_enrolled": self.devices.n,
            "n_ever_enrolled": self.devices.n_ever,
            "n_waiting_rounds": len(self.rounds.calendar.waiting),
            "n_waiting_frames": self.ingest.n_waiting,
            "troubles": dict(self.rounds.troubles),
            "counters": self.counters.to_dict(),
        }
