"""I13: a canary's key, id, bits, state, token and coordinate are in nothing the service says."""

import json
import logging

import pytest

from retrasyn.client.curator_client import CuratorClient
from retrasyn.service.enrolment import NewDevice
from support.living import living

COORDINATE = "5.4321987"
PAGES = (
    "/",
    "/static/map/app.js",
    "/openapi.json",
    "/healthz",
    "/readyz",
    "/v1/campaign",
    "/v1/status",
    "/v1/rounds/current",
    "/v1/rounds/0",
    "/v1/releases",
    "/v1/releases/0",
    "/v1/receipts/latest",
    "/v1/map",
    "/v1/frames/0",
    "/v1/cells/0",
    "/v1/count?box=0,0,10,10",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return a canary's secrets, and all that the service said while it had to do with them."""
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(
        logging.Formatter("%(name)s %(message)s").format(record)
    )
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    said = []
    try:
        with living(tmp_path_factory.mktemp("canary") / "folder") as live:
            secrets = go_through_everything(live, said)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    return secrets, said, records


def go_through_everything(live, said):
    """Enrol, report, err in every way, release and leave; keep every answer but credentials."""

    def keep(answer):
        said.append(json.dumps(answer.headers).encode() + answer.body)
        return answer

    minted = live.ask_operator("POST", "/v1/operator/tokens", {"n": 2}).json()["tokens"]
    token, unused = minted
    campaign = live.service.runtime.campaign
    agreement, manifest = campaign.ring.agreement.public, campaign.id
    with CuratorClient(live.server.url) as server:
        (agreed,) = server.enrol([token], agreement=agreement, manifest=manifest)
    canary = NewDevice(agreed.device, agreed.key)
    again = {"tokens": [token], "keys": [agreement.hex()], "agreement": agreement.hex()}
    keep(live.tell("POST", "/v1/enrolments", again))
    keep(live.ask("GET", "/v1/keys"))
    keep(live.tell("POST", "/v1/enrolments", {"tokens": [unused], "extra": token}))
    live.open_round(0)
    bits = bytes(range(64, 64 + 41))
    bits = bits[:-1] + bytes([bits[-1] & 0x0F])
    frame = live.report(canary, 0, bits=bits[: len(live.report(canary, 0)) - 52])
    for _ in range(2):
        keep(live.ask("POST", "/v1/reports", frame))
    for broken in (frame[:-1], frame[:-1] + b"x", frame + frame, frame[:40]):
        keep(live.ask("POST", "/v1/reports", broken))
        keep(live.ask("POST", "/v1/reports/batch", broken))
        keep(live.ask("POST", "/v1/enrolments", broken, content_type="application/json"))
    keep(live.ask("POST", "/v1/reports", live.heartbeat(canary, 0)))
    name = canary.device.hex()
    keep(live.ask("DELETE", f"/v1/devices/{name}", Retrasyn_Tag=canary.key.hex()[:32]))
    keep(live.ask("DELETE", f"/v1/operator/devices/{name}", Authorization=f"Bearer {unused}"))
    keep(live.ask("GET", f"/v1/releases/{COORDINATE}?from={canary.key.hex()}"))
    keep(live.ask("GET", f"/v1/points?from={COORDINATE}&format={unused}"))
    keep(live.ask("GET", f"/{canary.key.hex()}/{COORDINATE}"))
    keep(live.tell("POST", "/v1/enrolments", {"lat": COORDINATE, "lon": [COORDINATE]}))
    live.release(0)
    for page in PAGES:
        assert keep(live.ask("GET", page)).status == 200, page
    for page in ("/v1/operator/status", "/metrics"):
        assert keep(live.ask_operator("GET", page)).status == 200
    keep(live.ask_operator("DELETE", f"/v1/operator/devices/{name}"))
    return {
        "key": [canary.key, canary.key.hex().encode()],
        "id": [canary.device, name.encode()],
        "bits": [frame[36:-16], frame[36:-16].hex().encode()],
        "tag": [frame[-16:], frame[-16:].hex().encode()],
        "token": [token.encode(), unused.encode()],
        "operator's token": [live.service.operator_token.encode()],
        "coordinate": [COORDINATE.encode()],
        "seed": [b'"seed": 7', b"seed=7"],
    }


def test_no_answer_metric_page_or_document_holds_a_secret(told):
    secrets, said, _ = told
    assert len(said) > 30
    for name, forms in secrets.items():
        for form in forms:
            if name != "seed":  # the operator chose this one; the receipt says so
                assert not [text for text in said if form in text], name


def test_no_log_line_holds_a_secret(told):
    secrets, _, records = told
    assert records
    text = "\n".join(records).encode()
    for name, forms in secrets.items():
        for form in [*forms, *(repr(form)[2:-1].encode() for form in forms)]:
            assert form not in text, name


def test_no_log_line_holds_an_address_of_a_client(told):
    _, _, records = told
    ours = [line for line in records if line.startswith("retrasyn")]
    assert ours
    assert not [line for line in ours if "127.0.0.1" in line]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/reports"), ("GET", "/v1/status")])
def test_a_fault_of_ours_is_answered_and_logged_without_its_words(
    live, monkeypatch, caplog, method, path
):
    def fail(*_):
        raise ValueError(f"canary {COORDINATE}")

    monkeypatch.setattr(type(live.service.runtime.write_queue), "submit", fail)
    monkeypatch.setattr(type(live.service.runtime), "seconds_to_next_round", fail)
    answer = live.ask(method, path, b"x" if method == "POST" else None)
    assert answer.status == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert COORDINATE.encode() not in answer.body
    live.wait(lambda: "request failed" in caplog.text)  # it is answered first
    (line,) = [record for record in caplog.records if "request failed" in record.getMessage()]
    assert "error=ValueError in=fail" in line.getMessage()
    assert line.exc_info is None
    assert COORDINATE not in caplog.text
