"""``retrasyn doctor``: what it finds, what it says to type, and when it fails."""

import contextlib
import importlib.metadata
import json
import socket
import sqlite3
import sys

import pytest

from retrasyn import space
from retrasyn.cli import installation
from support.command_line import assert_one_line, run


def findings(*arguments):
    outcome = run("doctor", "--json", *arguments)
    found = json.loads(outcome.out)
    return outcome.code, found["ok"], {check["name"]: check for check in found["checks"]}


def test_a_whole_installation_is_well():
    code, ok, found = findings()

    assert (code, ok) == (0, True)
    for name in ("python", "retrasyn", "numpy", "numba", "kernels", "randomness", "sqlite"):
        assert found[name]["verdict"] == "ok", found[name]
    for extra in ("device", "geo", "postgres", "report", "serve"):
        assert found[f"[{extra}]"]["verdict"] == "ok"
    assert "NTP" in found["clock"]["detail"]
    assert "CPUs" in found["machine"]["detail"]


def test_people_are_told_in_one_line_each():
    outcome = run("doctor")

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1].startswith("the base works")


def test_quiet_leaves_the_exit_code():
    outcome = run("doctor", "--quiet")

    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


@pytest.fixture
def without(monkeypatch):
    """Let libraries seem not to be installed."""
    real, gone = importlib.metadata.version, set()

    def version(name):
        if name in gone:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    return gone.add


def test_a_missing_extra_is_no_fault_and_comes_with_what_to_type(without):
    without("granian")

    code, ok, found = findings()

    assert (code, ok) == (0, True)
    assert found["[serve]"]["verdict"] == "miss"
    assert "granian" in found["[serve]"]["detail"]
    assert found["[serve]"]["type"] == 'pip install "retrasyn[serve]"'


def test_in_an_environment_of_pipx_its_own_pip_is_named(without, monkeypatch, tmp_path):
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    without("granian")

    _, _, found = findings()

    assert found["[serve]"]["type"] == 'pipx runpip retrasyn install "retrasyn[serve]"'


def test_a_missing_library_of_the_base_is_a_fault(without):
    without("scipy")

    code, ok, found = findings()

    assert (code, ok) == (1, False)
    assert found["scipy"]["verdict"] == "FAIL"
    assert "pip install" in found["scipy"]["type"]


def test_whatever_breaks_the_kernels_becomes_a_line(monkeypatch):
    def broken():
        raise RuntimeError("cannot cache function:\n no locator available")

    monkeypatch.setattr(installation, "_kernels", broken)

    code, _, found = findings()

    assert code == 1
    assert found["kernels"]["verdict"] == "FAIL"
    assert found["kernels"]["detail"] == "cannot cache function: no locator available"
    assert "NUMBA_CACHE_DIR" in found["kernels"]["type"]
    assert "broken, though required: 1" in run("doctor").out


def test_a_port_that_is_taken_is_noted_with_another():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        code, _, found = findings("--port", port)

    assert code == 0
    assert found[f"port {port}"]["verdict"] == "note"
    assert found[f"port {port}"]["type"].startswith("retrasyn serve --port ")


def test_a_port_beside_others_that_are_taken_is_noted_with_a_free_one():
    with socket.socket() as taken, socket.socket() as next_to_it:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with contextlib.suppress(OSError):  # somebody else may have it
            next_to_it.bind(("127.0.0.1", port + 1))

        said = findings("--port", port)[2][f"port {port}"]["type"]

        with socket.socket() as free:
            free.bind(("127.0.0.1", int(said.rpartition(" ")[2])))


@pytest.mark.parametrize("now", [0.0, 5e9], ids=["1970", "2128"])
def test_a_clock_that_cannot_be_right_is_noted(monkeypatch, now):
    monkeypatch.setattr(installation.time, "time", lambda: now)

    clock = findings()[2]["clock"]

    assert clock["verdict"] == "note"
    assert clock["type"] == "timedatectl set-ntp true"


def test_a_library_that_is_there_and_broken_is_a_fault(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)  # cannot be imported

    code, _, found = findings()

    assert code == 1
    assert found["scipy"]["verdict"] == "FAIL"
    assert found["scipy"]["type"].startswith("pip install")


def test_a_python_without_sqlite_can_do_everything_but_serve(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite3", None)

    code, ok, found = findings()

    assert (code, ok) == (0, True)
    assert found["sqlite"]["verdict"] == "miss"
    assert found["sqlite"]["type"]


def test_an_old_sqlite_is_named(monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))

    found = findings()[2]["sqlite"]

    assert found["verdict"] == "miss"
    assert "3.35" in found["type"]


def test_a_program_that_is_not_installed_is_a_fault(without):
    without("retrasyn")

    code, _, found = findings()

    assert code == 1
    assert found["retrasyn"]["type"].startswith("pip install")


def test_whatever_is_not_well_says_what_to_type(without, monkeypatch):
    for name in ("granian", "scipy", "jinja2"):
        without(name)
    monkeypatch.setattr(installation.time, "time", lambda: 0.0)
    monkeypatch.setattr(installation.shutil, "which", lambda _: None)
    monkeypatch.setattr(installation, "_ENOUGH_MEMORY", float("inf"))
    monkeypatch.setattr(installation, "_hindrance", lambda port: "taken" if port < 9000 else None)
    monkeypatch.setattr(installation.os, "access", lambda *_: False)

    found = findings()[2].values()

    assert len([finding for finding in found if finding["verdict"] != "ok"]) >= 8
    assert not [finding for finding in found if finding["verdict"] != "ok" and not finding["type"]]


def test_kernels_that_can_be_kept_nowhere_are_one_line_with_what_to_type(monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot cache function 'x': no locator available for file 'y'")

    monkeypatch.setattr(space.Box, "parse", refuse)

    done = run("validate", "x.csv", "--box", "0,0,1,1")

    assert_one_line(done, "kept nowhere", "export NUMBA_CACHE_DIR=", "retrasyn help operations")


def test_every_extra_of_the_package_but_ours_is_examined():
    declared = installation.requirements().keys() - {"", "dev", "docs"}

    assert {f"[{extra}]" for extra in declared} <= findings()[2].keys()
