"""Batches: frames behind their lengths, and one acknowledgement for each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import WireError
from retrasyn.wire.batches import (
    MAX_FRAMES,
    join_frames,
    read_acks,
    split_frames,
)
from retrasyn.wire.statuses import STATUSES


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=20))
def test_frames_come_back_as_they_were(frames):
    assert split_frames(join_frames(frames)) == frames


@given(st.binary(max_size=60))
def test_a_body_is_read_only_if_it_is_what_would_be_written(body):
    try:
        frames = split_frames(body)
    except WireError:
        return
    assert join_frames(frames) == body


@pytest.mark.parametrize("body", [b"\1", b"\0\0", b"\2\0a", b"\1\0a\1"])
def test_a_body_that_ends_within_a_frame_or_holds_an_empty_one_is_refused(body):
    with pytest.raises(WireError, match="within a frame"):
        split_frames(body)


def test_a_batch_has_at_most_ten_thousand_frames():
    full = join_frames([b"x"] * MAX_FRAMES)
    assert len(split_frames(full)) == MAX_FRAMES == 10_000
    with pytest.raises(WireError, match="10,000"):
        split_frames(full + b"\1\0x")
    with pytest.raises(WireError, match="10,001 frames"):
        join_frames([b"x"] * (MAX_FRAMES + 1))


@pytest.mark.parametrize("frame", [b"", bytes(65_536)])
def test_a_frame_whose_length_does_not_fit_is_refused(frame):
    with pytest.raises(WireError, match="does not go into a batch"):
        join_frames([frame])


def test_acknowledgements_are_read_in_their_order():
    body = b"".join(bytes([code]) + bytes([code]) * 16 for code in range(len(STATUSES)))
    acks = read_acks(body, len(STATUSES))
    assert [ack.status for ack in acks] == list(STATUSES)
    assert [ack.proof for ack in acks] == [bytes([code]) * 16 for code in range(len(STATUSES))]
    assert read_acks(b"", 0) == []


UNKNOWN = bytes([len(STATUSES)]) + bytes(16)


@pytest.mark.parametrize(("body", "n"), [(bytes(17), 2), (bytes(34), 1), (UNKNOWN, 1), (b"\0", 1)])
def test_acknowledgements_of_other_frames_or_unknown_statuses_are_refused(body, n):
    with pytest.raises(WireError, match="do not acknowledge"):
        read_acks(body, n)
