"""Growing arrays, named arrays, and array files with a checksum (seal)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from retrasyn.errors import CheckpointError
from retrasyn.files import replacing

_Number = TypeVar("_Number", bound=np.generic)


def grown(array: npt.NDArray[_Number], size: int, fill: float) -> npt.NDArray[_Number]:
    """Return the array enlarged to at least `size` rows, with new ones set to `fill`.

    >>> grown(np.array([1, 2]), 3, 0).tolist()
    [1, 2, 0, 0]
    """
    if size <= len(array):
        return array
    larger = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


Arrays = Mapping[str, npt.NDArray[Any]]


def with_prefix(prefix: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays with a prefix added to their names."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, with it removed."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays and their seal atomically, readable by the owner only."""
    sealed = {**arrays, "seal": np.frombuffer(_seal(arrays), np.uint8)}
    with replacing(path, private=True) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **sealed)
        file.flush()
        os.fsync(file.fileno())


def load_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read arrays, including the seal; an unreadable file raises `CheckpointError`."""
    try:
        with path.open("rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
    except Exception:  # noqa: BLE001 - a damaged archive can fail in any way
        raise damaged(path) from None
    return arrays


def check_seal(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Verify the seal, because kernels trust array sizes; a mismatch raises `CheckpointError`."""
    seal = arrays.pop("seal", np.empty(0, np.uint8))
    if seal.tobytes() != _seal(arrays):
        raise damaged(path)


def _seal(arrays: Arrays) -> bytes:
    """Return a digest of names, shapes and contents."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}/{array.dtype.str}/{array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)  # not copied: it may be large
    return digest.digest()


def damaged(path: Path) -> CheckpointError:
    """Return the error for a damaged file."""
    return CheckpointError(f"checkpoint {path} is damaged; remove the folder and start again")
