"""Reads files as blocks of whole lines, and processes blocks on all cores."""

from __future__ import annotations

import codecs
import gzip
import os
import shutil
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TypeVar

from retrasyn.errors import InputError

BLOCK = 4 << 20
LONGEST_LINE = 16 << 20
_FREE = 64 << 20  # a small file may expand this far whatever its ratio
_RATIO = 200  # real positions compress ten- to thirtyfold
_EXPANDS = (
    f"expands to more than {_RATIO} times its size, as no real recording does; decompress it "
    "yourself if you trust it"
)
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file."""

    path: Path
    first_line: int
    data: bytes


class Unpacked:
    """A file read in pieces, with a limit on how far a compressed one may expand."""

    def __init__(self, path: Path, file: IO[bytes] | gzip.GzipFile, limit: int | None) -> None:
        self._path, self._file, self._limit = path, file, limit
        self._n_read = 0

    def read(self, size: int) -> bytes:
        """Return up to size bytes, empty at the end of the file."""
        data = self._file.read(size)
        self._n_read += len(data)
        if self._limit is not None and self._n_read > self._limit:
            raise InputError(f"{self._path} {_EXPANDS}")
        return data


@contextmanager
def unpacked(path: Path) -> Iterator[Unpacked]:
    """Open a plain or .gz file; errors raised while it is open name the file."""
    try:
        if path.suffix.lower() == ".gz":
            limit = max(_FREE, _RATIO * path.stat().st_size)
            with gzip.open(path) as file:
                yield Unpacked(path, file, limit)
        elif path.suffix.lower() in {".zip", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz"}:
            raise InputError(
                f"{path} is an archive; unpack it first (.gz, and .zip of one file, are read as "
                "they are)"
            )
        else:
            with path.open("rb") as file:
                yield Unpacked(path, file, None)
    except EOFError:
        raise InputError(f"{path} ends too early: the compressed file is not whole") from None
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}") from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a file that libraries can open by its name: a .gz is unpacked until it is closed."""
    if path.suffix.lower() != ".gz":
        yield path
        return
    with TemporaryDirectory() as folder:
        whole = Path(folder, path.stem)
        with unpacked(path) as file, whole.open("wb") as out:
            while data := file.read(BLOCK):
                out.write(data)
        yield whole


@contextmanager
def unzipped(path: Path, suffixes: Collection[str]) -> Iterator[Path]:
    """Give the one file of an archive that ends in one of the suffixes, with those beside it."""
    with TemporaryDirectory() as folder:
        home = Path(folder, path.stem)
        try:
            file = _unzip(path, home, suffixes)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{path} cannot be unpacked: {error}; do it yourself") from None
        yield file


def _unzip(path: Path, home: Path, suffixes: Collection[str]) -> Path:
    """Unpack an archive, without its folders, and return the one file of positions."""
    with zipfile.ZipFile(path) as archive:
        members = [each for each in archive.infolist() if _is_data(each.filename)]
        known = [each.filename for each in members if inner_suffix(each.filename) in suffixes]
        if len(known) != 1:
            raise InputError(
                f"{path} holds {len(known)} files of positions ({', '.join(known[:5]) or 'none'}), "
                "not one; unpack it, and name the file or the folder"
            )
        if sum(each.file_size for each in members) > max(_FREE, _RATIO * path.stat().st_size):
            raise InputError(f"{path} {_EXPANDS}")
        home.mkdir()
        for each in members:
            with (
                archive.open(each) as packed,
                Path(home, Path(each.filename).name).open("wb") as out,
            ):
                shutil.copyfileobj(packed, out)
    return home / Path(known[0]).name


def _is_data(name: str) -> bool:
    """Whether a member of an archive is more than a folder or a trace of a file manager."""
    return not name.endswith("/") and "__MACOSX" not in name and not Path(name).name.startswith(".")


def inner_suffix(name: str) -> str:
    """Return the suffix of a file, without that of its compression.

    >>> inner_suffix("Runs/Monday.FIT.gz")
    '.fit'
    """
    return Path(name.lower().removesuffix(".gz")).suffix


def blocks(path: Path) -> Iterator[Block]:
    """Split a text file into blocks of whole lines; a byte-order mark is dropped."""
    with unpacked(path) as file:
        line, rest = 1, b""
        decode = None
        while data := file.read(BLOCK):
            if decode is None:
                decode = _decoder(data)
            data = decode(data)
            end = data.rfind(b"\n") + 1
            if not end:
                rest += data
                if len(rest) > LONGEST_LINE:
                    raise InputError(
                        f"{path}, line {line} is longer than {LONGEST_LINE >> 20} MiB; "
                        "is this a text file?"
                    )
                continue
            whole = rest + data[:end]
            rest = data[end:]
            yield Block(path, line, whole)
            line += whole.count(b"\n")
        if rest:
            yield Block(path, line, rest)


def _decoder(data: bytes) -> Callable[[bytes], bytes]:
    """Return what turns pieces of a text into UTF-8, as the mark at its beginning says."""
    if data.startswith(_UTF_16):
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        return lambda piece: decoder.decode(piece).encode()
    marks = iter([_BOM])
    return lambda piece: piece.removeprefix(next(marks, b""))


def beginning(path: Path, size: int) -> bytes:
    """Return the beginning of a file, a text as UTF-8."""
    with unpacked(path) as file:
        data = file.read(size)
    return _decoder(data)(data)


_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_order(work: Callable[[_In], _Out], pieces: Iterable[_In]) -> Iterator[_Out]:
    """Yield work(piece) for each piece, in the order of the pieces.

    Threads suffice because Arrow and numpy release the GIL.
    """
    n_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ahead = 2 * (n_workers or 1)
    with ThreadPoolExecutor(n_workers) as pool:
        pending: deque[Future[_Out]] = deque()
        try:
            for piece in pieces:
                pending.append(pool.submit(work, piece))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def files_of(path: Path, *suffixes: str) -> list[Path]:
    """Return a file itself, or all files below a folder with one of the suffixes, sorted."""
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"{path} does not exist; check the path")
    if not path.is_dir():
        return [path]
    endings = (*suffixes, *(f"{suffix}.gz" for suffix in suffixes))
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(path, onerror=_refuse)
        for name in names
        if name.lower().endswith(endings) and not name.startswith(".")
    ]
    if not files:
        raise InputError(f"{path} holds no file that ends in {' or '.join(suffixes)}")
    return sorted(files)


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}") from None
