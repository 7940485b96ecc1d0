"""Bugs put into the ledger and the reporter on purpose, and what catches each.

Run as a script, this lists them with the run of the fuzz that first noticed; the test in
`tests/device/test_seeded_bugs.py` demands that each is noticed.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from retrasyn.device import Answer, MemoryStore, Reporter, Tracker, ledger, rules
from retrasyn.device import reporter as reporting
from retrasyn.device.clock import Odometer
from retrasyn.device.ledger import LedgerEntry
from retrasyn.device.memory import REASONS, MemoryCache, Pinned
from retrasyn.device.rules import Sampling
from retrasyn.device.store import Witness
from retrasyn.messages import ABSENT, MOVING, QUITTING, SPEEDS, Question, Report
from retrasyn.wire import decode_report
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


def cells_a_round_too_soon(patch: Patch) -> None:
    """A cell is told every w - 1 rounds, as if it showed in no other report."""
    honest = rules.wish_for

    def wish_for(case: Any, question: Question, uptime: int) -> LedgerEntry:
        wish = honest(case, question, uptime)
        return replace(wish, lookback=-1) if question.about == "cell" else wish

    patch.setattr(rules, "wish_for", wish_for)


def cells_not_charged(patch: Patch) -> None:
    """A report of a cell leaves no entry behind."""
    honest = Reporter._make

    def make(self: Reporter, case: Any, wish: LedgerEntry, question: Question, at: Any) -> bytes:
        before = self._cache.remember(case.now).entries
        frame = honest(self, case, wish, question, at)
        if question.about == "cell":
            self._cache.save(replace(self._cache.remember(case.now), entries=before))
        return frame

    patch.setattr(Reporter, "_make", make)


def role_drawn_for_every_round(patch: Patch) -> None:
    """The role is not kept: today a cell, tomorrow a transition."""
    honest = Sampling.question

    def question(self: Sampling, kind: int, words: Any) -> Question | None:
        again = replace(self, lots=replace(self.lots, role=rules.draw_word(words)))
        return honest(again, kind, words)

    patch.setattr(Sampling, "question", question)


def transitions_in_the_role_of_cells(patch: Patch) -> None:
    """Who tells its cell tells its transition, too, half a gap later."""
    chosen, asked_for = Sampling.chosen, Sampling.question

    def also(self: Sampling, asked: Any, words: Any) -> bool:
        later = replace(asked, t=asked.t - self.cycle // 2)
        return chosen(self, asked, words) or (self.role == "cell" and chosen(self, later, words))

    def question(self: Sampling, kind: int, words: Any) -> Question | None:
        honest = asked_for(self, kind, words)
        turned = honest is not None and honest.about == "cell" and rules.draw_word(words) % 2
        return Question() if turned else honest

    patch.setattr(Sampling, "chosen", also)
    patch.setattr(Sampling, "question", question)


def phase_not_kept(patch: Patch) -> None:
    """Who tells its cell does so in any round, as soon as it has rested."""
    honest = Sampling.chosen
    patch.setattr(
        Sampling,
        "chosen",
        lambda self, asked, words: self.role == "cell" or honest(self, asked, words),
    )


def cells_after_the_stop(patch: Patch) -> None:
    """A device that has stopped tells where it stopped."""
    honest, told = Sampling.question, Tracker.answer

    def question(self: Sampling, kind: int, words: Any) -> Question | None:
        return honest(self, MOVING if kind == QUITTING else kind, words)

    def answer(self: Tracker, question: Question, t: int) -> int:
        stopped = question.about == "cell" and self.kind(t) == QUITTING and self._before is not None
        return self._before if stopped else told(self, question, t)

    patch.setattr(Sampling, "question", question)
    patch.setattr(Tracker, "answer", answer)


def absent_cells_silent_where_presence_is_hidden(patch: Patch) -> None:
    """Where presence is hidden, who is absent does not answer about its cell."""
    honest = Sampling.question

    def question(self: Sampling, kind: int, words: Any) -> Question | None:
        absent = kind in (QUITTING, ABSENT) and self.role == "cell"
        return None if absent else honest(self, kind, words)

    patch.setattr(Sampling, "question", question)


def silent_outside_the_box(patch: Patch) -> None:
    """A device that has no cell to tell sends nothing, and its silence says so."""
    honest = Reporter.report

    def report(self: Reporter, envelope: bytes, now: Any, at: Any) -> Any:
        drawn = self._drawn
        asked = drawn is not None and drawn[0].question.about == "cell"
        if asked and at.answer(drawn[0].question, drawn[0].t) < 0:
            return reporting.Refusal(9, "there is no cell")
        return honest(self, envelope, now, at)

    patch.setattr(Reporter, "report", report)


def silent_while_it_stays(patch: Patch) -> None:
    """A cell is told when it is another than the one before."""
    honest = Reporter.report

    def report(self: Reporter, envelope: bytes, now: Any, at: Any) -> Any:
        drawn = self._drawn
        stays = at._before == at._cell is not None
        if drawn is not None and drawn[0].question.about == "cell" and stays:
            return reporting.Refusal(9, "nothing new")
        return honest(self, envelope, now, at)

    patch.setattr(Reporter, "report", report)


def speeds_twice_a_gap(patch: Patch) -> None:
    """How far it moved is told twice in a gap."""
    cycle, honest = Sampling.cycle.fget, rules.wish_for
    assert cycle is not None

    def halved(self: Sampling) -> int:
        return cycle(self) // 2 if self.role == "faster" else cycle(self)

    def wish_for(case: Any, question: Question, uptime: int) -> LedgerEntry:
        wish = honest(case, question, uptime)
        return replace(wish, lookback=1 - wish.gap) if question.about == "faster" else wish

    patch.setattr(Sampling, "cycle", property(halved))
    patch.setattr(rules, "wish_for", wish_for)


def speeds_beside_cells(patch: Patch) -> None:
    """Who tells its cell tells how far it moved, too, half a gap later and beside the ledger."""
    chosen, asked_for, wish_of = Sampling.chosen, Sampling.question, rules.wish_for

    def also(self: Sampling, asked: Any, words: Any) -> bool:
        return chosen(self, asked, words) or (
            self.role == "cell" and chosen(self, replace(asked, t=asked.t - 2), words)
        )

    def question(self: Sampling, kind: int, words: Any) -> Question | None:
        honest = asked_for(self, kind, words)
        turned = honest is not None and honest.about == "cell" and self.manifest.speeds
        if turned and rules.draw_word(words) % 2:
            return Question(about="faster", threshold=self.manifest.speeds[0])
        return honest

    def wish_for(case: Any, question: Question, uptime: int) -> LedgerEntry:
        wish = wish_of(case, question, uptime)
        return replace(wish, lookback=1 - wish.gap) if question.about == "faster" else wish

    patch.setattr(Sampling, "chosen", also)
    patch.setattr(Sampling, "question", question)
    patch.setattr(rules, "wish_for", wish_for)


def speeds_of_anybody(patch: Patch) -> None:
    """The role of speeds is not for life: in some rounds others have it, too."""
    honest = Sampling.question

    def question(self: Sampling, kind: int, words: Any) -> Question | None:
        asked = honest(self, kind, words)
        if self.role is None and kind == MOVING and rules.draw_word(words) % 4 == 0:
            return Question(about="faster", threshold=self.manifest.speeds[0])
        return asked

    patch.setattr(Sampling, "question", question)


def threshold_by_how_far_it_moved(patch: Patch) -> None:
    """The threshold is the largest that was passed: which one is named tells the distance."""
    honest = Reporter.report

    def report(self: Reporter, envelope: bytes, now: Any, at: Any) -> Any:
        drawn = self._drawn
        if drawn is not None and drawn[0].question.about == "faster" and self._cache.pinned:
            speeds = self._cache.pinned.manifest.speeds
            asked = [Question(about="faster", threshold=speed) for speed in speeds]
            passed = [one for one in asked if at.answer(one, drawn[0].t) == 0]
            self._drawn = replace(drawn[0], question=[asked[0], *passed][-1]), drawn[1]
        return honest(self, envelope, now, at)

    patch.setattr(Reporter, "report", report)


def speeds_at_twice_epsilon(patch: Patch) -> None:
    """How far it moved is flipped as rarely as if epsilon were twice what the ledger notes."""
    honest = reporting.row_for

    def row_for(question: Question, oracle: str) -> Any:
        row = honest(question, oracle)
        if question.about != "faster":
            return row

        def report(truth: int, n: int, *, epsilon: int, words: Any) -> bytes:
            return row.report(truth, n, epsilon=2 * epsilon, words=words)

        return replace(row, report=report)

    patch.setattr(reporting, "row_for", row_for)


def speeds_over_a_gap_in_the_fixes(patch: Patch) -> None:
    """Without a place at t - 1, how far it moved is measured from that at t - 2."""
    honest = Tracker.observe

    def observe(self: Tracker, t: int, fix: Place, *, boot: int) -> None:
        older = self._place_before
        honest(self, t, fix, boot=boot)
        if self._place_before is None and self.kind(t) == MOVING:
            self._place_before = older

    patch.setattr(Tracker, "observe", observe)


def silent_while_it_moves_slowly(patch: Patch) -> None:
    """How far it moved is told only where the answer is yes."""
    honest = Reporter.report

    def report(self: Reporter, envelope: bytes, now: Any, at: Any) -> Any:
        drawn = self._drawn
        asked = drawn is not None and drawn[0].question.about == "faster"
        if asked and at.answer(drawn[0].question, drawn[0].t) < 0:
            return reporting.Refusal(9, "it did not")
        return honest(self, envelope, now, at)

    patch.setattr(Reporter, "report", report)


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


Place = tuple[float, float] | None
ROLES = {
    "strata": ("transition", "older", "faster", "cell"),
    "other_shares": (200_000, 250_000, 300_000),
    "ages": (2, 4),
    "speeds": SPEEDS,
    "public_map": bytes(32),
}


def told_by(places: list[Place], stops_at: int = 99, **changes: Any) -> list[list[tuple[int, int]]]:
    """Return (t, question) of the reports of some devices, none of which is ever lied to."""
    return [
        [(report.t, report.question) for report in reports]
        for reports in reports_of(places, stops_at, **changes)
    ]


def reports_of(places: list[Place], stops_at: int = 99, **changes: Any) -> list[list[Report]]:
    """Return the reports of some devices, none of which is ever lied to."""
    fields = {**ROLES, "sampling": "phase", "window": 3, **changes}
    campaign, found = Campaign(manifest_of(**fields)), []
    rounds = {t: campaign.ask(t) for t in range(len(places))}
    for number in range(32):
        words = random.Random(number).randbytes
        reporter = Reporter(DEVICE, DEVICE_KEY, MemoryStore(), verify, words=words)
        tracker = Tracker(campaign.manifest, words=random.Random(-number).randbytes)
        reporter.pin(campaign.envelope, campaign.at(-9))
        told = []
        for t, envelope in rounds.items():
            now = campaign.at(t)
            if t < stops_at:
                tracker.observe(t, places[t], boot=now.boot)
            else:
                tracker.stop(t, boot=now.boot)
            answer = reporter.answer(envelope, now, tracker)
            if isinstance(answer, Answer):
                told.append(decode_report(answer.frame, DEVICE_KEY, oracle="oue"))
        found.append(told)
    return found


def noticed_by_watching_roles() -> str | None:
    """Return who answers two kinds of question, or about its cell out of phase, or stopped."""
    moves = [(0.5 + t % 3, 0.5) for t in range(60)]
    for told in told_by(moves):
        kinds = {question & ~15 or question for _, question in told}
        if len(kinds) > 1:
            return f"a device answered {sorted(kinds)}"
    for role, codes in (("its cell", {5}), ("how far it moved", {32, 33, 34, 35})):
        phases = {tuple({t % 4 for t, asked in told if asked in codes}) for told in told_by(moves)}
        if len(phases - {()}) < 4 or any(len(one) > 1 for one in phases):
            return f"devices told {role} at the phases {phases}"
        for stop in range(20, 24):
            if any(
                t == stop and asked in codes for told in told_by(moves, stop) for t, asked in told
            ):
                return f"a device told {role} at {stop}, when it had stopped"
    return None


def noticed_by_comparing_places() -> str | None:
    """Return what shows in when devices report, if it is where they are, or hidden presence."""
    paths: dict[str, list[Place]] = {
        "staying": [(0.5, 0.5)] * 60,
        "moving": [(0.5 + t % 5, 0.5) for t in range(60)],
        "outside": [(99.0, 99.0)] * 60,
        "without a fix": [None] * 60,
    }
    told = {name: told_by(path) for name, path in paths.items()}
    differ = [name for name in told if told[name] != told["staying"]]
    hidden = {
        "strata": ("transition", "present", "cell"),
        "presence": "hidden",
        "size_source": "estimated",
        "other_shares": (200_000, 400_000),
        "ages": (),
        "speeds": (),
        "public_map": b"",
    }
    if told_by(paths["staying"], **hidden) != told_by(paths["staying"], 30, **hidden):
        differ.append("absent")
    return f"it shows who is {', '.join(differ)}" if differ else None


def noticed_by_counting_answers() -> str | None:
    """Return the share of those who say that they moved far, all of whom did, if it is not p."""
    moves: list[Place] = [(0.5 + t % 5, 0.5) for t in range(120)]
    alone = {"strata": ("transition", "faster"), "other_shares": (999_999,), "ages": ()}
    bits = [report.bits[0] for told in reports_of(moves, **alone) for report in told]
    share, p, spread = sum(bits) / len(bits), 1 / (1 + math.exp(-1)), 0.5 / math.sqrt(len(bits))
    return None if abs(share - p) < 4 * spread else f"{share:.3f} of {len(bits)} said yes"


def noticed_by_changing_what_came_before() -> str | None:
    """Return what an answer depends on other than the places at t - 1 and t."""
    for before in (None, (3.0, 3.0)):
        said = set()
        for oldest in (None, (1.0, 1.0), (5.0, 5.0)):
            tracker = Tracker(manifest_of(**ROLES))
            for t, place in enumerate([oldest, before, (1.0, 1.0)]):
                tracker.observe(t, place, boot=t * 60_000)
            asked = [Question(about="faster", threshold=speed) for speed in SPEEDS]
            said.add(tuple(tracker.answer(question, 2) for question in asked))
        if len(said) > 1:
            return f"with {before} at t - 1 the answers depend on t - 2: {said}"
    return None


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
    Bug(cells_a_round_too_soon),
    Bug(cells_not_charged),
    Bug(role_drawn_for_every_round, noticed_by_watching_roles),
    Bug(transitions_in_the_role_of_cells, noticed_by_watching_roles),
    Bug(phase_not_kept, noticed_by_watching_roles),
    Bug(cells_after_the_stop, noticed_by_watching_roles),
    Bug(absent_cells_silent_where_presence_is_hidden, noticed_by_comparing_places),
    Bug(silent_outside_the_box, noticed_by_comparing_places),
    Bug(silent_while_it_stays, noticed_by_comparing_places),
    Bug(speeds_twice_a_gap),
    Bug(speeds_beside_cells),
    Bug(speeds_of_anybody, noticed_by_watching_roles),
    Bug(threshold_by_how_far_it_moved, noticed_by_comparing_places),
    Bug(speeds_at_twice_epsilon, noticed_by_counting_answers),
    Bug(speeds_over_a_gap_in_the_fixes, noticed_by_changing_what_came_before),
    Bug(silent_while_it_moves_slowly, noticed_by_comparing_places),
]


if __name__ == "__main__":
    for bug in BUGS:
        with pytest.MonkeyPatch.context() as patch:
            bug.seed(patch)
            print(f"{bug.name}: {bug.notices() or 'NOT NOTICED'}")  # noqa: T201 - a script
