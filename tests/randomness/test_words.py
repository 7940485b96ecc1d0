"""Fresh bytes of the operating system, or an error and no report."""

import os
import warnings

import pytest

from retrasyn.errors import EntropyError
from retrasyn.oracles import single
from retrasyn.randomness.words import draw, system_bytes

REPORTS = {
    "unary": lambda **source: single.report_unary(3, 40, epsilon=1_000_000, **source),
    "symbol": lambda **source: single.report_symbol(3, 40, epsilon=1_000_000, **source),
    "hash": lambda **source: single.report_hash(3, 40, epsilon=1_000_000, **source),
    "binary": lambda **source: single.report_binary(0, epsilon=1_000_000, **source),
}


def refuse(n):
    raise OSError("no entropy device")


SHORT, NOTHING, TEXT = (lambda n: bytes(n - 1)), (lambda n: None), (lambda n: "x" * n)
FAULTS = {"fails": refuse, "short": SHORT, "nothing": NOTHING, "text": TEXT, "array": bytearray}


def test_the_system_gives_as_many_bytes_as_asked_for_and_never_the_same():
    assert len(system_bytes(0)) == 0
    assert len({system_bytes(32) for _ in range(100)}) == 100  # a repeat: below 1e-70


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_failing_source_means_no_report(report, fault):
    with pytest.raises(EntropyError, match="no report is made without fresh randomness"):
        report(words=fault)


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_failing_operating_system_means_no_report(report, fault, monkeypatch):
    monkeypatch.setattr(os, "urandom", fault)
    with pytest.raises(EntropyError, match="source of randomness"):
        report()


def test_a_system_without_a_generator_is_an_entropy_error(monkeypatch):
    def absent(n):
        raise NotImplementedError("no generator")

    monkeypatch.setattr(os, "urandom", absent)
    with pytest.raises(EntropyError, match="no generator"):
        system_bytes(8)


@pytest.mark.parametrize(("fault", "given"), [(SHORT, "7 bytes"), (TEXT, "str")])
def test_what_a_source_gave_instead_is_named(fault, given):
    with pytest.raises(EntropyError, match=f"gave {given} where 8 bytes were asked for"):
        draw(fault, 8)


def test_a_source_that_keeps_its_word_is_passed_through():
    assert draw(lambda n: b"a" * n, 3) == b"aaa"


@pytest.mark.system
def test_after_a_fork_parent_and_child_report_differently():
    single.report_unary(3, 328, epsilon=1_000_000)  # whatever could be buffered is by now
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons', for other threads
        child = os.fork()
    if child == 0:  # pragma: no cover - another process
        os.write(writing, single.report_unary(3, 328, epsilon=1_000_000))
        os._exit(0)
    parents = single.report_unary(3, 328, epsilon=1_000_000)
    os.waitpid(child, 0)
    childs = os.read(reading, 41)
    os.close(reading), os.close(writing)
    assert len(childs) == 41
    assert childs != parents  # equal by chance: below 1e-60
