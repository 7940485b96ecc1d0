"""What becomes of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.wire.frames import STATUSES

Codes = npt.NDArray[np.uint8]
"""Numbers of `wire.frames.STATUSES`, one for each frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What becomes of each frame once what is to be written is durable."""

    codes: Codes  # [n_frames], numbers of `wire.frames.STATUSES`
    blobs: Sequence[tuple[int, bytes]] = field(repr=False)  # (t, what to append)

    @property
    def statuses(self) -> list[str]:
        """The names of the codes."""
        return [STATUSES[code] for code in self.codes.tolist()]
