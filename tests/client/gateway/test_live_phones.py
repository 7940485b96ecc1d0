"""Real formats of phone apps, a real broker, a real service: one report each, and no coordinate."""

import http.client
import json
import struct
import subprocess
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from paho.mqtt import publish

from retrasyn.client.owner import read_identity
from retrasyn.wire.layout import VERSION
from support.broker import broker
from support.live_service import COMMAND, end, service, wait_for
from support.phone_messages import OWNTRACKS, TRACCAR
from support.tap import Tap

pytestmark = pytest.mark.system

BOX = (2.0, 48.0, 3.0, 49.0)
SIDE = 3
N_MOVES = (3 * SIDE - 2) ** 2
PLACES = [  # longitude, latitude; in four cells
    (2.352222, 48.856613),
    (2.987654, 48.123456),
    (2.654321, 48.712345),
    (2.123457, 48.498765),
]


def spellings(x, y):
    """Return how a coordinate is usually written: text of four digits and more, floats."""
    for number in (x, y):
        yield f"{number:.4f}"[:-1].encode()  # whatever comes behind the third digit
        for form in ("<d", ">d", "<f", ">f"):
            yield struct.pack(form, number)


def reports_in(kept, device):
    """Return the frames of a device's reports among all bytes, by their round."""
    found, place = {}, kept.find(device)
    while place >= 0:
        head = kept[place - 20 : place - 8]
        if len(head) == 12 and head[0] == VERSION and head[1] == 0:
            _, _, n_states, t, _ = struct.unpack("<BBHII", head)
            symbol = kept[place + 16]
            found.setdefault(t, set()).add(symbol if symbol < n_states else None)
        place = kept.find(device, place + 1)
    return found


@contextmanager
def gateway(folder, log, *links, mqtt):
    """Run a gateway; give its address and the lines it prints, as they come."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                *(*COMMAND, "gateway", *links, "--folder", str(folder), "--port", "0", "--yes"),
                *("--mqtt", f"mqtt://127.0.0.1:{mqtt}"),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    lines = []

    def listen():
        for one in process.stdout:
            lines.append(one)  # noqa: PERF402 - one at a time, as they come

    reader = threading.Thread(target=listen)
    reader.start()
    try:
        wait_for(
            lambda: any("phones post to" in one for one in lines) or process.poll() is not None,
            "the gateway",
        )
        assert process.poll() is None, log.read_text()
        (said,) = [one for one in lines if "phones post to" in one]
        yield said.split()[-1], lines
    finally:
        process.send_signal(2)
        reader.join(30)
        end(process)


def post(url, path, body=None, **headers):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request("GET" if body is None else "POST", path, body, headers)
    answer = connection.getresponse()
    said = answer.status, answer.read()
    connection.close()
    return said


def newest(live):
    return max((int(one.stem) for one in live.releases.glob("*.parquet")), default=-1)


def test_each_phone_message_ends_up_as_one_counted_report_and_no_coordinate_leaves(tmp_path):
    settings = {
        "box": ",".join(map(str, BOX)),
        "grid": SIDE,
        "method": "uniform-b",
        "oracle": "grr",
        "epsilon": 40,
        "lifetime_cap": 1000,
        "window": 1,
        "period": 2,
    }
    with broker(tmp_path) as mqtt, service(tmp_path / "service", **settings) as live:
        tap = Tap(live.url)
        links = [link.replace(live.url, tap.url) for link in (live.link, *live.links(3))]
        with gateway(tmp_path / "gateway", tmp_path / "gateway.log", *links, mqtt=mqtt) as (
            url,
            lines,
        ):
            devices = [
                read_identity(tmp_path / "gateway" / f"phone-{n}").device for n in (1, 2, 3, 4)
            ]
            live.release(newest(live) + 3)  # quarantine is over, and a round has just opened
            now = int(time.time())
            anna, (x1, y1), (x2, y2), (x3, y3) = OWNTRACKS | {"tst": now}, *PLACES[1:]
            assert post(url, "/pub", json.dumps(anna)) == (200, b"[]")
            osmand = f"/?id=123456&lat={y1}&lon={x1}&timestamp={now}&hdop=1&altitude=5&speed=0"
            assert post(url, osmand)[0] == 200
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now))
            traccar = json.loads(json.dumps(TRACCAR))
            traccar["location"]["timestamp"] = stamp
            traccar["location"]["coords"] |= {"latitude": y2, "longitude": x2}
            assert post(url, "/", json.dumps(traccar))[0] == 200
            ben = OWNTRACKS | {"tst": now, "lat": y3, "lon": x3}
            del ben["topic"]
            publish.single(
                "owntracks/ben/phone", json.dumps(ben), qos=1, hostname="127.0.0.1", port=mqtt
            )
            wait_for(
                lambda: all(
                    sum(f"phone {n}," in one and "reported, accepted" in one for one in lines) >= 2
                    for n in (1, 2, 3, 4)
                ),
                "reports of all phones",
            )
        seen = [reports_in(bytes(tap.kept), device) for device in devices]
        last = max(t for found in seen for t in found)
        counted = {
            t: json.loads(
                (live.release(t).with_suffix("")).with_suffix(".summary.json").read_text()
            )
            for t in range(min(t for found in seen for t in found), last + 1)
        }
        tap.close()
    for (x, y), found in zip(PLACES, seen, strict=True):
        column, row = int((x - BOX[0]) * SIDE), int((y - BOX[1]) * SIDE)
        entering = N_MOVES + row * SIDE + column
        assert all(len(symbols) == 1 for symbols in found.values()), "a round has one report"
        told = [symbol for _, (symbol,) in sorted(found.items())]
        assert told[0] == entering, "the message is the first report"
        assert told.count(entering) == 1
    for t, summary in counted.items():
        assert summary["n_reports"] == sum(t in found for found in seen)
    sent = bytes(tap.kept)
    said = "".join(lines).encode() + (tmp_path / "gateway.log").read_bytes()
    kept = b"".join(p.read_bytes() for p in (tmp_path / "gateway").rglob("*") if p.is_file())
    for x, y in PLACES:
        for spelling in spellings(x, y):
            assert spelling not in sent
            assert spelling not in said
            assert spelling not in kept
    assert any(one in json.dumps(OWNTRACKS).encode() for one in spellings(*PLACES[0]))
