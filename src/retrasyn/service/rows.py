"""Many frames of one length as one table of bytes: [n, length]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def cells(columns: npt.NDArray[np.uint8]) -> list[bytes]:
    """Return each row as bytes."""
    rows = np.ascontiguousarray(columns)
    found: list[bytes] = rows.view(f"V{rows.shape[1]}")[:, 0].tolist()
    return found


def groups(
    heads: npt.NDArray[np.uint8],
) -> list[tuple[bytes, npt.NDArray[np.int64] | None]]:
    """Return each header with the rows that have it; None for all."""
    first = heads[0].tobytes()
    if heads.tobytes() == first * len(heads):
        return [(first, None)]
    places: dict[bytes, list[int]] = {}
    for place, head in enumerate(cells(heads)):
        places.setdefault(head, []).append(place)
    return [(head, np.array(own)) for head, own in places.items()]
