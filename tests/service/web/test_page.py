"""The status page in a browser: it refreshes, it fits, it asks nobody but its own server.

It is what an installation shows that was made without the live map.
"""

import pytest
from playwright.sync_api import expect

from retrasyn.service.web import page
from support.living import living

pytestmark = pytest.mark.system

BEYOND = """() => [...document.querySelectorAll("body *")]
  .filter((node) => node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((node) => node.tagName)"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A campaign whose name is a program, shown without the live map."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "BUILT", folder / "not built")
        with living(folder / "folder", name="<script>document.title='hit'</script>") as one:
            one.open_round(0)
            yield one


@pytest.fixture
def visit(browser, hostile):
    """Give a function that opens the page, with all that it asked for and complained of."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.asked, page.complaints = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.clock.install()

    def go(path="/"):
        page.goto(hostile.server.url + path)
        return page

    yield go
    page.close()


def test_the_page_asks_its_own_server_only_and_nothing_is_blocked(visit, hostile):
    page = visit()
    assert page.locator("h1").inner_text() == "<script>document.title='hit'</script>"
    assert page.title() != "hit"
    assert page.locator("[data-name=round]").inner_text() == "0"
    assert page.locator("#invitation").is_hidden()
    assert "make viewer" in page.locator("main").inner_text()
    assert page.evaluate(BEYOND) == []
    foreign = [url for url in page.asked if not url.startswith(f"{hostile.server.url}/")]
    assert not foreign
    assert page.complaints == []


def test_the_page_follows_the_campaign(visit, hostile):
    page = visit()
    hostile.open_round(3)
    page.clock.run_for(5100)
    expect(page.locator("[data-name=round]")).to_have_text("3")
    assert page.locator("[data-name=reason]").inner_text() == "ready"


def test_an_enrolment_link_shows_how_to_join_and_sends_no_token(visit, hostile):
    page = visit("/#enrol=canary-token")
    said = page.locator("#invitation").inner_text()
    assert f"retrasyn device enrol '{hostile.server.url}/#enrol=canary-token'" in said
    assert not [url for url in page.asked if "canary" in url.partition("#")[0]]


def test_the_page_holds_no_inline_script_or_style_and_nothing_from_elsewhere(hostile):
    page = hostile.ask("GET", "/").body.decode()
    assert "<script src=" in page
    assert "<script>" not in page
    assert "style=" not in page
    assert "<style" not in page
    assert " on" not in page.replace(" only", "").replace(" once", "").replace(" one", "")
    for name in ("/", "/static/status.css", "/static/status.js"):
        assert b"//" not in hostile.ask("GET", name).body.replace(b"\n// ", b"\n")


def test_the_page_says_how_the_campaign_is_doing(hostile):
    page = hostile.ask("GET", "/").body.decode()
    assert hostile.ask("GET", "/v1/status").json()["guarantee"] in page
    assert "ready" in page
    assert "make viewer" in page
