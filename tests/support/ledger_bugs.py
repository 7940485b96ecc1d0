"""Bugs put into the ledger and the reporter on purpose, and what catches each.

Run as a script, this lists them with the run of the fuzz that first noticed; the test in
`tests/device/test_seeded_bugs.py` demands that each is noticed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from retrasyn.device import Answer, MemoryStore, Reporter, Tracker, ledger, rules
from retrasyn.device import reporter as reporting
from retrasyn.device.clock import Odometer
from retrasyn.device.ledger import LedgerEntry
from retrasyn.device.memory import REASONS, MemoryCache, Pinned
from retrasyn.device.store import Witness
from retrasyn.messages import MOVING
from support import ledger_fuzz
from support.campaigns import DEVICE, DEVICE_KEY, Campaign, manifest_of, verify

Patch = pytest.MonkeyPatch
MOST_RUNS = 400


def gap_of_w(patch: Patch) -> None:
    """Positions rest for w rounds instead of w + 1."""
    patch.setattr(LedgerEntry, "rest", property(lambda entry: entry.gap + entry.lookback - 2))


def lookback_ignored(patch: Patch) -> None:
    """A report about ages rests no longer than one about a move."""
    patch.setattr(LedgerEntry, "rest", property(lambda entry: entry.gap))


def refund_after_failed_send(patch: Patch) -> None:
    """A report that did not get through is taken out of the ledger."""

    def send_failed(self: Reporter, now: Any) -> None:
        memory = self._cache.remember(now)
        self._cache.save(replace(memory, entries=memory.entries[:-1]))

    patch.setattr(Reporter, "send_failed", send_failed, raising=False)


def send_before_commit(patch: Patch) -> None:
    """The bytes leave before their entry is on disk."""
    honest = reporting.encode_report

    def encode_and_send(*parts: Any, **options: Any) -> bytes:
        frame = honest(*parts, **options)
        ledger_fuzz.TAP.append(frame)
        return frame

    patch.setattr(reporting, "encode_report", encode_and_send)


def wall_clock_for_odometer(patch: Patch) -> None:
    """Uptime is read from the wall clock."""
    honest = MemoryCache.remember

    def remember(self: MemoryCache, now: Any) -> Any:
        memory = honest(self, now)
        self._memory = replace(memory, odometer=Odometer(total=now.wall, boot=now.boot))
        return self._memory

    patch.setattr(MemoryCache, "remember", remember)


def no_quarantine(patch: Patch) -> None:
    """A device that lost its ledger goes on at once."""
    patch.setattr(rules, "BEFORE_DECIDING", ((5, rules.check_newer),))
    patch.setattr(rules, "_unknown", lambda case, wish: replace(wish, epsilon=0))


def quarantine_by_round_number_only(patch: Patch) -> None:
    """A wall clock set forward ends the quarantine."""

    def left(memory: Any, pinned: Any, t: int) -> int:
        return max(memory.quarantine.rounds - (t - memory.quarantine.t), 0)

    patch.setattr(rules, "quarantine_left", left)
    patch.setattr(rules, "_unknown", lambda case, wish: replace(wish, epsilon=0))


def rollback_unnoticed(patch: Patch) -> None:
    """A store put back from a copy is believed."""
    patch.setattr(Witness, "vouches_for", lambda *_: True)


def perturbed_again_on_retry(patch: Patch) -> None:
    """Asked for a round again, the device draws fresh noise under the old entry."""
    honest = ledger.counts
    patch.setattr(rules, "made_before", lambda case: False)
    patch.setattr(rules, "BEFORE_DECIDING", ((6, rules.check_quarantine),))
    patch.setattr(
        ledger,
        "counts",
        lambda entry, wish: (
            honest(entry, wish) and (entry.manifest, entry.t) != (wish.manifest, wish.t)
        ),
    )


def one_ledger_per_manifest(patch: Patch) -> None:
    """A second campaign starts with a clean slate."""
    honest, silence = ledger.counts, MemoryCache.silence

    def pin(self: MemoryCache, text: bytes, now: Any, *, reason: str) -> None:
        if reason != REASONS[""]:
            return silence(self, text, now, reason=reason)
        memory = replace(self.remember(now), pinned=text)
        self.save(memory)
        self.pinned = Pinned.of(text)
        return None

    patch.setattr(MemoryCache, "silence", pin)
    patch.setattr(
        ledger,
        "counts",
        lambda entry, wish: entry.manifest == wish.manifest and honest(entry, wish),
    )


def round_numbers_only(patch: Patch) -> None:
    """The ledger does not look at uptime: a wall clock set forward releases budget."""
    patch.setattr(ledger, "counts", lambda entry, wish: wish.t - entry.t < wish.rest)
    patch.setattr(ledger, "kept", lambda entries, wish: entries)


def uptime_only(patch: Patch) -> None:
    """The ledger does not look at round numbers: a wall clock set back packs rounds closer."""
    honest = ledger.counts
    patch.setattr(ledger, "counts", lambda entry, wish: honest(replace(entry, t=-99), wish))


def lifetime_cap_ignored(patch: Patch) -> None:
    """The device goes on for ever."""
    honest = rules.check_budget

    def check(case: Any, wish: LedgerEntry) -> str | None:
        reason = honest(case, wish)
        return None if reason and reason.startswith("the lifetime cap") else reason

    patch.setattr(rules, "check_budget", check)


def positions_linked_over_a_clock_jump(patch: Patch) -> None:
    """Two positions with consecutive numbers make a move, however far apart they were taken."""

    def follows(self: Tracker, t: int, boot: int) -> bool:
        return t == self._t + 1 and self._kind <= MOVING

    patch.setattr(Tracker, "_follows", follows)


def coin_flipped_again(patch: Patch) -> None:
    """A round that was refused by the coin may be asked again until it is granted."""
    patch.setattr(rules, "BEFORE_DECIDING", ((6, rules.check_quarantine),))


def noticed_by_the_fuzz() -> str | None:
    """Return the first run whose recount finds more than epsilon, or None."""
    for seed in range(MOST_RUNS):
        if faults := ledger_fuzz.overspent(ledger_fuzz.play(seed)):
            return f"run {seed}: {faults[0]}"
    return None


def noticed_by_asking_again() -> str | None:
    """Return how often a round had to be asked until a coin of 1 in 16 fell heads, or None."""
    campaign = Campaign(manifest_of(sampling="self", window=1))
    reporter = Reporter(device=DEVICE, key=DEVICE_KEY, store=MemoryStore(), verify=verify)
    tracker = Tracker(campaign.manifest)
    reporter.pin(campaign.envelope, campaign.at(0))
    for t in range(2, 400, 2):  # a window apart, so that the ledger never refuses
        envelope = campaign.ask(t, portion=1 << 60)
        tracker.observe(t, None, boot=campaign.at(t).boot)
        answers = [reporter.answer(envelope, campaign.at(t), tracker) for _ in range(20)]
        if isinstance(answers[-1], Answer) and not isinstance(answers[0], Answer):
            return f"round {t} was granted after it had been refused"
    return None


def noticed_by_setting_the_clock_back() -> str | None:
    """Return what a tracker makes of two positions that only their numbers put side by side."""
    tracker = Tracker(manifest_of())
    tracker.observe(10, (1.0, 1.0), boot=0)
    tracker.observe(11, (1.0, 1.0), boot=6 * 60_000)
    return "positions six minutes apart made a move" if tracker.kind(11) == MOVING else None


@dataclass(frozen=True)
class Bug:
    """A change to the code, and what has to notice it."""

    seed: Callable[[Patch], None]
    notices: Callable[[], str | None] = noticed_by_the_fuzz

    @property
    def name(self) -> str:
        return self.seed.__name__


BUGS = [
    Bug(gap_of_w),
    Bug(lookback_ignored),
    Bug(refund_after_failed_send),
    Bug(send_before_commit),
    Bug(wall_clock_for_odometer),
    Bug(no_quarantine),
    Bug(quarantine_by_round_number_only),
    Bug(rollback_unnoticed),
    Bug(perturbed_again_on_retry),
    Bug(one_ledger_per_manifest),
    Bug(round_numbers_only),
    Bug(uptime_only),
    Bug(lifetime_cap_ignored),
    Bug(positions_linked_over_a_clock_jump, noticed_by_setting_the_clock_back),
    Bug(coin_flipped_again, noticed_by_asking_again),
]


if __name__ == "__main__":
    for bug in BUGS:
        with pytest.MonkeyPatch.context() as patch:
            bug.seed(patch)
            print(f"{bug.name}: {bug.notices() or 'NOT NOTICED'}")  # noqa: T201 - a script
