"""What the documents on privacy and security promise about our code and its tests."""

import ast
import json
import re
from pathlib import Path

import pytest

from support.command_line import run, write_table

ROOT = Path(__file__).parents[1]
CODE = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "examples", "docs")
    for path in (ROOT / folder).rglob("*.py")
)
OPENS_PICKLES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"),
}
OPENING_CALLS = {"read_pickle", "to_pickle", "HDFStore", "read_hdf"}
PROMISES = ROOT / "docs/privacy.md"


def imported(tree):
    """Return the first part of every module a file imports, by statement or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__", "importorskip"):
                yield str(node.args[0].value).split(".")[0]


def unpickling(tree):
    """Return the calls that open a pickled file, or would if they met one."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        call, options = ast.unparse(node.func), {word.arg: word.value for word in node.keywords}
        if node.func.attr in OPENING_CALLS or call == "torch.load":
            yield call
        if call in ("np.load", "numpy.load", "np.savez", "np.save", "np.savez_compressed"):
            allowed = options.get("allow_pickle")
            if not (isinstance(allowed, ast.Constant) and allowed.value is False):
                yield f"{call} without allow_pickle=False"


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_of_ours_imports_pickle_or_opens_a_pickled_file(path):
    tree = ast.parse(path.read_text())
    assert not set(imported(tree)) & OPENS_PICKLES
    assert not list(unpickling(tree))


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cPickle import loads",
        "import joblib.numpy_pickle",
        "import importlib\nimportlib.import_module('dill')",
        "__import__('shelve')",
    ],
)
def test_the_scan_finds_imports_however_they_are_written(text):
    assert set(imported(ast.parse(text))) & OPENS_PICKLES


@pytest.mark.parametrize(
    "text",
    ["np.load(f)", "np.load(f, allow_pickle=True)", "pd.read_pickle(f)", "torch.load(f)"],
)
def test_the_scan_finds_calls_that_would_unpickle(text):
    assert list(unpickling(ast.parse(text)))
    assert not list(unpickling(ast.parse("np.load(f, allow_pickle=False)")))


def test_transports_and_caches_of_libraries_that_pickle_are_named():
    told = (ROOT / "SECURITY.md").read_text()
    sources = [path.read_text() for path in CODE if path.is_relative_to(ROOT / "src")]
    used = {
        "numba": any("cache=True" in text for text in sources),
        "multiprocessing": any("ProcessPoolExecutor" in text for text in sources),
        "Ray": any(re.search(r"^\s*import ray", text, re.MULTILINE) for text in sources),
    }
    assert used["numba"]
    assert used["multiprocessing"]
    for name, is_used in used.items():
        assert not is_used or f"**{name}**" in told, name


def test_only_the_runner_of_experiments_starts_processes():
    starting = {
        str(path.relative_to(ROOT / "src/retrasyn"))
        for path in CODE
        if path.is_relative_to(ROOT / "src")
        and {"multiprocessing", "concurrent"} & set(imported(ast.parse(path.read_text())))
        and "Process" in path.read_text()
    }
    assert starting == {"experiments/runner.py"}


def linked_tests(text):
    """Return the links of a document to tests: file and function."""
    return re.findall(r"\[`(test_\w+)`\]\(([\w./-]+\.py)\)", text)


def test_every_promise_links_to_a_test_that_would_fail():
    text = PROMISES.read_text()
    table = text.partition("| promise | the test that would fail |")[2].partition("\n\n")[0]
    rows = [row for row in table.splitlines()[2:] if row.startswith("|")]
    assert len(rows) >= 15
    for row in rows:
        assert linked_tests(row), row


@pytest.mark.parametrize(
    "path", [PROMISES, ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=str
)
def test_every_linked_test_exists(path):
    for name, link in linked_tests(path.read_text()):
        file = (path.parent / link).resolve()
        assert file.is_relative_to(ROOT / "tests"), link
        functions = [
            node.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, f"{name} is not in {link}"


TRUSTED = [
    f"{package}/{path.name}"
    for package in ("device", "oracles", "privacy", "randomness", "wire")
    for path in sorted((ROOT / "src/retrasyn" / package).glob("*.py"))
    if path.name not in ("__init__.py", "kernels.py")  # a name, and what others are compared with
]


@pytest.mark.parametrize("module", TRUSTED)
def test_every_trusted_module_is_argued_for(module):
    proofs = "\n".join(proof.read_text() for proof in (ROOT / "docs/proofs").glob("*.md"))
    assert f"`{module}`" in proofs


CANARY_ID, CANARY_USER = "canary-stream-7713", "canary-person-7713"
CANARY_X, CANARY_Y = "0.471177334455", "0.682299117733"


def told_by(outcome, *files):
    return "\n".join([outcome.out, outcome.err, *(file.read_text() for file in files)])


def assert_no_canary(text):
    found = [word for word in (CANARY_ID, CANARY_USER, CANARY_X, CANARY_Y) if word in text]
    assert not found


def line(t, **changes):
    values = {"t": t, "traj_id": [CANARY_ID], "x": [float(CANARY_X)], "y": [float(CANARY_Y)]}
    return json.dumps(values | {"user_id": [CANARY_USER]} | changes)


@pytest.mark.parametrize("method", ["steered", "retrasyn-b", "exact"])
def test_no_canary_of_the_input_is_in_anything_a_run_says_or_writes(method, tmp_path):
    columns = {
        "traj_id": [CANARY_ID] * 3 + ["other"] * 3,
        "t": [0, 1, 2] * 2,
        "x": [float(CANARY_X)] * 6,
        "y": [float(CANARY_Y)] * 6,
        "user_id": [CANARY_USER] * 3 + ["another"] * 3,
    }
    source, out = write_table(tmp_path / "in.csv", columns), tmp_path / "out.csv"
    written = run("synthesize", source, "-o", out, "--box", "0,0,1,1", "--method", method)
    page = tmp_path / "page.html"
    beside = tmp_path / "out.csv.receipt.json"
    shown = run("receipt", "show", beside, "--html", page)
    verified = run("receipt", "verify", beside, "--input", source)
    streamed = run(
        *("stream", "--box", "0,0,1,1", "--method", method, "--receipt", tmp_path / "r.json"),
        stdin="\n".join(line(t) for t in range(3)),
    )

    assert [one.code for one in (written, shown, verified, streamed)] == [0, 0, 0, 0]
    assert_no_canary(told_by(written, out, beside))
    assert_no_canary(told_by(shown, page))
    assert_no_canary(told_by(verified))
    assert_no_canary(told_by(streamed, tmp_path / "r.json"))


@pytest.mark.parametrize(
    "bad",
    [
        line(1, traj_id=[CANARY_ID] * 2, x=[0.1, 0.2], y=[0.1, 0.2], user_id=["a", "b"]),
        line(1, traj_id=["a", "b"], x=[0.1, 0.2], y=[0.1, 0.2], user_id=[CANARY_USER] * 2),
        line(1, user_id=["somebody else"]),
        line(1, traj_id=[CANARY_ID, 1.5]),
        line(1, y=[float(CANARY_Y), 3.0]),
        line(1, y=[5.0]),
        line(1, y=["north"]),
        line(0),
        line("noon"),
        line(1)[:-9],
        line(1).replace(f"[{CANARY_Y}]", "[NaN]"),
        json.dumps({"t": 1, "traj_id": [CANARY_ID], "x": [float(CANARY_X)]}),
        json.dumps({"t": 1, "traj_id": [CANARY_ID], "x": [0.1], "y": [0.1]}),
    ],
    ids=str,
)
def test_no_canary_is_in_the_refusal_of_a_running_stream(bad):
    outcome = run("stream", "--box", "0,0,1,1", stdin=f"{line(0)}\n{bad}\n")
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert_no_canary(outcome.err)


@pytest.mark.parametrize(
    "rows",
    [
        f"{CANARY_ID},0,{CANARY_X},nan",
        f"{CANARY_ID},0,{CANARY_X},{CANARY_Y}\n{CANARY_ID},2,{CANARY_X},{CANARY_Y}",
        f"{CANARY_ID},0,{CANARY_X},{CANARY_Y}\n{CANARY_ID},0,{CANARY_X},{CANARY_Y}",
        f"{CANARY_ID},0,{CANARY_X},5",
        f"{CANARY_ID},noon,{CANARY_X},{CANARY_Y}",
        f"{CANARY_ID},0,{CANARY_X}",
        f"{CANARY_ID},0,{CANARY_X},{CANARY_Y},7",
    ],
    ids=["nan", "gap", "twice", "outside", "word", "short", "long"],
)
def test_the_refusal_of_a_file_may_name_a_stream_but_no_coordinate(rows, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(f"traj_id,t,x,y\n{rows}\n")
    outcome = run("synthesize", source, "-o", tmp_path / "out.csv", "--box", "0,0,1,1")
    assert outcome.code == 2
    assert CANARY_X not in outcome.err
    assert CANARY_Y not in outcome.err
