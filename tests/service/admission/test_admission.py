"""Every status of a frame, alone and in batches, and what the admission takes."""

import hashlib
import hmac
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import StoreError, WireError
from retrasyn.messages import ENTERING, MICRO, MOVING, QUITTING
from retrasyn.oracles.single import SEED_BYTES
from retrasyn.service.admission import tags
from retrasyn.service.admission.admission import _same_lengths
from retrasyn.service.admission.headers import Header, Headers, at_most
from retrasyn.service.admission.open_rounds import Marks
from retrasyn.service.admission.records import Chunk, keys_of_marks, read_chunks, write_chunk
from retrasyn.service.admission.tags import matching, pads_of, tags_of
from retrasyn.wire.batches import join_frames, read_acks
from retrasyn.wire.frames import decode_heartbeat, decode_report, is_tagged, tag_of
from retrasyn.wire.statuses import STATUSES
from retrasyn.wire.texts import MAX_EPSILON
from support.senders import Senders

SECRET = hashlib.sha256(b"nobody's").digest()


def judged(admission, senders, *frames, at=0.5):
    return admission.judge(frames, senders.now(at)).statuses


# Tags


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=100), st.binary(max_size=300)), max_size=8)
)
def test_tags_from_prepared_pads_are_those_of_the_wire(pairs):
    made = tags_of([pads_of(0, secret) for secret, _ in pairs], [text for _, text in pairs])
    assert made.tobytes() == b"".join(tag_of(secret, text) for secret, text in pairs)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_a_secret_of_any_length_has_its_pads(size):
    secret = bytes(range(size))
    assert tags_of([pads_of(0, secret)], [b"text"]).tobytes() == tag_of(secret, b"text")


def test_tags_are_compared_in_constant_time_all_at_once_and_one_by_one(monkeypatch):
    calls = []
    honest = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: calls.append(len(a)) or honest(a, b))
    ours = np.arange(48, dtype=np.uint8).reshape(3, 16)
    theirs = ours.copy()
    assert matching(ours, theirs).tolist() == [True, True, True]
    theirs[1, 15] ^= 1
    assert matching(ours, theirs).tolist() == [True, False, True]
    assert calls == [48, 48, 16, 16, 16]


def test_every_frame_is_acknowledged_with_the_key_of_the_device_it_names():
    senders = Senders.of(3)
    admission = senders.admission()
    reports = [senders.report(key, 0) for key in range(3)]
    beats = [senders.heartbeat(key, 0, kind=ENTERING) for key in range(3)]
    padded = [beat.ljust(len(reports[0]), b"\0") for beat in beats]
    mixed = [reports + beats, [reports[0], *padded[1:]]]
    for frames in (reports, beats, padded, *mixed, reports[:1]):
        keys = [key % 3 for key in range(len(frames))]
        codes = bytes(range(3, 3 + len(frames)))
        found = read_acks(admission.acknowledge_batch(codes, join_frames(frames)), len(frames))
        assert [ack.status for ack in found] == [STATUSES[code] for code in codes]
        for ack, code, frame, key in zip(found, codes, frames, keys, strict=True):
            assert is_tagged(ack, frame, senders.secret(key))
            assert admission.acknowledge(code, frame) == ack.proof
    admission.remove_device(senders.device(0))
    for frames in (reports, [*reports, *beats]):
        answer = admission.acknowledge_batch(bytes(len(frames)), join_frames(frames))
        first, second, *_ = read_acks(answer, len(frames))
        assert not is_tagged(first, reports[0], senders.secret(0)), "it is nobody's any more"
        assert is_tagged(second, reports[1], senders.secret(1))


# One frame


def test_what_many_frames_share_is_read_from_the_head_of_one():
    senders = Senders.of(1)
    headers = Headers(senders.manifest, senders.campaign.id)
    beat, report = senders.heartbeat(0, 7), senders.report(0, 7)
    assert headers.read(beat[:14], len(beat)) == Header(
        code=64 + MOVING, t=7, epsilon=0, lookback=1, device_at=14
    )
    assert headers.read(report[:20], len(report)) == Header(
        code=0, t=7, epsilon=MICRO, lookback=1, device_at=20
    )
    for epsilon in (1, MAX_EPSILON):
        frame = senders.report(0, 7, epsilon=epsilon)
        assert headers.read(frame[:20], len(frame)).epsilon == epsilon


def test_a_report_is_accepted_once_and_then_a_duplicate():
    senders = Senders.of(2)
    admission = senders.admission(0)
    report = senders.report(0, 0)
    assert judged(admission, senders, report) == ["accepted"]
    assert judged(admission, senders, report, report) == ["duplicate", "duplicate"]


def test_other_bytes_for_the_same_round_are_a_conflict_and_the_first_is_kept():
    senders = Senders.of(1)
    admission = senders.admission(0)
    first, other = senders.report(0, 0), senders.report(0, 0, salt=b"other")
    assert judged(admission, senders, first, other, first) == ["accepted", "conflict", "duplicate"]
    bits, keys = admission.accepted(0).answers[0]
    assert bits.tobytes() == first[36:-16]
    assert keys.tolist() == [0]


def test_a_heartbeat_and_a_report_of_one_device_do_not_meet():
    senders = Senders.of(1)
    admission = senders.admission(0)
    frames = [senders.report(0, 0), senders.heartbeat(0, 0), senders.heartbeat(0, 0)]
    assert judged(admission, senders, *frames) == ["accepted", "accepted", "duplicate"]


def test_instants_decide_between_early_accepted_late_and_unknown():
    senders = Senders.of(1)
    admission = senders.admission(1)
    report = senders.report(0, 1)
    ends = 2 + 5 / 60  # a grace of five seconds
    assert judged(admission, senders, report, at=0.99) == ["early"]
    assert judged(admission, senders, report, at=ends) == ["late"]
    assert judged(admission, senders, senders.report(0, 2), at=1) == ["early"]
    assert judged(admission, senders, senders.report(0, 2), at=2.5) == ["early"], (
        "about to be opened"
    )
    assert judged(admission, senders, senders.report(0, 3), at=1.5) == ["unknown round"]
    assert judged(admission, senders, senders.report(0, 0), at=1.5) == ["late"], "skipped"
    assert judged(admission, senders, report, at=ends - 0.01) == ["accepted"]
    assert judged(admission, senders, senders.heartbeat(0, 1), at=ends) == ["late"]


def test_a_closed_or_folded_round_is_late_whatever_the_clock_says():
    senders = Senders.of(2)
    admission = senders.admission(0)
    admission.close_round(0)
    assert judged(admission, senders, senders.report(0, 0)) == ["late"]
    admission.forget_round(0)
    assert judged(admission, senders, senders.report(0, 0)) == ["late"]


SPEEDS_ASKED = {
    "strata": ("transition", "faster"),
    "other_shares": (500_000,),
    "speeds": (2, 6),
    "public_map": bytes(32),
}


def test_whether_somebody_moved_farther_is_taken_once_a_gap_by_its_threshold():
    senders = Senders.of(2, window=2, **SPEEDS_ASKED)
    admission = senders.admission(0, 1, 2, 3)
    first = [senders.report(key, 0, about="faster", threshold=6 - 4 * key) for key in range(2)]
    assert judged(admission, senders, *first) == ["accepted", "accepted"]
    answers = admission.accepted(0).answers
    assert {code: keys.tolist() for code, (_, keys) in answers.items()} == {32: [1], 33: [0]}
    for about, threshold in (("faster", 2), ("transition", 0)):
        soon = senders.report(0, 2, about=about, threshold=threshold)
        assert judged(admission, senders, soon, at=2.5) == ["too soon"], "whatever it is about"
    again = senders.report(0, 3, about="faster", threshold=6)
    assert judged(admission, senders, again, at=3.5) == ["accepted"]


def test_what_no_device_answers_about_its_speed_is_refused():
    senders = Senders.of(1, **SPEEDS_ASKED)
    faster = {"about": "faster", "threshold": 6}
    for wrong, status in (
        ({"question": 34}, "bad manifest"),
        ({"question": 16}, "bad manifest"),
        ({"epsilon": MICRO - 1}, "bad manifest"),
    ):
        frame = senders.report(0, 0, **(faster | wrong))
        assert judged(senders.admission(0), senders, frame) == [status]


@pytest.mark.parametrize(
    "wrong",
    [
        {"manifest": bytes(8)},
        {"n_answers": 66},
        {"epsilon": MICRO - 1},
        {"about": "move"},
        {"about": "present"},
    ],
    ids=str,
)
def test_what_the_manifest_or_the_round_does_not_ask_is_a_bad_manifest(wrong):
    senders = Senders.of(1)
    frame = senders.report(0, 0, **wrong)
    assert judged(senders.admission(0), senders, frame) == ["bad manifest"]


@pytest.mark.parametrize("version", [0, 1, 2, 4, 255])
def test_another_version_is_named_as_such(version):
    senders = Senders.of(1)
    for frame in (senders.report(0, 0), senders.heartbeat(0, 0)):
        old = bytes([version]) + frame[1:]
        assert judged(senders.admission(0), senders, old) == ["bad version"]


def test_any_other_length_is_bad():
    senders = Senders.of(1)
    admission = senders.admission(0)
    for frame in (senders.report(0, 0), senders.heartbeat(0, 0)):
        cut = [frame[:n] for n in range(len(frame)) if n >= 46 or n % 5 == 0]
        statuses = set(judged(admission, senders, *cut, frame + b"\0", b""))
        assert statuses == {"bad length"}


@pytest.mark.parametrize("oracle", ["oue", "grr", "olh"])
def test_bits_that_no_oracle_makes_are_a_bad_length(oracle):
    senders = Senders.of(1, oracle=oracle)
    admission = senders.admission(0)
    frame = senders.report(0, 0)
    for byte in range(36, len(frame) - 16):
        if oracle == "olh" and byte < 36 + SEED_BYTES:
            continue
        odd = frame[:byte] + b"\xff" + frame[byte + 1 :]
        odd = odd[:-16] + tag_of(senders.secret(0), odd[:-16])
        try:
            decode_report(odd, senders.secret(0), oracle=oracle)
        except WireError:
            assert judged(admission, senders, odd) == ["bad length"]
            break
    else:
        pytest.fail("nothing odd was found")
    assert judged(admission, senders, frame) == ["accepted"]


def test_length_and_header_come_before_any_cryptography(monkeypatch):
    senders = Senders.of(1)
    admission = senders.admission(1)
    frames = [
        senders.report(0, 1)[:-1],
        senders.report(0, 1, manifest=bytes(8)),
        senders.report(0, 0),
        senders.report(0, 9),
        senders.heartbeat(0, 1, kind=ENTERING),
    ]

    def forbidden(*_):
        raise AssertionError("a tag was computed")

    monkeypatch.setattr(tags, "tags_of", forbidden)
    statuses = judged(admission, senders, *frames, at=1.5)
    assert statuses == ["bad length", "bad manifest", "late", "unknown round", "bad manifest"]


# Who is who: I9


def test_a_forged_stolen_or_expired_identity_is_refused_every_time():
    senders = Senders.of(50)
    admission = senders.admission(0)
    admission.remove_device(senders.device(49))
    honest = senders.report(7, 0)
    frames = [
        *[senders.report(key, 0, secret=SECRET) for key in range(48)],  # forged
        *[senders.report(key, 0, secret=senders.secret(key + 1)) for key in range(48)],  # stolen
        *[senders.heartbeat(key, 0, secret=SECRET) for key in range(48)],
        senders.report(49, 0),  # revoked
        senders.heartbeat(49, 0),
        senders.report(1000, 0),  # never enrolled
        *[honest[:20] + senders.device(8) + honest[36:]],  # another's name on honest bytes
        *[honest[:i] + bytes([honest[i] ^ 1]) + honest[i + 1 :] for i in range(36, 44)],
        *[honest[:i] + bytes([honest[i] ^ 128]) + honest[i + 1 :] for i in range(45, 61)],
    ]
    for _ in range(3):
        verdicts = admission.judge(frames, senders.now(0.5))
        assert set(verdicts.statuses) == {"unauthenticated"}
        assert verdicts.blobs == []
    assert judged(admission, senders, honest) == ["accepted"]
    assert admission.accepted(0).answers[0][1].tolist() == [7]


def test_an_unknown_device_costs_the_same_work_as_a_wrong_tag(monkeypatch):
    senders = Senders.of(1)
    admission = senders.admission(0)
    lengths = []
    honest = tags.tags_of
    monkeypatch.setattr(
        tags, "tags_of", lambda p, m: lengths.append([len(x) for x in m]) or honest(p, m)
    )
    judged(admission, senders, senders.report(0, 0, secret=SECRET))
    judged(admission, senders, senders.report(5, 0))
    assert lengths == [[45], [45]]


def test_what_a_device_sent_before_it_left_still_counts():
    senders = Senders.of(2)
    admission = senders.admission(0)
    assert judged(admission, senders, senders.report(1, 0)) == ["accepted"]
    admission.remove_device(senders.device(1))
    assert admission.key_of(senders.device(1)) is None
    assert admission.accepted(0).answers[0][1].tolist() == [1]


def test_a_device_has_the_number_it_was_added_with_until_it_is_removed():
    senders = Senders.of(3)
    admission = senders.admission(0)
    assert [admission.key_of(senders.device(key)) for key in range(4)] == [0, 1, 2, None]
    for _ in range(2):  # the second time there is nothing left to remove
        admission.remove_device(senders.device(2))
    assert admission.key_of(senders.device(2)) is None
    assert admission.n_devices == 2


def test_rounds_are_unfolded_in_order_until_they_are_forgotten():
    admission = Senders.of(1).admission(2, 0, 1)
    admission.forget_round(0)
    assert admission.unfolded() == [1, 2]


# The gap


def test_marks_are_kept_for_as_long_as_a_report_may_have_to_rest():
    ages = {"strata": ("transition", "older"), "ages": (2, 7), "other_shares": (1,), "window": 3}
    manifest = Senders.of(1, **ages).manifest
    assert Senders.of(1, **ages).admission().marks_kept == max(
        manifest.window + manifest.retention, manifest.gap + 7
    )
    long = Senders.of(1, **ages | {"retention": 0})
    assert long.admission().marks_kept == long.manifest.gap + 7 > 3
    short = Senders.of(1, retention=0)
    assert short.admission().marks_kept == short.manifest.gap + 1


def test_a_report_about_age_that_was_read_back_from_the_store_rests_as_long_as_before():
    ages = {"strata": ("transition", "older"), "ages": (2, 7), "other_shares": (1,), "window": 3}
    senders = Senders.of(1, **ages)
    late = senders.manifest.epoch + 1000
    before, again = (senders.admission(0, 9, close=late) for _ in range(2))
    for admission in (before, again):
        for t in (0, 9):
            admission._open_rounds.rounds[t].row = senders.row(t, close=late)
    age = senders.report(0, 9, about="older", threshold=7)
    ((_, blob),) = before.judge([age], senders.now(9.5)).blobs

    again.restore(9, [blob])

    for admission in (before, again):
        assert judged(admission, senders, senders.report(0, 0), at=9.5) == ["too soon"]


def test_a_stored_chunk_that_names_a_device_twice_counts_it_once():
    senders = Senders.of(2)
    admission = senders.admission(0)
    ((_, blob),) = senders.admission(0).judge([senders.report(1, 0)], senders.now(0.5)).blobs
    (chunk,) = read_chunks(blob)
    twice = Chunk(
        chunk.code,
        np.repeat(chunk.keys, 2),
        np.repeat(chunk.tags, 2, axis=0),
        np.repeat(chunk.bits, 2, axis=0),
    )

    admission.restore(0, [write_chunk(twice)])

    assert admission.accepted(0).answers[0][1].tolist() == [1]


@pytest.mark.parametrize("order", [(0, 3), (3, 0)])
@pytest.mark.parametrize("folded", [False, True])
def test_two_reports_within_the_gap_are_too_soon_in_any_order(order, folded):
    senders = Senders.of(1)  # a gap of 4
    admission = senders.admission(*range(6), close=senders.manifest.epoch + 1000)
    for t in range(6):
        admission._open_rounds.rounds[t].row = senders.row(t, close=senders.manifest.epoch + 1000)
    first, second = order
    at = 5.5
    assert judged(admission, senders, senders.report(0, first), at=at) == ["accepted"]
    if folded and first < second:
        admission.forget_round(first)
    assert judged(admission, senders, senders.report(0, second), at=at) == ["too soon"]
    if first == 0:
        assert judged(admission, senders, senders.report(0, 4), at=at) == ["accepted"]


def test_marks_of_rounds_folded_before_a_restart_keep_the_gap():
    senders = Senders.of(3)
    admission = senders.admission(0)
    judged(admission, senders, senders.report(0, 0), senders.report(2, 0))
    marks = admission.accepted(0).marks
    assert keys_of_marks(marks).tolist() == [0, 2]
    again = senders.admission(3, 4)
    again.restore_marks(0, marks)
    again.restore_marks(1, b"")
    frames = [senders.report(key, 3) for key in range(3)]
    assert judged(again, senders, *frames, at=3.5) == ["too soon", "accepted", "too soon"]
    frames = [senders.report(key, 4) for key in range(3)]
    assert judged(again, senders, *frames, at=4.5) == ["accepted", "too soon", "accepted"]
    assert judged(again, senders, senders.report(0, 1), at=3.5) == ["late"]


@pytest.mark.parametrize("order", [(0, 9), (9, 0)])
def test_a_report_about_age_rests_for_as_long_as_it_looks_back(order):
    ages = {"strata": ("transition", "older"), "ages": (2, 7), "other_shares": (1,), "window": 3}
    senders = Senders.of(1, **ages)  # a gap of 4: 4 + 7 - 1 = 10 rounds of rest before
    admission = senders.admission(0, 9, 10)
    for t in (0, 9, 10):
        admission._open_rounds.rounds[t].row = senders.row(t, close=senders.manifest.epoch + 10_000)
    frames = {0: senders.report(0, 0), 9: senders.report(0, 9, about="older", threshold=7)}
    first, second = (frames[t] for t in order)
    assert judged(admission, senders, first, at=10) == ["accepted"]
    assert judged(admission, senders, second, at=10) == ["too soon"]
    if order[0] == 0:
        older = senders.report(0, 10, about="older", threshold=7)
        assert judged(admission, senders, older, at=10) == ["accepted"]
    assert admission.marks_kept == 13


def test_a_report_may_come_as_long_before_one_about_age_as_that_looks_back():
    ages = {"strata": ("transition", "older"), "ages": (2, 7), "other_shares": (1,), "window": 3}
    senders = Senders.of(1, **ages)
    admission = senders.admission(0, 10, close=senders.manifest.epoch + 10_000)
    older = senders.report(0, 10, about="older", threshold=7)
    assert judged(admission, senders, older, at=10) == ["accepted"]
    assert judged(admission, senders, senders.report(0, 0), at=10) == ["accepted"]


def test_where_epsilon_is_divided_every_round_may_be_answered():
    senders = Senders.of(1, division="budget", sampling="self")
    admission = senders.admission(0, 1, epsilon=MICRO // 10)
    assert judged(admission, senders, senders.report(0, 0, epsilon=MICRO // 10)) == ["accepted"]
    assert judged(admission, senders, senders.report(0, 1, epsilon=MICRO // 10), at=1) == [
        "accepted"
    ]
    assert judged(admission, senders, senders.report(0, 1), at=1) == ["bad manifest"], (
        "more than asked"
    )


def test_who_was_not_asked_is_too_soon_and_still_shares():
    senders = Senders.of(3)
    admission = senders.admission(0, drawn=np.array([1], "<u4").tobytes())
    frames = [senders.report(key, 0) for key in range(3)]
    assert judged(admission, senders, *frames) == ["too soon", "accepted", "too soon"]
    assert judged(admission, senders, senders.heartbeat(0, 0)) == ["accepted"]
    quiet = senders.admission(0, portion=0)
    assert judged(quiet, senders, *frames) == ["too soon"] * 3


# Presence


@pytest.mark.parametrize(
    ("presence", "kinds"),
    [("count", {MOVING}), ("flags", {ENTERING, MOVING, QUITTING}), ("hidden", set())],
)
def test_heartbeats_say_what_the_manifest_makes_public(presence, kinds):
    changes = {"strata": ("move", "enter", "quit")} if presence == "flags" else {}
    if presence == "hidden":
        changes = {"size_source": "estimated"}
    senders = Senders.of(3, presence=presence, **changes)
    admission = senders.admission(0)
    for key, kind in enumerate((ENTERING, MOVING, QUITTING)):
        expected = "accepted" if kind in kinds else "bad manifest"
        assert judged(admission, senders, senders.heartbeat(key, 0, kind)) == [expected]
    accepted = admission.accepted(0)
    assert dict(zip(accepted.keys.tolist(), accepted.kinds.tolist(), strict=True)) == {
        kind: kind for kind in kinds
    }


def test_questions_are_kept_apart_and_answers_are_by_ascending_key():
    senders = Senders.of(30, presence="flags", strata=("move", "enter", "quit"))
    admission = senders.admission(0)
    abouts = {key: ("move", "enter", "quit")[key % 3] for key in range(30)}
    frames = {key: senders.report(key, 0, about=about) for key, about in abouts.items()}
    for some in ([29, 3, 4], list(range(30))):
        admission.judge([frames[key] for key in some], senders.now(0.5))
    accepted = admission.accepted(0)
    for code, about in enumerate(("move", "enter", "quit"), start=1):
        bits, keys = accepted.answers[code]
        assert keys.tolist() == [key for key in range(30) if abouts[key] == about]
        assert [row.tobytes() for row in bits] == [frames[key][36:-16] for key in keys.tolist()]
    assert judged(admission, senders, senders.report(0, 0, about="quit")) == ["conflict"]


# Batches


def naive_one(senders, frame, heard, now):
    beat = frame[1] >= 64
    for key in range(senders.n):
        try:
            if beat:
                found = decode_heartbeat(frame, senders.secret(key))
            else:
                found = decode_report(frame, senders.secret(key), oracle="oue")
        except WireError:
            continue
        if found.device != senders.device(key) or found.manifest != senders.campaign.id:
            return "refused"
        if not senders.now(found.t) <= now < senders.row(found.t).ends:
            return "refused"
        place = (found.t, key, beat)
        if place in heard:
            return "duplicate" if heard[place] == frame else "conflict"
        if not beat:
            near = [t for t, other, is_beat in heard if other == key and not is_beat]
            if any(abs(t - found.t) < 4 for t in near):
                return "too soon"
        heard[place] = frame
        return "accepted"
    return "refused"


FATES = st.sampled_from(["as it is", "as it is", "flipped", "cut", "stolen"])
SALTS = st.sampled_from([b"", b"x"])
WISHES = st.tuples(
    st.integers(0, 3), st.integers(0, 2), st.booleans(), SALTS, FATES, st.integers(0, 10_000)
)


def frame_for(senders, wish):
    key, t, beat, salt, fate, place = wish
    frame = senders.heartbeat(key, t) if beat else senders.report(key, t, salt=salt)
    at = place % len(frame)
    if fate == "flipped":
        return frame[:at] + bytes([frame[at] ^ (1 << place % 8)]) + frame[at + 1 :]
    if fate == "cut":
        return frame[: max(at, 2)]
    return frame[:-16] + tag_of(SECRET, frame[:-16]) if fate == "stolen" else frame


def order_of(frames):
    """Within a batch, frames of one length and header are judged together, the first first."""
    lengths = [len(frame) for frame in frames]
    heads = [(frame[1] >= 64, frame[: 14 if frame[1] >= 64 else 20]) for frame in frames]

    def turn(place):
        peers = [i for i in range(len(frames)) if lengths[i] == lengths[place]]
        first = next(i for i in peers if heads[i] == heads[place])
        return lengths.index(lengths[place]), heads[place][0], first, place

    return sorted(range(len(frames)), key=turn)


@given(st.lists(WISHES, max_size=30), st.integers(1, 9))
def test_batches_are_judged_as_a_plain_loop_judges_them(wishes, size):
    senders = Senders.of(4)
    admission, heard = senders.admission(0, 1), {}
    now = senders.now(1) + 2  # round 0 in its grace, and round 1
    frames = [frame_for(senders, wish) for wish in wishes]
    final = {"accepted", "duplicate", "conflict", "too soon"}
    for first in range(0, len(frames), size):
        some = frames[first : first + size]
        expected = {i: naive_one(senders, some[i], heard, now) for i in order_of(some)}
        found = admission.judge_batch(join_frames(some), now).statuses
        simply = [status if status in final else "refused" for status in found]
        assert simply == [expected[i] for i in range(len(some))]
    for t in (0, 1):
        bits, keys = admission.accepted(t).answers.get(0, (np.zeros((0, 9), np.uint8), np.zeros(0)))
        assert {key: row.tobytes() for key, row in zip(keys.tolist(), bits, strict=True)} == {
            key: frame[36:-16] for (at, key, beat), frame in heard.items() if at == t and not beat
        }


def test_a_body_that_is_no_batch_is_refused_and_changes_nothing():
    senders = Senders.of(2)
    admission = senders.admission(0)
    body = join_frames([senders.report(0, 0), senders.report(1, 0)])
    for wrong in (body[:-1], body + b"\0", b"\0\0" * 40, body + b"\0\0", b"\xff\xff" + body):
        with pytest.raises(WireError):
            admission.judge_batch(wrong, senders.now(0.5))
    assert admission.accepted(0).answers == {}
    assert admission.judge_batch(b"", senders.now(0.5)).statuses == []
    assert admission.judge_batch(body, senders.now(0.5)).statuses == ["accepted"] * 2


def test_frames_of_one_length_that_differ_are_judged_apart():
    senders = Senders.of(4)
    reports = [senders.report(key, 0) for key in range(4)]
    beat = senders.heartbeat(3, 0).ljust(len(reports[0]), b"\0")
    padded = reports[1][:-17] + b"\xff" + reports[1][-16:]
    found = senders.admission(0).judge_batch(
        join_frames([reports[0], padded, beat, reports[2]]), senders.now(0.5)
    )
    assert found.statuses == ["accepted", "bad length", "bad length", "accepted"]
    assert found.codes.dtype == np.uint8
    assert senders.admission(0).judge([b"short"], senders.now(0.5)).codes.dtype == np.uint8


def test_nobody_was_heard_before_anybody_was():
    assert Marks().lookbacks_of(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("length", [46, 61, 300])
@pytest.mark.parametrize("n", [1, 3, 10_000])
def test_frames_of_one_length_are_rows_and_others_are_none(length, n):
    frames = [bytes([n % 256]) * length] * (n - 1) + [b"\1" * length]
    rows = _same_lengths(join_frames(frames))
    assert [row.tobytes() for row in rows] == frames
    assert _same_lengths(join_frames([frames[0], bytes(length - 1)])) is None
    assert _same_lengths(join_frames([bytes(45)] * n)) is None, "no frame is so short"


def test_a_batch_of_more_than_ten_thousand_frames_is_refused():
    senders = Senders.of(1)
    body = join_frames([senders.report(0, 0)]) * 10_001
    with pytest.raises(WireError, match="10,000"):
        senders.admission(0).judge_batch(body, senders.now(0.5))


def test_one_frame_ten_thousand_times_in_a_batch_counts_once():
    senders = Senders.of(1)
    admission, other = senders.admission(0), senders.report(0, 0, salt=b"x")
    body = join_frames([senders.report(0, 0)]) * 9_999 + join_frames([other])
    statuses = admission.judge_batch(body, senders.now(0.5)).statuses
    assert statuses == ["accepted", *["duplicate"] * 9_998, "conflict"]
    assert admission.accepted(0).answers[0][1].tolist() == [0]


def test_one_device_too_soon_is_too_soon_however_often_it_asks():
    senders = Senders.of(2)
    admission = senders.admission(0, 1)
    assert judged(admission, senders, senders.report(0, 0)) == ["accepted"]
    frames = [senders.report(0, 1)] * 3 + [senders.report(1, 1)] * 2
    expected = ["too soon"] * 3 + ["accepted", "duplicate"]
    assert judged(admission, senders, *frames, at=1) == expected


def test_ten_thousand_headers_in_one_batch_are_judged_in_no_time():
    senders = Senders.of(1)
    frame = senders.report(0, 0)
    frames = [frame[:4] + t.to_bytes(4, "little") + frame[8:] for t in range(10_000)]
    batch, now = join_frames(frames), senders.now(0.5)
    senders.admission(0).judge_batch(batch, now)  # compiles what it needs
    admission = senders.admission(0)
    begin = time.process_time()
    statuses = admission.judge_batch(batch, now).statuses
    assert time.process_time() - begin < 2, "a second would hold everybody up"
    assert statuses == ["accepted", "early", *["unknown round"] * 9_998]


def test_what_was_written_brings_back_the_same_round():
    senders = Senders.of(40, presence="flags", strata=("move", "enter", "quit"))
    admission, again, blobs = senders.admission(0), senders.admission(0), []
    for first in range(0, 40, 7):
        keys = range(first, min(first + 7, 40))
        frames = [senders.report(key, 0, about="enter") for key in keys]
        frames += [senders.heartbeat(key, 0, key % 3) for key in keys]
        blobs += [blob for _, blob in admission.judge(frames, senders.now(0.5)).blobs]
    joined = [b"".join(blobs[:5]), *blobs[5:], blobs[0]]  # the last was written twice
    again.restore(0, joined)
    one, two = admission.accepted(0), again.accepted(0)
    assert one.marks == two.marks
    assert (one.keys.tolist(), one.kinds.tolist()) == (two.keys.tolist(), two.kinds.tolist())
    assert one.answers[2][0].tobytes() == two.answers[2][0].tobytes()
    assert judged(again, senders, senders.report(3, 0, about="enter")) == ["duplicate"]
    again.restore(0, [])
    assert again.accepted(0).answers == {}


def test_a_batch_of_one_length_is_written_as_its_frames_are():
    senders = Senders.of(5)
    frames = [senders.report(key, 0) for key in (3, 1, 4)]
    now = senders.now(0.5)
    batch = senders.admission(0).judge_batch(join_frames(frames), now)
    assert batch.blobs == senders.admission(0).judge(frames, now).blobs
    ((t, blob),) = batch.blobs
    assert (t, [chunk.keys.tolist() for chunk in read_chunks(blob)]) == (0, [[3, 1, 4]])


@pytest.mark.parametrize("kind", [ENTERING, MOVING, QUITTING])
def test_what_was_accepted_tells_heartbeats_from_reports(kind):
    senders = Senders.of(3, presence="flags", strata=("move", "enter", "quit"))
    admission = senders.admission(0)
    nothing = admission.accepted(0)
    assert (nothing.answers, nothing.marks) == ({}, b"")
    assert (nothing.kinds.dtype, nothing.kinds.size) == (np.uint8, 0)
    judged(admission, senders, senders.heartbeat(2, 0, kind), senders.heartbeat(0, 0, kind))
    judged(admission, senders, *(senders.report(key, 0, about="move") for key in (2, 1)))
    accepted = admission.accepted(0)
    assert (accepted.keys.tolist(), accepted.kinds.tolist()) == ([0, 2], [kind, kind])
    assert accepted.kinds.dtype == np.uint8
    assert [keys.tolist() for _, keys in accepted.answers.values()] == [[1, 2]]
    assert keys_of_marks(accepted.marks).tolist() == [1, 2]


def test_a_damaged_record_is_one_clear_line():
    senders = Senders.of(1)
    ((_, blob),) = senders.admission(0).judge([senders.report(0, 0)], senders.now(0.5)).blobs
    nothing = Chunk(0, np.zeros(0, np.int64), *np.zeros((2, 0, 16), np.uint8))
    assert [len(chunk.keys) for chunk in read_chunks(blob + write_chunk(nothing))] == [1, 0]
    for cut in (3, 20, len(blob) - 1):
        for whole in (b"", blob):
            with pytest.raises(StoreError, match="damaged"):
                list(read_chunks(whole + blob[:cut]))
    with pytest.raises(StoreError, match="damaged"):
        keys_of_marks(bytes(21))


def test_nothing_the_gate_shows_names_a_device_or_a_bit():
    senders = Senders.of(1)
    admission = senders.admission(0)
    report = senders.report(0, 0)
    verdicts = admission.judge([report], senders.now(0.5))
    ((_, blob),) = verdicts.blobs
    assert senders.device(0) not in blob, "records speak of numbers"
    shown = repr(verdicts) + repr(admission.accepted(0)) + repr(admission._open_rounds.rounds[0])
    assert repr(report[36:-16])[2:-1] not in shown


@given(st.integers(1, 3), st.integers(0, 2**24 - 1), st.lists(st.integers(0, 2**24 - 1)))
def test_rows_of_bytes_are_compared_as_the_numbers_they_are(size, largest, numbers):
    largest, numbers = largest % 256**size, [number % 256**size for number in numbers]
    numbers += [largest, min(largest + 1, 256**size - 1), max(largest - 1, 0)]
    joined = b"".join(number.to_bytes(size, "little") for number in numbers)
    rows = np.frombuffer(joined, np.uint8).reshape(-1, size)
    assert at_most(rows, largest).tolist() == [number <= largest for number in numbers]
