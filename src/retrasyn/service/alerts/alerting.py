"""Looks at every release, and tells the operator's webhook which zones are unusual.

It reads what is released and delays nothing: rounds go on whether or not anybody listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retrasyn.client.webhook import Webhook
from retrasyn.errors import OutputError, RetraSynError, SettingError
from retrasyn.files import write_durably
from retrasyn.service.alerts.departures import (
    FEWEST_REPLICAS,
    Departure,
    UsualTimes,
    ZoneCounts,
    departures,
)
from retrasyn.service.alerts.outbox import Alert, Outbox
from retrasyn.service.calendar import LONGEST_NAP
from retrasyn.service.settings import DAY, AlertSettings
from retrasyn.service.viewing.known_zones import KnownZones

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

USEFUL = DAY
"""Seconds after its round in which an alert is made, and tried again."""
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 1800.0
"""Seconds between two tries of one alert."""
_DICE = random.SystemRandom()  # nothing that is released depends on it
_log = logging.getLogger(__name__)


def pause_after(tries: int) -> float:
    """Return how long to wait after so many tries: longer each time, and never in step."""
    longest = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 20), LONGEST_PAUSE)
    return longest * _DICE.uniform(0.5, 1.5)


@dataclass(slots=True, kw_only=True)
class Alerting:
    """Watches the releases of a campaign: one task looks at them, another one sends alerts."""

    runtime: CampaignRuntime
    counts: ZoneCounts
    webhook: Webhook
    outbox: Outbox
    trouble: str = ""  # why the last try failed; empty if it worked
    _due: dict[str, tuple[int, float]] = field(default_factory=dict)  # tries and time of the next
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @classmethod
    def open(cls, runtime: CampaignRuntime, webhook: Webhook) -> Alerting:
        """Open the zones that the settings name, and what a start before has left."""
        settings, campaign = runtime.settings, runtime.campaign
        if campaign.n_replicas < FEWEST_REPLICAS:
            raise SettingError(
                f"{campaign.n_replicas} replicas with {campaign.run_settings.method.name}: what "
                "chance does is not known without them; set replicates to 20, or at least "
                f"{FEWEST_REPLICAS}, with a method such as steered, or remove alerts.webhook"
            )
        zones = KnownZones.of(runtime.releases, settings.map).named(settings.alerts.watch)
        path = settings.server.folder / "alerts" / f"{campaign.id.hex()}.json"
        counts, outbox = ZoneCounts(runtime.releases, zones), Outbox.open(path)
        return cls(runtime=runtime, counts=counts, webhook=webhook, outbox=outbox)

    @property
    def status(self) -> dict[str, Any]:
        """What the operator is told about it."""
        box = self.outbox
        return {"checked": box.checked, "waiting": len(box.waiting), "trouble": self.trouble}

    def start(self) -> None:
        """Watch and send, until `stop`."""
        self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._deliver())]

    async def stop(self) -> None:
        """Leave what is not sent for the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Looking.

    async def _watch(self) -> None:
        async for t, summary in self.runtime.feed.subscribe(self.outbox.checked):
            try:
                await self._check(t, str(summary["time"]))
            except Exception as error:  # noqa: BLE001 - one failure must not end the alerts
                _log.error("a release could not be checked t=%d error=%s", t, type(error).__name__)

    async def _check(self, t: int, time: str) -> None:
        """Look at a release, and have what it raises on the disk before it is sent."""
        names, last_of = self.counts.zones.names, self.outbox.raised
        rest = self._settings.cooldown / self._period
        found = await asyncio.to_thread(self.unusual, t)
        alerts = [
            self._alert(t, time, departure)
            for departure in found
            if (zone := names[departure.zone]) not in last_of or t - last_of[zone] >= rest
        ]
        for alert in alerts:
            _log.warning("zone is unusual t=%d zone=%r id=%s", t, alert.zone, alert.id)
        counters = self.runtime.counters
        counters.alerts_raised += len(alerts)
        counters.alerts_dropped += self.outbox.note(t, alerts, forget_before=t - math.ceil(rest))
        await self._save()
        if alerts:
            self._news.set()

    def unusual(self, t: int) -> list[Departure]:
        """Return the zones that are unusual at a timestamp, unless it is too old to be of use."""
        if self._is_over(t):
            return []
        settings, source = self._settings, self.counts.source
        usual = UsualTimes(
            per_day=DAY / self._period,
            days=settings.days,
            rounds=settings.rounds,
            gap=self.runtime.campaign.manifest.gap,
        )
        now = self.counts.at(t)
        read = map(self.counts.at, usual.before(source, t))
        before = [counts for counts in read if counts is not None]
        if now is None or not before:
            return []
        return departures(now, before, band=settings.band, level=settings.level)

    def _alert(self, t: int, time: str, departure: Departure) -> Alert:
        campaign, zone = self.runtime.campaign, self.counts.zones.names[departure.zone]
        named = json.dumps([campaign.id.hex(), t, zone]).encode()
        body = {
            "type": "zone.above" if departure.is_above else "zone.below",
            "timestamp": time,
            "data": {
                "campaign": campaign.manifest.name,
                "manifest": campaign.id.hex(),
                "t": t,
                "zone": zone,
                "count": departure.count,
                "usual": round(departure.usual, 3),
                "low": round(departure.low, 3),
                "high": round(departure.high, 3),
            },
        }
        id_ = f"msg_{hashlib.sha256(named).hexdigest()[:32]}"
        return Alert(id_, t, zone, json.dumps(body))

    # Sending.

    async def _deliver(self) -> None:
        while True:
            self._news.clear()
            now = self.runtime.clock.now()
            self._due = {id_: self._due.get(id_, (0, now)) for id_ in self.outbox.waiting}
            soonest = min(self._due, key=lambda id_: self._due[id_][1], default=None)
            if soonest is None:
                await self._news.wait()
            elif (pause := self._due[soonest][1] - now) > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), min(pause, LONGEST_NAP))
            else:
                await self._send(self.outbox.waiting[soonest])

    async def _send(self, alert: Alert) -> None:
        """Try once; what was taken, or is of no use any more, waits no longer."""
        counters, tries = self.runtime.counters, self._due[alert.id][0] + 1
        try:
            await self.webhook.post(alert.id, alert.body.encode(), self.runtime.clock.now())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
            known = isinstance(error, RetraSynError)
            before, self.trouble = self.trouble, str(error) if known else type(error).__name__
            counters.alerts_failed += 1
            if self.trouble != before:
                _log.warning("alerts cannot be sent: %s", self.trouble)
            self._due[alert.id] = tries, self.runtime.clock.now() + pause_after(tries)
            if not self._is_over(alert.t):
                return
            counters.alerts_dropped += 1
        else:
            self.trouble = ""
            counters.alerts_sent += 1
            _log.info("alert sent id=%s tries=%d", alert.id, tries)
        self.outbox.waiting.pop(alert.id, None)  # unless it was given up for newer ones
        await self._save()

    async def _save(self) -> None:
        """Write the outbox; should that fail, what is in memory counts."""
        async with self._writing:
            content = self.outbox.to_bytes()
            try:
                await asyncio.to_thread(write_durably, self.outbox.path, content, private=True)
            except (OutputError, OSError) as error:
                _log.warning("alerts cannot be kept: %s", error)

    @property
    def _settings(self) -> AlertSettings:
        return self.runtime.settings.alerts

    @property
    def _period(self) -> int:
        return self.runtime.campaign.manifest.period

    def _is_over(self, t: int) -> bool:
        """Return whether a round is so long ago that nobody is told of it."""
        return self.runtime.clock.now() > self.runtime.campaign.closing_of(t) + USEFUL
