"""Points in well-known binary, decoded all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

_POINTS = np.array([1, 1001, 2001, 3001])  # x y, and with z, m, both
_FLAGS = 0xE0000000  # extended form: z, m, reference system
_HAS_SYSTEM = 0x20000000
_HEADER = 5
_SHORTEST = 21


def points(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return x and y of every point; null where there is none or where it is another shape."""
    if pa.types.is_struct(column.type):  # GeoArrow keeps coordinates as columns
        return pc.struct_field(column, "x"), pc.struct_field(column, "y")
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    column = column.cast(pa.large_binary())
    lengths = pc.binary_length(column).fill_null(0).to_numpy()
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset :][: len(column)]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    rows = np.flatnonzero(lengths >= _SHORTEST)
    begins = offsets[rows]
    little = data[begins] == 1
    kind = _gather(data, begins + 1, "u4", little)
    extra = np.where(kind & _HAS_SYSTEM, 4, 0)
    shape = np.isin(kind & ~np.uint32(_FLAGS), _POINTS) & (lengths[rows] >= _SHORTEST + extra)
    rows, begins, little = rows[shape], (begins + _HEADER + extra)[shape], little[shape]
    x, y = np.full((2, len(column)), np.nan)
    x[rows] = _gather(data, begins, "f8", little)
    y[rows] = _gather(data, begins + 8, "f8", little)
    return pa.array(x, mask=np.isnan(x)), pa.array(y, mask=np.isnan(y))


def _gather(
    data: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    kind: str,
    little: npt.NDArray[np.bool_],
) -> npt.NDArray[Any]:
    """Return the numbers that begin at some bytes, each in its own byte order."""
    taken = data[begins[:, None] + np.arange(np.dtype(kind).itemsize)]  # [n, n_bytes]
    forth, back = taken.view(f"<{kind}")[:, 0], taken.view(f">{kind}")[:, 0]
    numbers: npt.NDArray[Any] = np.where(little, forth, back)
    return numbers
