"""Receipt files: reads and validates them, and ties receipts to the released files."""

from __future__ import annotations

import dataclasses
import hashlib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin, get_type_hints

from retrasyn.bounded_json import parse_json
from retrasyn.data.parts import parts_in
from retrasyn.data.replica_files import files_in
from retrasyn.data.writing_files import write
from retrasyn.errors import InputError
from retrasyn.privacy.receipt import FORMAT, DataFile, Receipt, ReplicaFiles

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories


SUFFIX = ".receipt.json"
STANDARD_OUTPUT = "standard output"


def receipt_place(out: Path) -> Path:
    """Return the path of a file's receipt, which is next to it.

    >>> receipt_place(Path("synthetic.csv")).name
    'synthetic.csv.receipt.json'
    """
    return out.with_name(f"{out.name}{SUFFIX}")


def describe(path: Path, *, name: str | None = None) -> DataFile:
    """Return the size and digest of a file, or of a folder of parts.

    The digest of a folder is that of the lines that ``sha256sum *`` prints in it.
    """
    if path.is_dir():
        return _describe_all(parts_in(path), name or path.name)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    return DataFile(name or path.name, path.stat().st_size, digest)


def describe_replicas(folder: Path, *, name: str) -> ReplicaFiles | None:
    """Return number, size and digest of the replicas in a folder; None if there are none."""
    files = files_in(folder)
    if not files:
        return None
    whole = _describe_all(files, name)
    return ReplicaFiles(len(files), whole.name, whole.n_bytes, whole.sha256)


def _describe_all(files: Sequence[Path], name: str) -> DataFile:
    parts = [describe(part) for part in files]
    lines = "".join(f"{part.sha256}  {part.name}\n" for part in parts)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    return DataFile(name, sum(part.n_bytes for part in parts), digest)


def write_with_receipt(
    synthetic: Trajectories, receipt: Receipt, out: Path, place: Path, *, datetime: bool = False
) -> Receipt:
    """Write a release and its receipt, which is put in place first; return that receipt."""
    bound = receipt

    def bind(finished: Path) -> None:
        nonlocal bound
        bound = receipt.travelling_with(describe(finished, name=out.name))
        place.write_text(bound.to_json() + "\n")

    write(synthetic, out, datetime=datetime, on_written=bind)
    return bound


def bind_parts(receipt: Receipt, folder: Path, out: Path, place: Path) -> Receipt:
    """Write the receipt of a folder of parts, then move the folder into place."""
    bound = receipt.travelling_with(describe(folder, name=out.name))
    place.write_text(bound.to_json() + "\n")
    folder.rename(out)
    return bound


@dataclass(slots=True)
class Written:
    """Running digest of the lines written to standard output."""

    n_bytes: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, text: str) -> None:
        """Add a line."""
        data = text.encode()
        self.n_bytes += len(data)
        self._digest.update(data)

    def described(self) -> DataFile:
        """Describe what was written so far as if it were a file."""
        return DataFile(STANDARD_OUTPUT, self.n_bytes, self._digest.hexdigest())


_LARGEST = 10**60  # larger than any figure of a run, even a 128-bit seed; sums of it still work


def open_receipt(path: Path) -> Receipt:
    """Read a receipt in our format; refuse anything else."""
    return read_receipt(load(path), name=str(path))


def load(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file."""
    try:
        values = parse_json(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is not a receipt: it is not JSON") from None
    if not isinstance(values, dict) or "format_version" not in values:
        raise InputError(
            f"{path} is not a receipt: it has no format_version; name the .receipt.json that lies "
            "beside the output"
        )
    return values


def read_receipt(values: Mapping[str, Any], *, name: str) -> Receipt:
    """Build a receipt from plain values, refusing malformed ones."""
    version = values.get("format_version")
    if type(version) is not int or version != FORMAT:
        raise InputError(
            f"{name} has the receipt format {version!r}; this version of RetraSyn reads {FORMAT}"
        )
    try:
        receipt: Receipt = _read(values, Receipt, "")
    except _FormError as error:
        raise InputError(f"{name} is not a receipt: {error}") from None
    return receipt


class _FormError(ValueError):
    """A value does not have the form its field requires."""


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _read(value: Any, hint: Any, where: str) -> Any:
    """Convert a value according to its type hint, lists to tuples."""
    if dataclasses.is_dataclass(hint):
        return _read_table(value, hint, where)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        for part in parts:
            try:
                return _read(value, part, where)
            except _FormError:
                continue
    elif origin is tuple and isinstance(value, list | tuple):
        kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else parts
        if len(kinds) == len(value):
            return tuple(
                _read(entry, kind, f"{where}[{number}]")
                for number, (entry, kind) in enumerate(zip(value, kinds, strict=True))
            )
    elif (
        (origin is dict and isinstance(value, dict))
        or (hint is type(None) and value is None)
        or (hint is float and type(value) in (int, float) and abs(value) <= _LARGEST)
        or (hint is int and type(value) is int and abs(value) <= _LARGEST)
        or (hint in (bool, str) and type(value) is hint)
    ):
        return value
    raise _FormError(f"{where} is {str(value)[:40]!r}, which is no {_word(hint)}")


def _read_table(value: Any, hint: Any, where: str) -> Any:
    """Build a dataclass from a table that has exactly its fields."""
    hints = get_type_hints(hint)
    if not isinstance(value, dict):
        raise _FormError(f"{where} is no table")
    for name in [*(hints.keys() - value.keys()), *(value.keys() - hints.keys())]:
        known = "is missing" if name in hints else "is no field of it"
        raise _FormError(f"{where}{'.' if where else ''}{str(name)[:40]} {known}")
    return hint(
        **{
            name: _read(value[name], kind, f"{where}.{name}" if where else name)
            for name, kind in hints.items()
        }
    )


def _word(hint: Any) -> str:
    return {int: "whole number", float: "number", str: "text", bool: "truth value"}.get(
        hint, "such value"
    )
