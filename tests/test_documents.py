"""The documents tell the truth: what they show runs, and what exists is mentioned."""

import ast
import dataclasses
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import retrasyn
from retrasyn.cli import app
from retrasyn.methods import ALIASES, find_method, parts_of, settings_of
from retrasyn.privacy.receipt import Receipt
from support.pages import DOCUMENTS, GUIDES, ROOT, blocks_of, name_of
from support.public_maps import map_for

RESULTS = sorted((ROOT / "docs" / "reproduction").rglob("*.md"))  # written by `reproduce`
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PROSE = "\n".join(path.read_text() for path in GUIDES)


def commands_of(command: Any) -> Iterator[Any]:
    """Return a command and all below it."""
    yield command
    for part in getattr(command, "commands", {}).values():
        yield from commands_of(part)


def options() -> Iterator[tuple[str, str]]:
    for command in commands_of(typer.main.get_command(app)):
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-"):
                    yield command.name or "", option


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as code hosts make them."""
    headings = re.findall(r"^#+ +(.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def mentioned(word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", PROSE) is not None


@pytest.mark.system
@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_every_example_runs_without_arguments(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_every_example_is_short_and_linked_from_the_readme(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60
    assert f"(examples/{path.name})" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        goal = (path.parent / target).resolve() if target else path
        assert goal.exists(), f"{link} does not exist"
        assert goal.is_relative_to(ROOT), f"{link} leaves the project"
        if anchor and goal.suffix == ".md":  # a picture may carry a word for the theme
            assert anchor in anchors(goal), f"{link}: no such heading"


def test_every_guide_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for path in DOCUMENTS:
        if path.name != "README.md" and path not in RESULTS:
            assert f"({name_of(path)})" in readme, f"{name_of(path)} is not linked"


def test_every_page_of_results_is_linked_from_the_reproduction() -> None:
    reproduction = (ROOT / "docs" / "reproduction.md").read_text()
    for path in RESULTS:
        assert f"({path.relative_to(ROOT / 'docs')})" in reproduction, f"{path} is not linked"


@pytest.mark.parametrize("name", retrasyn.__all__)
def test_every_public_name_is_mentioned(name: str) -> None:
    assert mentioned(name)


@pytest.mark.parametrize("name", list(retrasyn.METHODS))
def test_every_method_is_mentioned(name: str) -> None:
    assert f"`{name}`" in PROSE


@pytest.mark.parametrize(("command", "option"), sorted(set(options())))
def test_every_option_of_the_command_line_is_mentioned(command: str, option: str) -> None:
    assert mentioned(option), f"{option} of {command}"


@pytest.mark.parametrize("name", [one.name for one in dataclasses.fields(retrasyn.Interpretation)])
def test_every_open_question_has_a_row_among_the_deviations(name: str) -> None:
    rows = re.findall(r"^\| `(\w+)`", (ROOT / "docs/deviations.md").read_text(), re.MULTILINE)
    assert rows.count(name) == 1


def test_the_deviations_name_the_answers_of_both_readings() -> None:
    text = (ROOT / "docs/deviations.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*(\|.*)$", text, re.MULTILINE))
    for name, row in rows.items():
        _, _, authors, ours, _, _ = row.split("|")
        safe, faithful = getattr(retrasyn.SAFE, name), getattr(retrasyn.AUTHORS, name)
        assert f"`{safe}`" in ours, name
        if faithful != safe:
            assert f"`{faithful}`" in authors, name


@pytest.mark.parametrize(
    "setting", sorted(set(re.findall(r"`--set ([a-z_]+=[\w.-]+)`", PROSE))), ids=str
)
def test_every_setting_the_documents_show_is_accepted(setting: str) -> None:
    from retrasyn.run_settings import RunSettings

    name, _, value = setting.partition("=")
    rows = [find_method(row) for row in ("steered", "steered-hidden", "steered-map")]
    fitting = [row.name for row in rows for part in parts_of(row) if name in settings_of(part)]
    method = fitting[0] if fitting else "retrasyn-p"
    grid = retrasyn.Grid(retrasyn.Box(0, 0, 1, 1), 2)
    known = map_for(method, grid.box)
    run = RunSettings.of(method, grid=grid, ledger="stream", settings={name: value}, **known)
    assert run.settings == {name: value}


@pytest.mark.parametrize("name", [*ALIASES, *ALIASES.values()])
def test_every_setting_of_the_paper_is_mentioned(name: str) -> None:
    assert mentioned(name)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Receipt)])
def test_every_field_of_the_receipt_is_explained(name: str) -> None:
    receipts = (ROOT / "docs/receipts.md").read_text()
    table = receipts.partition("| field | says |")[2].partition("\n\n")[0]
    assert re.search(rf"^\|[^|]*`{name}`[^|]*\|", table, re.MULTILINE)


def test_the_readme_is_short_and_the_documents_are_not_long() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path not in RESULTS]
    assert sum(len(path.read_text().split()) for path in pages) <= 51_000


def places_in_the_architecture() -> list[tuple[str, str]]:
    """Return every file and function that the tables of the architecture name."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\|.*\| `([\w/]+(?:\.py|/))` \| (`.*`) \|$", text, re.MULTILINE)
    return [(file, name) for file, names in rows for name in re.findall(r"`([\w.]+)`", names)]


@pytest.mark.parametrize(("file", "name"), places_in_the_architecture())
def test_every_place_the_architecture_names_exists(file: str, name: str) -> None:
    place = ROOT / "src" / "retrasyn" / file
    assert place.exists()
    found = set()
    for path in [place] if place.is_file() else sorted(place.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{part.name}" for part in node.body if hasattr(part, "name")}
    assert name in found


def test_every_equation_of_the_paper_has_its_place() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for label in [*(f"Eq. {n}" for n in range(1, 11)), "Alg. 1"]:
        assert f"\n| {label} | " in text, label
    assert len(places_in_the_architecture()) > 20


def test_the_recipes_for_clusters_are_well_formed() -> None:
    import yaml

    page = blocks_of(ROOT / "docs" / "scaling.md")
    launcher, kubernetes = (block.text for block in page if block.language == "yaml")
    found = yaml.safe_load(launcher)
    assert found["max_workers"] == len(found["provider"]["worker_ips"])
    for step in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert any("ray start" in command for command in found[step])
    job, policy = yaml.safe_load_all(kubernetes)
    assert (job["kind"], policy["kind"]) == ("RayJob", "NetworkPolicy")
    words = job["spec"]["entrypoint"].split()
    assert words[:2] == ["retrasyn", "synthesize"]
    known = {option for command, option in options() if command == "synthesize"}
    assert {word for word in words if word.startswith("-")} <= known
    groups = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert {group["replicas"] for group in groups} == {4}
    assert policy["spec"]["podSelector"]["matchLabels"]
