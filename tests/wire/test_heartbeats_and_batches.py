"""Heartbeats and batches: read from exactly what was written, and from nothing else."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import WireError
from retrasyn.messages import ENTERING, MOVING, QUITTING, Heartbeat
from retrasyn.wire import decode_heartbeat, encode_heartbeat
from retrasyn.wire.batches import (
    MAX_FRAMES,
    join_frames,
    read_statuses,
    split_frames,
    write_statuses,
)
from retrasyn.wire.frames import STATUSES, tag_of
from retrasyn.wire.heartbeats import HEARTBEAT_BYTES, is_heartbeat

KEY = bytes(range(32))
BEAT = Heartbeat(kind=MOVING, t=7, manifest=b"m" * 8, device=b"d" * 16)

heartbeats = st.builds(
    Heartbeat,
    kind=st.sampled_from([ENTERING, MOVING, QUITTING]),
    t=st.integers(0, 2**32 - 1),
    manifest=st.binary(min_size=8, max_size=8),
    device=st.binary(min_size=16, max_size=16),
)


@given(heartbeats)
def test_a_heartbeat_is_read_back_as_it_was(beat):
    frame = encode_heartbeat(beat, KEY)
    assert len(frame) == HEARTBEAT_BYTES == 46
    assert is_heartbeat(frame)
    assert decode_heartbeat(frame, KEY) == beat


@given(heartbeats, st.integers(0, 45), st.integers(1, 255))
def test_a_heartbeat_with_any_byte_changed_is_refused(beat, place, change):
    frame = bytearray(encode_heartbeat(beat, KEY))
    frame[place] ^= change
    with pytest.raises(WireError):
        decode_heartbeat(bytes(frame), KEY)


@pytest.mark.parametrize("length", [0, 1, 45, 47, 93])
def test_a_heartbeat_of_another_length_is_refused(length):
    with pytest.raises(WireError, match="it has 46"):
        decode_heartbeat(bytes(length), KEY)


@pytest.mark.parametrize(("place", "value"), [(0, 2), (1, 63), (1, 67)])
def test_another_version_or_kind_is_refused_even_with_a_right_tag(place, value):
    head = bytearray(encode_heartbeat(BEAT, KEY)[:-16])
    head[place] = value
    with pytest.raises(WireError):
        decode_heartbeat(bytes(head) + tag_of(KEY, bytes(head)), KEY)


@pytest.mark.parametrize(
    "change",
    [{"kind": 3}, {"kind": -1}, {"t": -1}, {"t": 2**32}, {"manifest": b""}, {"device": b""}],
)
def test_a_heartbeat_no_device_would_send_is_not_written(change):
    with pytest.raises(WireError):
        encode_heartbeat(dataclasses.replace(BEAT, **change), KEY)


def test_a_key_that_could_be_guessed_is_refused():
    with pytest.raises(WireError, match="too short"):
        encode_heartbeat(BEAT, b"short")


def test_a_heartbeat_shows_no_device_when_printed():
    assert "dddd" not in repr(BEAT)


@given(st.lists(st.binary(min_size=1, max_size=99), max_size=20))
def test_a_batch_is_read_back_as_it_was_and_never_when_cut(frames):
    body = join_frames(frames)
    assert split_frames(body) == frames
    if frames:
        with pytest.raises(WireError, match="ends within a frame"):
            split_frames(body[:-1])


@pytest.mark.parametrize("frame", [b"", bytes(1 << 16)])
def test_a_frame_that_does_not_fit_is_refused(frame):
    with pytest.raises(WireError, match="does not go into a batch"):
        join_frames([frame])


def test_a_batch_has_its_limit():
    assert len(split_frames(join_frames([b"x"] * MAX_FRAMES))) == MAX_FRAMES
    with pytest.raises(WireError, match="too many"):
        join_frames([b"x"] * (MAX_FRAMES + 1))
    with pytest.raises(WireError, match="send several"):
        split_frames(b"\x01\x00x" * (MAX_FRAMES + 1))
    with pytest.raises(WireError, match="an empty one"):
        split_frames(b"\x00\x00")


@given(st.lists(st.sampled_from(STATUSES), max_size=30))
def test_statuses_are_read_back_as_they_were(statuses):
    body = write_statuses(statuses)
    assert list(read_statuses(body, len(statuses))) == statuses
    with pytest.raises(WireError):
        read_statuses(body, len(statuses) + 1)
    with pytest.raises(WireError):
        read_statuses(body + b"\x0b", len(statuses) + 1)
