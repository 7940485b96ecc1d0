"""Rounds open on the clock: what they ask is decided, signed, recorded, and then told."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.errors import SettingError
from retrasyn.messages import Ask, Grant, Manifest, Roster
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.service.admission.gate import Admission
from retrasyn.service.calendar import Calendar, ServiceClock
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import CampaignState
from retrasyn.service.counters import Counters
from retrasyn.service.enrolment import EnrolledDevices
from retrasyn.service.store import CampaignStore, RoundRow
from retrasyn.service.write_queue import WriteQueue

EVERYBODY = 1 << 64
KEY = np.dtype("<u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How much each reporter spends, and who is to report."""

    epsilon: int  # micro-nats; 0: nothing is asked
    portion: int  # 0..2^64
    drawn: npt.NDArray[np.int64] | None = None  # keys, ascending; None: anybody

    @property
    def drawn_bytes(self) -> bytes | None:
        """The drawn keys as they are recorded."""
        return None if self.drawn is None else self.drawn.astype(KEY).tobytes()


NOTHING = Asked(epsilon=0, portion=0)


def keys_in(drawn: bytes | None) -> npt.NDArray[np.int64]:
    """Return the recorded keys of those who were drawn."""
    return np.frombuffer(drawn or b"", KEY).astype(np.int64)


def decide(
    curator: Curator,
    manifest: Manifest,
    t: int,
    *,
    pending: Sequence[RoundRow],
    enrolled: npt.NDArray[np.int64],
    size: int,
) -> Asked:
    """Decide about round t; `pending` are the rounds that were opened and not folded."""
    if manifest.sampling == "phase":
        return Asked(epsilon=manifest.epsilon, portion=EVERYBODY)
    first_t = min([t, *(row.t for row in pending)])
    ask = _first_ask(curator, t, first_t=first_t, size=size, n_enrolled=enrolled.size)
    if ask is None:
        return NOTHING
    if manifest.sampling == "self" and curator.method.division.splits_users:
        portion = min(int(ask.share * EVERYBODY), EVERYBODY)
        return Asked(epsilon=manifest.epsilon, portion=portion) if portion else NOTHING
    offered = _offered(curator, ask, t, pending, enrolled)
    drawn = offered.reporters if manifest.sampling == "curator" else None
    return (
        Asked(epsilon=offered.epsilon, portion=EVERYBODY, drawn=drawn)
        if offered.epsilon
        else NOTHING
    )


def _first_ask(curator: Curator, t: int, *, first_t: int, size: int, n_enrolled: int) -> Ask | None:
    """Return what the mechanism would ask for now; its memory is left as it is."""
    view = curator.view(t, size=size, n_enrolled=n_enrolled)
    if curator.state.first_t is None:  # the first rounds are open, and none is folded
        view = dataclasses.replace(view, first_t=first_t)
    return next(curator.method.mechanism.dialogue(view), None)


def _offered(
    curator: Curator,
    ask: Ask,
    t: int,
    pending: Sequence[RoundRow],
    enrolled: npt.NDArray[np.int64],
) -> Grant:
    """Return what the ledger would grant once all open rounds are charged."""
    key = np.uint64(address(curator.seed, 0, "device"))
    roster = Roster(
        keys=enrolled,
        addresses=words_at(key, enrolled.astype(np.uint64)),
        slots=np.zeros(enrolled.size, np.int64),
    )
    unpaid = [Grant(t=row.t, epsilon=row.epsilon, reporters=keys_in(row.drawn)) for row in pending]
    ledger = curator.state.ledger
    return ledger.offer(ask, t=t, roster=roster, seed=curator.seed, unpaid=unpaid)


_log = logging.getLogger(__name__)
MAX_SILENCE = 100_000
"""Most rounds that may be stepped over; beyond it the clock is taken to be wrong."""


@dataclass(slots=True, kw_only=True)
class Opening:
    """Opens the round of an instant."""

    campaign: Campaign
    calendar: Calendar
    account: CampaignState
    store: CampaignStore
    gate: Admission
    ingest: WriteQueue
    devices: EnrolledDevices
    counters: Counters
    clock: ServiceClock
    lock: asyncio.Lock  # of the account

    async def open_due(self, now: float) -> None:
        """Open the round of this instant, unless it was opened or its time is over."""
        t = self.campaign.round_at(now)
        if t < 0 or now >= self.campaign.closing_of(t) or self._is_past(t):
            return
        check_silence(t, self.account.t)
        asked = await self._decide(t)
        if self.clock.now() >= self.campaign.closing_of(t):
            return  # deciding had to wait for a fold that took the whole round
        text = self.campaign.write_round(
            t,
            epsilon=asked.epsilon or self.campaign.manifest.epsilon,
            portion=asked.portion,
            previous=self.calendar.head(),
        )
        row = RoundRow(
            t=t,
            epsilon=asked.epsilon,
            portion=asked.portion,
            ends=self.campaign.closing_of(t) + self.campaign.settings.seconds_of_grace,
            envelope=self.campaign.sign("round", text),
            drawn=asked.drawn_bytes,
        )
        await self.ingest.run(self.store.add_round, row)
        self.gate.open_round(row)
        self.calendar.add(row, waits=True)
        self.counters.rounds_opened += 1
        _log.info("round opened t=%d epsilon=%d", t, row.epsilon)

    def _is_past(self, t: int) -> bool:
        """Tell whether a round was opened, or stepped over, before: a clock may be set back."""
        return any(
            last is not None and t <= last for last in (self.calendar.newest, self.account.t)
        )

    async def _decide(self, t: int) -> Asked:
        """Decide what to ask; slots need no look at the account, so nobody waits for it."""
        manifest = self.campaign.manifest
        if manifest.sampling == "phase":
            return Asked(epsilon=manifest.epsilon, portion=EVERYBODY)
        async with self.lock:
            return decide(
                self.account.recorded.curator,
                manifest,
                t,
                pending=list(self.calendar.waiting.values()),
                enrolled=self.devices.keys(),
                size=self.account.size,
            )


def check_silence(t: int, last: int | None) -> None:
    """Refuse to go on so long after the last round that it would take for ever."""
    if last is not None and t - last > MAX_SILENCE:
        raise SettingError(
            f"the clock shows round {t:,}, and the last one was {last:,}: more than "
            f"{MAX_SILENCE:,} were missed; set the clock, or begin anew with another name and "
            'epoch = "next"'
        )
