"""The package as a whole: names, imports, forbidden things."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import retrasyn

SOURCE = Path(retrasyn.__file__).parent
HEAVY = ("numpy", "numba", "pyarrow", "typer", "rich", "jinja2")


@pytest.mark.parametrize("name", retrasyn.__all__)
def test_every_public_name_exists_and_is_documented(name):
    value = getattr(retrasyn, name)
    assert isinstance(value, str) or getattr(value, "__doc__", None)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = retrasyn.nonsense


@pytest.mark.system
def test_importing_the_package_loads_nothing_heavy():
    program = f"import sys, retrasyn; print([m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_no_module_imports_pickle_or_runs_text(path):
    tree = ast.parse(path.read_text())
    names = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert not names & {"pickle", "dill", "joblib", "shelve", "marshal"}
    calls = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"eval", "exec"}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_tests_stand_where_the_package_has_what_they_test():
    tests = Path(__file__).parent
    across = {"contracts", "mutation", "statistical", "support", "viewer"}
    others = ("conftest.py", "naive.py", "run.py", "one_session.py")
    for path in tests.rglob("*.py"):
        folder = path.parent.relative_to(tests)
        assert str(folder) in across or (SOURCE / folder).is_dir(), path
        is_test = path.name.startswith("test_") or path.name in others
        assert is_test != (folder.name == "support"), path


def test_only_kernels_import_numba():
    importers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(
            line.startswith(("import numba", "from numba"))
            for line in path.read_text().splitlines()
        )
    }
    strangers = {name for name in importers if not name.endswith("kernels.py")}
    assert not strangers


@pytest.mark.system
@pytest.mark.parametrize(
    "module",
    [
        "randomness.words",
        "oracles.threshold",
        "oracles.single",
        "messages",
    ],
)
def test_what_a_device_needs_loads_nothing_beyond_the_standard_library(module):
    program = f"import sys, retrasyn.{module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
