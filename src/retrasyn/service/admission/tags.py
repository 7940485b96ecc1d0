"""Authenticates frames: the keys of all devices, and the tags of many frames at once."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.randomness.words import system_bytes
from retrasyn.service.admission.headers import Header, cells
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.frames import device_of
from retrasyn.wire.layout import DEVICE_BYTES, TAG_BYTES

_BLOCK = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_ACK = signed_part("ack", b"")
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
Pads = tuple[int, bytes, bytes]
"""A device's number, and its HMAC pads: before a message, and before its hash."""


def pads_of(key: int, secret: bytes) -> Pads:
    """Return the HMAC pads of a device's secret."""
    if len(secret) > _BLOCK:
        secret = hashlib.sha256(secret).digest()
    block = secret.ljust(_BLOCK, b"\0")
    return key, block.translate(_INNER), block.translate(_OUTER)


def tags_of(pads: Sequence[Pads], messages: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """Return the tag of each message: [n, 16].

    >>> from retrasyn.wire.frames import tag_of
    >>> tags_of([pads_of(0, b"secret")], [b"hello"]).tobytes() == tag_of(b"secret", b"hello")
    True
    """
    sha256 = hashlib.sha256
    digests = b"".join(
        [
            sha256(outer + sha256(inner + message).digest()).digest()
            for (_, inner, outer), message in zip(pads, messages, strict=True)
        ]
    )
    return np.frombuffer(digests, np.uint8).reshape(-1, 32)[:, :TAG_BYTES]


def matching(
    expected: npt.NDArray[np.uint8], given: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """Return which tags are right, in a time that does not depend on their contents."""
    ours, theirs = expected.tobytes(), given.tobytes()
    if hmac.compare_digest(ours, theirs):
        return np.ones(len(expected), np.bool_)
    places = range(0, len(ours), TAG_BYTES)
    return np.fromiter(
        (hmac.compare_digest(ours[i : i + TAG_BYTES], theirs[i : i + TAG_BYTES]) for i in places),
        np.bool_,
        len(expected),
    )


@dataclass(slots=True)
class TagKeys:
    """The secrets of all devices, by device id."""

    _pads: dict[bytes, Pads] = field(default_factory=dict, repr=False)
    _nobody: Pads = field(  # an unknown device costs as much work as a known one
        default_factory=lambda: pads_of(-1, system_bytes(32)), repr=False
    )

    def __len__(self) -> int:
        return len(self._pads)

    def add(self, key: int, device: bytes, secret: bytes) -> None:
        """Accept a device from now on."""
        self._pads[device] = pads_of(key, secret)

    def remove(self, device: bytes) -> None:
        """Refuse a device from now on."""
        self._pads.pop(device, None)

    def key_of(self, device: bytes) -> int | None:
        """Return a device's number; None if it is not let in."""
        found = self._pads.get(device)
        return None if found is None else found[0]

    def acknowledge(self, codes: bytes, frames: Sequence[bytes]) -> npt.NDArray[np.uint8]:
        """Return the tag that proves the status of each frame to the device it names: [n, 16].

        To a device that is not known, it proves nothing.
        """
        get, nobody = self._pads.get, self._nobody
        pads = [get(device_of(frame), nobody) for frame in frames]
        said = [_ACK + codes[place : place + 1] + frame for place, frame in enumerate(frames)]
        return tags_of(pads, said)

    def acknowledge_rows(
        self, codes: bytes, rows: npt.NDArray[np.uint8], device_at: int
    ) -> npt.NDArray[np.uint8]:
        """Return the same for frames of one length that have their device ids in one place."""
        get, nobody = self._pads.get, self._nobody
        pads = [get(id_, nobody) for id_ in cells(rows[:, device_at : device_at + DEVICE_BYTES])]
        said = np.empty((len(rows), len(_ACK) + 1 + rows.shape[1]), np.uint8)
        said[:, : len(_ACK)] = np.frombuffer(_ACK, np.uint8)
        said[:, len(_ACK)] = np.frombuffer(codes, np.uint8)
        said[:, len(_ACK) + 1 :] = rows
        return tags_of(pads, cells(said))

    def authenticate(self, header: Header, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Return the key of each sender; -1 where the tag is not that of the claimed device."""
        get, nobody = self._pads.get, self._nobody
        ids = cells(rows[:, header.device_at : header.device_at + DEVICE_BYTES])
        pads = [get(device, nobody) for device in ids]
        tags = tags_of(pads, cells(rows[:, :-TAG_BYTES]))
        right = matching(tags, rows[:, -TAG_BYTES:])
        keys = np.fromiter([key for key, _, _ in pads], np.int64, len(pads))
        return np.where(right, keys, -1)
