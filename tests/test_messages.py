"""Messages speak the language of whoever reads them: Python's, or the command line's."""

import ast
import re
from pathlib import Path

import pytest
import typer

import retrasyn
from retrasyn.cli import app, main
from retrasyn.cli.pages import in_flags

SOURCE = Path(retrasyn.__file__).parent
OF_COMMANDS = ("cli", "client", "experiments", "fleet", "planning", "service")
"""Packages whose words are read where a command prints them: there a flag is what to type."""
MODULES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.relative_to(SOURCE).parts[0] not in OF_COMMANDS
]
COMMAND = r"(?:retrasyn|ray) [^;,.]*|(?:netconvert|duarouter) .*"
"""A whole command to type reads right in both worlds."""
SETTING = r"`([a-z_]+)(?:=[^`]*)?`"


def messages_of(path):
    """Return every text of a module that is no docstring, with an x in place of each value."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in prose | inner:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [getattr(part, "value", "x") for part in node.values]
            yield "".join(part if isinstance(part, str) else "x" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def flags():
    """Return the long names of all options of all commands."""
    waiting = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        yield from (name for one in command.params for name in one.opts if name.startswith("--"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_no_message_of_the_library_names_a_flag_or_a_page_of_the_command_line(path):
    for message in messages_of(path):
        rest = re.sub(COMMAND, "", message)
        assert not re.search(r"(?<![\w-])--[a-z]", rest), message
        assert "retrasyn help" not in message


def test_every_setting_that_a_message_names_is_a_flag_by_the_same_name():
    known = set(flags())
    named = {
        (name, path.stem)
        for path in MODULES
        for message in messages_of(path)
        for name in re.findall(SETTING, message)
    }
    assert {"box", "outside", "oracle", "resume"} <= {name for name, _ in named}
    assert not {(name, where) for name, where in named if in_flags(f"`{name}`") not in known}


def test_the_same_refusal_names_an_argument_in_python_and_a_flag_in_a_terminal(tmp_path, capsys):
    city = retrasyn.demo_city(n_users=20, n_timestamps=5, seed=1)
    with pytest.raises(retrasyn.RetraSynError, match=r'drop them with `outside="drop"`$'):
        retrasyn.synthesize(city, box=(0, 0, 1, 1), window=2)
    retrasyn.write(city, tmp_path / "city.parquet")
    with pytest.raises(SystemExit):
        main(["synthesize", str(tmp_path / "city.parquet"), "-o", "x.parquet", "--box", "0,0,1,1"])
    assert "widen --box, or drop them with --outside drop; see" in capsys.readouterr().err
