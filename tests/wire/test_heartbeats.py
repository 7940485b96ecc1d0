"""Heartbeats: they say that a device shares, and nothing else can be read from them."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import WireError
from retrasyn.messages import ENTERING, MOVING, QUITTING, Heartbeat, Report
from retrasyn.wire import decode_heartbeat, encode_heartbeat, encode_report
from retrasyn.wire.frames import is_heartbeat
from retrasyn.wire.layout import HEARTBEAT_BYTES
from support.campaigns import DEVICE, DEVICE_KEY

HEARTBEAT = Heartbeat(kind=MOVING, t=77, manifest=b"manifest", device=DEVICE)


@pytest.mark.parametrize("kind", [ENTERING, MOVING, QUITTING])
def test_a_heartbeat_has_46_bytes_and_comes_back_as_it_was(kind):
    heartbeat = dataclasses.replace(HEARTBEAT, kind=kind)
    frame = encode_heartbeat(heartbeat, DEVICE_KEY)
    assert len(frame) == HEARTBEAT_BYTES == 46
    assert decode_heartbeat(frame, DEVICE_KEY) == heartbeat


@pytest.mark.parametrize("question", [0, 1, 2, 3, 4, 16, 31])
def test_no_report_passes_for_a_heartbeat(question):
    binary = question in (4, 16, 31)
    report = Report(
        question=question,
        n_answers=1 if binary else 8,
        t=77,
        epsilon=1_000_000,
        manifest=b"manifest",
        device=DEVICE,
        bits=b"\1",
    )
    assert not is_heartbeat(encode_report(report, DEVICE_KEY, oracle="oue"))
    assert is_heartbeat(encode_heartbeat(HEARTBEAT, DEVICE_KEY))


@pytest.mark.parametrize("place", range(46))
def test_a_heartbeat_with_one_bit_changed_is_refused(place):
    frame = bytearray(encode_heartbeat(HEARTBEAT, DEVICE_KEY))
    frame[place] ^= 1 << (place % 8)
    with pytest.raises(WireError):
        decode_heartbeat(bytes(frame), DEVICE_KEY)


@given(st.binary(max_size=100))
def test_random_bytes_are_no_heartbeat(text):
    with pytest.raises(WireError):
        decode_heartbeat(text, DEVICE_KEY)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kind": 3}, "out of range"),
        ({"kind": -1}, "out of range"),
        ({"t": -1}, "out of range"),
        ({"t": 2**32}, "out of range"),
        ({"manifest": b"short"}, "8 bytes"),
        ({"device": b"short"}, "16"),
    ],
)
def test_a_heartbeat_that_no_device_sends_is_refused(changes, why):
    with pytest.raises(WireError, match=why):
        encode_heartbeat(dataclasses.replace(HEARTBEAT, **changes), DEVICE_KEY)


def test_another_length_key_or_version_is_refused():
    frame = encode_heartbeat(HEARTBEAT, DEVICE_KEY)
    with pytest.raises(WireError, match="47 bytes"):
        decode_heartbeat(frame + b"\0", DEVICE_KEY)
    with pytest.raises(WireError, match="tag"):
        decode_heartbeat(frame, bytes(32))
    with pytest.raises(WireError, match="version 1"):
        decode_heartbeat(b"\1" + frame[1:], DEVICE_KEY)
    with pytest.raises(WireError, match="too short"):
        encode_heartbeat(HEARTBEAT, b"short")
