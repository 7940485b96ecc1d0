"""Every release carries a receipt that is complete, whatever made it."""

import hashlib
import json

import pytest

from retrasyn import METHODS, demo_city, synthesize, write
from support.command_line import run
from support.public_maps import flags_for, map_for

ASKED = {
    *("unit", "window", "gap", "epsilon", "division", "rounds", "n_reports"),
    *("worst_window", "lifetime", "not_protected"),
}
BOX = (0, 0, 10, 10)
FLAGS = ("--box", "0,0,10,10", "--grid", 3, "--window", 4)


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "city.parquet"
    real = demo_city(n_users=60, n_timestamps=30, seed=1)
    write(real, path)
    return real, path


def as_lines(real):
    users = real.user_of_stream
    for t in range(real.first_t, real.last_t + 1):
        now = real.t == t
        streams = real.traj_id[now].tolist()
        line = {"t": t, "traj_id": streams, "x": real.x[now].tolist(), "y": real.y[now].tolist()}
        if users is not None:
            owner = dict(zip(real.stream_ids.tolist(), users.tolist(), strict=True))
            line["user_id"] = [owner[stream] for stream in streams]
        yield json.dumps(line)


def assert_complete(receipt, method):
    """Check that a receipt says everything, and what one can say without the run."""
    assert receipt.keys() >= ASKED
    assert (receipt["unit"], receipt["window"], receipt["gap"]) == ("position", 4, 5)
    private = METHODS[method].division.private
    assert receipt["division"] == METHODS[method].division.name
    for window in receipt["worst_window"].values():
        assert window["timestamps"] == 5
        assert window["epsilon"] <= 1.0 if private else window["epsilon"] is None
    lifetime = receipt["lifetime"]
    assert lifetime["windows"] == -(-lifetime["timestamps"] // 5)
    assert lifetime["epsilon"] == (lifetime["windows"] * 1.0 if private else None)
    assert receipt["not_protected"]


@pytest.mark.parametrize("method", METHODS)
def test_a_written_release_has_its_receipt_beside_it(method, city, tmp_path):
    out = tmp_path / "out.csv"
    flags = (*FLAGS, *flags_for(method, BOX, tmp_path))
    outcome = run("synthesize", city[1], "-o", out, *flags, "--method", method)
    assert outcome.code == 0
    receipt = json.loads((tmp_path / "out.csv.receipt.json").read_text())

    assert_complete(receipt, method)
    assert sum(receipt["rounds"]["n_reports"]) == receipt["n_reports"] > 0
    data = out.read_bytes()
    assert receipt["data_file"] == {
        "name": "out.csv",
        "n_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert run("receipt", "verify", tmp_path / "out.csv.receipt.json").code == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_streamed_release_carries_a_receipt_of_all_that_was_done_so_far(
    method, city, tmp_path
):
    told = tmp_path / "told.receipt.json"
    lines = "\n".join(as_lines(city[0]))
    flags = (*FLAGS, *flags_for(method, BOX, tmp_path))
    outcome = run("stream", *flags, "--method", method, "--receipt", told, stdin=lines)
    assert outcome.code == 0
    releases = [json.loads(line) for line in outcome.out.splitlines()]

    n_reports = n_rounds = 0
    for release in releases:
        receipt = release["receipt"]
        assert_complete(receipt, method)
        n_reports += release["n_reports"]
        n_rounds += release["n_reports"] > 0
        assert (receipt["n_reports"], receipt["rounds"]) == (n_reports, n_rounds)
        assert receipt["lifetime"]["timestamps"] == release["t"] + 1
    whole = json.loads(told.read_text())
    assert_complete(whole, method)
    assert whole["n_reports"] == n_reports
    assert whole["worst_window"] == releases[-1]["receipt"]["worst_window"]
    assert whole["not_protected"] == releases[-1]["receipt"]["not_protected"]
    data = outcome.out.encode()
    assert whole["data_file"] == {
        "name": "standard output",
        "n_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    (tmp_path / "told").write_bytes(data)
    assert run("receipt", "verify", told).code == 0


def test_the_demo_has_a_receipt_that_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "retrasyn.simulation.city.demo_city",
        lambda seed: demo_city(n_users=200, n_timestamps=30, seed=seed),
    )
    assert run("demo", "--out", tmp_path, "--seed", 0).code == 0
    outcome = run(
        *("receipt", "verify", tmp_path / "synthetic.parquet.receipt.json"),
        *("--input", tmp_path / "real.parquet"),
    )
    assert outcome.code == 0
    assert "cannot be recomputed: needs the public map" in outcome.out
    assert "0 FAIL, 1 cannot be recomputed" in outcome.out


def test_a_receipt_that_cannot_be_written_keeps_its_release_from_being_written(
    city, tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("retrasyn.receipts.files.describe", full)
    outcome = run("synthesize", city[1], "-o", tmp_path / "out.csv", *FLAGS)
    assert outcome.code == 2
    assert "No space left" in outcome.err
    assert not list(tmp_path.iterdir())


def test_where_presence_is_hidden_the_receipt_does_not_tell_how_many_points_there_were(city):
    for method in METHODS:
        options = {"window": 4, "seed": 0} | map_for(method, BOX)
        _, receipt = synthesize(city[0], method, box=BOX, grid=3, **options)
        hidden = METHODS[method].presence == "hidden"
        assert receipt.n_points_in == (None if hidden else city[0].n_points)


@pytest.mark.parametrize("method", ["steered", "retrasyn-b"])
def test_a_random_seed_is_in_nothing_that_is_written(method, city, tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.randbits", lambda _: 271828182845904523536028747135)
    out, told = tmp_path / "out.csv", tmp_path / "told.json"
    options = (*FLAGS, "--method", method)
    written = run("synthesize", city[1], "-o", out, *options)
    streamed = run("stream", *options, "--receipt", told, stdin="\n".join(as_lines(city[0])))

    assert (written.code, streamed.code) == (0, 0)
    assert json.loads(told.read_text())["seed"] is None
    said = [written.out, written.err, streamed.out, streamed.err]
    files = [path.read_text() for path in tmp_path.iterdir()]
    assert len(files) == 3
    assert not any("271828182845904523536028747135" in text for text in (*said, *files))
