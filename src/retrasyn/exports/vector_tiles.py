"""Vector tiles as Mapbox's specification 2.1 has them: layers of shapes in whole numbers.

A tile is a message of protocol buffers; as nothing else of ours is one, its few fields are written
here by hand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

EXTENT = 4096
"""Units from one side of a tile to the other."""
LINE, POLYGON = 2, 3
_MOVE, _DRAW, _CLOSE = 1, 2, 7
_VARINT, _BYTES, _DOUBLE = 0, 2, 1
Value = str | int | float


@dataclass(frozen=True, slots=True)
class TileShape:
    """A line, or a ring without its last point, clockwise as it is seen."""

    kind: int
    points: Sequence[tuple[int, int]]  # from the upper left of the tile, down is more
    properties: Mapping[str, Value]


def tile_bytes(layers: Mapping[str, Sequence[TileShape]]) -> bytes:
    """Return a tile of layers; those without a shape are left out."""
    return b"".join(_message(3, _layer(name, shapes)) for name, shapes in layers.items() if shapes)


def _layer(name: str, shapes: Sequence[TileShape]) -> bytes:
    keys: dict[str, int] = {}
    values: dict[tuple[type, Value], int] = {}  # 1 and 1.0 are two values
    features = []
    for shape in shapes:
        tags = []
        for key, value in shape.properties.items():
            valued = type(value), value
            tags += [keys.setdefault(key, len(keys)), values.setdefault(valued, len(values))]
        features.append(
            _message(2, _packed(tags))
            + _number(3, shape.kind)
            + _message(4, _packed(_commands(shape)))
        )
    return b"".join(
        [
            _number(15, 2),  # of the specification
            _message(1, name.encode()),
            *(_message(2, feature) for feature in features),
            *(_message(3, key.encode()) for key in keys),
            *(_message(4, _value(value)) for _, value in values),
            _number(5, EXTENT),
        ]
    )


def _commands(shape: TileShape) -> Iterable[int]:
    """Yield the steps of a pen; each place is told from the one before."""
    x = y = 0
    for number, (to_x, to_y) in enumerate(shape.points):
        if number == 0:
            yield _MOVE | 1 << 3
        elif number == 1:
            yield _DRAW | (len(shape.points) - 1) << 3
        yield from (_zigzag(to_x - x), _zigzag(to_y - y))
        x, y = to_x, to_y
    if shape.kind == POLYGON:
        yield _CLOSE | 1 << 3


def _zigzag(number: int) -> int:
    """Return small numbers for small ones of either sign.

    >>> [_zigzag(number) for number in (0, -1, 1, -2)]
    [0, 1, 2, 3]
    """
    return number << 1 if number >= 0 else (-number << 1) - 1


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return _message(1, value.encode())
    if isinstance(value, int):
        return _number(5, value)
    return _varint(3 << 3 | _DOUBLE) + struct.pack("<d", value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number)


def _packed(numbers: Iterable[int]) -> bytes:
    return b"".join(map(_varint, numbers))


def _varint(number: int) -> bytes:
    """Return a whole number in as many bytes as it needs, seven bits each.

    >>> _varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - what seven bits hold
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
