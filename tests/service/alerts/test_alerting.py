"""Alerts of a real service with real devices whose owners gather: whoever listens is told, once."""

import asyncio
import json
import re
import shutil
import stat
import time
from contextlib import asynccontextmanager

import numpy as np
import pytest

from retrasyn.client.webhook import read_secret
from retrasyn.errors import SettingError
from retrasyn.service.alerts import alerting
from retrasyn.service.alerts.outbox import CAPACITY, Alert, Outbox
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.service.web.models import OperatorStatus
from support.crowd import Crowd, SetClock, finish, play, settings_in
from support.pages import ROOT
from support.receiver import receiving

N, GATHER, LAST = 320, 42, 54  # people; when they gather; rounds


def own(folder, url):
    return settings_in(
        folder,
        period=1,
        epsilon=8,
        replicates=12,
        days=0,
        rounds=10,
        level=0.05,
        **{"alerts.webhook": f"{url}/alerts", "cooldown": 30},
    )


def gather(crowd):
    """Let people stay in the upper two thirds until most of them go to the lower left corner."""
    x0, y0, x1, y1 = crowd.service.runtime.campaign.grid.box
    for number, person in enumerate(crowd.people):
        cell = 3 + number % 6
        at_home = x0 + (cell % 3 + 0.5) / 3 * (x1 - x0), y0 + (cell // 3 + 0.5) / 3 * (y1 - y0)
        middle = x0 + 0.5 * (x1 - x0), y0 + 0.5 * (y1 - y0)
        corner = x0 + 0.1 * (x1 - x0), y0 + 0.1 * (y1 - y0)
        away = {GATHER: middle} | dict.fromkeys(range(GATHER + 1, LAST), corner)
        person.walk = dict.fromkeys(range(LAST), at_home) | (away if number // 6 % 6 else {})


@asynccontextmanager
async def started(folder, url, now):
    """Run a service whose rounds open by hand and whose alerts go out by themselves."""
    service = Service(own(folder, url), SetClock(now))
    await service.start(runs=False)
    service.runtime.alerting.start()
    try:
        yield service
    finally:
        await service.stop()


async def until(happened):
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.005)


def outbox_of(folder):
    (path,) = (folder / "alerts").iterdir()
    return path, json.loads(path.read_text())


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    """A campaign whose people have gathered while nobody took the alerts."""
    folder, now = tmp_path_factory.mktemp("gathered") / "service", time.time()

    async def run(receiver):
        async with started(folder, receiver.url, now) as service:
            crowd = await Crowd.enrol(service, N, rounds=LAST, seed=3)
            gather(crowd)
            await play(service, crowd, LAST)
            await finish(service)
            await until(lambda: service.runtime.alerting.outbox.checked == LAST - 1)
            await until(lambda: len(receiver.posts) >= service.counters.alerts_raised)
            await until(lambda: service.counters.alerts_failed >= service.counters.alerts_raised)
            return service.runtime.operator_status(), service.clock.time

    with pytest.MonkeyPatch.context() as patched, receiving(*[503] * 100) as receiver:
        patched.setattr(alerting, "FIRST_PAUSE", 1000.0)  # a try each
        status, end = asyncio.run(run(receiver))
    return folder, receiver, status, end


@pytest.mark.system
def test_people_who_gather_are_told_once_and_nobody_before(gathered):
    folder, receiver, _, _ = gathered
    alerts = [json.loads(body) for _, _, body in receiver.posts]
    assert min(alert["data"]["t"] for alert in alerts) >= GATHER
    assert len({alert["data"]["zone"] for alert in alerts}) == len(alerts), "once for each zone"
    (corner,) = [alert for alert in alerts if alert["data"]["zone"] == "0"]
    told = corner["data"]
    assert (corner["type"], told["campaign"]) == ("zone.above", "retrasyn")
    assert told["count"] > told["high"] > told["usual"] >= told["low"]
    (releases,) = (folder / "releases").iterdir()
    summary = json.loads((releases / f"{told['t']:010}.summary.json").read_text())
    assert (told["count"], corner["timestamp"]) == (summary["cells"][0], summary["time"])


@pytest.mark.system
def test_the_receiver_of_the_documentation_knows_our_messages_from_others(gathered):
    folder, receiver, *_ = gathered
    page = (ROOT / "docs/operations.md").read_text()
    (block,) = re.findall(r"```python\n(.*?def is_ours.*?)```", page, re.DOTALL)
    names = {}
    exec(block, names)  # noqa: S102 - ours
    secret = (folder / "webhook.secret").read_text().strip()
    assert stat.S_IMODE((folder / "webhook.secret").stat().st_mode) == 0o600
    assert len(read_secret(secret, "")) == 32
    for _, headers, body in receiver.posts:
        assert names["is_ours"](secret, headers, body)
        assert not names["is_ours"](secret, headers, body + b" ")
        assert not names["is_ours"](secret, headers | {"webhook-id": "msg_other"}, body)
        assert not names["is_ours"](secret, headers | {"webhook-timestamp": "1"}, body)


@pytest.mark.system
def test_the_operator_sees_what_waits_and_why(gathered):
    folder, receiver, status, _ = gathered
    assert OperatorStatus.model_validate(status).alerts
    assert status["alerts"] == {
        "checked": LAST - 1,
        "waiting": len(receiver.posts),
        "trouble": "the webhook answers 503",
    }
    counters = status["counters"]
    assert (counters["alerts_raised"], counters["alerts_sent"]) == (len(receiver.posts), 0)
    _, kept = outbox_of(folder)
    assert [one["id"] for one in kept["waiting"]] == receiver.ids


def restart(folder, end, receiver, happened):
    """Start a service again, until something has happened; return its counters."""

    async def run():
        async with started(folder, receiver.url, end) as service:

            def it_has() -> bool:
                service.clock.time += 0.001
                return happened(service)

            await until(it_has)
            await asyncio.sleep(0.05)
            return service.counters

    return asyncio.run(run())


@pytest.mark.system
def test_what_waits_at_a_stop_is_sent_by_the_next_start_with_the_same_id_and_then_no_more(
    gathered, tmp_path, monkeypatch
):
    folder, before, _, end = gathered
    shutil.copytree(folder, tmp_path / "service")
    monkeypatch.setattr(alerting, "FIRST_PAUSE", 0.01)
    n = len(before.posts)
    with receiving(307, 500) as receiver:
        counters = restart(
            tmp_path / "service", end, receiver, lambda service: service.counters.alerts_sent == n
        )
        assert counters.alerts_failed == 2
        assert len(receiver.posts) == n + 2
        assert set(receiver.ids) == set(before.ids)
        sent = {headers["webhook-id"]: body for _, headers, body in receiver.posts}
        assert sent == {headers["webhook-id"]: body for _, headers, body in before.posts}
        again = restart(
            tmp_path / "service", end, receiver, lambda service: service.runtime.alerting
        )
        assert (again.alerts_raised, again.alerts_failed) == (0, 0)
        assert len(receiver.posts) == n + 2


@pytest.mark.system
def test_what_a_kill_left_unwritten_is_found_again_with_the_same_id_and_bytes(gathered, tmp_path):
    folder, before, _, end = gathered
    shutil.copytree(folder, tmp_path / "service")
    path, kept = outbox_of(tmp_path / "service")
    path.write_text(json.dumps(kept | {"checked": GATHER, "raised": {}, "waiting": []}))
    for replicas in (tmp_path / "service").rglob("releases/*/replicas"):
        shutil.rmtree(replicas)
    for place in ("snapshots", "releases"):
        shutil.rmtree(tmp_path / "service" / place)
    with receiving() as receiver:
        n = len(before.posts)
        restart(tmp_path / "service", end, receiver, lambda s: s.counters.alerts_sent == n)
    found = {headers["webhook-id"]: body for _, headers, body in receiver.posts}
    assert found == {headers["webhook-id"]: body for _, headers, body in before.posts}


@pytest.mark.system
def test_nobody_is_told_of_what_is_a_day_old(gathered, tmp_path):
    folder, before, _, end = gathered
    shutil.copytree(folder, tmp_path / "service")
    with receiving(500) as receiver:
        counters = restart(
            tmp_path / "service",
            end + alerting.USEFUL + LAST,
            receiver,
            lambda service: not service.runtime.alerting.outbox.waiting,
        )
    assert counters.alerts_dropped == 1  # after a last try
    assert counters.alerts_sent == len(before.posts) - 1


def alerts_of(zones, t):
    return [Alert(f"msg_{zone}_{t}", t, str(zone), "{}") for zone in zones]


def test_an_outbox_holds_so_many_and_gives_up_the_oldest(tmp_path):
    outbox = Outbox.open(tmp_path / "alerts" / "x.json")
    assert outbox.note(1, alerts_of(range(CAPACITY), 1), forget_before=0) == 0
    assert outbox.note(2, alerts_of(range(5), 2), forget_before=2) == 5
    assert len(outbox.waiting) == CAPACITY
    assert list(outbox.raised) == ["0", "1", "2", "3", "4"], "others may be told of again"
    outbox.path.write_bytes(outbox.to_bytes())
    assert Outbox.open(outbox.path) == outbox


@pytest.mark.parametrize("content", [b"", b"[]", b'{"waiting": [{}]}', b'{"checked": null}'])
def test_a_damaged_outbox_begins_anew_and_tells_nothing_twice(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    assert Outbox.open(tmp_path / "x.json") == Outbox(tmp_path / "x.json")


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/hook",
        "http://10.0.0.1/hook",
        "ftp://example.org",
        "example.org",
        "https://",
        "https://example.org:0",
        "https://[::1",
        "",
    ],
)
def test_a_webhook_is_encrypted_unless_it_is_on_this_machine(address):
    with pytest.raises(SettingError, match=r"setting alerts\.webhook"):
        Settings.load(None, {"webhook": address})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"replicates": 0}, "0 replicas with steered: what chance does is not known"),
        ({"method": "retrasyn-p"}, "0 replicas with retrasyn-p: what chance does is not known"),
        ({"watch": "nowhere"}, r"zones are cells, grid:K, h3:RES; write one of them"),
        ({"secret_file": "/dev/null"}, "/dev/null holds no secret of a webhook"),
    ],
)
def test_a_service_that_could_not_alert_does_not_start(tmp_path, changes, says):
    settings = settings_in(
        tmp_path / "service",
        **({"replicates": 2, "alerts.webhook": "http://127.0.0.1:1/"} | changes),
    )

    async def run():
        with pytest.raises(Exception, match=says):
            await Service(settings, SetClock()).start(runs=False)

    asyncio.run(run())


def test_pauses_between_tries_grow_and_are_not_all_the_same():
    dice = np.array([alerting.pause_after(tries) for tries in [1] * 50 + [4] * 50 + [40] * 50])
    first, fourth, last = dice.reshape(3, 50)
    assert 2.5 <= first.min() < first.max() <= 7.5
    assert 20 <= fourth.min() < fourth.max() <= 60
    assert last.max() <= 1.5 * alerting.LONGEST_PAUSE
