"""What is released: a version, a citation, a container, a unit, a wheel that needs nothing."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest
import yaml

import retrasyn
from support import components
from support.fresh import copy_repository, write_constraints
from support.live_service import end

ROOT = Path(__file__).parents[1]
CONTAINER = ROOT / "Containerfile"
UNIT = ROOT / "deploy" / "retrasyn.service"
BILL = ROOT / "deploy" / "sbom.cdx.json"
PATIENCE = 300  # seconds: everything is compiled for the first time
FREQUENT = {  # calls that every start makes by the thousands; they go unwatched, at full speed
    *("brk", "close", "fstat", "futex", "getdents64", "lseek", "mmap", "mprotect", "munmap"),
    *("newfstatat", "openat", "read", "readlink", "rt_sigaction", "rt_sigprocmask", "write"),
}
PYTHONS = os.environ.get("RETRASYN_PYTHONS", sys.executable).split(os.pathsep)
BUILD = "import hatchling.build as h, sys; h.build_sdist(sys.argv[1]); h.build_wheel(sys.argv[1])"
BUILT_BY_NODE = os.environ.get("RETRASYN_NO_VIEWER", "") in ("", "0")


def test_the_version_stands_in_one_place_and_the_others_follow():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()
    project = (ROOT / "pyproject.toml").read_text()

    assert citation["version"] == retrasyn.__version__
    assert re.search(rf"^## .*\b{re.escape(retrasyn.__version__)}\b", changelog, re.MULTILINE)
    assert 'dynamic = ["version"]' in project
    assert not re.search(r"^version = ", project, re.MULTILINE)


def test_the_citation_has_what_its_format_asks_for():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())

    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert all(isinstance(citation[key], str) for key in ("message", "title", "abstract"))
    assert citation["license"] in (ROOT / "pyproject.toml").read_text()
    assert citation["authors"]
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
        assert all({"given-names", "family-names"} <= one.keys() for one in reference["authors"])


def claimed():
    """Return the versions of Python that the package says it runs on."""
    return re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())


def test_every_python_that_is_claimed_is_a_supported_one():
    policy = (ROOT / "SECURITY.md").read_text().partition("## Supported versions")[2]

    assert claimed()
    assert all(version in policy for version in claimed())


def pinned(name):
    """Return the pins of one file of `requirements/`, each with its hashes."""
    text = (ROOT / "requirements" / name).read_text()
    pins = re.split(r"\n(?=\S)", text.replace(" \\\n", "\n").strip())
    return dict(pin.partition("\n")[::2] for pin in pins)


def test_every_pin_has_its_hashes_and_names_no_registry():
    assert "uv" in " ".join(pinned("dev.txt"))
    for path in (ROOT / "requirements").iterdir():
        assert "://" not in path.read_text()
        for pin, hashes in pinned(path.name).items():
            assert re.fullmatch(r"[a-z0-9-]+==\S+( ; .+)?", pin), pin
            assert all(
                re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}", line) for line in hashes.split("\n")
            ), pin


def test_what_runs_has_the_versions_that_were_tested():
    tested = {pin.partition(" ;")[0] for pin in pinned("dev.txt")}
    for name in ("run.txt", "serve.txt"):
        assert {pin.partition(" ;")[0] for pin in pinned(name)} < tested


def test_whoever_installs_checks_hashes():
    made = (ROOT / "Makefile").read_text() + CONTAINER.read_text()
    for path in (ROOT / "requirements").iterdir():
        assert f"requirements/{path.name}" in made
    for line in re.sub(r"\\\n", " ", CONTAINER.read_text()).splitlines():
        for command in re.findall(r"pip (?:install|wheel)[^&]*", line):
            assert "--require-hashes" in command or "--no-deps" in command, command


def materials():
    """Return name and version of everything on the bill of materials, by its kind."""
    found = json.loads(BILL.read_text())["components"]
    names = [f"{one.get('group', '')}/{one['name']}".lstrip("/") for one in found]
    kinds = [one["purl"].partition("/")[0] for one in found]
    return set(zip(kinds, names, [one["version"] for one in found], strict=True))


def test_the_bill_of_materials_lists_exactly_the_pins_and_what_the_map_bundles():
    pins = {pin.partition(" ;")[0] for name in ("run.txt", "serve.txt") for pin in pinned(name)}
    lock = json.loads((ROOT / "viewer" / "package-lock.json").read_text())["packages"]
    bundled = {
        ("pkg:npm", path.rpartition("node_modules/")[2], entry["version"])
        for path, entry in lock.items()
        if path and not entry.get("dev")
    }

    assert ("pkg:npm", "maplibre-gl") in {one[:2] for one in bundled}
    assert materials() == bundled | {("pkg:pypi", *pin.split("==")) for pin in pins}


def test_the_bill_of_materials_is_what_the_pins_make_it_and_fits_its_schema():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    sys.path.insert(0, str(BILL.parent))
    try:
        from sbom import write
    finally:
        sys.path.pop(0)

    assert write() == BILL.read_text(), "type make sbom"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(BILL.read_text()) is None


def instructions():
    """Return each instruction of the container file with its words, continued lines joined."""
    text = re.sub(r"\\\n", " ", CONTAINER.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


@pytest.mark.system
def test_the_container_file_has_no_fault_that_a_linter_finds():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, CONTAINER], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_container_runs_as_nobody_special_keeps_its_folder_and_is_watched():
    found = instructions()
    last_stage = found[max(i for i, (word, _) in enumerate(found) if word == "FROM") :]
    words = dict(last_stage)

    assert sum(word == "FROM" for word, _ in found) == 2, "what builds does not run"
    assert words["USER"] not in ("root", "0")
    assert words["VOLUME"] == words["WORKDIR"] == "/var/lib/retrasyn"
    assert words["ENV"].partition("=")[2].startswith(words["VOLUME"])
    assert "/healthz" in words["HEALTHCHECK"]
    assert json.loads(words["ENTRYPOINT"]) == ["retrasyn"]


def test_the_base_of_the_container_is_named_by_its_digest_and_has_no_default():
    found = instructions()

    assert found[0] == ("ARG", "PYTHON_DIGEST"), "without a value there is no image to build on"
    for word, rest in found:
        assert word != "FROM" or "@sha256:${PYTHON_DIGEST}" in rest


def make_image(folder, skopeo, *words):
    """Run `make image` with stand-ins for the programs it needs, which log how they are called."""
    folder.mkdir()
    for name, script in {"podman": "true", "skopeo": skopeo}.items():
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/calls\n{script}\n')
        (folder / name).chmod(0o755)
    done = subprocess.run(
        ["make", "--silent", "image", *words],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, (folder / "calls").read_text().splitlines()


def test_an_image_is_built_on_the_digest_that_the_registry_or_its_maker_names(tmp_path):
    digest = f"sha256:{'ab' * 32}"
    built_on = f"--build-arg PYTHON_DIGEST={'ab' * 32}"

    asked, (question, build) = make_image(tmp_path / "a", f"echo {digest}")
    named, (same_build,) = make_image(tmp_path / "b", "false", f"DIGEST={digest}")
    refused, calls = make_image(tmp_path / "c", "false")

    assert question.startswith("skopeo inspect")
    assert built_on in build
    assert build == same_build
    assert asked.stdout == named.stdout == f"The base image: DIGEST={digest}\n"
    assert refused.returncode
    assert not [call for call in calls if call.startswith("podman")]


def test_the_command_of_the_container_is_one_that_is_understood():
    import typer

    from retrasyn.cli import app

    command, *arguments = json.loads(dict(instructions())["CMD"])
    typer.main.get_command(app).commands[command].make_context(command, arguments)


def test_operations_leads_to_the_unit_and_its_command_is_one_that_is_understood():
    import typer

    from retrasyn.cli import app

    operations = (ROOT / "docs" / "operations.md").read_text()
    _, command, *arguments = re.search(r"^ExecStart=(.+)$", UNIT.read_text(), re.MULTILINE)[
        1
    ].split()

    assert f"(../{UNIT.relative_to(ROOT)})" in operations
    typer.main.get_command(app).commands[command].make_context(command, arguments)


@pytest.mark.system
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    analyze = components.need("systemd-analyze", package="systemd")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/retrasyn/bin/retrasyn", "/bin/true"))

    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.system
def test_the_unit_is_exposed_by_at_most_three_of_ten():
    analyze = components.need("systemd-analyze", package="systemd")
    done = subprocess.run(
        [analyze, "security", "--offline=yes", "--threshold=30", UNIT],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


def allowed_calls(analyze):
    """Return the system calls that the unit's filters leave, as systemd here has them."""

    def named(word):
        if not word.startswith("@"):
            return {word}
        done = subprocess.run(
            [analyze, "syscall-filter", word], capture_output=True, text=True, check=True
        )
        lines = [line.split("#")[0].strip() for line in done.stdout.splitlines()[1:]]
        return set().union(*(named(line) for line in lines if line))

    filters = re.findall(r"^SystemCallFilter=(~?)(.+)$", UNIT.read_text(), re.MULTILINE)
    found = {sign: set().union(*map(named, words.split())) for sign, words in filters}
    return found[""] - found["~"]


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount another /proc")
def test_a_service_starts_and_stops_with_the_calls_and_the_proc_that_the_unit_leaves_it(tmp_path):
    analyze = components.need("systemd-analyze", package="systemd")
    strace = components.need("strace", package="strace")
    assert {"ProcSubset=pid", "ProtectProc=invisible"} <= set(UNIT.read_text().splitlines())
    hide = 'mount -t proc -o subset=pid,hidepid=invisible proc /proc && exec "$@"'

    service = subprocess.Popen(
        [
            *("unshare", "--mount", "sh", "-c", hide, "sh"),
            *(strace, "-D", "-f", "-qq", "--seccomp-bpf", "-e", f"trace=!{','.join(FREQUENT)}"),
            *("-o", tmp_path / "calls", sys.executable, "-m"),
            *("retrasyn", "serve", "--port", "0", "--folder", tmp_path / "service"),
        ],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = re.search(r"http://127\.0\.0\.1:\d+", service.stdout.readline())[0]
        with urllib.request.urlopen(f"{url}/healthz", timeout=PATIENCE) as answer:  # noqa: S310 - loopback
            assert answer.status == 200
    finally:
        end(service)

    assert service.returncode in (0, 130)
    called = set(re.findall(r"^\d+ +(\w+)\(", (tmp_path / "calls").read_text(), re.MULTILINE))
    called |= FREQUENT
    called -= {"fchown"}  # SQLite gives its files to the owner of the database, if root calls it
    assert {"bind", "listen", "fdatasync"} <= called
    assert called <= allowed_calls(analyze)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both distributions; return where they are."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", BUILD, folder], cwd=ROOT, check=True)
    return folder


@pytest.mark.long
@pytest.mark.skipif(not BUILT_BY_NODE, reason="RETRASYN_NO_VIEWER is set")
def test_the_distributions_hold_the_map_and_the_pages(built):
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}

    assert wheel.name == f"retrasyn-{retrasyn.__version__}-py3-none-any.whl"
    assert {"retrasyn/service/web/static/map/index.html", "retrasyn/py.typed"} <= names
    pages = {f"retrasyn/pages/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages | {"retrasyn/pages/README.md"} <= names
    assert {"CITATION.cff", "Containerfile", "deploy/retrasyn.service", "LICENSE"} <= packed
    assert "src/retrasyn/service/web/static/map/index.html" in packed
    bill = f"retrasyn-{retrasyn.__version__}.dist-info/sboms/{BILL.name}"
    assert zipfile.ZipFile(wheel).read(bill) == BILL.read_bytes()


def build_elsewhere(sources, folder, *, umask, then, **variables):
    """Build both distributions from a copy of the sources whose files are of another time."""
    shutil.copytree(sources, folder)
    for path in folder.rglob("*"):
        os.utime(path, (then, then))
    subprocess.run(
        [sys.executable, "-c", BUILD, "dist"],
        cwd=folder,
        env={**os.environ, **variables},
        umask=umask,
        check=True,
    )
    return {path.name: path.read_bytes() for path in (folder / "dist").iterdir()}


@pytest.mark.long
@pytest.mark.skipif(not BUILT_BY_NODE, reason="RETRASYN_NO_VIEWER is set")
def test_both_distributions_have_the_same_bytes_wherever_and_whenever_they_are_built(tmp_path):
    sources = tmp_path / "sources"
    copy_repository(sources)

    here = {"umask": 0o022, "then": 1_000_000_000, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    there = {"umask": 0o077, "then": 1_700_000_001, "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    one = build_elsewhere(sources, tmp_path / "one", **here, PYTHONHASHSEED="1")
    other = build_elsewhere(sources, tmp_path / "another folder", **there, PYTHONHASHSEED="2")

    assert sorted(Path(name).suffix for name in one) == [".gz", ".whl"]
    assert {name: hashlib.sha256(body).hexdigest() for name, body in one.items()} == {
        name: hashlib.sha256(body).hexdigest() for name, body in other.items()
    }


@pytest.fixture(scope="module", params=PYTHONS)
def installed(request, built, tmp_path_factory):
    """Install the wheel into a fresh environment, and return an environment with nothing else."""
    place = tmp_path_factory.mktemp("fresh")
    subprocess.run([request.param, "-m", "venv", place / "venv"], check=True)
    (wheel,) = built.glob("*.whl")
    (place / "bin").mkdir()
    hidden = {**os.environ, "PATH": f"{place / 'venv' / 'bin'}:{place / 'bin'}"}
    for name in ("PYTHONPATH", "NUMBA_CACHE_DIR"):
        hidden.pop(name, None)
    for program in ("node", "npm", "gcc", "cc", "clang"):
        assert shutil.which(program, path=hidden["PATH"]) is None
    subprocess.run(
        [
            *(place / "venv/bin/python", "-m", "pip", "install", "--quiet"),
            *("--only-binary", ":all:", "--constraint", write_constraints(place)),
            f"{wheel}[serve,report]",
        ],
        cwd=place,
        env=hidden,
        check=True,
    )
    return place, hidden


def run_installed(installed, *arguments):
    place, hidden = installed
    return subprocess.run(
        [place / "venv/bin/retrasyn", *arguments],
        cwd=place,
        env=hidden,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.long
def test_a_fresh_installation_says_that_it_is_well(installed):
    done = run_installed(installed, "doctor", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["retrasyn"]["detail"] == retrasyn.__version__
    assert re.match(r"3\.\d+", found["python"]["detail"])[0] in claimed()
    assert found["[serve]"]["verdict"] == found["[report]"]["verdict"] == "ok"
    assert found["[geo]"]["type"] == 'pip install "retrasyn[geo]"'
    assert found["live map"]["verdict"] == ("ok" if BUILT_BY_NODE else "miss")


@pytest.mark.long
def test_a_fresh_installation_runs_the_demo_and_has_the_pages(installed):
    place, _ = installed

    demo = run_installed(installed, "demo", "--json")
    page = run_installed(installed, "help", "privacy")

    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["worst_window"] <= 1
    assert (place / "demo-out" / "report.html").is_file()
    assert page.stdout == (ROOT / "docs" / "privacy.md").read_text()


@pytest.mark.long
def test_a_fresh_installation_serves_the_live_map(installed):
    place, hidden = installed
    service = subprocess.Popen(
        [place / "venv/bin/retrasyn", "serve", "--port", "0", "--set", "period=1"],
        cwd=place,
        env=hidden,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = re.search(r"http://127\.0\.0\.1:\d+", service.stdout.readline())[0]
        with urllib.request.urlopen(f"{url}/healthz", timeout=PATIENCE) as answer:  # noqa: S310 - loopback
            assert answer.status == 200
        with urllib.request.urlopen(f"{url}/", timeout=PATIENCE) as answer:  # noqa: S310 - loopback
            assert not BUILT_BY_NODE or "app.js" in answer.read().decode()
    finally:
        service.send_signal(signal.SIGINT)
        service.communicate(timeout=60)
    assert service.returncode in (0, 130)
