"""Reports and acknowledgements: exact bytes, and a refusal of all others."""

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import WireError
from retrasyn.messages import MOVING, Ack, Heartbeat, Question, Report
from retrasyn.oracles.registry import ORACLES
from retrasyn.wire import decode_ack, decode_report, encode_ack, encode_heartbeat, encode_report
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.frames import (
    MIN_KEY_BYTES,
    acked_part,
    device_of,
    is_tagged,
    n_answers,
    question_code,
    question_of,
    tag_of,
)
from retrasyn.wire.statuses import STATUSES
from support.campaigns import DEVICE, DEVICE_KEY, manifest_of

REPORT = Report(
    question=0,
    n_answers=328,
    t=77,
    epsilon=1_000_000,
    manifest=b"manifest",
    device=DEVICE,
    bits=bytes(40) + b"\x80",
)
ACK = Ack(status="accepted", proof=bytes(16))


def frame_of(oracle="oue", **changes):
    return encode_report(dataclasses.replace(REPORT, **changes), DEVICE_KEY, oracle=oracle)


def test_a_report_of_328_states_has_93_bytes_and_comes_back_as_it_was():
    frame = frame_of()
    assert len(frame) == 93
    assert decode_report(frame, DEVICE_KEY, oracle="oue") == REPORT
    assert device_of(frame) == DEVICE


@given(
    n=st.integers(1, 65_535),
    t=st.integers(0, 2**32 - 1),
    epsilon=st.integers(1, 100_000_000),
    oracle=st.sampled_from(["oue", "grr", "olh"]),
    seed=st.integers(0, 2**32),
)
def test_every_report_comes_back_as_it_was(n, t, epsilon, oracle, seed):
    dice = random.Random(seed)
    size = ORACLES[oracle].n_bytes(epsilon, n)
    value = {"oue": dice.getrandbits(n), "grr": dice.randint(0, n)}
    bits = value.get(oracle, dice.getrandbits(32)).to_bytes(size, "little")
    report = dataclasses.replace(REPORT, n_answers=n, t=t, epsilon=epsilon, bits=bits)
    frame = encode_report(report, DEVICE_KEY, oracle=oracle)
    assert decode_report(frame, DEVICE_KEY, oracle=oracle) == report


@given(st.binary(max_size=200))
def test_random_bytes_are_no_report_and_no_ack(text):
    with pytest.raises(WireError):
        decode_report(text, DEVICE_KEY, oracle="oue")
    if len(text) not in (18, 66) or text[0] != 2 or text[1] >= len(STATUSES):
        with pytest.raises(WireError):
            decode_ack(text)


@pytest.mark.parametrize("place", range(93))
def test_a_report_with_one_bit_changed_is_refused(place):
    frame = bytearray(frame_of())
    frame[place] ^= 1 << (place % 8)
    with pytest.raises(WireError):
        decode_report(bytes(frame), DEVICE_KEY, oracle="oue")


def test_a_report_longer_or_shorter_than_it_says_is_refused():
    frame = frame_of()
    for text in (frame[:-1], frame + b"\0", frame[:50], b""):
        with pytest.raises(WireError):
            decode_report(text, DEVICE_KEY, oracle="oue")


def test_a_report_may_have_the_largest_budget():
    frame = frame_of(epsilon=100_000_000)
    assert decode_report(frame, DEVICE_KEY, oracle="oue").epsilon == 100_000_000


def test_a_report_without_room_for_its_head_and_tag_is_too_short():
    for size, why in ((51, "51 bytes is too short"), (52, "0 bytes of bits do not fit")):
        with pytest.raises(WireError, match=why):
            decode_report(frame_of()[:size], DEVICE_KEY, oracle="oue")


def test_a_report_under_another_key_is_refused_without_naming_either():
    with pytest.raises(WireError, match="tag") as refusal:
        decode_report(frame_of(), bytes(32), oracle="oue")
    assert DEVICE_KEY.hex() not in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "oracle", "why"),
    [
        ({"question": 6}, "oue", "question 6"),
        ({"question": 48}, "oue", "question 48"),
        ({"n_answers": 0}, "oue", "out of range"),
        ({"n_answers": 65_536}, "oue", "out of range"),
        ({"t": -1}, "oue", "out of range"),
        ({"t": 2**32}, "oue", "out of range"),
        ({"epsilon": 0}, "oue", "out of range"),
        ({"epsilon": 100_000_001}, "oue", "out of range"),
        ({"manifest": b"short"}, "oue", "8 bytes"),
        ({"device": b"short"}, "oue", "16"),
        ({"bits": bytes(40)}, "oue", "40 bytes"),
        ({"n_answers": 327}, "oue", "padding"),
        ({"bits": (329).to_bytes(2, "little")}, "grr", "padding"),
        ({"bits": bytes(4) + b"\4"}, "olh", "padding"),
        ({"question": 4, "n_answers": 1, "bits": b"\2"}, "oue", "padding"),
        ({"question": 16, "n_answers": 2, "bits": b"\1"}, "oue", "padding"),
        ({"question": 32, "n_answers": 2, "bits": b"\1"}, "oue", "padding"),
        ({"question": 47, "n_answers": 1, "bits": b"\2"}, "oue", "padding"),
    ],
)
def test_a_report_that_no_device_makes_is_refused_on_both_sides(changes, oracle, why):
    with pytest.raises(WireError, match=why):
        frame_of(oracle, **changes)


def test_a_short_key_is_refused():
    with pytest.raises(WireError, match="too short"):
        encode_report(REPORT, b"short", oracle="oue")
    with pytest.raises(WireError, match="too short"):
        encode_report(REPORT, bytes(MIN_KEY_BYTES - 1), oracle="oue")
    assert encode_report(REPORT, bytes(MIN_KEY_BYTES), oracle="oue")


def test_another_version_is_refused():
    with pytest.raises(WireError, match="version 1"):
        decode_report(b"\1" + frame_of()[1:], DEVICE_KEY, oracle="oue")


def test_a_frame_names_its_device_unless_it_is_too_short():
    beat = Heartbeat(kind=MOVING, t=77, manifest=b"manifest", device=DEVICE)
    assert device_of(encode_heartbeat(beat, DEVICE_KEY)) == DEVICE
    assert device_of(frame_of()[:30]) == DEVICE[:10]
    assert device_of(b"") == b""


def test_a_yes_or_no_takes_one_byte_whatever_the_oracle():
    for oracle in ("oue", "grr", "olh"):
        frame = frame_of(oracle, question=17, n_answers=1, bits=b"\1")
        assert len(frame) == 53
        assert decode_report(frame, DEVICE_KEY, oracle=oracle).bits == b"\1"


@pytest.mark.parametrize("status", STATUSES)
def test_every_ack_comes_back_as_it_was(status):
    for proof in (bytes(range(16)), bytes(range(64))):
        ack = Ack(status=status, proof=proof)
        assert len(encode_ack(ack)) == 2 + len(proof)
        assert decode_ack(encode_ack(ack)) == ack


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "fine"}, "'fine' is not one of accepted, duplicate"),
        ({"proof": b""}, "0 bytes prove no ack"),
        ({"proof": bytes(32)}, "32 bytes prove no ack"),
    ],
)
def test_an_ack_that_no_curator_makes_is_refused(changes, why):
    with pytest.raises(WireError, match=why):
        encode_ack(dataclasses.replace(ACK, **changes))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bytes(18), "version 0 with status 0"),
        (b"\1\0" + bytes(16), "version 1 with status 0"),
        (b"\3\x0c" + bytes(16), "version 3 with status 12"),
        (encode_ack(ACK) + b"\0", "19 bytes"),
        (b"", "0 bytes"),
    ],
)
def test_an_ack_of_another_version_status_or_length_is_refused(text, why):
    with pytest.raises(WireError, match=why):
        decode_ack(text)


def test_an_acknowledgement_proves_one_status_of_one_frame_to_one_device():
    frame = frame_of()
    said = signed_part("ack", acked_part("accepted", frame))
    ack = Ack(status="accepted", proof=tag_of(DEVICE_KEY, said))
    assert is_tagged(ack, frame, DEVICE_KEY)
    assert not is_tagged(dataclasses.replace(ack, status="duplicate"), frame, DEVICE_KEY)
    assert not is_tagged(ack, frame_of(t=78), DEVICE_KEY)
    assert not is_tagged(ack, frame, bytes(32))
    assert not is_tagged(ACK, frame, DEVICE_KEY)


@pytest.mark.parametrize(
    "question",
    [
        Question(),
        Question(about="move"),
        Question(about="enter"),
        Question(about="quit"),
        Question(about="present"),
        Question(about="cell"),
        Question(about="older", threshold=6),
        Question(about="faster", threshold=20),
    ],
)
def test_every_question_has_a_code_and_comes_back(question):
    manifest = manifest_of(
        strata=(*CODES, "older", "faster"), ages=(2, 6), speeds=(2, 6, 20)
    )  # more than one campaign ever asks
    code = question_code(question, manifest)
    assert question_of(code, manifest) == question
    assert code == CODES.get(question.about, {"older": 17, "faster": 34}.get(question.about))


CODES = {"transition": 0, "move": 1, "enter": 2, "quit": 3, "present": 4, "cell": 5}


@pytest.mark.parametrize("code", [1, 4, 5, 6, 15, 18, 31, 34, 48, 255])
def test_a_code_that_names_no_question_of_the_manifest_is_refused(code):
    strata = ("transition", "older", "faster")
    manifest = manifest_of(strata=strata, ages=(2, 6), speeds=(2, 6))
    with pytest.raises(WireError, match=f"question {code}"):
        question_of(code, manifest)


def test_the_number_of_answers_is_that_of_the_simulated_devices():
    from retrasyn.oracles import registry
    from retrasyn.space import Box, Grid, StateSpace

    states = StateSpace(Grid(Box(0, 0, 1, 1), 4))
    for about in ("transition", "move", "enter", "quit", "present", "older", "faster", "cell"):
        question = Question(about=about)
        ours = n_answers(question, manifest_of(side=4))
        assert ours == registry.n_answers(question, states)
