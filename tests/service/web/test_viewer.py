"""The files of the live map: exact types, zipped, sent once, and no way to any other file."""

import gzip
import hashlib

import pytest

from retrasyn.service.web import page
from support.recording import Recording, crowd, nobody
from support.showing import shown

BEIJING = (116.15, 39.75, 116.60, 40.10)
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)
PROGRAM = b"const answer = 42;\n" * 5000
FILES = {
    "index.html": (b"<!doctype html><title>map</title>", "text/html; charset=utf-8"),
    "app.js": (PROGRAM, "text/javascript; charset=utf-8"),
    "worker.js": (PROGRAM[:-1], "text/javascript; charset=utf-8"),
    "app.css": (b"body{margin:0}" * 99, "text/css; charset=utf-8"),
    "icon.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
    "words/de.json": (b'{"map": "Karte"}', "application/json"),
    "picture.png": (bytes(3000), "image/png"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder as the build leaves it, and things beside it that are nobody's business."""
    folder = tmp_path_factory.mktemp("built") / "map"
    for name, (body, _) in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    (folder / "app.js.map").write_bytes(b"{}")
    (folder.parent / "secret.js").write_bytes(b"secret")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "BUILT", folder)
        yield folder


@pytest.fixture(scope="module")
def served(built):
    with shown(crowd(1, [0])) as one:
        yield one


def address(name):
    return "/" if name == "index.html" else f"/static/map/{name}"


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_its_type_and_is_the_same_zipped_or_not(served, name):
    body, media = FILES[name]
    plainly = served.ask("GET", address(name))
    assert (plainly.status, plainly.body) == (200, body)
    assert plainly.headers["content-type"] == media
    assert plainly.headers["x-content-type-options"] == "nosniff"
    assert "content-encoding" not in plainly.headers
    zipped = served.ask("GET", address(name), accept_encoding="gzip, deflate, br")
    if "content-encoding" in zipped.headers:
        assert len(zipped.body) < len(body)
        assert gzip.decompress(zipped.body) == body
    else:
        assert zipped.body == body
        assert len(body) < 512 or media == "image/png"


def test_large_texts_are_zipped(served):
    zipped = served.ask("GET", "/static/map/app.js", accept_encoding="gzip")
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.headers["vary"] == "accept-encoding"
    assert int(zipped.headers["content-length"]) == len(zipped.body) < len(PROGRAM) / 20


@pytest.mark.parametrize("name", FILES)
def test_what_a_browser_has_is_not_sent_again(served, name):
    first = served.ask("GET", address(name))
    mark = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"
    assert hashlib.sha256(FILES[name][0]).hexdigest()[:32] in mark
    for said in (mark, f'"other", {mark}', mark.removeprefix("W/")):
        again = served.ask("GET", address(name), if_none_match=said, accept_encoding="gzip")
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == mark
    assert served.ask("GET", address(name), if_none_match='W/"other"').status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/map/",
        "/static/map",
        "/static/map/none.js",
        "/static/map/app.js.map",
        "/static/map/../secret.js",
        "/static/map/..%2fsecret.js",
        "/static/map/%2e%2e/secret.js",
        "/static/map/%2e%2e%2fsecret.js",
        "/static/map/..\\secret.js",
        "/static/map//app.js",
        "/static/map/./app.js",
        "/static/map/words/../../secret.js",
        "/static/map/app.js%00",
        "/static/map/app.js/",
        "/static/map//etc/passwd",
        "/static/../../../../etc/passwd",
        "/static/map/words",
    ],
)
def test_there_is_no_way_to_any_other_file(served, path):
    answer = served.ask("GET", path)
    assert answer.status == 404
    assert b"secret" not in answer.body


def test_the_policy_of_a_page_without_a_base_map_is_the_narrow_one(built):
    with shown(crowd(1, [0]), hosts=("https://tiles.example.org",)) as one:
        for path in ("/", "/static/map/worker.js", "/v1/map"):
            assert one.ask("GET", path).headers["content-security-policy"] == POLICY


def test_the_policy_opens_to_what_is_configured_and_in_the_page_only(built):
    others = "https://maps.example.org https://tiles.example.org"
    wider = f"; img-src 'self' data: blob: {others}; connect-src 'self' {others}"
    with shown(
        Recording({0: nobody()}, box=BEIJING),
        style="https://maps.example.org/style.json",
        hosts=("https://tiles.example.org",),
    ) as one:
        for path in ("/", "/static/map/worker.js"):
            assert one.ask("GET", path).headers["content-security-policy"] == POLICY + wider
        assert one.ask("GET", "/v1/status").headers["content-security-policy"] == POLICY
        assert one.ask("GET", "/v1/map").json()["style"] == "https://maps.example.org/style.json"
        assert one.ask("GET", "/v1/map/style.json").status == 404


def test_the_policy_for_local_tiles_lets_pictures_be_made_and_nobody_be_asked(built, tmp_path):
    from support.made_tiles import made

    source = Recording({0: nobody()}, box=BEIJING)
    with shown(source, tiles=made(tmp_path / "a.pmtiles")) as one:
        wider = "; img-src 'self' data: blob:; connect-src 'self'"
        assert one.ask("GET", "/").headers["content-security-policy"] == POLICY + wider


def test_without_the_build_the_page_says_what_to_do(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "BUILT", tmp_path / "none")
        with shown(crowd(1, [0])) as one:
            found = one.ask("GET", "/")
            assert found.headers["content-type"] == "text/html; charset=utf-8"
            assert b"<code>make viewer</code>" in found.body
            assert one.ask("GET", "/static/status.js").status == 200
            assert one.ask("GET", "/static/map/app.js").status == 404
