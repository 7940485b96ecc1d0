"""The documents of the service tell the truth: every setting, metric, address and refusal."""

import re
import tomllib
from pathlib import Path

import pytest

from retrasyn.service.settings import Settings
from retrasyn.service.web.metrics import COUNTED, HOLDING
from retrasyn.service.web.responses import SENTENCES

DOCS = Path(__file__).parents[3] / "docs"
OPERATIONS = (DOCS / "operations.md").read_text()
API = (DOCS / "api.md").read_text()
SETTINGS = (DOCS / "settings.md").read_text()
FIELDS = [
    (name, field)
    for table in Settings.model_fields.values()
    for name, field in type(table.default).model_fields.items()
]


def shown(default):
    if default is None or default == "":
        return ""
    return f"`{list(default) if isinstance(default, tuple) else default}`"


@pytest.mark.parametrize(("name", "field"), FIELDS, ids=[name for name, _ in FIELDS])
def test_every_setting_has_a_row_with_its_default_and_meaning(name, field):
    assert f"\n| `{name}` | {shown(field.default)} | {field.description}" in SETTINGS


def test_every_metric_has_a_row_with_its_kind_and_every_row_a_metric(live):
    text = live.ask_operator("GET", "/metrics").body.decode()
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    kinds.pop("retrasyn_ack_seconds_created", None)
    rows = dict(re.findall(r"^\| `(retrasyn_\w+)` \| (\w+) \|", OPERATIONS, re.MULTILINE))
    assert rows == kinds


@pytest.mark.parametrize(("name", "says"), [*COUNTED.items(), *HOLDING.items()])
def test_every_figure_of_the_service_is_explained(name, says):
    assert re.search(
        rf"^\| `retrasyn_{name}(_total)?` \| \w+ \| {re.escape(says)} \|$", OPERATIONS, re.MULTILINE
    )


def test_every_counter_of_the_service_is_a_metric(live):
    assert set(live.service.counters.to_dict()) <= COUNTED.keys() | HOLDING.keys()


def test_every_address_has_a_row_and_every_row_an_address(live):
    described = {
        f"{method.upper()} {path}"
        for path, methods in live.ask("GET", "/openapi.json").json()["paths"].items()
        for method in methods
    }
    rows = set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", API, re.MULTILINE))
    assert rows == described | {"GET /openapi.json"}


def test_every_refusal_has_a_row():
    rows = set(re.findall(r"^\| (\d{3}) \|", API, re.MULTILINE))
    assert rows == {str(status) for status in SENTENCES if status != 500} | {"421"}


def test_every_answer_of_the_document_names_a_status_that_is_explained(live):
    paths = live.ask("GET", "/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for operation in methods.values():
            assert operation["summary"], path
            assert {"200", "204"} & operation["responses"].keys(), path
            for status, answer in operation["responses"].items():
                assert answer["description"], (path, status)


def test_the_unit_and_the_proxies_fit_the_limits():
    limits = Settings().limits
    assert "client_max_body_size 2m;" in OPERATIONS
    assert limits.max_body == 2 << 20
    assert f"client_header_timeout {limits.header_seconds:g}s;" in OPERATIONS
    assert f"client_body_timeout {limits.body_seconds:g}s;" in OPERATIONS
    assert f"127.0.0.1:{Settings().server.port}" in OPERATIONS
    (store,) = re.findall(r"`(store = \"postgresql:[^`]*)`", OPERATIONS)
    assert Settings.model_validate({"server": tomllib.loads(store)}).server.store
