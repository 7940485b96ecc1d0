"""The curator service without a web server: opens one campaign, and closes it again."""

from __future__ import annotations

import asyncio
import logging

from retrasyn.client.webhook import Webhook
from retrasyn.errors import SettingError
from retrasyn.service.aggregation import HERE, Engines
from retrasyn.service.alerts.alerting import Alerting
from retrasyn.service.calendar import ServiceClock, SystemClock
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_folder import CampaignFile, Chosen, choose, store_of
from retrasyn.service.runtime import CampaignRuntime, Counters
from retrasyn.service.scheduler import Scheduler, rehearse
from retrasyn.service.secrets import Secrets
from retrasyn.service.settings import Settings
from retrasyn.service.store import CampaignStore, open_store

_log = logging.getLogger(__name__)


class Service:
    """Owns the folder, the store and the engines, and runs the campaign of the folder.

    Settings that differ from it are refused unless a new campaign is asked for. All methods belong
    to one event loop. From `start` on there are a `scheduler` and a `runtime`; they can still be
    read after `stop`, and so can `beginning`, which says what the start was.
    """

    def __init__(
        self, settings: Settings, clock: ServiceClock | None = None, *, new_campaign: bool = False
    ) -> None:
        self.settings, self.new_campaign = settings, new_campaign
        self.beginning = ""
        self.clock: ServiceClock = clock or SystemClock()
        self.counters = Counters()
        self.operator_token = ""
        self._secrets: Secrets | None = None
        self._store: CampaignStore | None = None
        self._scheduler: Scheduler | None = None
        self._engines = HERE

    @property
    def scheduler(self) -> Scheduler:
        """What opens and closes the rounds."""
        if self._scheduler is None:
            raise AssertionError("the service was not started")
        return self._scheduler

    @property
    def runtime(self) -> CampaignRuntime:
        """The running campaign."""
        return self.scheduler.runtime

    async def start(self, *, runs: bool = True) -> None:
        """Open the folder and the store, recover, and let the rounds run.

        With `runs=False` nothing happens by itself: `scheduler.tick` does what is due.
        """
        server, now = self.settings.server, self.clock.now()
        self._secrets = secrets = Secrets.open(server.folder)
        try:
            self.operator_token = secrets.operator_token(server.operator_token_file)
            secrets.forget_old_keys(now)
            self._store = store = await asyncio.to_thread(self._open_store)
            known = await asyncio.to_thread(store.campaigns)
            chosen = choose(
                self.settings, secrets, now, known=known, new_campaign=self.new_campaign
            )
            if not chosen.file.begun:  # a kill from here on leaves no folder without settings
                chosen.file.write(server.folder, begun=False)
            self._engines = await asyncio.to_thread(Engines.open, server)
            if chosen.before is not None:
                await self._finish(chosen.before, store)
            await asyncio.to_thread(store.enter, chosen.campaign.id)
            chosen.file.write(server.folder, begun=True)
            self._scheduler = await self._recover(chosen.campaign, store)
            if (webhook := self.settings.alerts.webhook) is not None:
                secret = secrets.webhook_secret(self.settings.alerts.secret_file)
                self.runtime.alerting = Alerting.open(self.runtime, Webhook(webhook, secret))
            self.beginning = self._describe(chosen, now)
            _check_clock(self.runtime, now)
        except BaseException:
            await self.stop()
            raise
        if runs:
            _log.info("getting ready; the first start of an installation takes some seconds")
            await asyncio.to_thread(rehearse, chosen.campaign)
            self.scheduler.start()
        level = logging.INFO if chosen.how in ("first", "same") else logging.WARNING
        _log.log(level, "campaign opened manifest=%s how=%s", chosen.campaign.id.hex(), chosen.how)

    async def stop(self) -> None:
        """Stop asking, save a snapshot, close the store and leave the folder."""
        try:
            if self._scheduler is not None:
                await self._scheduler.stop()
            if self._store is not None:
                await asyncio.to_thread(self._store.close)
                self._store = None
        finally:
            engines, self._engines = self._engines, HERE
            await asyncio.to_thread(engines.close)
            if self._secrets is not None:
                self._secrets.close()
                self._secrets = None

    def _open_store(self) -> CampaignStore:
        """Open the database of the folder; only a campaign that begins may make one."""
        folder = self.settings.server.folder
        file = CampaignFile.read(folder)
        place = store_of(self.settings, file)
        make = file is None or not file.begun or self.new_campaign
        return open_store(folder / "service.sqlite" if place == "sqlite" else place, make=make)

    def _describe(self, chosen: Chosen, now: float) -> str:
        """Say what this start is, and what was put back from a copy that is older than the rest."""
        runtime = self.runtime
        calendar = runtime.calendar
        said = chosen.beginning(
            newest=calendar.newest, coming=calendar.coming(now), n_devices=runtime.devices.n
        )
        last = -1 if runtime.state.t is None else runtime.state.t
        ahead = (t for t in runtime.releases.timestamps if t > last)
        if any(map(runtime.n_reports_in, ahead)):  # those of rounds that never opened have none
            _log.warning("the database is an older copy last=%d", last)
            said += (
                f" The database is an older copy: it ends at round {last}, and releases go up to "
                f"{runtime.releases.newest}. Reports since then are gone; these releases stay as "
                "they are."
            )
        return said

    async def _recover(self, campaign: Campaign, store: CampaignStore) -> Scheduler:
        """Set a campaign up where it was left: the newest snapshot, and the rounds since."""
        runtime = await CampaignRuntime.open(
            campaign,
            store,
            settings=self.settings,
            clock=self.clock,
            counters=self.counters,
            engines=self._engines,
        )
        scheduler = Scheduler(runtime)
        try:
            await scheduler.closing.catch_up()
        except BaseException:
            await runtime.write_queue.close()
            raise
        return scheduler

    async def _finish(self, campaign: Campaign, store: CampaignStore) -> None:
        """Fold and release what a campaign has accepted before another one replaces it."""
        scheduler = await self._recover(campaign, store)
        await scheduler.closing.fold_rest()
        await scheduler.stop()


def _check_clock(runtime: CampaignRuntime, now: float) -> None:
    """Refuse a clock that shows a time before rounds that were opened."""
    newest = runtime.calendar.newest
    if newest is not None and now < runtime.campaign.opening_of(newest):
        early = runtime.campaign.opening_of(newest) - now
        raise SettingError(
            f"the clock is {early:.0f} s before the opening of round {newest}, which was "
            "opened already; set the clock"
        )
