"""Pages with blocks that install or take minutes, read from top to bottom as a newcomer would."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support import postgres
from support.components import need
from support.fresh import build_wheel, copy_repository, make_environment
from support.namespaces import namespace
from support.page_files import make_files
from support.pages import ENVIRONMENT, GUIDES, Reader, blocks_of, name_of

pytestmark = pytest.mark.long

PAGES = [path for path in GUIDES if any(block.is_long for block in blocks_of(path))]
IN_NAMESPACE = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "127.0.0.1:6379"}
"""Ray finds no cluster of somebody else by looking at the processes of the machine."""


def commands_of(path: Path) -> str:
    return "\n".join(line for block in blocks_of(path) for line in block.commands)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def surroundings(path: Path, folder: Path, environment: Path) -> Mapping[str, str]:
    """Make what a page begins with: files, and an environment if it installs something."""
    commands = commands_of(path)
    if re.search(r'^make |pip install "?\.', commands, re.MULTILINE):
        copy_repository(folder)
    if path.name != "README.md":
        make_files(folder)
    if "pip install" not in commands:
        return ENVIRONMENT
    own = [folder / ".venv" / "bin"] if "venv .venv" in commands else []
    return make_environment(environment, *own)


@contextlib.contextmanager
def components_of(path: Path, variables: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Give a reader what a page needs of the system: programs, a database, a network for Ray."""
    commands = commands_of(path)
    if "sqlite3 " in commands:
        need("sqlite3", package="sqlite3")
    if "createdb " in commands:
        server = postgres.server()
        variables = {**variables, "PGHOST": str(server.folder), "PGUSER": postgres.USER}
        variables["PATH"] = f"{server.programs}{os.pathsep}{variables['PATH']}"
    if "--engine ray" not in commands:
        yield {"environment": variables}
        return
    with namespace() as inside:
        yield {"environment": variables | IN_NAMESPACE, "inside": inside}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_of_a_page_works_for_a_newcomer(path, wheel, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    variables = surroundings(path, folder, tmp_path / "environment")
    with components_of(path, variables) as given:
        reader = Reader(folder, wheel=wheel, **given)
        reader.read(blocks_of(path))
    assert not reader.faults, "\n".join(reader.faults)
