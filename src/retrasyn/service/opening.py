"""Opens rounds: decides what each asks, signs it, records it and lets reports in."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.messages import MICRO, Ask, Grant, Manifest, Roster
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.service.calendar import check_silence
from retrasyn.service.store import RoundRow
from retrasyn.service.store.base import KEY, keys_in

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

EVERYBODY = 1 << 64
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Opening:
    """Opens the rounds of a running campaign."""

    runtime: CampaignRuntime

    async def open_due(self, now: float) -> None:
        """Open the round of this instant, unless it was opened or its time is over."""
        runtime, campaign, calendar = self.runtime, self.runtime.campaign, self.runtime.calendar
        t = campaign.round_at(now)
        if t < 0 or now >= campaign.closing_of(t) or self._is_past(t):
            return
        check_silence(t, runtime.state.t)
        asked = await self._decide(t)
        if runtime.clock.now() >= campaign.closing_of(t):
            return  # deciding had to wait for a fold that took the whole round
        text = campaign.write_round(
            t,
            epsilon=asked.epsilon or campaign.manifest.epsilon,
            portion=asked.portion,
            previous=calendar.head(),
        )
        row = RoundRow(
            t=t,
            epsilon=asked.epsilon,
            portion=asked.portion,
            ends=campaign.closing_of(t) + campaign.settings.seconds_of_grace,
            envelope=campaign.sign("round", text),
            drawn=asked.drawn_bytes,
        )
        await runtime.write_queue.run(runtime.store.add_round, row)
        runtime.admission.open_round(row)
        calendar.add(row, waits=True)
        runtime.counters.rounds_opened += 1
        _log.info("round opened t=%d epsilon=%g", t, row.epsilon / MICRO)

    def _is_past(self, t: int) -> bool:
        """Tell whether a round was opened, or stepped over, before: a clock may be set back."""
        lasts = (self.runtime.calendar.newest, self.runtime.state.t)
        return any(last is not None and t <= last for last in lasts)

    async def _decide(self, t: int) -> Asked:
        """Decide what to ask; slots do not depend on the state, so nobody waits for it."""
        runtime, manifest = self.runtime, self.runtime.campaign.manifest
        if manifest.sampling == "phase":
            return Asked(epsilon=manifest.epsilon, portion=EVERYBODY)
        async with runtime.state_lock:
            return decide(
                runtime.state.curator,
                manifest,
                t,
                pending=list(runtime.calendar.waiting.values()),
                enrolled=runtime.devices.keys(),
                size=runtime.state.size,
            )


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
