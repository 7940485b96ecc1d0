"""One timestamp as the map draws it, in bytes: cells, flows and travellers (docs/api.md).

Bytes and not JSON, because a page that plays reads ten of them a second.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.service.viewing.flows import Flows, Placed
from retrasyn.service.viewing.source import Summary
from retrasyn.service.viewing.travellers import chosen, halvings
from retrasyn.space import Grid

VERSION = 1
N_HEADER = 10
"""Whole numbers in front, 32 bits each like all others but places."""
_MOST = (1 << 32) - 1
_FINEST = (1 << 16) - 1  # a place is told in so many steps across the box


def encode_frame(
    summary: Summary, placed: Placed, flows: Flows | None, grid: Grid, *, most: int
) -> bytes:
    """Write a frame with at most about `most` travellers."""
    ids = placed.points.ids
    times = halvings(ids.size, most)
    kept = chosen(ids, times)
    # A page knows streams by the low half of their ids; ours never grow beyond it.
    names, order = np.unique(ids[kept].astype(np.uint64).astype(np.uint32), return_index=True)
    kept = kept[order]
    counted = (summary[name] for name in ("n_born", "n_ended", "n_reports"))
    header = [
        *(VERSION, summary["t"], grid.side, ids.size),
        *(min(int(n), _MOST) for n in counted),
        *(flows is not None, names.size, times),
    ]
    parts = [
        np.array(header, "<u4"),
        np.bincount(placed.cells, minlength=grid.n_cells).astype("<u4"),  # [n_cells]
        np.empty(0, "<u4") if flows is None else flows.astype("<u4"),  # [n_cells, 9]
        names.astype("<u4"),
        _steps(placed.points.x[kept], grid.box.x0, grid.box.x1),
        _steps(placed.points.y[kept], grid.box.y0, grid.box.y1),
    ]
    return b"".join(part.tobytes() for part in parts)


def _steps(values: npt.NDArray[np.float64], low: float, high: float) -> npt.NDArray[np.uint16]:
    """Return places along a side of the box, padded to whole words of 32 bits."""
    shares = np.clip((values - low) / (high - low), 0.0, 1.0)
    padded = np.zeros(values.size + values.size % 2, "<u2")
    padded[: values.size] = np.rint(shares * _FINEST)
    return padded
