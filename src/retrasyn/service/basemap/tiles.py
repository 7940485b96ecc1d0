"""Tiles of a local PMTiles file; the only module that reads with `pmtiles`.

Its own reader decodes the directories anew for each tile; here the latest ones are remembered.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrasyn.errors import InputError, MissingExtra
from retrasyn.service.viewing.view import LruCache

try:
    from pmtiles.reader import Reader
    from pmtiles.tile import (
        Compression,
        Entry,
        MagicNumberNotFound,
        SpecVersionUnsupported,
        TileType,
        deserialize_directory,
        deserialize_header,
        find_tile,
        zxy_to_tileid,
    )
except ImportError:  # pragma: no cover - the tests have every extra
    raise MissingExtra('pmtiles is not installed: pip install "retrasyn[serve]"') from None

MEDIA = {
    TileType.MVT: "application/vnd.mapbox-vector-tile",
    TileType.PNG: "image/png",
    TileType.JPEG: "image/jpeg",
    TileType.WEBP: "image/webp",
    TileType.AVIF: "image/avif",
}
_LARGEST = 32 << 20  # bytes of a directory or a tile: whatever says more is damaged
_DEEPEST = 4  # directories on the way to a tile
_N_DIRECTORIES = 64
_FAULTS = (OSError, EOFError, ValueError, OverflowError, MemoryError, TypeError, zlib.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """An open file of tiles, read from several threads at once."""

    path: Path
    header: Any
    metadata: dict[str, Any]
    _descriptor: int
    _directories: LruCache[list[Entry]] = field(
        default_factory=lambda: LruCache(_N_DIRECTORIES, lambda _: 1)
    )

    @classmethod
    def open(cls, path: Path) -> Tiles:
        """Open a file and read its header and metadata."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"map.tiles {path} cannot be read: {error.strerror}") from None
        try:
            return cls._checked(path, descriptor)
        except (MagicNumberNotFound, SpecVersionUnsupported, *_FAULTS):
            reason = "is no PMTiles file of version 3, or damaged; make it anew"
        except InputError as error:
            reason = str(error)
        os.close(descriptor)
        raise InputError(f"map.tiles {path} {reason}")

    @classmethod
    def _checked(cls, path: Path, descriptor: int) -> Tiles:
        header = deserialize_header(_read(descriptor, 0, 127))
        reader: Any = Reader
        metadata = reader(lambda offset, n: _read(descriptor, offset, n)).metadata()
        if header["tile_type"] not in MEDIA:
            raise InputError("has tiles of an unknown kind; PNG, JPEG, WebP, AVIF or MVT are shown")
        if header["tile_compression"] not in (Compression.NONE, Compression.GZIP):
            raise InputError("has tiles compressed in a rare way; use gzip or none")
        found = cls(
            path=path,
            header=header,
            metadata=metadata if isinstance(metadata, dict) else {},
            _descriptor=descriptor,
        )
        found._directory(header["root_offset"], header["root_length"])
        return found

    @property
    def media_type(self) -> str:
        """The media type of a tile."""
        return MEDIA[self.header["tile_type"]]

    @property
    def vector(self) -> bool:
        """Whether tiles hold shapes, not pictures."""
        return bool(self.header["tile_type"] == TileType.MVT)

    @property
    def zipped(self) -> bool:
        """Whether tiles are stored, and sent, in gzip."""
        return bool(self.header["tile_compression"] == Compression.GZIP)

    def tile(self, z: int, x: int, y: int) -> bytes | None:
        """Return a tile as it is stored; None if the file has none there, or it is damaged."""
        try:
            return self._find(zxy_to_tileid(z, x, y))
        except _FAULTS:
            return None

    @staticmethod
    def unzip(tile: bytes) -> bytes:
        """Return a zipped tile unzipped, for clients that do not accept gzip."""
        try:
            return gzip.decompress(tile)
        except _FAULTS:
            return b""  # damaged: nothing is on it

    def _find(self, tile_id: int) -> bytes | None:
        header = self.header
        offset, length = header["root_offset"], header["root_length"]
        for _ in range(_DEEPEST):
            entry = find_tile(self._directory(offset, length), tile_id)
            if entry is None:
                return None
            if entry.run_length:
                start = header["tile_data_offset"] + entry.offset
                return _read(self._descriptor, start, entry.length)
            offset, length = header["leaf_directory_offset"] + entry.offset, entry.length
        return None

    def _directory(self, offset: int, length: int) -> list[Entry]:
        found = self._directories.get(
            offset, lambda: deserialize_directory(_read(self._descriptor, offset, length))
        )
        return found or []


def _read(descriptor: int, offset: int, length: int) -> bytes:
    if length > _LARGEST:
        raise ValueError(length)
    found = os.pread(descriptor, length, offset)
    if len(found) < length:
        raise EOFError(offset)
    return found
