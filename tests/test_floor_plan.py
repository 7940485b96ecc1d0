"""Rules of the floor plan: a part answers for itself, and a name has one meaning."""

import ast
import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

import retrasyn
from support.pages import ROOT

SOURCE = Path(retrasyn.__file__).parent
TREE = SOURCE.parents[1]
PARTS = ["privacy/division", "privacy/ledger", "privacy/selection", "synthesis/lifecycle"]
PARTS += [f"mechanisms/{path.stem}" for path in (SOURCE / "mechanisms").glob("*.py")]


def classes_of(name):
    tree = ast.parse((SOURCE / f"{name}.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


HOMES = {part: name.split("/")[0] for name in PARTS for part in classes_of(name)}
"""The package of every part."""


def asked_about(tree):
    """Return the names that stand in the place of classes: isinstance, issubclass, match."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {
            "isinstance",
            "issubclass",
        }:
            yield from names_in(node.args[1])
        elif isinstance(node, ast.MatchClass):
            yield from names_in(node.cls)


def names_in(node):
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def test_the_parts_are_known():
    known = {"UserDivision", "RoundLedger", "PhaseSlots", "OneAsk", "Adaptive", "QuitByAge"}
    assert known < HOMES.keys()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_nobody_asks_a_part_what_it_is_outside_its_package(path):
    package = path.relative_to(SOURCE).parts[0]
    asked = set(asked_about(ast.parse(path.read_text())))
    assert not {name for name in asked & HOMES.keys() if HOMES[name] != package}


@pytest.fixture(scope="module")
def plan():
    path = ROOT / "docs" / "making" / "floor_plan.py"
    spec = importlib.util.spec_from_file_location("floor_plan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_chain_of_imports_is_longer_than_twenty(plan):
    assert 10 < len(plan.deepest_chain(plan.modules(TREE))) <= 20


@pytest.mark.system
@pytest.mark.parametrize(("method", "most"), [("retrasyn-p", 30), ("steered", 33)])
def test_one_timestamp_walks_through_about_thirty_files_at_most(plan, method, most):
    files = plan.walk_of_timestamp(TREE, method)
    assert {"curator.py", "privacy/ledger.py", "synthesis/kernels.py"} < files
    assert len(files) <= most


@pytest.mark.long
def test_one_report_walks_through_thirty_five_files_at_most(plan):
    files = plan.walk_of_report(TREE)
    assert {"device/rules.py", "wire/frames.py", "service/admission/admission.py"} < files
    assert len(files) <= 35


def repeated(names):
    return sorted(name for name, n in Counter(names).items() if n > 1)


def test_a_class_name_has_one_meaning_in_the_whole_package():
    trees = [ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(names) > 300
    assert not repeated(names)


def test_a_word_has_one_entry_in_the_glossary():
    text = (ROOT / "docs" / "glossary.md").read_text()
    entries = re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^- ", text, re.MULTILINE))
    words = [word.lower() for entry in entries for word in entry.split(", ")]
    assert len(words) > 80
    assert not repeated(words)
