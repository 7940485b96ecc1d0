"""Who may send: the enrolled devices and their secrets, ready to check tags with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.randomness.entropy import system_bytes
from retrasyn.service.headers import Header
from retrasyn.service.rows import cells
from retrasyn.service.verifying import Pads, matching, pads_of, tags_of
from retrasyn.wire.frames import DEVICE_BYTES, TAG_BYTES


@dataclass(slots=True)
class Identities:
    """Devices by their id."""

    _pads: dict[bytes, Pads] = field(default_factory=dict, repr=False)
    _nobody: Pads = field(  # an unknown device costs as much work as a known one
        default_factory=lambda: pads_of(-1, system_bytes(32)), repr=False
    )

    def __len__(self) -> int:
        return len(self._pads)

    def add(self, key: int, device: bytes, secret: bytes) -> None:
        """Let a device in."""
        self._pads[device] = pads_of(key, secret)

    def remove(self, device: bytes) -> None:
        """Refuse a device from now on."""
        self._pads.pop(device, None)

    def key_of(self, device: bytes) -> int | None:
        """Return a device's number; None if it is not let in."""
        found = self._pads.get(device)
        return None if found is None else found[0]

    def authenticate(self, header: Header, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Return the key of each sender; -1 where the tag is not that of the claimed device."""
        get, nobody = self._pads.get, self._nobody
        ids = cells(rows[:, header.device_at : header.device_at + DEVICE_BYTES])
        pads = [get(device, nobody) for device in ids]
        tags = tags_of(pads, cells(rows[:, :-TAG_BYTES]))
        right = matching(tags, rows[:, -TAG_BYTES:])
        keys = np.fromiter([key for key, _, _ in pads], np.int64, len(pads))
        return np.where(right, keys, -1)
