"""The eleven device rules, one after the other."""

import dataclasses
import hashlib
import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest

import retrasyn
from retrasyn.device import Answer, Drawn, Instant, MemoryStore, Refusal, Reporter, Tracker
from retrasyn.device.clock import Odometer, read_clocks
from retrasyn.device.ledger import LedgerEntry, counts
from retrasyn.device.memory import DeviceMemory, read_memory, write_memory
from retrasyn.device.rules import Sampling, draw_lots
from retrasyn.device.signatures import draw_x25519, share_x25519, verify_ed25519
from retrasyn.errors import EntropyError, LedgerError, MissingExtra, WireError
from retrasyn.messages import ABSENT, ENTERING, MICRO, MOVING, QUITTING, SPEEDS, Ack, Question
from retrasyn.oracles.threshold import noise_threshold
from retrasyn.wire import decode_report, encode_ack, encode_round
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.frames import MIN_KEY_BYTES, acked_part, tag_of
from retrasyn.wire.keys import CuratorKeys
from retrasyn.wire.statuses import HTTP_STATUS, REACTIONS, STATUSES
from support.campaigns import (
    DEVICE,
    DEVICE_KEY,
    EPOCH,
    KEY,
    Campaign,
    manifest_of,
    sign,
    verify,
)
from support.feeding import fed

HALF = MICRO // 2


class World:
    """One device that is awake at every round, with clocks that run."""

    def __init__(self, store=None, words=None, **changes):
        self.campaign = Campaign(manifest_of(**({"window": 2} | changes)))
        self.store = MemoryStore() if store is None else store
        self.options = {} if words is None else {"words": words}
        self.restart()
        self.tracker = Tracker(self.campaign.manifest)
        self.reporter.pin(self.campaign.envelope, self.campaign.at(0))

    def restart(self):
        self.reporter = Reporter(
            device=DEVICE, key=DEVICE_KEY, store=self.store, verify=verify, **self.options
        )

    def answer(self, t, envelope=None, *, now=None, **changes):
        now = now or self.campaign.at(t)
        self.tracker.observe(t, (1.0, 1.0), boot=now.boot)
        envelope = envelope or self.campaign.ask(t, **changes)
        return self.reporter.answer(envelope, now, self.tracker)

    def signed(self, t, **changes):
        return sign("round", encode_round(self.campaign.round_of(t, **changes)))

    def answered(self, rounds, **changes):
        return [t for t in rounds if isinstance(self.answer(t, **changes), Answer)]


def rule_of(answer):
    assert isinstance(answer, Refusal), answer
    return answer.rule


# Rule 1


def test_a_round_with_a_false_signature_is_refused():
    world = World()
    forged = sign("round", encode_round(world.campaign.round_of(3)), key=bytes(32))
    assert world.answer(3, forged) == Refusal(1, "the round is not signed by the curator's key")


def test_a_manifest_never_passes_for_a_round_nor_a_round_for_a_manifest():
    world = World()
    as_manifest = sign("manifest", encode_round(world.campaign.round_of(3)))
    assert rule_of(world.answer(3, as_manifest)) == 1
    with pytest.raises(WireError):
        world.reporter.pin(world.campaign.ask(3), world.campaign.at(3))


@pytest.mark.parametrize("envelope", [b"", b"{}", b'{"body":{},"signature":"00"}'])
def test_what_is_no_round_is_refused_with_its_reason(envelope):
    refusal = World().answer(3, envelope or b" ")
    assert rule_of(refusal) == 1
    assert "envelope" in refusal.reason


def test_a_signed_text_that_is_no_round_is_refused():
    assert "canonical" in World().answer(3, sign("round", b"[1]")).reason


def test_a_round_of_another_manifest_is_refused():
    world = World()
    assert rule_of(world.answer(3, Campaign(manifest_of(window=1)).ask(3))) == 1


def test_the_first_round_follows_from_the_manifest():
    world = World()
    refusal = world.answer(0, world.signed(0, previous=bytes(32)))
    assert refusal == Refusal(1, "the first round does not follow from the manifest")
    assert rule_of(world.answer(0)) == 6


def test_a_round_that_is_not_chained_to_the_one_before_is_refused():
    world = World()
    assert isinstance(world.answer(3), Answer)
    refusal = world.answer(4, world.signed(4, previous=bytes(32)))
    assert rule_of(refusal) == 1
    assert "does not follow from round 3" in refusal.reason
    assert rule_of(world.answer(4)) == 8, "the honest one gets as far as the ledger"


def test_two_different_rounds_of_one_number_are_refused():
    world = World()
    world.answer(3)
    assert world.answer(3, world.signed(3, grace=9)).reason == "there are two different rounds 3"


def test_after_rounds_that_it_missed_a_device_takes_the_chain_up_again():
    world = World()
    world.answer(3)
    world.campaign.ask(4)
    assert isinstance(world.answer(6), Answer)


def test_a_manifest_must_be_signed_by_the_curators_key():
    world = World()
    other = Campaign(manifest_of(window=5))
    with pytest.raises(WireError, match="not signed by the curator's key"):
        world.reporter.pin(sign("manifest", other.text, key=bytes(32)), other.at(1))
    world.reporter.curator = CuratorKeys(bytes(32))
    with pytest.raises(WireError, match="not signed by the curator's key"):
        world.reporter.pin(other.envelope, other.at(1))
    world.reporter.pin(sign("manifest", other.text, key=bytes(32)), other.at(1))


OLD, NEW = KEY, bytes(range(1, 33))


def test_the_key_before_the_curators_counts_until_its_end_and_not_a_second_longer():
    world = World(window=1)
    ends = world.campaign.at(7).wall // 1000
    world.reporter.curator = CuratorKeys(NEW, OLD, ends)
    text = encode_round(world.campaign.round_of(5))
    assert isinstance(world.answer(5, sign("round", text, key=OLD)), Answer)
    text = encode_round(world.campaign.round_of(7))
    refusal = world.answer(7, sign("round", text, key=OLD))
    assert refusal == Refusal(1, "the round is not signed by the curator's key")
    assert isinstance(world.answer(7, sign("round", text, key=NEW)), Answer)


def test_a_real_signature_is_checked_by_a_real_library():
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    secret = ed25519.Ed25519PrivateKey.from_private_bytes(KEY)
    public = secret.public_key().public_bytes_raw()
    signature = secret.sign(b"message")
    assert verify_ed25519(public, b"message", signature)
    assert not verify_ed25519(public, b"massage", signature)
    assert not verify_ed25519(public, b"message", bytes(64))
    assert not verify_ed25519(b"no key", b"message", signature)


def test_a_missing_library_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[device\]"'):
        verify_ed25519(KEY, b"", bytes(64))
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.x25519", None)
    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[device\]"'):
        draw_x25519()


def test_two_sides_agree_on_a_secret_that_a_third_does_not_get():
    (mine, my_public), (theirs, their_public), (thirds, _) = (draw_x25519() for _ in range(3))
    shared = share_x25519(mine, their_public)
    assert shared == share_x25519(theirs, my_public)
    assert shared not in (share_x25519(thirds, my_public), share_x25519(thirds, their_public))
    assert draw_x25519() != draw_x25519()


@pytest.mark.parametrize("public", [bytes(32), b"\1" + bytes(31), b"short", b""])
def test_a_public_key_that_gives_no_secret_is_refused(public):
    with pytest.raises(WireError, match="none that a secret can be agreed with"):
        share_x25519(draw_x25519()[0], public)


# Rules 2 and 3


@pytest.mark.parametrize("off", [-2, -1, 1, 2])
def test_only_the_round_of_the_own_clock_is_answered(off):
    world = World()
    refusal = world.reporter.answer(
        world.campaign.ask(5), world.campaign.at(5 + off), world.tracker
    )
    assert rule_of(refusal) == 2


def test_a_round_that_is_closed_is_refused():
    world = World()
    closing = world.campaign.round_of(3).open + 10
    late = world.campaign.at(3.5)
    refusal = world.reporter.answer(world.signed(3, close=closing), late, world.tracker)
    assert refusal == Refusal(2, "round 3 is closed")


def test_more_than_the_pinned_epsilon_is_refused():
    refusal = World().answer(3, epsilon=MICRO + 1)
    assert refusal == Refusal(3, "epsilon_t=1.000001 is above the pinned epsilon=1")


@pytest.mark.parametrize("shift", [{"open": 1}, {"close": 1}])
def test_a_round_that_opens_or_closes_otherwise_than_pinned_is_refused(shift):
    world = World()
    honest = world.campaign.round_of(3)
    changes = {name: getattr(honest, name) + by for name, by in shift.items()}
    assert rule_of(world.answer(3, world.signed(3, **changes))) == 3


# Rules 4 and 5


def test_asked_again_a_device_sends_the_same_bytes():
    world = World()
    first = world.answer(3)
    again = world.answer(3)
    world.restart()
    assert world.answer(3).frame == again.frame == first.frame
    assert again.send_at == world.campaign.at(3).wall


def test_a_round_before_the_newest_is_refused():
    world = World()
    world.answer(5)
    refusal = world.reporter.answer(world.campaign.ask(4), world.campaign.at(4), world.tracker)
    assert rule_of(refusal) == 5


def test_a_coin_is_flipped_once_for_a_round():
    world = World(sampling="self")
    answers = {rule_of(world.answer(3, portion=0)) for _ in range(2)}
    assert answers == {7, 5}


def test_a_round_that_was_drawn_is_forgotten_when_the_device_restarts():
    world = World()
    envelope, now = world.campaign.ask(3), world.campaign.at(3)
    world.tracker.observe(3, None, boot=now.boot)
    assert isinstance(world.reporter.draw(envelope, now, world.tracker), Drawn)
    world.restart()
    assert rule_of(world.reporter.report(envelope, now, world.tracker)) == 5
    assert rule_of(world.answer(3)) == 5


def test_drawing_and_reporting_apart_gives_the_drawn_instant():
    world = World()
    world.tracker.observe(3, None, boot=world.campaign.at(3).boot)
    envelope, now = world.campaign.ask(3), world.campaign.at(3.25)
    drawn = world.reporter.draw(envelope, now, world.tracker)
    assert now.wall <= drawn.send_at < world.campaign.at(4).wall
    later = world.campaign.at(3.75)
    answer = world.reporter.report(envelope, later, world.tracker)
    assert answer.send_at == drawn.send_at
    assert world.reporter.report(envelope, later, world.tracker).frame == answer.frame


def test_a_report_too_late_for_its_round_is_not_made():
    world = World()
    envelope = world.campaign.ask(3)
    world.reporter.draw(envelope, world.campaign.at(3), world.tracker)
    assert rule_of(world.reporter.report(envelope, world.campaign.at(4), world.tracker)) == 2


# Rule 6


def test_quarantine_lasts_a_window_and_one_round_by_round_number():
    world = World(window=3)
    assert world.answered(range(1, 8)) == [4]


def test_quarantine_lasts_a_window_and_one_round_of_uptime_as_well():
    world = World(window=3)
    for t, boot in ((100, 1_000), (101, 239_999), (102, 240_000)):
        answer = world.answer(t, now=world.campaign.at(t, boot=boot))
    assert isinstance(answer, Answer)
    world = World(window=3)
    refusal = world.answer(100, now=world.campaign.at(100, boot=239_999))
    assert refusal.reason == "quarantine (there was no ledger), rounds left: 1"


def test_status_says_what_is_left_of_a_quarantine():
    world = World(window=3)
    status = world.reporter.status(world.campaign.at(1))
    assert (status.campaign, status.quarantine, status.rounds_left) == (
        "test",
        "there was no ledger",
        3,
    )
    assert (status.spent, status.lifetime_cap) == (0, 1000 * MICRO)
    assert world.reporter.status(world.campaign.at(4)).quarantine == ""


def test_a_wall_clock_set_ahead_does_not_end_a_later_quarantine():
    world = World(window=3)
    world.reporter.quarantine("once more", world.campaign.at(9))
    later = world.campaign.at(100, boot=world.campaign.at(10).boot)
    assert world.reporter.status(later).rounds_left == 3


def test_status_before_anything_is_pinned():
    reporter = Reporter(device=DEVICE, key=DEVICE_KEY, store=MemoryStore(), verify=verify)
    status = reporter.status(read_clocks())
    assert (status.campaign, status.rounds_left, status.lifetime_cap) == ("", 0, 0)
    assert not status.stopped
    reporter.quarantine("nothing to be quiet about", read_clocks())
    assert reporter.status(read_clocks()).quarantine == ""


def test_a_change_of_campaign_means_silence_for_the_longer_window():
    world = World(window=2)
    assert isinstance(world.answer(3), Answer)
    longer = Campaign(manifest_of(window=6, name="longer"))
    world.reporter.pin(longer.envelope, longer.at(4))
    assert world.reporter.status(longer.at(4)).rounds_left == 7
    world.campaign, world.tracker = longer, Tracker(longer.manifest)
    assert world.answered(range(4, 16)) == [11]
    shorter = Campaign(manifest_of(window=2, name="shorter"))
    world.reporter.pin(shorter.envelope, shorter.at(16))
    world.campaign, world.tracker = shorter, Tracker(shorter.manifest)
    assert world.answered(range(16, 27))[0] == 23


def test_pinning_the_same_manifest_again_changes_nothing():
    world = World()
    before = world.store.memory
    world.reporter.pin(world.campaign.envelope, world.campaign.at(2))
    assert world.store.memory is before


def test_a_campaign_taken_up_again_goes_on_after_its_newest_round():
    world = World()
    first = world.campaign
    world.answer(9)
    other = Campaign(manifest_of(window=2, name="other"))
    world.reporter.pin(other.envelope, other.at(10))
    world.reporter.pin(first.envelope, first.at(2, boot=700_000))  # the clock was set back
    assert world.store.memory.quarantine.t == 9


def test_a_quarantine_is_never_cut_short_by_another():
    world = World(window=2)
    long = Campaign(manifest_of(window=30, name="long"))
    world.reporter.pin(long.envelope, long.at(3))
    for name in ("one", "two", "three"):
        short = Campaign(manifest_of(window=2, name=name))
        world.reporter.pin(short.envelope, short.at(4))
    assert world.reporter.status(short.at(4)).rounds_left == 31
    world.reporter.quarantine("once more", short.at(5))
    assert world.reporter.status(short.at(5)).rounds_left == 30
    assert type(world.store.memory.quarantine.rounds) is int
    world.reporter.quarantine("once more", short.at(99))
    status = world.reporter.status(short.at(99))
    assert (status.quarantine, status.rounds_left) == ("once more", 3)


# Rule 7


def test_a_phase_is_kept_and_redrawn_only_after_a_quarantine():
    world = World(sampling="phase", words=fed(range(10**6)), window=3)
    answered = world.answered(range(4, 60))
    assert {t % 4 for t in answered} == {answered[0] % 4}
    assert len(answered) == 14
    before = world.store.memory.lots
    world.restart()
    world.answer(60)
    assert world.store.memory.lots == before
    world.reporter.quarantine("test", world.campaign.at(61))
    assert world.store.memory.lots is None
    world.answered(range(62, 70))
    assert world.store.memory.lots != before


def test_a_decision_is_durable_before_a_place_is_read():
    world = World()

    class Spy:
        def kind(self, t):
            return MOVING

        def sampled(self, t):
            return None

        def answer(self, question, t):
            seen.append(world.store.memory.heads[-1].t)
            return -1

    seen = []
    now = world.campaign.at(3)
    assert isinstance(world.reporter.answer(world.campaign.ask(3), now, Spy()), Answer)
    assert seen == [3]


class FullStore(MemoryStore):
    """A store without room, until there is some."""

    full = False

    def save(self, memory):
        if self.full:
            raise LedgerError("no room")
        super().save(memory)


def test_a_decision_that_could_not_be_stored_was_not_made():
    world = World(FullStore())
    envelope, now = world.campaign.ask(3), world.campaign.at(3)
    world.tracker.observe(3, (1.0, 1.0), boot=now.boot)
    world.store.full = True
    with pytest.raises(LedgerError):
        world.reporter.draw(envelope, now, world.tracker)
    world.store.full = False

    assert rule_of(world.reporter.report(envelope, now, world.tracker)) == 5
    assert isinstance(world.reporter.draw(envelope, now, world.tracker), Drawn)


def test_a_device_that_does_not_share_is_silent_unless_presence_is_hidden():
    world = World()
    now = world.campaign.at(3)
    assert rule_of(world.reporter.answer(world.campaign.ask(3), now, world.tracker)) == 7
    hidden = World(presence="hidden", size_source="estimated")
    answer = hidden.reporter.answer(hidden.campaign.ask(3), now, hidden.tracker)
    assert isinstance(answer, Answer)


class Always:
    """Whereabouts of one kind."""

    def __init__(self, kind):
        self.always = kind

    def kind(self, t):
        return self.always

    def sampled(self, t):
        return None

    def answer(self, question, t):
        return -1


@pytest.mark.parametrize(
    ("kind", "code"), [(ENTERING, 2), (MOVING, 1), (QUITTING, 3), (ABSENT, None)]
)
def test_under_flags_the_kind_of_presence_chooses_the_question(kind, code):
    world = World(strata=("move", "enter", "quit"), presence="flags")
    answer = world.reporter.answer(world.campaign.ask(3), world.campaign.at(3), Always(kind))
    if code is None:
        assert rule_of(answer) == 7
    else:
        assert decode_report(answer.frame, DEVICE_KEY, oracle="oue").question == code


@pytest.mark.parametrize(("kind", "asked"), [(ENTERING, False), (MOVING, True), (QUITTING, False)])
def test_without_endpoints_only_those_are_asked_who_move(kind, asked):
    world = World(n_states=49)
    answer = world.reporter.answer(world.campaign.ask(3), world.campaign.at(3), Always(kind))
    assert isinstance(answer, Answer) == asked


AGES = {"strata": ("transition", "older"), "other_shares": (999_999,), "ages": (2, 4), "window": 2}


def test_a_device_in_the_second_role_answers_about_ages_and_rests_longer():
    world = World(**AGES)
    answered = world.answered(range(3, 40))
    lookbacks = {e.t: e.lookback for e in world.store.memory.entries}
    assert set(lookbacks.values()) <= {2, 4}
    for earlier, later in itertools.pairwise(answered):
        assert later - earlier >= 4
    assert (
        rule_of(
            world.reporter.answer(world.campaign.ask(40), world.campaign.at(40), Always(QUITTING))
        )
        == 7
    )


def test_ages_in_their_phase_come_every_three_gaps():
    world = World(**AGES, sampling="phase", words=fed([5, 0] + [0, 7] * 10**4))
    answered = world.answered(range(3, 60))
    assert all(later - earlier == 9 for earlier, later in itertools.pairwise(answered))
    assert len(answered) >= 5


@pytest.mark.parametrize(("place", "first"), [(0, 4), (1, 6)])
def test_an_age_report_does_not_look_back_behind_a_quarantine(place, first):
    world = World(**AGES, words=fed([0, 0] + [place] * 99))
    assert [rule_of(world.answer(t)) for t in range(3, first)] == [8] * (first - 3)
    assert isinstance(world.answer(first), Answer), "w + L rounds after it began"


def test_what_a_quarantine_may_hide_is_all_of_epsilon_where_that_is_divided():
    world = World(**AGES, division="budget", words=fed([0, 0] + [1] * 99))
    assert [rule_of(world.answer(t, epsilon=HALF)) for t in range(3, 6)] == [8] * 3
    assert isinstance(world.answer(6, epsilon=HALF), Answer)


def test_entries_are_kept_for_the_report_that_looks_back_furthest():
    world = World(**AGES, division="budget", words=fed([0, 0] + [0] * 999))
    furthest = world.campaign.manifest.gap + max(world.campaign.manifest.ages) - 1
    assert len(world.answered(range(8, 30), epsilon=MICRO // 100)) == 22
    assert len(world.store.memory.entries) >= furthest


def test_where_presence_is_hidden_the_absent_answer_too():
    manifest = manifest_of(n_states=49, presence="hidden", size_source="estimated")
    sampling = Sampling(manifest, draw_lots(fed([0, 0])))
    assert [sampling.question(kind, fed([])) for kind in (ABSENT, ENTERING)] == [Question()] * 2


def test_a_device_that_does_not_answer_says_why():
    world = World(sampling="self")
    assert world.answer(3, portion=0) == Refusal(7, "round 3 is not for this device")
    ask, now = world.campaign.ask(4), world.campaign.at(4)
    asks_nothing = Refusal(7, "round 4 asks nothing of this device now")
    assert world.reporter.answer(ask, now, Always(ABSENT)) == asks_nothing
    drawn = world.reporter.draw(world.campaign.ask(5), world.campaign.at(5), Always(MOVING))
    assert drawn.t == 5


def test_a_round_is_closed_from_the_instant_it_closes():
    world = World()
    half = world.campaign.round_of(3).open + world.campaign.manifest.period // 2
    answer = world.answer(3, now=world.campaign.at(3.5), close=half)
    assert answer == Refusal(2, "round 3 is closed")


def test_a_round_that_was_not_drawn_is_not_reported():
    world = World()
    world.answer(3)
    found = world.reporter.report(world.campaign.ask(4), world.campaign.at(4), world.tracker)
    assert found == Refusal(5, "round 4 was not drawn since this device started")


def test_presence_is_answered_by_yes_or_no():
    world = World(
        strata=("transition", "present"),
        other_shares=(999_999,),
        presence="hidden",
        size_source="estimated",
    )
    for kind in (ABSENT, MOVING):
        answer = world.reporter.answer(world.campaign.ask(3), world.campaign.at(3), Always(kind))
        assert decode_report(answer.frame, DEVICE_KEY, oracle="oue").n_answers == 1


def test_roles_have_their_share_in_the_order_of_the_strata():
    manifest = manifest_of(
        **(
            FASTER
            | {
                "strata": ("transition", "older", "faster", "cell"),
                "other_shares": (100_000, 50_000, 450_000),
                "ages": (2,),
            }
        )
    )
    roles = [
        Sampling(manifest, draw_lots(fed([0, -(-k * 2**64 // 1000)]))).role for k in range(1000)
    ]
    assert roles == ["older"] * 100 + ["faster"] * 50 + ["cell"] * 450 + [None] * 400


CELLS = {"strata": ("transition", "cell"), "other_shares": (999_999,)}
FASTER = {
    "strata": ("transition", "faster"),
    "other_shares": (999_999,),
    "speeds": SPEEDS,
    "public_map": bytes(32),
}
HIDDEN = {"presence": "hidden", "size_source": "estimated"}
FLAGS = {"strata": ("move", "enter", "quit", "cell"), "presence": "flags"}


def test_a_share_of_one_half_is_exactly_half_of_all_lots():
    manifest = manifest_of(**(CELLS | {"other_shares": (MICRO // 2,)}))
    lots = [draw_lots(fed([0, role])) for role in (2**63 - 1, 2**63)]
    assert [Sampling(manifest, each).role for each in lots] == ["cell", None]


@pytest.mark.parametrize(
    ("changes", "asked"),
    [({}, (True, True, False, False)), (FLAGS, (True, True, False, False)), (HIDDEN, (True,) * 4)],
)
def test_a_device_in_the_role_of_cells_answers_when_present_or_whatever_where_that_is_hidden(
    changes, asked
):
    sampling = Sampling(manifest_of(**(CELLS | changes)), draw_lots(fed([0, 0])))
    found = [sampling.question(kind, fed([])) for kind in (ENTERING, MOVING, QUITTING, ABSENT)]
    assert found == [Question(about="cell") if one else None for one in asked]
    assert sampling.cycle == sampling.manifest.gap


def test_a_device_in_the_role_of_cells_reports_at_its_phase_and_nothing_else():
    world = World(**CELLS, sampling="phase", words=fed([1, 0] + [7] * 10**4))
    answers = {t: world.answer(t) for t in range(3, 40)}
    told = {
        t: decode_report(answer.frame, DEVICE_KEY, oracle="oue")
        for t, answer in answers.items()
        if isinstance(answer, Answer)
    }
    assert {t % 3 for t in told} == {1}
    assert len(told) == 12
    assert {(report.question, report.n_answers) for report in told.values()} == {(5, 9)}
    assert {entry.lookback for entry in world.store.memory.entries} == {1}


@pytest.mark.parametrize(("word", "threshold"), [(0, 2), (9, 3), (2, 5), (2**64 - 1, 50)])
def test_who_tells_how_far_it_moved_does_so_while_it_goes_on_sharing(word, threshold):
    sampling = Sampling(manifest_of(**FASTER), draw_lots(fed([0, 0])))
    asked = Question(about="faster", threshold=threshold)
    assert sampling.question(MOVING, fed([word])) == asked
    assert [sampling.question(kind, fed([])) for kind in (ENTERING, QUITTING, ABSENT)] == [None] * 3
    assert sampling.cycle == sampling.manifest.gap


def test_a_device_in_the_role_of_speeds_reports_at_its_phase_and_nothing_else():
    dice = random.Random(4)
    words = itertools.chain([1, 0], iter(lambda: dice.getrandbits(64), None))
    world = World(**FASTER, sampling="phase", words=fed(words))
    told = [
        decode_report(answer.frame, DEVICE_KEY, oracle="oue")
        for answer in map(world.answer, range(3, 90))
        if isinstance(answer, Answer)
    ]
    assert {report.t % 3 for report in told} == {1}
    assert len(told) == 29
    assert {report.n_answers for report in told} == {1}
    assert {report.question for report in told} == set(range(32, 40))
    assert {entry.lookback for entry in world.store.memory.entries} == {1}


@pytest.mark.parametrize("oracle", ["oue", "grr", "olh"])
def test_how_far_it_moved_is_a_yes_or_no_that_all_of_epsilon_hides(oracle):
    for word, bits in ((noise_threshold(MICRO) - 1, b"\1"), (noise_threshold(MICRO), b"\0")):
        world = World(**FASTER, oracle=oracle, words=fed([0, 0, 3, 0, word]))
        answer = world.reporter.answer(world.campaign.ask(3), world.campaign.at(3), Always(MOVING))
        report = decode_report(answer.frame, DEVICE_KEY, oracle=oracle)
        assert (report.question, report.bits, report.epsilon) == (35, bits, MICRO)


def test_a_manifest_of_the_same_campaign_with_another_map_is_refused_and_nothing_changes():
    world = World(**FASTER)
    before = world.store.memory
    for other in (bytes(31) + b"1", b""):
        changes = {"public_map": other} if other else {"strata": ("transition",), **NOTHING_ASKED}
        changed = Campaign(dataclasses.replace(world.campaign.manifest, **changes))
        with pytest.raises(WireError, match="names another public map than the pinned one"):
            world.reporter.pin(changed.envelope, world.campaign.at(3))
        assert world.store.memory == before
        refused = world.reporter.answer(changed.ask(3), world.campaign.at(3), world.tracker)
        assert rule_of(refused) == 1
    assert world.answered(range(3, 9)) == [4, 7]


@pytest.mark.parametrize("new", [{"name": "another"}, {"epoch": EPOCH + 60}, {"key": bytes(32)}])
def test_a_new_campaign_may_have_another_map(new):
    world = World(**FASTER)
    other = Campaign(
        dataclasses.replace(world.campaign.manifest, public_map=bytes(31) + b"1", **new)
    )
    key = new.get("key", KEY)
    world.reporter.pin(sign("manifest", other.text, key), world.campaign.at(3))
    assert world.store.memory.pinned == other.text


NOTHING_ASKED = {"other_shares": (), "speeds": (), "public_map": b""}


@pytest.mark.parametrize(
    ("strata", "changes", "gaps"),
    [
        (("transition", "older"), {"ages": (2,)}, 3),
        (("transition", "present"), {"presence": "hidden", "size_source": "estimated"}, 1),
        (("transition", "cell"), {}, 1),
        (("transition", "faster"), {"speeds": (2,), "public_map": bytes(32)}, 1),
    ],
)
def test_only_who_answers_about_ages_waits_for_three_gaps(strata, changes, gaps):
    manifest = manifest_of(strata=strata, other_shares=(500_000,), **changes)
    cycles = [Sampling(manifest, draw_lots(fed([0, role]))).cycle for role in (0, 2**64 - 1)]
    assert cycles == [gaps * manifest.gap, manifest.gap]


@pytest.mark.parametrize(("word", "heads"), [(2**62 - 1, True), (2**62, False)])
def test_a_coin_falls_heads_iff_its_word_is_below_the_portion(word, heads):
    manifest = manifest_of(sampling="self")
    sampling = Sampling(manifest, draw_lots(fed([0, 0])))
    asked = Campaign(manifest).round_of(3, portion=2**62)
    assert sampling.chosen(asked, fed([word])) == heads


# Rule 8


@pytest.mark.parametrize(
    ("older", "newer", "rest"),
    [
        ({"gap": 10, "period": 10}, {"gap": 1, "period": 1, "lookback": 3}, 102_000),
        ({"gap": 1, "period": 1}, {"gap": 10, "period": 10, "lookback": 1}, 100_000),
    ],
)
def test_between_two_campaigns_the_longer_rest_counts(older, newer, rest):
    entry = LedgerEntry(manifest=b"a", t=9, uptime=500, epsilon=1, **({"lookback": 1} | older))
    wish = LedgerEntry(manifest=b"b", t=9, uptime=500 + rest, epsilon=1, **newer)
    assert not counts(entry, wish)
    assert counts(entry, dataclasses.replace(wish, uptime=wish.uptime - 1))


def test_a_device_reports_once_in_a_window_and_one_round():
    assert World(window=4).answered(range(1, 30)) == [5, 10, 15, 20, 25]


def test_with_the_unit_of_transitions_it_is_the_window():
    assert World(window=4, unit="transition").answered(range(1, 30))[1:] == [9, 13, 17, 21, 25, 29]


def test_budgets_add_up_within_the_window():
    world = World(window=3, division="budget")
    assert world.answered(range(4, 20), epsilon=HALF) == [4, 5, 8, 9, 12, 13, 16, 17]


def test_a_wall_clock_set_forward_releases_nothing():
    world = World()
    assert isinstance(world.answer(3), Answer)
    boot = world.campaign.at(3).boot
    for t in (10, 20, 30):
        refusal = world.answer(t, now=world.campaign.at(t, boot=boot + t))
        assert rule_of(refusal) == 8
    assert isinstance(world.answer(40, now=world.campaign.at(40, boot=boot + 150_000)), Answer)


def test_half_a_round_of_jitter_is_forgiven_and_no_more():
    for late, forgiven in ((29_999, True), (30_001, False)):
        world = World()
        boot = world.campaign.at(3).boot
        world.answer(3, now=world.campaign.at(3, boot=boot + late))
        answer = world.answer(6, now=world.campaign.at(6))
        assert isinstance(answer, Answer) == forgiven


def test_time_switched_off_releases_nothing():
    world = World()
    assert isinstance(world.answer(3), Answer)
    world.restart()
    world.tracker = Tracker(world.campaign.manifest)
    assert rule_of(world.answer(900, now=world.campaign.at(900, boot=60_000))) == 8
    assert isinstance(world.answer(902, now=world.campaign.at(902, boot=180_000)), Answer)


def test_a_refusal_says_what_would_be_spent():
    world = World(division="budget")
    world.answer(3, epsilon=HALF)
    assert world.answer(4).reason == (
        "epsilon_t=1 would bring the last 3 rounds to 1.5, above epsilon=1"
    )


def test_the_lifetime_cap_ends_it():
    world = World(lifetime_cap=2 * MICRO + HALF)
    assert world.answered(range(3, 30)) == [3, 6]
    assert world.answer(30).reason == "the lifetime cap of 2.5 is reached"
    assert world.reporter.status(world.campaign.at(30)).stopped
    assert isinstance(world.answer(31, epsilon=HALF), Answer)


def test_a_device_that_divides_epsilon_has_stopped_when_nothing_is_left():
    world = World(lifetime_cap=MICRO + HALF, division="budget")
    for t, asked, stopped in ((3, MICRO, False), (6, HALF, True)):
        assert not world.reporter.status(world.campaign.at(t)).stopped
        assert isinstance(world.answer(t, epsilon=asked), Answer)
        assert world.reporter.status(world.campaign.at(t)).stopped == stopped


@pytest.mark.parametrize(("division", "left"), [("budget", 1), ("population", MICRO)])
def test_a_device_has_not_stopped_while_the_cap_leaves_room_for_one_more_report(division, left):
    world = World(lifetime_cap=MICRO + left, division=division)
    assert isinstance(world.answer(3), Answer)
    assert not world.reporter.status(world.campaign.at(3)).stopped


def test_entries_that_no_report_will_count_are_forgotten():
    world = World(window=2, division="budget")
    world.answered(range(3, 200), epsilon=MICRO // 10)
    assert len(world.store.memory.entries) <= 4
    assert world.store.memory.spent == 197 * (MICRO // 10)


def test_a_position_taken_earlier_in_the_round_counts_from_then():
    world = World()
    now = world.campaign.at(3.9)
    world.tracker.observe(3, None, boot=world.campaign.at(3).boot)
    world.reporter.answer(world.campaign.ask(3), now, world.tracker)
    assert world.store.memory.entries[-1].uptime == world.campaign.at(3).boot


def test_a_position_from_the_future_of_the_boot_clock_counts_from_now():
    world = World()
    now = world.campaign.at(3)
    world.tracker.observe(3, None, boot=now.boot + 1)
    world.reporter.answer(world.campaign.ask(3), now, world.tracker)
    assert world.store.memory.entries[-1].uptime == now.boot


# Rules 9 to 11


@pytest.mark.parametrize(("oracle", "size"), [("oue", 9), ("grr", 1), ("olh", 5)])
def test_a_report_is_made_with_the_oracle_of_the_manifest(oracle, size):
    answer = World(oracle=oracle).answer(3)
    report = decode_report(answer.frame, DEVICE_KEY, oracle=oracle)
    assert len(report.bits) == size
    assert (report.n_answers, report.t, report.epsilon, report.device) == (67, 3, MICRO, DEVICE)


@pytest.mark.parametrize("n_words", range(70))
def test_without_entropy_there_is_no_report(n_words):
    world = World(words=fed(range(n_words)))
    with pytest.raises(EntropyError):
        world.answer(3)
    assert world.store.memory.entries == ()


def test_the_state_comes_from_the_last_two_cells():
    bits = []
    for cell in (0, 4):
        # lots, coin of no one, send instant; then no noise bit turns on, and the true one does
        words = fed([0, 0, 0] + [2**63 - 1] * 67)
        world = World(words=words)
        x, y = (cell % 3) * 2 + 1, (cell // 3) * 2 + 1
        for t in (2, 3):
            world.tracker.observe(t, (x, y), boot=world.campaign.at(t).boot)
        answer = world.reporter.answer(world.campaign.ask(3), world.campaign.at(3), world.tracker)
        report = decode_report(answer.frame, DEVICE_KEY, oracle="oue")
        bits.append(int.from_bytes(report.bits, "little").bit_length() - 1)
    from retrasyn.device.tracker import Numbering

    assert bits == [Numbering(3, endpoints=True).move(cell, cell) for cell in (0, 4)]


# Acknowledgements


def tagged(status, frame, key=DEVICE_KEY):
    part = signed_part("ack", acked_part(status, frame))
    return encode_ack(Ack(status=status, proof=tag_of(key, part)))


def signed(status, frame, key=KEY):
    part = signed_part("ack", acked_part(status, frame))
    return encode_ack(Ack(status=status, proof=hashlib.sha512(key + part).digest()))


@pytest.mark.parametrize("prove", [tagged, signed])
@pytest.mark.parametrize("status", STATUSES)
def test_every_acknowledgement_has_a_reaction(status, prove):
    world = World()
    frame = world.answer(3).frame
    before = world.store.memory
    ack = prove(status, frame)
    assert world.reporter.hear(ack, frame, world.campaign.at(3)) == REACTIONS[status]
    assert world.store.memory.entries == before.entries, "no refund"
    assert (world.store.memory is before) == (status != "unauthenticated")
    assert world.answer(3).frame == frame
    assert 200 <= HTTP_STATUS[status] <= 503


@pytest.mark.parametrize("prove", [tagged, signed])
@pytest.mark.parametrize("status", STATUSES)
def test_a_forged_acknowledgement_is_ignored_and_changes_nothing(status, prove):
    world = World()
    frame = world.answer(3).frame
    before, now = world.store.memory, world.campaign.at(3)
    genuine = prove(status, frame)
    other = STATUSES[(STATUSES.index(status) + 1) % len(STATUSES)]
    forged = [
        prove(status, frame, key=bytes(32)),  # another's key
        prove(status, frame[:-1] + bytes([frame[-1] ^ 1])),  # another frame
        genuine[:1] + prove(other, frame)[1:2] + genuine[2:],  # another status
        genuine[:2] + bytes(len(genuine) - 2),  # no proof
        genuine[:-1] + bytes([genuine[-1] ^ 1]),
    ]
    assert [world.reporter.hear(ack, frame, now) for ack in forged] == ["ignore"] * 5
    assert world.store.memory is before
    assert world.answer(3).frame == frame, "its bytes are still there to be sent"


def test_a_device_without_a_manifest_or_a_curators_key_believes_no_signature():
    reporter = Reporter(device=DEVICE, key=DEVICE_KEY, store=MemoryStore(), verify=verify)
    now = Campaign(manifest_of()).at(3)
    assert reporter.hear(signed("unauthenticated", b"frame"), b"frame", now) == "ignore"
    reporter.curator = CuratorKeys(KEY)
    assert reporter.hear(signed("unauthenticated", b"frame"), b"frame", now) == "enrol"


def test_a_device_that_is_not_known_any_more_is_silent_for_a_window():
    world = World()
    frame = world.answer(3).frame
    world.reporter.hear(signed("unauthenticated", frame), frame, world.campaign.at(3))
    assert "does not know" in world.reporter.status(world.campaign.at(3)).quarantine
    assert world.answered(range(4, 12)) == [6, 9]


# The parts


def test_the_clocks_are_read_in_whole_milliseconds():
    now = read_clocks()
    assert {type(now.wall), type(now.boot)} == {int}


def test_a_memory_comes_back_as_it_was():
    world = World(sampling="phase", window=3)
    world.answered(range(4, 20))
    memory = world.store.memory
    assert read_memory(write_memory(memory)) == memory
    assert read_memory(write_memory(DeviceMemory())) == DeviceMemory()


def test_an_odometer_counts_what_the_clock_shows_after_a_restart():
    odometer = Odometer().advance(500).advance(700).advance(20).advance(20)
    assert odometer == Odometer(total=720, boot=20)


def test_a_device_needs_an_id_and_a_key():
    with pytest.raises(WireError, match="not 3 and 32"):
        Reporter(device=b"abc", key=bytes(32), store=MemoryStore(), verify=verify)


@pytest.mark.system
def test_the_device_needs_no_third_party_package():
    source = Path(retrasyn.__file__).parents[1]
    program = (
        f"import sys; sys.path.insert(0, {str(source)!r}); import retrasyn.device.reporter, "
        "retrasyn.device, retrasyn.wire; "
        "print([m for m in sys.modules if 'site-packages' in "
        "(getattr(sys.modules[m], '__file__', '') or '')])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_clocks_are_in_milliseconds():
    now = read_clocks()
    assert isinstance(now, Instant)
    assert now.wall > 1_600_000_000_000


def test_a_reporter_wants_an_id_and_a_key_of_their_lengths():
    parts = {"store": MemoryStore(), "verify": verify_ed25519}
    assert Reporter(device=DEVICE, key=bytes(MIN_KEY_BYTES), **parts)
    for device, key in ((DEVICE, bytes(MIN_KEY_BYTES - 1)), (DEVICE[1:], DEVICE_KEY)):
        with pytest.raises(WireError):
            Reporter(device=device, key=key, **parts)
