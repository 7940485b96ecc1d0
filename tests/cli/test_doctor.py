"""``retrasyn doctor``: what it finds, what it says to type, and when it fails."""

import importlib.metadata
import json
import socket

import pytest

from cli.running import run
from retrasyn.cli import installation


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
    assert "1 required things are broken" in run("doctor").out


def test_a_port_that_is_taken_is_noted_with_another():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        code, _, found = findings("--port", port)

    assert code == 0
    assert found[f"port {port}"]["verdict"] == "note"
    assert found[f"port {port}"]["type"].startswith("retrasyn serve --port ")


def test_a_clock_before_the_program_is_noted(monkeypatch):
    monkeypatch.setattr(installation.time, "time", lambda: 0.0)

    assert findings()[2]["clock"]["verdict"] == "note"


def test_every_extra_of_the_package_but_ours_is_examined():
    declared = installation.requirements().keys() - {"", "dev"}

    assert {f"[{extra}]" for extra in declared} <= findings()[2].keys()
