"""Every block of code of the documents runs, or says why not."""

import re
import shutil
from pathlib import Path

import pytest

from support.page_files import make_files
from support.pages import GUIDES, ROOT, Block, QuickReader, blocks_of, name_of

pytestmark = pytest.mark.system

NOT_RUN = {
    ("README.md", "make test"),  # what runs this very test
    ("docs/operations.md", "make image"),
}
"""Pages and the commands that no test runs, or how a block begins of which nothing is run."""


def quick_blocks_of(path: Path) -> list[Block]:
    return [block for block in blocks_of(path) if block.is_run and not block.is_long]


PAGES = [path for path in GUIDES if quick_blocks_of(path)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the small files that pages speak of."""
    folder = tmp_path_factory.mktemp("files")
    make_files(folder)
    return folder


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_of_a_page_works_in_the_order_it_is_shown(
    path: Path, files: Path, tmp_path: Path
) -> None:
    if path.name != "README.md":  # which begins with nothing, and makes what it needs
        shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    reader = QuickReader(tmp_path)
    reader.read(quick_blocks_of(path))
    assert not reader.faults, "\n".join(reader.faults)
    if path.name == "first-steps.md":
        row = r"^\| `([\w.]+\.(?:html|parquet|json|geojson))` \|"
        listed = re.findall(row, path.read_text(), re.MULTILINE)
        made = sorted(file.name for file in (tmp_path / "demo-out").iterdir())
        assert made == sorted(listed), "the demo makes the files the page lists"


def test_what_is_not_run_is_this() -> None:
    blocks = [block for path in GUIDES for block in blocks_of(path)]
    whole = {(block.page, block.commands[0]) for block in blocks if not block.is_run}
    single = {(block.page, block.notes["without"]) for block in blocks if "without" in block.notes}
    assert whole | single == NOT_RUN


def test_a_block_that_is_not_run_or_only_by_the_long_tests_says_why() -> None:
    for path in GUIDES:
        for block in blocks_of(path):
            reasons = [block.notes[name] for name in ("long", "not run") if name in block.notes]
            assert all(len(reason) >= len("installs") for reason in reasons), block


def test_no_fence_is_without_a_language_and_no_text_is_a_command() -> None:
    for path in GUIDES:
        text = path.read_text()
        assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(blocks_of(path)), path
        for block in blocks_of(path):
            assert block.language, f"{block.page}: {block.text[:60]}"
            is_command = re.match(r"(\$ |retrasyn |pip |make )", block.text)
            assert block.language != "text" or not is_command, block.text


def test_no_comment_about_a_block_is_misspelt_or_out_of_place() -> None:
    for path in GUIDES:
        comments = len(re.findall(r"^<!-- \w[\w ]*: ", path.read_text(), re.MULTILINE))
        assert comments == sum(len(block.notes) for block in blocks_of(path)), path


def test_the_readme_begins_with_two_commands_and_has_python() -> None:
    blocks = blocks_of(ROOT / "README.md")
    assert blocks[0].commands == ["make demo", "make test"]
    assert any(block.language == "python" for block in blocks)
