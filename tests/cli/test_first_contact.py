"""The first minutes: five things to do, examples that work, pages to read, no colour unasked."""

import json
import os
import pty
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from retrasyn import demo_city, errors, write
from retrasyn.cli import app, pages
from retrasyn.cli.pages import STEPS
from retrasyn.data.writing_roads import write_roads
from retrasyn.simulation.city import city_roads
from support.command_line import (
    COMMAND,
    TWO_STREAMS,
    assert_one_line,
    environment,
    run,
    run_command,
    write_table,
)
from support.namespaces import run_in_namespace

pytestmark = pytest.mark.system


def leaves(command, words=()):
    """Return every command that can be run by itself, with the words that lead to it."""
    below = getattr(command, "commands", {})
    if not below or (words and command.invoke_without_command):
        yield words, command
    for name, part in below.items():
        yield from leaves(part, (*words, name))


COMMANDS = {" ".join(words): command for words, command in leaves(typer.main.get_command(app))}
EXAMPLES = {
    name: re.findall(r"Example: (.*)$", command.help, re.MULTILINE)
    for name, command in COMMANDS.items()
}
SERVED = {
    **dict.fromkeys(("watch", "serve", "gateway", "fleet"), 130),  # until Ctrl-C
    **dict.fromkeys(("invite", "device enrol", "device run", "device status"), 0),
    **dict.fromkeys(("device accept", "device leave", "rotate-key"), 0),
}
"""Examples that need a service or end with Ctrl-C, and their exit codes."""
SLOW = {"plan", "reproduce"}


def parse(words):
    """Read a command line to its end without running it."""
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    command.make_context("retrasyn", list(words))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with every file that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    city = demo_city(n_users=60, n_timestamps=30, seed=1)
    for name in ("trips.parquet", "synthetic.parquet", "one.parquet", "other.parquet"):
        write(city, folder / name)
    (folder / "positions.jsonl").write_text('{"t": 0, "traj_id": [7], "x": [0.1], "y": [0.2]}\n')
    write_roads(city_roads(), folder / "city.roads.geojson")
    beijing = {"x": [116.2, 116.3, 116.3, 116.4, 116.5], "y": [39.8, 39.8, 39.9, 40, 40]}
    write_table(folder / "trips.csv", TWO_STREAMS | beijing)
    (folder / "taxi_log").mkdir()
    (folder / "taxi_log" / "1.txt").write_text(
        "1,2008-02-02 15:36:08,116.51,39.92\n1,2008-02-02 15:46:08,116.51,39.93\n"
    )
    (folder / "demo-out").mkdir()
    done = run(
        *("synthesize", folder / "trips.parquet", "-o", folder / "demo-out" / "synthetic.parquet"),
        *("--box", "0,0,10,10", "--quiet"),
    )
    assert done.code == 0, done.err
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_ends_with_an_example_that_can_be_read(name):
    (example,) = EXAMPLES[name]
    program, *words = shlex.split(example.partition(" < ")[0])

    assert program == "retrasyn"
    assert words[: len(name.split())] == name.split()
    parse(words)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in SLOW else [])
        for name in sorted(COMMANDS.keys() - SERVED.keys())
    ],
)
def test_the_example_of_every_command_works(name, prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    text, _, source = EXAMPLES[name][0].partition(" < ")

    done = run(*shlex.split(text)[1:], stdin=(tmp_path / source).read_text() if source else "")

    assert done.code == 0, done.err


def test_the_examples_with_a_service_work_where_their_ports_are_free(tmp_path):
    texts = {name: EXAMPLES[name][0] for name in SERVED}

    ended = run_in_namespace("-m", "support.served_examples", tmp_path, json.dumps(texts))

    assert ended == SERVED


def test_without_a_command_five_things_to_do_are_shown():
    outcome = run()

    assert (outcome.code, outcome.err) == (0, "")
    assert len(STEPS) == 5
    assert all(f"$ {command}\n" in outcome.out for _, command in STEPS)
    assert len(outcome.out.splitlines()) < 20
    assert all(len(line) <= 100 for line in outcome.out.splitlines())


@pytest.mark.parametrize("command", [command for _, command in STEPS])
def test_every_thing_to_do_can_be_read(command):
    parse(shlex.split(command)[1:])


def test_own_data_takes_two_of_the_shown_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(demo_city(n_users=60, n_timestamps=30, seed=1), tmp_path / "trips.csv")

    for _, command in STEPS[1:3]:
        done = run(*shlex.split(command)[1:])
        assert done.code == 0, done.err

    assert (tmp_path / "report.html").is_file()


# completion


SHELLS = ["bash", "zsh", "fish"]


@pytest.mark.parametrize(
    ("shell", "word"),
    [("bash", "complete -o"), ("zsh", "#compdef retrasyn"), ("fish", "complete --command")],
)
def test_a_completion_script_is_printed_for_every_shell(shell, word):
    done = run("--show-completion", shell)

    assert (done.code, done.err) == (0, "")
    assert word in done.out
    assert f"_RETRASYN_COMPLETE=complete_{shell}" in done.out


def test_an_unknown_shell_is_refused_with_those_that_are_known():
    assert_one_line(run("--show-completion", "ksh"), "ksh", *SHELLS)
    assert_one_line(run("--show-completion"), "--show-completion", "retrasyn --help")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("retrasyn synth", "synthesize"),
        ("retrasyn synthesize --eps", "--epsilon"),
        ("retrasyn device st", "status"),
        ("retrasyn demo --oracle ou", "oue"),
    ],
)
def test_bash_completes_commands_options_and_choices(words, completed):
    script = """eval "$(retrasyn --show-completion bash)"
        COMP_WORDS=($0); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _retrasyn_completion retrasyn; echo "${COMPREPLY[@]}" """
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"

    done = subprocess.run(
        ["bash", "-c", script, words],
        capture_output=True,
        text=True,
        check=False,
        env=environment(PATH=path),
    )

    assert (done.stdout, done.stderr) == (f"{completed}\n", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_installed_in_the_home_of_its_owner(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    done = run("--install-completion", shell)

    place = Path(done.out.rpartition(": ")[2].strip())
    assert (done.code, done.err) == (0, "")
    assert place.is_relative_to(tmp_path)
    assert f"complete_{shell}" in place.read_text()


def test_a_home_that_cannot_be_written_is_one_clear_line(tmp_path, monkeypatch):
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert_one_line(run("--install-completion", "bash"), "bash", "retrasyn --show-completion bash")


# pages


def test_every_page_can_be_read_and_is_listed():
    listed = run("help").out

    for name, path in pages.find_pages().items():
        assert re.search(rf"^{name} +\S", listed, re.MULTILINE)
        assert run("help", name).out == path.read_text()


def test_a_page_that_does_not_exist_is_refused_with_those_that_do():
    assert_one_line(run("help", "nonsense"), "nonsense", "privacy", "formats")


def test_every_command_and_every_error_knows_its_page():
    names = set(typer.main.get_command(app).commands)
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RetraSynError)
    }
    by_command = {errors.RetraSynError, errors.InputError, errors.OutputError, errors.SettingError}

    assert set(pages.BY_COMMAND) == names
    assert set(pages.BY_ERROR) == kinds - by_command
    topics = {*pages.BY_COMMAND.values(), *pages.BY_ERROR.values()} - {None}
    assert topics <= pages.find_pages().keys()


def test_an_error_ends_with_the_page_that_explains_it(small):
    assert_one_line(run("plan", "--users", 0), "; see retrasyn help planning\n")
    assert_one_line(run("receipt", "show", small), "; see retrasyn help receipts\n")
    assert_one_line(run("device", "status", "--folder", small.parent), "; see retrasyn help device")


# colours


def on_a_terminal(*arguments, **variables):
    """Run the command with a terminal for its output; return the bytes that it got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM="xterm-256color", COLUMNS="100", **variables),
    )
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(ours)
        process.wait()
    return said


COLOUR = re.compile(rb"\x1b\[[0-9;]*(?:3|4|9|10)[0-9](?:;[0-9;]*)?m")
SHOWN = [("--help",), ("plan", "--users", 5000, "--no-simulation"), ("synthesize", "--help")]


@pytest.mark.parametrize("arguments", SHOWN, ids=lambda words: words[0])
def test_colours_are_for_terminals_only_and_can_be_turned_off(arguments):
    piped = run_command(*arguments)

    assert "\x1b" not in piped.out + piped.err
    assert not COLOUR.search(on_a_terminal(*arguments, NO_COLOR="1"))


def test_a_terminal_has_colours():
    kept = {name: value for name, value in os.environ.items() if name == "NO_COLOR"}
    assert not kept, "unset NO_COLOR for the tests"
    assert COLOUR.search(on_a_terminal("--help"))
