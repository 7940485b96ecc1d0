"""Writes docs/commands.md, docs/settings.md and docs/python.md from the code: `make reference`.

The pages are committed, so that they can be read in the repository; a test fails when they no
longer say what the code says.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

import retrasyn
from retrasyn.cli import app
from retrasyn.service.settings import Settings

DOCS = Path(__file__).parents[1]
NOTE = "<!-- Written by `make reference` from the code; change the code, not this page. -->\n"
_BOUNDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_SETTING_PAGES = {
    "campaign": "service.md",
    "map": "map.md#base-maps",
    "alerts": "operations.md#alerts",
}
_GROUPS = {
    "Data": "Trajectories convert read write demo_city",
    "Synthesis": "synthesize Synthesis RunSettings METHODS Method Curator Roster Release",
    "Space": "Box Grid StateSpace",
    "Evaluation": "evaluate Scores",
    "Public maps": "open_map read_network RoadNetwork",
    "Made-up streams": "generate city_network",
    "Reading the paper": "Interpretation SAFE AUTHORS",
    "Errors and version": "RetraSynError __version__",
}


def pages() -> dict[str, str]:
    """Return every generated page by its file name."""
    return {"commands.md": commands(), "settings.md": settings(), "python.md": python()}


# Commands.


def commands() -> str:
    """Return the page of all commands, with every argument and option."""
    root = typer.main.get_command(app)
    listed = root.commands  # type: ignore[attr-defined]
    told: dict[tuple[str, ...], str] = {}  # parameters that a section above has a row for
    parts = [
        "# Commands\n",
        NOTE,
        (
            "Every command of `retrasyn`, with all arguments and options. `--help` after any of "
            "them says the same. What cannot be used is refused with one line on standard error "
            "and exit code 2; Ctrl-C is exit code 130. Defaults stand in brackets.\n"
        ),
        "Of the program itself:\n",
        _list(root.params),
    ]
    for panel in dict.fromkeys(command.rich_help_panel for command in listed.values()):
        parts += [f"## {panel}\n"]
        for name, command in listed.items():
            if command.rich_help_panel == panel:
                parts += _section(name, command, told)
    return "\n".join(parts)


def _section(name: str, command: Any, told: dict[tuple[str, ...], str]) -> Iterator[str]:
    """Return the texts about a command and those below it; repeated options are only named."""
    yield f"### retrasyn {name}\n"
    yield _help_text(command.help or "")
    shown = [parameter for parameter in command.params if not parameter.hidden]
    rows = {_row(parameter): parameter for parameter in shown}
    new = [parameter for row, parameter in rows.items() if row not in told]
    if new:
        yield _list(new)
    for above in dict.fromkeys(told[row] for row in rows if row in told):
        same = ", ".join(_names(rows[row]) for row in rows if told.get(row) == above)
        yield f"As for [`{above}`](#retrasyn-{above.replace(' ', '-')}): {same}.\n"
    told |= {row: name for row in rows if row not in told}
    for part, below in getattr(command, "commands", {}).items():
        yield from _section(f"{name} {part}", below, told)


def _help_text(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs) + "\n"


def _paragraph(text: str) -> str:
    joined = " ".join(text.split())
    example = re.match(r"(Examples?): (.*)", joined)
    return f"{example[1]}: `{example[2]}`" if example else _escaped(joined)


def _list(parameters: Sequence[Any]) -> str:
    return "\n".join(f"- {': '.join(_row(parameter))}" for parameter in parameters) + "\n"


def _row(parameter: Any) -> tuple[str, ...]:
    default = _default(parameter)
    return _name(parameter), _meaning(parameter) + (f" ({default})" if default else "")


def _name(parameter: Any) -> str:
    names = _names(parameter)
    if parameter.param_type_name == "argument" or parameter.is_flag:
        return names
    return f"{names} {_value_of(parameter)}".rstrip()


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_argument(parameter)}`"
    names = sorted(parameter.opts, key=len, reverse=True) + parameter.secondary_opts
    return ", ".join(f"`{name}`" for name in names)


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _value_of(parameter: Any) -> str:
    choices = _choices(parameter.type_descriptor.annotation)
    if choices:
        return " ".join(f"`{choice}`" for choice in choices)
    return " or ".join(f"`{word}`" for word in (parameter.metavar or "").split("|") if word)


def _choices(annotation: Any) -> list[str]:
    """Return the values of a literal, wherever in the annotation it stands."""
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _meaning(parameter: Any) -> str:
    text = _cell(re.sub(r" *\(default: .*\)$", "", parameter.help or ""))
    text += " May be repeated." if parameter.multiple else ""
    is_option = parameter.param_type_name == "option"
    return f"{text} Required." if parameter.required and is_option else text


def _default(parameter: Any) -> str:
    stated = re.search(r"\(default: (.*)\)$", parameter.help or "")
    if stated:
        return _cell(stated[1])
    if parameter.required or parameter.default in (None, [], False):
        return ""
    return f"`{parameter.default}`"


# Settings.


def settings() -> str:
    """Return the page of all settings of the service."""
    parts = [
        "# Settings\n",
        NOTE,
        (
            "What `retrasyn serve` can be told, in a TOML file (`--config FILE`) or one by one "
            "(`--set NAME=VALUE`; the name alone is enough, `campaign.window` is clearer). Every "
            "setting has a default, so no file is needed; `retrasyn serve --print-config` writes "
            "one with all of them. A misspelt name is refused. How they are used is in "
            "[operating](operations.md#configure).\n"
        ),
    ]
    for section, table in Settings.model_fields.items():
        parts += [f"## {section}\n", _section_text(section, str(table.description))]
        parts += ["| setting | default | meaning |\n|---|---|---|"]
        parts += [
            f"| `{name}` | {_shown(field.default)} | {_cell(field.description)}{_allowed(field)} |"
            for name, field in type(table.default).model_fields.items()
        ]
        parts += [""]
    return "\n".join(parts)


def _section_text(section: str, description: str) -> str:
    more = _SETTING_PAGES.get(section)
    return f"{description} [More]({more}).\n" if more else f"{description}\n"


def _shown(default: Any) -> str:
    if default is None or default == "":
        return ""
    return f"`{list(default) if isinstance(default, tuple) else default}`"


def _allowed(field: Any) -> str:
    """Return the values a setting may have, in brackets, unless any will do."""
    choices = _choices(field.annotation)
    if choices:
        numbers = " or a whole number" if int in get_args(field.annotation) else ""
        return f" ({', '.join(f'`{choice}`' for choice in choices)}{numbers})"
    bounds = {
        name: f"{getattr(rule, name):,}"
        for rule in field.metadata
        for name in _BOUNDS
        if hasattr(rule, name)
    }
    if all(value in str(field.description) for value in bounds.values()):
        return ""
    if bounds.keys() == {"ge", "le"}:
        return f" ({bounds['ge']} to {bounds['le']})"
    words = ", ".join(f"{_BOUNDS[name]} {value}" for name, value in bounds.items())
    return f" ({words})" if words else ""


# Python.


def python() -> str:
    """Return the list of public names; the site puts their whole docstrings below each heading."""
    known = dict.fromkeys(name for names in _GROUPS.values() for name in names.split())
    rest = [name for name in retrasyn.__all__ if name not in known]
    parts = [
        "# Python\n",
        NOTE,
        (
            "Everything that `import retrasyn` gives, with the first words of each docstring; "
            "the documentation site (`make docs`) shows signatures, fields and methods besides. "
            "A name is loaded when it is first used, so importing is quick. Other modules may "
            "change between versions; [how to extend it](extending.md) says which ones are meant "
            "to be built upon.\n"
        ),
    ]
    for title, names in [*_GROUPS.items(), ("More", " ".join(rest))]:
        shown = [name for name in names.split() if name in retrasyn.__all__]
        if shown:
            parts += [f"## {title}\n"]
            parts += [f"### `retrasyn.{name}`\n\n{_summary(name)}\n" for name in shown]
    return "\n".join(parts)


def _summary(name: str) -> str:
    if name == "__version__":
        return "The version, as text."
    value = getattr(importlib.import_module(retrasyn._HOMES[name]), name)  # noqa: SLF001
    if inspect.isclass(value) or inspect.isfunction(value):
        return _first(inspect.getdoc(value))
    return _first(_of_constant(retrasyn._HOMES[name], name))  # noqa: SLF001


def _of_constant(home: str, name: str) -> str:
    """Return the text below a constant, which Python itself forgets."""
    body = ast.parse(inspect.getsource(importlib.import_module(home))).body
    for line, below in itertools.pairwise(body):
        goals = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        named = any(isinstance(goal, ast.Name) and goal.id == name for goal in goals)
        if named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return str(below.value.value)
    raise LookupError(f"{name} of {home} has no docstring below it; write one")


def _first(text: str | None) -> str:
    return _cell((text or "").split("\n\n")[0])


def _cell(text: str | None) -> str:
    return _escaped(" ".join((text or "").split())).replace("|", "\\|").replace("``", "`")


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")


def main() -> None:
    """Write all pages."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
