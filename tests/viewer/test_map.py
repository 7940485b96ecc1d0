"""The live map in a real browser, in front of a running service with a fleet."""

import csv
import io

import pytest
from PIL import Image

from support.mapped import DRAWN, figure, until

pytestmark = pytest.mark.system

CANVAS = "#map canvas"
CELL_21 = 35 / 6, 35 / 6  # its middle, in a city of 10 x 10 with 6 x 6 cells
SEEK = """(t) => {
  const scrubber = document.getElementById("scrubber");
  scrubber.value = String(t);
  scrubber.dispatchEvent(new Event("input", { bubbles: true }));
}"""
SHOWN = "window.retrasyn.store.now.frame?.t === {}"


def seek(page, t):
    page.evaluate(SEEK, t)
    until(page, SHOWN.format(t))


def points_in(mapped, box, t):
    rows = csv.DictReader(
        io.StringIO(mapped.ask(f"/v1/points?from={t}&to={t}&format=csv").decode())
    )
    x0, y0, x1, y1 = box
    return sum(x0 <= float(row["x"]) <= x1 and y0 <= float(row["y"]) <= y1 for row in rows)


def colours_of(picture):
    """Return how many colours a picture has."""
    with Image.open(io.BytesIO(picture)) as image:
        return len(image.convert("RGB").getcolors(maxcolors=1 << 24))


def draw_box(page):
    """Draw a box around the middle of the map; return its corners on the screen."""
    page.evaluate("window.retrasyn.store.set({ drawing: true })")
    place = page.locator(CANVAS).first.bounding_box()
    middle = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    corners = (middle[0] - 180, middle[1] - 140), (middle[0] + 150, middle[1] + 170)
    page.mouse.move(*corners[0])
    page.mouse.down()
    page.mouse.move(*middle, steps=4)
    page.mouse.move(*corners[1], steps=4)
    page.mouse.up()
    until(page, "window.retrasyn.store.now.box !== null")
    return corners


def box_of(page):
    return page.evaluate("window.retrasyn.store.now.box")


@pytest.fixture
def shown(mapped, watched):
    """Give a page that shows the map, and check at the end that nothing foreign was asked."""
    one = watched()
    yield one.go(f"{mapped.url}/")
    assert one.foreign(mapped.url) == []
    assert one.complaints == []


def test_the_map_draws_and_its_numbers_are_those_of_the_interface(mapped, shown):
    shown.locator("#play").click()  # following the newest would change what is compared
    seek(shown, mapped.first + 5)
    release = mapped.json(f"/v1/releases/{mapped.first + 5}")
    assert figure(shown, "n-points") == release["n_points"]
    assert figure(shown, "n-born") == release["n_born"]
    assert figure(shown, "n-ended") == release["n_ended"]
    assert figure(shown, "n-reports") == release["n_reports"]
    counts = shown.evaluate("Array.from(window.retrasyn.store.now.frame.cells.n)")
    assert counts == release["cells"]
    first = shown.locator("#hotspots li").first.inner_text().split()
    assert int(first[1].replace(",", "")) == max(release["cells"])
    assert shown.locator("#campaign").inner_text() == "Old town"
    assert shown.evaluate("window.retrasyn.travellers()") > 0
    assert colours_of(shown.locator("#map").screenshot()) > 100, "more than an empty map"


def test_the_map_follows_the_newest_release_until_told_otherwise(mapped, shown):
    before = mapped.newest
    until(shown, f"window.retrasyn.store.now.t > {before + 1}")
    shown.locator("#play").click()
    held = shown.evaluate("window.retrasyn.store.now.t")
    until(shown, f"window.retrasyn.store.now.status.newest_release > {held + 2}")
    assert shown.evaluate("window.retrasyn.store.now.t") == held
    shown.locator("#live").click()
    until(shown, f"window.retrasyn.store.now.t > {held + 1}")
    assert shown.locator("#live").get_attribute("aria-pressed") == "true"


def test_the_scrubber_goes_through_the_whole_history_by_mouse_and_by_keyboard(mapped, shown):
    shown.locator("#play").click()
    scrubber = shown.locator("#scrubber")
    assert scrubber.get_attribute("min") == str(mapped.json("/v1/status")["oldest_release"])
    assert int(scrubber.get_attribute("max")) >= mapped.first + 7
    for t in (mapped.first, mapped.first + 7, mapped.first + 3):
        seek(shown, t)
        assert figure(shown, "n-points") == mapped.json(f"/v1/releases/{t}")["n_points"]
    scrubber.focus()
    shown.keyboard.press("ArrowRight")
    until(shown, SHOWN.format(mapped.first + 4))
    shown.keyboard.press("Home")
    until(shown, SHOWN.format(scrubber.get_attribute("min")))


def test_history_is_played_from_where_the_scrubber_stands(mapped, shown):
    shown.locator("#play").click()
    seek(shown, mapped.first)
    shown.locator("#speed").select_option("8")
    shown.locator("#play").click()
    until(shown, f"window.retrasyn.store.now.t >= {mapped.first + 4}")
    assert shown.evaluate("window.retrasyn.store.now.live") is False


def test_a_drawn_box_counts_what_the_interface_counts(mapped, shown):
    shown.locator("#play").click()
    t = mapped.first + 6
    seek(shown, t)
    shown.locator("#tab-area").click()
    draw_box(shown)
    until(shown, "/\\d/.test(document.getElementById('area-now').textContent)")
    box = box_of(shown)
    path = "/" + shown.locator("#area-csv").get_attribute("href")
    assert figure(shown, "area-now") == points_in(mapped, box, t) > 0
    counted = {
        int(row["t"]): int(row["n"])
        for row in csv.DictReader(io.StringIO(mapped.ask(path).decode()))
    }
    assert counted[t] == figure(shown, "area-now")
    asked = mapped.json(f"/v1/count?box={','.join(map(str, box))}&from={mapped.first}&to={t}")
    assert dict(zip(asked["t"], asked["n"], strict=True)).items() <= counted.items()


def test_a_typed_box_and_one_that_is_none(mapped, shown):
    shown.locator("#play").click()
    seek(shown, mapped.first + 6)
    shown.locator("#tab-area").click()
    for name, value in (("x0", "2.5"), ("y0", "1"), ("x1", "7.5"), ("y1", "nowhere")):
        shown.locator(f"#{name}").fill(value)
    shown.keyboard.press("Enter")
    assert shown.locator("#area-trouble").is_visible()
    shown.locator("#y1").fill("9")
    shown.keyboard.press("Enter")
    until(shown, "/\\d/.test(document.getElementById('area-now').textContent)")
    assert figure(shown, "area-now") == points_in(mapped, (2.5, 1, 7.5, 9), mapped.first + 6)


def test_a_click_on_a_cell_tells_its_history(mapped, shown):
    shown.locator("#play").click()
    t = mapped.first + 7
    seek(shown, t)
    (left, top), (right, bottom) = draw_box(shown)
    x0, y0, x1, y1 = box_of(shown)
    # A box that was drawn tells where on the screen the middle of cell 21 is.
    shown.mouse.click(
        left + (right - left) * (CELL_21[0] - x0) / (x1 - x0),
        bottom + (top - bottom) * (CELL_21[1] - y0) / (y1 - y0),
    )
    until(shown, "window.retrasyn.store.now.cell === 21")
    assert figure(shown, "cell-now") == mapped.json(f"/v1/releases/{t}")["cells"][21]
    history = mapped.json(f"/v1/cells/21?from={mapped.first}&to={t}")
    assert history["n"][-1] == figure(shown, "cell-now")
    shown.locator("#cell-chart path").first.wait_for(state="attached")
    shown.locator(CANVAS).first.focus()
    shown.keyboard.press("ArrowRight")
    until(shown, "window.retrasyn.store.now.cell === 22")
    shown.keyboard.press("Escape")
    until(shown, "window.retrasyn.store.now.cell === null")


def test_the_privacy_panel_says_what_the_receipt_says(mapped, shown):
    shown.locator("#tab-privacy").click()
    shown.locator("#receipt-body").wait_for(state="visible")
    status, receipt = mapped.json("/v1/status"), mapped.json("/v1/receipts/latest")
    assert shown.locator("#promise-text").inner_text() == status["guarantee"]
    assert shown.locator("#epsilon").inner_text() == "1"
    assert shown.locator("#not-protected li").count() == len(receipt["not_protected"])
    worst = receipt["worst_window"]["declared"]["epsilon"]
    assert float(shown.locator("#worst-meter").get_attribute("aria-valuenow")) == worst
    with shown.expect_download() as download:
        shown.locator("#receipt-body a[download]").click()
    assert '"guarantee"' in download.value.path().read_text()


def test_in_production_there_is_nothing_real_to_show(mapped, shown):
    assert shown.locator("#tab-errors").is_hidden()
    assert shown.locator("[data-layer=real]").first.is_hidden()
    assert "/v1/real" not in mapped.ask("/openapi.json").decode()


@pytest.mark.parametrize(
    ("language", "says"), [("en", "Privacy"), ("de", "Schutz"), ("zh", "隐私")]
)
def test_the_page_speaks_three_languages_and_remembers_which(mapped, shown, language, says):
    shown.locator("#language").select_option(language)
    assert shown.locator("#tab-privacy").inner_text() == says
    shown.reload()
    until(shown, DRAWN)
    assert shown.locator("html").get_attribute("lang").startswith(language)
    assert shown.locator("#tab-privacy").inner_text() == says


def test_an_enrolment_link_shows_how_to_join_and_sends_no_token(mapped, watched):
    one = watched()
    page = one.go(f"{mapped.url}/#enrol=canary-token")
    assert page.locator("#invitation").is_visible()
    assert page.locator("#link").inner_text() == f"{mapped.url}/#enrol=canary-token"
    assert not [url for url in one.asked if "canary" in url]
