"""Figures as compact JSON for a report page; NaN and infinity become null."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Box

_LEVELS = 0xFFFF
_KINDS = ((0xFF, "uint8"), (0xFFFF, "uint16"))


def pack(counts: npt.NDArray[Any]) -> dict[str, Any]:
    """Pack counts of any shape into base64; above 16 bits they are quantised to 65,536 levels.

    A count equals its code times `scale`.

    >>> pack(np.array([1, 2, 255]))
    {'kind': 'uint8', 'scale': 1.0, 'codes': 'AQL/'}
    """
    highest = int(counts.max(initial=0))
    scale = 1.0
    kind = next((kind for limit, kind in _KINDS if highest <= limit), None)
    if kind is None:
        kind, scale = "uint16", highest / 0xFFFF
        counts = np.rint(counts / scale)
    codes = np.ascontiguousarray(counts).astype(np.dtype(kind).newbyteorder("<"))
    text = base64.b64encode(codes.tobytes()).decode()
    return {"kind": kind, "scale": scale, "codes": text}


def levels(values: npt.NDArray[np.float64], box: Box, axis: int) -> npt.NDArray[np.int64]:
    """Quantise coordinates to 65,536 levels across the box."""
    low, high = box[axis], box[axis + 2]
    share = np.clip((values - low) / (high - low), 0.0, 1.0)
    return np.rint(share * _LEVELS).astype(np.int64)


def plain(value: Any) -> Any:
    """Convert arrays and numbers to JSON values; NaN and infinity become None.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (np.int64(2), float("inf"))})
    {'a': [1.0, None], 'b': [2, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def rounded(values: npt.NDArray[np.float64], digits: int = 5) -> npt.NDArray[np.float64]:
    """Round to the precision visible in a chart, which keeps the page small."""
    return np.round(values, digits)
