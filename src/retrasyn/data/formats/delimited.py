"""Parser of delimited lines, shared by csv, tdrive, geolife, brinkhoff and porto.

A block is first parsed by Arrow with the expected types, which is fast. Only if that fails is it
parsed again as text, file by file, to find the faulty line.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from retrasyn.data.formats.base import Fixes, Options, Rows, bad_row, refusal
from retrasyn.data.formats.blocks import BLOCK, Block, blocks, in_order
from retrasyn.data.formats.checking import check
from retrasyn.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

_LINE = "\x00line"  # no file has a column of this name

ToRows = Callable[[pa.Table, Path, Any], Rows]
"""Converts a parsed table to rows, given the file and the line of each row (None: unknown)."""


@dataclass(frozen=True)
class Layout:
    """The fields of a line, their types and their conversion to rows."""

    names: tuple[str, ...]  # all fields, in order
    types: tuple[tuple[str, pa.DataType], ...]  # types of the wanted fields
    to_rows: ToRows
    delimiter: str = ","
    headed: bool = True  # the first line holds names, not a row
    joinable: bool = True  # files may be concatenated: rows do not depend on the path


@dataclass(frozen=True, slots=True)
class Piece:
    """A block and the layout of its lines."""

    block: Block
    layout: Layout


def headed_pieces(
    files: list[Path], layout_of: Callable[[Path, bytes, bytes], Layout]
) -> Iterator[Piece]:
    """Split files into pieces; each file's layout is derived from its beginning."""
    for file in files:
        layout = None
        for block in blocks(file):
            rows = block
            if layout is None:
                header, _, rest = block.data.partition(b"\n")
                layout = layout_of(file, header, rest)
                rows = Block(file, 2, rest) if layout.headed else block
            if rows.data.strip():
                yield Piece(rows, layout)
        if layout is None:
            raise InputError(f"{file} is empty; it needs a header and rows")


def parse_pieces(pieces: Iterable[Piece], options: Options) -> Iterator[Fixes]:
    """Parse pieces on all cores; small files are parsed together."""
    for several in in_order(lambda batch: _parse(batch, options), _batches(pieces)):
        yield from several


def _batches(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Group consecutive small pieces with the same layout."""
    batch: list[Piece] = []
    size = 0
    for piece in pieces:
        fits = batch and piece.layout == batch[0].layout and piece.layout.joinable
        if batch and (not fits or size + len(piece.block.data) > BLOCK):
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += len(piece.block.data)
    if batch:
        yield batch


def _parse(batch: list[Piece], options: Options) -> list[Fixes]:
    layout, path = batch[0].layout, batch[0].block.path
    strict = replace(options, on_error="fail")
    data = b"".join(_ended(piece.block.data) for piece in batch)
    try:
        table = _read_typed(data, layout)
        return [check(layout.to_rows(table, path, None), strict)]
    except (pa.ArrowException, InputError):
        pass
    parsed = (_parse_text(piece, options) for piece in batch)
    return [fixes for fixes in parsed if fixes is not None]


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _read_typed(data: bytes, layout: Layout) -> pa.Table:
    """Parse with the expected column types."""
    return pa.csv.read_csv(
        pa.BufferReader(data),
        read_options=_in_one_block(layout, data),
        parse_options=pa.csv.ParseOptions(delimiter=layout.delimiter),
        convert_options=_converting(dict(layout.types)),
    )


def _parse_text(piece: Piece, options: Options) -> Fixes | None:
    """Parse as text, tracking the line of every row; None if there are no rows."""
    layout, block = piece.layout, piece.block
    data, n_undecoded = _decodable(block, options)
    table, misfits = read_text(data, layout, block)
    blank = np.array([not line.strip() for line in data.split(b"\n")], np.bool_)
    misfits = [(row, n_fields) for row, n_fields in misfits if not blank[row : row + 1].all()]
    if misfits and options.on_error == "fail":
        row, n_fields = misfits[0]
        message = (
            f"{n_fields} fields separated by {layout.delimiter!r}, {len(layout.names)} expected; "
            "is the line cut off, or the delimiter another?"
        )
        # an earlier row may also be faulty, and is then reported first
        _check_text(piece, table.filter(pa.array(_lines(table) < row)), blank, options)
        raise bad_row(block.path, block.first_line + row, message)
    fixes = _check_text(piece, table, blank, options)
    n_skipped = len(misfits) + n_undecoded
    if not (fixes.n_fixes or fixes.n_skipped or n_skipped):
        return None
    return replace(fixes, n_skipped=fixes.n_skipped + n_skipped)


def _check_text(
    piece: Piece, table: pa.Table, blank: npt.NDArray[np.bool_], options: Options
) -> Fixes:
    """Check all text rows that are not blank."""
    block = piece.block
    written = ~blank[np.minimum(_lines(table), blank.size - 1)]
    table = table.filter(pa.array(written))
    rows = piece.layout.to_rows(table, block.path, _lines(table) + block.first_line)
    return check(rows, options)


def read_text(data: bytes, layout: Layout, block: Block) -> tuple[pa.Table, list[tuple[int, int]]]:
    """Return text rows, numbered in _LINE, and (row, field count) of malformed rows."""
    misfits: list[tuple[int, int]] = []

    def note(row: Any) -> str:
        misfits.append((row.number - 1, row.actual_columns))
        return "skip"

    wanted = [name for name, _ in layout.types]
    try:
        table = pa.csv.read_csv(
            io.BytesIO(data),
            read_options=_in_one_block(layout, data),
            parse_options=pa.csv.ParseOptions(
                delimiter=layout.delimiter, ignore_empty_lines=False, invalid_row_handler=note
            ),
            convert_options=_converting(dict.fromkeys(wanted, pa.string())),
        )
    except pa.ArrowException as error:
        first = str(error).splitlines()[0]
        raise refusal(
            block.path, block.first_line, f"cannot be parsed from here: {first}"
        ) from None
    numbers = np.arange(table.num_rows + len(misfits))
    lines = np.delete(numbers, [row for row, _ in misfits])
    return table.append_column(_LINE, pa.array(lines)), misfits


def _lines(table: pa.Table) -> npt.NDArray[np.int64]:
    return table.column(_LINE).to_numpy()  # type: ignore[no-any-return]


def _in_one_block(layout: Layout, data: bytes) -> Any:
    return pa.csv.ReadOptions(
        column_names=list(layout.names), use_threads=False, block_size=len(data) + 1
    )


def _converting(types: dict[str, pa.DataType]) -> Any:
    return pa.csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=[""],
        strings_can_be_null=True,
    )


def _decodable(block: Block, options: Options) -> tuple[bytes, int]:
    """Return the text with non-UTF-8 lines blanked and their count, or raise an error."""
    try:
        block.data.decode()
    except UnicodeDecodeError as error:
        if options.on_error == "fail":
            line = block.first_line + block.data.count(b"\n", 0, error.start)
            raise bad_row(
                block.path, line, "the text is not UTF-8; save it as UTF-8 (iconv -t UTF-8)"
            ) from None
        lines = block.data.split(b"\n")
        good = [line if _is_utf8(line) else b"" for line in lines]
        return b"\n".join(good), sum(a != b for a, b in zip(lines, good, strict=True))
    return block.data, 0


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def column(table: pa.Table, name: str) -> pa.Array:
    """Return one column as a single array."""
    chunked = table.column(name)
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.unify_dictionaries()
    return chunked.combine_chunks()


def points_of_text(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Parse well-known text such as ``POINT (116.3 39.9)`` to x and y; null if it is no point."""
    number = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
    pattern = (
        r"(?i)^\s*(?:SRID=[0-9]+;)?POINT\s*Z?\s*\(\s*"
        rf"(?P<x>{number})\s+(?P<y>{number})(?:\s+{number})?\s*\)\s*$"
    )
    parts = pc.extract_regex(texts, pattern)
    return pc.struct_field(parts, "x"), pc.struct_field(parts, "y")
