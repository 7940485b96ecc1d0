"""A receipt bound to the very bytes it travels with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrasyn.data.parts import parts_in
from retrasyn.data.writing_files import write
from retrasyn.errors import InputError
from retrasyn.privacy.receipt import DataFile, Receipt

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories

SUFFIX = ".receipt.json"
STANDARD_OUTPUT = "standard output"


def receipt_place(out: Path) -> Path:
    """Return where the receipt of a file lies: beside it.

    >>> receipt_place(Path("synthetic.csv")).name
    'synthetic.csv.receipt.json'
    """
    return out.with_name(f"{out.name}{SUFFIX}")


def describe(path: Path, *, name: str | None = None) -> DataFile:
    """Return the size and digest of a file, or of a folder of parts.

    The digest of a folder is that of the lines that ``sha256sum *`` prints in it.
    """
    if path.is_dir():
        parts = [describe(part) for part in parts_in(path)]
        lines = "".join(f"{part.sha256}  {part.name}\n" for part in parts)
        digest = hashlib.sha256(lines.encode()).hexdigest()
        return DataFile(name or path.name, sum(part.n_bytes for part in parts), digest)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    return DataFile(name or path.name, path.stat().st_size, digest)


def write_with_receipt(
    synthetic: Trajectories, receipt: Receipt, out: Path, place: Path, *, datetime: bool = False
) -> Receipt:
    """Write a release and, before it takes its place, its receipt; return that receipt."""
    bound = receipt

    def bind(finished: Path) -> None:
        nonlocal bound
        bound = receipt.travelling_with(describe(finished, name=out.name))
        place.write_text(bound.to_json() + "\n")

    write(synthetic, out, datetime=datetime, on_written=bind)
    return bound


def bind_parts(receipt: Receipt, folder: Path, out: Path, place: Path) -> Receipt:
    """Write the receipt of a folder of parts, and put the folder in its place."""
    bound = receipt.travelling_with(describe(folder, name=out.name))
    place.write_text(bound.to_json() + "\n")
    folder.rename(out)
    return bound


@dataclass(slots=True)
class Written:
    """The running digest of lines that went to standard output."""

    n_bytes: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, text: str) -> None:
        """Take a line in."""
        data = text.encode()
        self.n_bytes += len(data)
        self._digest.update(data)

    def described(self) -> DataFile:
        """Return what was written so far as the file it would be."""
        return DataFile(STANDARD_OUTPUT, self.n_bytes, self._digest.hexdigest())
