"""Heartbeats as bytes: a device shares, and that is all they say. 46 bytes, little-endian.

The second byte tells a heartbeat from a report, whose questions are numbered below 32.
"""

import hmac
import struct

from retrasyn.errors import WireError
from retrasyn.messages import ENTERING, QUITTING, Heartbeat
from retrasyn.wire.frames import DEVICE_BYTES, TAG_BYTES, VERSION, check_key, tag_of

FIRST_KIND = 64
"""The code of a heartbeat that enters; moving and quitting follow."""
_HEAD = struct.Struct("<BBI8s16s")
HEARTBEAT_BYTES = _HEAD.size + TAG_BYTES


def is_heartbeat(frame: bytes) -> bool:
    """Tell a heartbeat from a report by its second byte.

    >>> is_heartbeat(bytes([1, 65])), is_heartbeat(bytes([1, 0])), is_heartbeat(b"")
    (True, False, False)
    """
    return frame[1:2] >= bytes([FIRST_KIND])


def encode_heartbeat(heartbeat: Heartbeat, key: bytes) -> bytes:
    """Write a heartbeat and its tag."""
    check_key(key)
    _check(heartbeat)
    head = _HEAD.pack(
        VERSION,
        FIRST_KIND + heartbeat.kind,
        heartbeat.t,
        heartbeat.manifest,
        heartbeat.device,
    )
    return head + tag_of(key, head)


def decode_heartbeat(frame: bytes, key: bytes) -> Heartbeat:
    """Read a heartbeat from exactly what `encode_heartbeat` writes with the same key."""
    check_key(key)
    if len(frame) != HEARTBEAT_BYTES:
        raise WireError(f"a heartbeat of {len(frame)} bytes is none; it has {HEARTBEAT_BYTES}")
    version, code, t, manifest, device = _HEAD.unpack_from(frame)
    if version != VERSION:
        raise WireError(f"version {version} is unknown; this side speaks version {VERSION}")
    heartbeat = Heartbeat(kind=code - FIRST_KIND, t=t, manifest=manifest, device=device)
    _check(heartbeat)
    if not hmac.compare_digest(tag_of(key, frame[:-TAG_BYTES]), frame[-TAG_BYTES:]):
        raise WireError("the tag of a heartbeat does not fit its bytes; enrol the device again")
    return heartbeat


def _check(heartbeat: Heartbeat) -> None:
    """Refuse a heartbeat that no device would send."""
    if not ENTERING <= heartbeat.kind <= QUITTING or not 0 <= heartbeat.t < 1 << 32:
        raise WireError(f"kind={heartbeat.kind} or t={heartbeat.t} is out of range")
    if (len(heartbeat.manifest), len(heartbeat.device)) != (8, DEVICE_BYTES):
        raise WireError("a heartbeat needs a manifest id of 8 bytes and a device id of 16")
