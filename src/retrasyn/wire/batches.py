"""Many frames in one body: each behind its length, 16 bits little-endian.

Reports and heartbeats may be mixed. The answer has 17 bytes per frame, in their order: the number
of its status in `statuses.STATUSES`, and the tag that proves it.
"""

from collections.abc import Iterable

from retrasyn.errors import WireError
from retrasyn.messages import Ack
from retrasyn.wire.layout import LENGTH_BYTES, TAG_BYTES
from retrasyn.wire.statuses import STATUSES

MAX_FRAMES = 10_000


def join_frames(frames: Iterable[bytes]) -> bytes:
    r"""Concatenate frames, each preceded by its length.

    >>> join_frames([b"ab", b"c"])
    b'\x02\x00ab\x01\x00c'
    """
    parts: list[bytes] = []
    for frame in frames:
        if not 0 < len(frame) < 1 << 16:
            raise WireError(f"a frame of {len(frame)} bytes does not go into a batch")
        parts += [len(frame).to_bytes(LENGTH_BYTES, "little"), frame]
    if len(parts) > 2 * MAX_FRAMES:
        raise WireError(f"{len(parts) // 2:,} frames are too many; a batch has {MAX_FRAMES:,}")
    return b"".join(parts)


def split_frames(body: bytes) -> list[bytes]:
    r"""Read frames from exactly what `join_frames` writes.

    >>> split_frames(b"\x02\x00ab\x01\x00c")
    [b'ab', b'c']
    """
    frames: list[bytes] = []
    place = 0
    while place < len(body):
        length = int.from_bytes(body[place : place + LENGTH_BYTES], "little")
        place += LENGTH_BYTES + length
        if not length or place > len(body):
            raise WireError("a batch ends within a frame, or holds an empty one; send it whole")
        if len(frames) == MAX_FRAMES:
            raise WireError(f"a batch has at most {MAX_FRAMES:,} frames; send several")
        frames.append(body[place - length : place])
    return frames


def read_acks(body: bytes, n: int) -> list[Ack]:
    r"""Read the acknowledgements of n frames; whether they are true is not checked.

    >>> [ack.status for ack in read_acks(bytes(17) + b"\n" + bytes(16), 2)]
    ['accepted', 'busy']
    """
    size = 1 + TAG_BYTES
    if len(body) != n * size or max(body[::size], default=0) >= len(STATUSES):
        raise WireError(f"{len(body)} bytes do not acknowledge {n} frames; see docs/wire.md")
    places = range(0, len(body), size)
    return [Ack(status=STATUSES[body[i]], proof=body[i + 1 : i + size]) for i in places]
