"""A hundred traversal and script strings, on paths and queries and in bodies: no hit."""

import json
import urllib.parse

import pytest

pytestmark = pytest.mark.system

TRAVERSALS = [
    prefix + target
    for prefix in ("../", "../../../../", "..%2f..%2f", "%2e%2e/", "....//", "..\\", "/", "file://")
    for target in ("etc/passwd", "operator.token", "curator.key", "seed", "campaign.json")
]
SCRIPTS = [
    shape.format(call)
    for call in ("alert(1)", "fetch('//x')", "${{7*7}}", "__import__('os')")
    for shape in (
        "<script>{}</script>",
        '"><img src=x onerror={}>',
        "javascript:{}",
        "<svg/onload={}>",
        "';{}//",
        "{{{{{}}}}}",
        "%3Cscript%3E{}%3C/script%3E",
        "<iframe src=javascript:{}>",
        "\x00{}",
        "\r\nSet-Cookie: a={}",
        "<b onmouseover={}>",
        "`{}`",
        "&lt;{}&gt;",
        "' OR 1=1; -- {}",
        "$({})",
    )
]
STRINGS = TRAVERSALS + SCRIPTS
PLACES = (
    "/{}",
    "/static/{}",
    "/v1/rounds/{}",
    "/v1/releases/{}",
    "/v1/receipts/{}",
    "/v1/devices/{}",
    "/v1/releases?from={}",
    "/v1/points?format={}",
    "/static/map/{}",
    "/v1/frames/{}",
    "/v1/cells/{}",
    "/v1/count?box={}",
    "/v1/map/tiles/0/0/{}",
    "/v1/map/style.json?theme={}",
    "/?q={}",
)


def test_there_are_a_hundred_strings():
    assert len(set(STRINGS)) >= 100


def secrets_of(live):
    folder = live.settings.server.folder
    names = ("operator.token", "curator.key")
    return [b"root:", *((folder / name).read_bytes().strip() for name in names)]


@pytest.mark.parametrize("place", PLACES)
def test_no_address_gives_a_file_away_or_repeats_what_it_was_given(live, place):
    secrets = secrets_of(live)
    for string in STRINGS:
        for quoted in (urllib.parse.quote(string, safe="/"), urllib.parse.quote(string, safe="")):
            answer = live.ask("GET", place.format(quoted))
            assert answer.status in (200, 404, 405, 422), (place, string)
            if answer.status == 200:
                assert place in ("/?q={}", "/{}"), (place, string)
            assert not [secret for secret in secrets if secret in answer.body]
            assert string.encode() not in answer.body, (place, string)
            assert "set-cookie" not in answer.headers


def test_no_body_or_header_comes_back(live):
    for string in STRINGS:
        body = json.dumps({"tokens": [string], string: string}).encode()
        answer = live.ask("POST", "/v1/enrolments", body, content_type="application/json")
        assert answer.status in (401, 422)
        assert string.encode() not in answer.body


def test_every_answer_forbids_what_is_foreign_or_inline(live):
    for path in ("/", "/v1/status", "/nothing", "/openapi.json", "/static/icon.svg"):
        headers = live.ask("GET", path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    refused = live.ask("POST", "/v1/reports", b"x").headers
    assert refused["x-content-type-options"] == "nosniff"
