"""Reads road networks from text files, in the two common forms.

``NAME.cnode`` and ``NAME.cedge``: ``id x y`` and ``id from to length``, separated by blanks.
``NAME_node.txt`` and ``NAME_edge.txt``: ``id x y *`` and ``id from to class *``, separated by tabs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrasyn.errors import InputError
from retrasyn.roads.network import N_CLASSES, RoadNetwork, about

_LONGEST = 200  # maximum characters per line; both forms need far fewer


@dataclass(frozen=True, slots=True)
class Form:
    """A pair of files: their names, the field separator and the meaning of the fourth field."""

    node_ending: str
    edge_ending: str
    separator: str | None  # None: any blanks
    separator_name: str
    last_mark: tuple[str, ...]  # final field of every line
    fourth: str

    def fields(self, line: str, names: str) -> list[str]:
        """Split a line into the required fields."""
        fields = line.split(self.separator)
        wanted = names.split()
        if len(fields) != len(wanted) + len(self.last_mark):
            has = f"{len(fields)} field{'s' * (len(fields) != 1)}"
        elif tuple(fields[len(wanted) :]) != self.last_mark:
            has = f"{fields[-1]!r} at its end"
        else:
            return fields[: len(wanted)]
        form = " ".join((*wanted, *self.last_mark))
        raise InputError(
            f"has {has}, but a line must read {form!r} separated by {self.separator_name}; "
            "is it cut short, or separated by something else?"
        )


FORMS = (
    Form(".cnode", ".cedge", None, "blanks", (), "length"),
    Form("_node.txt", "_edge.txt", "\t", "tabs", ("*",), "class"),
)


def read_pair(path: Path) -> RoadNetwork:
    """Read a road network, given either file of a pair."""
    form, node_path, edge_path = _pair(path)
    place: dict[int, int] = {}  # line of every node id, in file order
    x: list[float] = []
    y: list[float] = []
    for number, line in _lines(node_path):
        with _Line(node_path, number):
            identifier, *point = form.fields(line, "id x y")
            _claim(place, "node", identifier, number)
            x.append(_read_number("x", point[0]))
            y.append(_read_number("y", point[1]))
    index = {identifier: row for row, identifier in enumerate(place)}
    edge_place: dict[int, int] = {}
    ends: tuple[list[int], list[int]] = ([], [])
    fourth: list[float] = []
    for number, line in _lines(edge_path):
        with _Line(edge_path, number):
            identifier, tail, head, value = form.fields(line, f"id from to {form.fourth}")
            _claim(edge_place, "edge", identifier, number)
            for column, text in zip(ends, (tail, head), strict=True):
                column.append(_find(index, text, node_path))
            fourth.append(_read_class(value) if form.fourth == "class" else _read_length(value))
    with about(edge_path):
        return RoadNetwork.from_edges(
            x=x, y=y, tail=ends[0], head=ends[1], **_fourth_column(form, fourth)
        )


def pair_files(path: Path) -> tuple[Path, ...]:
    """Return the files that a network is read from, nodes first."""
    return _pair(path)[1:]


def _fourth_column(form: Form, fourth: list[float]) -> dict[str, list[float]]:
    return {"road_class" if form.fourth == "class" else "length": fourth}


def _pair(path: Path) -> tuple[Form, Path, Path]:
    """Find the other file of a pair."""
    for form in FORMS:
        for ending in (form.node_ending, form.edge_ending):
            if not path.name.lower().endswith(ending):
                continue
            stem = path.name[: -len(ending)]
            node, edge = (
                path if ending == own else path.with_name(stem + own)
                for own in (form.node_ending, form.edge_ending)
            )
            for file, other in ((path, None), (node, edge), (edge, node)):
                check_file(file, other)
            return form, node, edge
    raise InputError(f"{path} is no file of a pair")


def check_file(path: Path, other: Path | None = None) -> None:
    """Reject a path that is not a non-empty file."""
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        beside = f"; {other} needs it beside it" if other else "; check the path"
        raise InputError(f"{path} does not exist{beside}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file of roads")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty; it has no roads")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line that is not blank."""
    n_lines = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                with _Line(path, number):
                    text = _decode(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
                if text.strip():
                    n_lines += 1
                    yield number, text
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    if not n_lines:
        raise InputError(f"{path} has no lines but blank ones; nodes and edges are needed")


def _decode(line: bytes) -> str:
    try:
        text = line.decode("ascii").strip("\r\n ")
    except UnicodeDecodeError:
        raise InputError("is not plain text") from None
    if len(text) > _LONGEST or "\0" in text:
        raise InputError("is not a line of a network file (too long, or not text)")
    return text


class _Line:
    """Context manager that prefixes errors with file and line number."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.path}, line {self.number}: {error}") from None


def _claim(place: dict[int, int], what: str, text: str, number: int) -> None:
    """Register an identifier; a duplicate is an error."""
    identifier = _read_id(text)
    if identifier in place:
        raise InputError(
            f"{what} id {identifier} stands on line {place[identifier]} already; ids must differ"
        )
    place[identifier] = number


def _find(index: dict[int, int], text: str, node_path: Path) -> int:
    """Return the row of a node."""
    identifier = _read_id(text)
    if identifier not in index:
        raise InputError(f"the edge leads to node {identifier}, which is not in {node_path}")
    return index[identifier]


def _read_id(text: str) -> int:
    stripped = text.strip()
    if not stripped.removeprefix("-").isdecimal():
        raise InputError(f"{text!r} is not an id; whole numbers are needed")
    return int(stripped)


def _read_number(name: str, text: str) -> float:
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} is {text!r}; a finite number is needed")
    return value


def _read_length(text: str) -> float:
    value = _read_number("length", text)
    if value < 0:
        raise InputError(f"length is {text}; it cannot be negative")
    return value


def _read_class(text: str) -> int:
    if not text.strip().isdecimal() or int(text) >= N_CLASSES:
        raise InputError(f"class is {text!r}; it must be 0 (fastest) to {N_CLASSES - 1}")
    return int(text)
