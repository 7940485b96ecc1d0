"""Schemathesis against the OpenAPI document of the live server: no 5xx, no undocumented answer."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.living import living
from support.made_tiles import made_vector
from support.recording import crowd
from support.showing import shown

pytestmark = pytest.mark.system

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service with a round open, releases behind it, and room for few readers of the feed."""
    with living(tmp_path_factory.mktemp("served") / "folder") as live:
        live.devices = live.enrol(10)
        for t in range(2):
            live.open_round(t)
            for device in live.devices[5 * t : 5 * (t + 1)]:
                assert live.send(live.report(device, t)) == "accepted"
            live.release(t)
        live.open_round(2)
        yield live


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A recording with the real data beside it, tiles and roads under it."""
    folder, box = tmp_path_factory.mktemp("watched"), (116.15, 39.75, 116.60, 40.10)
    line = {"type": "LineString", "coordinates": [[116.2, 39.8], [116.5, 40.0]]}
    (folder / "roads.geojson").write_text(json.dumps(line))
    synthetic, real = (crowd(seed, [0, 1, 2, 4], box=box) for seed in (1, 2))
    tiles = made_vector(folder / "city.pmtiles")
    with shown(synthetic, real, tiles=tiles, roads=folder / "roads.geojson") as one:
        yield one


def examine(live, folder, n_examples, token):
    """Run the program and return its exit code and what it said."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{live.server.url}{live.prefix}/openapi.json",
            "--checks",
            ",".join(CHECKS),
            "--header",
            f"Authorization: Bearer {token}",
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            str(n_examples),
            "--seed",
            "1",
            "--exclude-path",
            "/v1/feed",  # it has no end; the tests of releases read it
            "--request-timeout",
            "10",
            "--no-color",
            "--continue-on-failure",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    return done.returncode, done.stdout + done.stderr


def check(live, folder, n_examples, token):
    code, said = examine(live, folder, n_examples, token)
    assert code == 0, said[-6000:]
    tested = re.search(r"Tested:\s+(\d+)", said)
    assert tested, said[-3000:]
    described = live.ask("GET", "/openapi.json").json()["paths"]
    assert int(tested[1]) == sum(len(methods) for methods in described.values()) - 1
    assert live.ask("GET", "/healthz").status == 200


def test_a_few_examples_of_every_operation_are_answered_as_documented(served, tmp_path):
    check(served, tmp_path, 5, served.service.operator_token)
    assert served.ask("GET", "/readyz").status == 200


def test_a_few_examples_of_every_operation_of_a_recording_are_answered_as_documented(
    watched, tmp_path
):
    check(watched, tmp_path, 5, "none")


@pytest.mark.long
def test_many_examples_of_every_operation_are_answered_as_documented(served, tmp_path):
    check(served, tmp_path, 150, served.service.operator_token)
    assert served.ask("GET", "/readyz").status == 200


@pytest.mark.long
def test_many_examples_of_every_operation_of_a_recording_are_answered_as_documented(
    watched, tmp_path
):
    check(watched, tmp_path, 150, "none")
