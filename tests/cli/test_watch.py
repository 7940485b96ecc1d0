"""``retrasyn watch`` and ``retrasyn demo --live`` as a person runs them."""

import atexit
import contextlib
import http.client
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pytest

from retrasyn import read, synthesize, write
from retrasyn.cli.watch import announcing
from retrasyn.data.replica_files import replica_folder
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_roads import roads_beside, write_roads
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.pair import Pair
from retrasyn.receipts.files import receipt_place, write_with_receipt
from retrasyn.simulation.city import CITY_BOX, city_roads
from retrasyn.space import Box, Grid
from support import namespaces
from support.command_line import (
    COMMAND,
    TWO_STREAMS,
    assert_one_line,
    assert_refused,
    environment,
    run,
    write_table,
)

pytestmark = pytest.mark.system

PATIENCE = 60
GRID = Grid(CITY_BOX, 5)


@contextlib.contextmanager
def started(*arguments, before=()):
    """Run a command that shows the map, until the block ends at the latest."""
    process = subprocess.Popen(
        [*before, COMMAND, *map(str, arguments), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def showing(*arguments, before=()):
    """Run a command that shows the map; give its address, and afterwards how it ended."""
    with started(*arguments, before=before) as process:
        found = re.search(
            r"http://127\.0\.0\.1:\d+/[-\w]+(?=/$)", process.stdout.readline().strip()
        )
        assert found, process.stderr.read()
        ended = Ended(process, found[0])
        yield ended
        ended.stop(signal.SIGINT)


class Ended:
    """A command that shows, and what it left when it was stopped."""

    def __init__(self, process, url):
        self.process, self.url, self.out, self.err = process, url, "", ""

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:  # noqa: S310
            return answer.read()

    def json(self, path):
        return json.loads(self.get(path))

    def stop(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.out, self.err = self.process.communicate(timeout=PATIENCE)
            assert "Traceback" not in self.err

    def refuses(self, path):
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.get(path)
        caught.value.close()
        return caught.value.code


@pytest.fixture(scope="module")
def synthetic(city, tmp_path_factory):
    """What was made of the city on a grid of 5, with its receipt beside it."""
    path = tmp_path_factory.mktemp("synthetic") / "synthetic.parquet"
    made = synthesize(read(city), grid=GRID, window=5, seed=2)
    write_with_receipt(made.synthetic, made.receipt, path, receipt_place(path))
    return path


def test_two_files_are_shown_beside_each_other_with_the_error_between_them(city, synthetic):
    with showing("watch", city, synthetic) as shown:
        status, info = shown.json("/v1/status"), shown.json("/v1/map")
        receipt = json.loads(receipt_place(synthetic).read_text())
        assert (status["grid"], status["box"]) == (5, [0, 0, 10, 10])
        promise = f"{receipt['headline']}. {receipt['guarantee']}"  # its seed is a number
        assert (status["guarantee"], status["epsilon"]) == (promise, 1)
        assert status["n_reports"] == receipt["n_reports"]
        assert status["campaign"] == "synthetic.parquet against city.parquet"
        assert info["mode"] == "simulation"
        assert shown.json("/v1/receipts/latest") == receipt

        files = {"/v1/frames/30": read(synthetic), "/v1/real/frames/30": read(city)}
        for path, data in files.items():
            version, t, side = struct.unpack_from("<3I", frame := shown.get(path))
            assert (version, t, side) == (2, 30, 5)
            assert struct.unpack_from("<f", frame, 36)[0] == np.count_nonzero(data.t == 30)
        pair = Pair.of(read(city), read(synthetic), GRID)
        errors = shown.json("/v1/real/errors")
        assert errors["t"] == list(range(pair.first_t, pair.first_t + pair.n_timestamps))
        assert errors["density_error"] == pytest.approx(density_errors(pair).tolist())
    assert shown.process.returncode == 130
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("warning: this shows real positions")


def test_replicas_beside_a_file_tell_how_far_its_numbers_may_be_off(city, synthetic, tmp_path):
    path = tmp_path / "synthetic.parquet"
    data = read(synthetic)
    write(data, path)
    replica_folder(path).mkdir()
    for number, replica in enumerate([data, read(city)], 1):
        write(replica, replica_folder(path) / f"{number:04d}.parquet")
    ring = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]
    whole = {"type": "Polygon", "coordinates": [ring]}
    zones = tmp_path / "districts.geojson"
    zones.write_text(
        json.dumps({"type": "Feature", "properties": {"name": "All"}, "geometry": whole})
    )
    box = ("--grid", 5, "--box", "0,0,10,10", "--zones", zones)
    with showing("watch", path, *box) as shown:
        assert struct.unpack_from("<5I", shown.get("/v1/frames/30"))[4] == 2
        assert shown.json("/v1/map")["zones"] == "districts"
        n = np.count_nonzero(data.t == 30)
        found = shown.json("/v1/ask/counts?zones=districts&from=30&to=30")["rows"]
        counted = shown.json("/v1/count?box=0,0,10,10&from=30&to=30")
        assert [row["value"] for row in found] == counted["n"] == [n]
        ends = [(row["low"], row["high"]) for row in found]
        assert ends == [(counted["band"]["low"][0], counted["band"]["high"][0])]


@pytest.mark.parametrize("content", [None, "", '{"type": "FeatureCollection", "features": []}'])
def test_a_file_without_zones_is_refused_at_the_start(content, synthetic, tmp_path):
    zones = tmp_path / "zones.geojson"
    if content is not None:
        zones.write_text(content)
    assert_one_line(run("watch", synthetic, "--zones", zones, "--port", 0), "zones")


REAL = ("/v1/real/frames/30", "/v1/real/errors", "/v1/status", "/v1/points", "/", "/v1/feed")


def status_of(port, path, host):
    """Ask as a browser does to which a name was given that leads here."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=9)) as connection:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.headers["content-type"]


def test_a_page_whose_name_was_made_to_lead_here_sees_no_real_position(city, synthetic):
    """DNS rebinding: the browser takes our answers for the stranger's, whose name it sends."""
    with started("watch", city, synthetic) as process:
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())[1])
        for path in REAL:
            refused = status_of(port, path, f"evil.example:{port}")
            assert refused == (421, "text/plain"), path


def test_nothing_is_shown_to_who_does_not_know_the_secret_of_the_address(city, synthetic):
    with showing("watch", city, synthetic) as shown, showing("watch", synthetic) as other:
        token, port = shown.url.rpartition("/")[2], int(shown.url.split(":")[2].split("/")[0])
        assert len(token) >= 22  # 128 bits
        assert token not in other.url
        host = f"127.0.0.1:{port}"
        guesses = ("", "/x", f"/{token[:-1]}", f"/{token}x", f"/{token.swapcase()}", f"/%00{token}")
        for guess in (*guesses, f"//{token}", "/\xe9"):
            for path in (*REAL, "/healthz", "/openapi.json", "/static/icon.svg"):
                refused = status_of(port, quote(guess, safe="/%") + path, host)
                assert refused == (403, "text/plain"), (guess, path)
        assert status_of(port, f"/{token}", host) == (403, "text/plain")
        assert status_of(port, f"/{token}/", host)[0] == 200
        with urllib.request.urlopen(f"{shown.url}/", timeout=PATIENCE) as page:  # noqa: S310
            assert page.headers["referrer-policy"] == "no-referrer"
            assert not re.search(rb'(href|src)="/', page.read())


def test_a_page_is_opened_without_its_secret_in_the_list_of_processes(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(atexit, "register", lambda *_, **__: None)
    announcing("it is at", opens=True)("http://127.0.0.1:8700/secret/")
    (url,) = opened
    path = Path(unquote(url.removeprefix("file://")))
    try:
        assert "secret" not in url
        assert "url=http://127.0.0.1:8700/secret/" in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    finally:
        path.unlink()


def test_synthetic_data_alone_has_no_real_view_and_needs_no_warning(synthetic):
    with showing("watch", synthetic) as shown:
        assert shown.refuses("/v1/real/frames/30") == shown.refuses("/v1/real/errors") == 404
        assert not [path for path in shown.json("/openapi.json")["paths"] if "real" in path]
        assert shown.json("/v1/releases/30")["t"] == 30
        assert shown.json("/v1/map")["mode"] == "recording"
        shown.stop(signal.SIGTERM)
    assert (shown.process.returncode, shown.err) == (0, "")


def test_without_a_receipt_nothing_is_promised_and_the_options_count(city, tmp_path):
    plain = tmp_path / "plain.parquet"
    write(read(city), plain)
    with showing("watch", plain, "--grid", 3, "--box", "0,0,12,12") as shown:
        status = shown.json("/v1/status")
        assert (status["grid"], status["box"]) == (3, [0, 0, 12, 12])
        assert status["guarantee"].startswith("NOT KNOWN TO BE PRIVATE")
        assert shown.refuses("/v1/receipts/latest") == 404
    assert "no receipt calls synthetic" in shown.err


def test_a_receipt_of_another_file_is_not_shown(city, synthetic, tmp_path):
    other = tmp_path / "other.parquet"
    write(read(city), other)
    receipt_place(other).write_bytes(receipt_place(synthetic).read_bytes())
    with showing("watch", other) as shown:
        assert shown.refuses("/v1/receipts/latest") == 404
        assert shown.json("/v1/status")["grid"] == 5
    assert "belongs to another file" in shown.err


def test_roads_beside_the_first_file_are_found(synthetic):
    write_roads(city_roads(), roads_beside(synthetic))
    try:
        with showing("watch", synthetic) as shown:
            assert shown.json("/v1/map")["roads"] is True
    finally:
        roads_beside(synthetic).unlink()


def test_roads_and_settings_of_the_map_can_be_given(synthetic, tmp_path):
    roads = tmp_path / "roads.geojson"
    write_roads(city_roads(), roads)
    with showing("watch", synthetic, "--roads", roads, "--set", "travellers=7") as shown:
        info = shown.json("/v1/map")
        assert (info["roads"], info["travellers"], info["coordinates"]) == (True, 7, "plain")
        assert shown.json("/v1/map/roads")["type"] == "FeatureCollection"


def test_roads_beside_the_data_are_drawn_and_roads_of_any_form(synthetic, tmp_path):
    data = tmp_path / "made.parquet"
    data.write_bytes(synthetic.read_bytes())
    write_roads(city_roads(), tmp_path / "made.roads.geojson")
    with showing("watch", data) as shown:
        assert shown.json("/v1/map")["roads"] is True
    (tmp_path / "map.cnode").write_text("0 1 1\n1 9 1\n2 9 9\n")
    (tmp_path / "map.cedge").write_text("0 0 1 8\n1 1 2 8\n")
    with showing("watch", synthetic, "--roads", tmp_path / "map.cnode") as shown:
        text = json.dumps(shown.json("/v1/map/roads"))
    corners = set(re.findall(r"\[(\d[\d.]*, \d[\d.]*)\]", text))
    assert {tuple(map(float, corner.split(","))) for corner in corners} == {(1, 1), (9, 1), (9, 9)}


def test_what_is_reached_by_others_is_said_loudly(city, synthetic):
    alone = namespaces.prefix()  # everybody is nobody there
    with showing("watch", city, synthetic, "--host", "0.0.0.0", before=alone) as shown:  # noqa: S104
        assert shown.process.poll() is None
    assert shown.err.startswith("WARNING: THIS SHOWS REAL POSITIONS TO EVERYBODY")
    assert shown.err.count("\n") == 1


@pytest.fixture
def files(tmp_path):
    """Files that are right in their own way, and files that are not."""
    late = {**TWO_STREAMS, "t": [50, 51, 52, 51, 52]}
    early = {**TWO_STREAMS, "t": [-9, -8, -7, -8, -7]}
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "rowless.csv").write_text("traj_id,t,x,y\n")
    write_table(tmp_path / "bad.csv", TWO_STREAMS)
    (tmp_path / "bad.csv.receipt.json").write_text('{"format_version": 4}')
    for name, columns in (("now", TWO_STREAMS), ("late", late), ("early", early)):
        write_table(tmp_path / f"{name}.csv", columns)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["missing.csv", "now.csv"], ["missing.csv does not exist"]),
        (["empty.csv"], ["empty.csv is empty"]),
        (["now.csv", "rowless.csv"], ["rowless.csv has no rows"]),
        (["now.csv", "late.csv"], ["t 50..52", "shares no timestamp", "t 0..2"]),
        (["early.csv"], ["t=-9", "from 0 on"]),
        (["now.csv", "now.csv", "now.csv"], ["3 files"]),
        ([], ["SYN", "retrasyn watch --help"]),
        (["now.csv", "--grid", "65"], ["65", "1..64"]),
        (["now.csv", "--box", "0,0,1"], ["0,0,1", "x0,y0,x1,y1"]),
        (["now.csv", "--box", "7,7,8,8"], ["outside the box 7,7,8,8"]),
        (["now.csv", "--roads", "none.geojson"], ["none.geojson"]),
        (["now.csv", "--set", "speed=9"], ["speed", "travellers"]),
        (["now.csv", "--set", "travellers=x"], ["travellers"]),
        (["now.csv", "--host", "no.such.host.invalid"], ["no.such.host.invalid"]),
        (["bad.csv"], ["bad.csv.receipt.json is not a receipt"]),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(files, monkeypatch, arguments, named):
    monkeypatch.chdir(files)
    # Who sees what may have been said before; what is wrong is one line.
    outcome = run("watch", *arguments, "--port", 0)
    lines = [line for line in outcome.err.splitlines() if not line.startswith("warning: ")]
    assert (outcome.code, outcome.out, len(lines)) == (2, "", 1), outcome
    assert lines[0].startswith("error: ")
    assert all(name in lines[0] for name in named), lines[0]


@pytest.mark.parametrize("arguments", [["watch", "now.csv"], ["demo", "--live"]])
def test_a_port_in_use_is_refused_before_anything_is_read(files, monkeypatch, arguments):
    monkeypatch.chdir(files)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        began = time.monotonic()
        assert_one_line(run(*arguments, "--port", port), f"127.0.0.1:{port}", "--port")
    assert time.monotonic() - began < PATIENCE


@pytest.mark.parametrize("arguments", [["watch", "now.csv"], ["demo", "--live"]])
def test_a_missing_extra_says_what_to_type(files, monkeypatch, arguments):
    monkeypatch.chdir(files)
    program = (
        "import sys; sys.modules['granian'] = None\n"
        f"from retrasyn.cli import main\nmain([*{arguments!r}, '--port', '0'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == 'error: granian is not installed: pip install "retrasyn[serve]"\n'


def test_data_in_degrees_is_shown_in_degrees(tmp_path):
    lisbon = tmp_path / "lisbon.geoparquet"
    places = {"x": [-9.2, -9.1, -9.1, -9.0, -9.0], "y": [38.7, 38.7, 38.8, 38.7, 38.8]}
    write(Trajectories.from_columns(**{**TWO_STREAMS, **places}, crs="EPSG:4326"), lisbon)
    with showing("watch", lisbon, "--box", "-10,38,-8,40") as shown:
        assert shown.json("/v1/map")["coordinates"] == "degrees"
        assert shown.json("/v1/status")["box"] == list(Box(-10, 38, -8, 40))


def test_the_live_demo_releases_into_the_map_while_it_is_watched():
    with showing("demo", "--live", "--pace", 0.2) as shown:
        with urllib.request.urlopen(f"{shown.url}/v1/feed", timeout=PATIENCE) as feed:  # noqa: S310
            lines = iter(lambda: feed.readline().decode(), "")
            heard = [
                json.loads(line[6:])
                for _, line in zip(range(30), lines, strict=False)
                if line.startswith("data: ")
            ]
        assert len(heard) >= 5
        assert [event["t"] for event in heard] == list(range(heard[0]["t"], heard[-1]["t"] + 1))
        newest = heard[-1]["t"]
        assert shown.json(f"/v1/releases/{newest}")["n_points"] == heard[-1]["n_points"]
        errors = shown.json("/v1/real/errors")
        assert len(errors["density_error"]) > newest
        receipt = shown.json(f"/v1/receipts/{newest}")
        assert (receipt["last_t"], receipt["within_guarantee"]) == (newest, True)
        assert shown.json("/v1/map")["roads"] is True
    assert (shown.process.returncode, shown.err) == (130, "")


def test_the_live_demo_writes_nothing(tmp_path):
    assert_refused(tmp_path, ["demo", "--live", "--out", tmp_path / "out"], "writes nothing")
    assert_one_line(run("demo", "--live", "--pace", -1), "--pace")
