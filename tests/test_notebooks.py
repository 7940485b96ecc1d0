"""The notebooks run from the first cell to the last, and are stored as if they never had."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
FIGURES = {"accuracy_against_privacy": 5, "live_campaign": 2, "tutorial": 4}
MOST_LINES = 6  # from somebody's own table to a report


def name_of(path: Path) -> str:
    return path.stem


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for the names of sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def outputs_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_there_are_the_three_notebooks_we_promise() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(FIGURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_stored_without_output_and_linked_from_the_readme(path: Path) -> None:
    text = path.read_text()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert not outputs_of(notebook)
    for cell in notebook.cells:
        assert cell.get("execution_count") is None
        assert cell.source.strip(), "an empty cell"
        assert not cell.metadata, "what an editor remembers"
    assert sorted(notebook.metadata) == ["kernelspec", "language_info"]
    assert notebook.metadata.language_info == {"name": "python"}
    assert text == nbformat.writes(notebook).rstrip("\n") + "\n"
    assert f"(examples/notebooks/{path.name})" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_has_one_title_at_its_top(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert cells[0].source.startswith("# ")
    assert len(re.findall(r"^# ", "\n".join(prose), re.MULTILINE)) == 1


def report_of(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the second cell of code, which goes from the table of the first to a report."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"][1]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_begins_with_a_table_of_clock_times_and_six_lines_to_a_report(
    path: Path,
) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert "pd.Timestamp(" in notebook.cells[2].source
    lines = report_of(notebook).source.splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if ".from_frame(fixes, " in line and 'every="10min"' in line]
    assert "result.report(" in lines[-2]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_runs_and_leaves_nothing_behind(
    path: Path, tmp_path: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(short))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=240,
        resources={"metadata": {"path": str(tmp_path)}},
        config=Config(AsyncKernelManager={"transport": "ipc", "ip": str(short / "kernel")}),
    )  # between two processes by files: no port is opened
    client.execute(env={**os.environ, "MPLCONFIGDIR": str(short), "PYTHONWARNINGS": "default"})
    outputs = outputs_of(notebook)
    complaints = [output.text for output in outputs if output.get("name") == "stderr"]
    figures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert not complaints
    assert "<strong>Private: epsilon 1 " in report_of(notebook).outputs[-1].data["text/html"]
    assert len(figures) == FIGURES[path.stem]
    assert not list(tmp_path.iterdir()), "a notebook leaves nothing behind"
    if path.stem == "live_campaign":
        assert outputs[-1].text == "stopped\nremoved\n"
