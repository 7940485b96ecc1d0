"""The page in a browser: it moves, it fits, it asks nothing of the network."""

import functools

import numpy as np
import pytest

from retrasyn.messages import Release, Uncertainty
from retrasyn.report.content import KINDS
from retrasyn.report.uncertainty import CellErrors
from retrasyn.simulation import city as cities
from support.command_line import run
from support.report_pairs import (
    CLOCK,
    EDGES,
    HOSTILE,
    RECEIPT,
    all_baselines,
    make_pair,
    page_of,
    street_grid,
)

pytestmark = pytest.mark.system

LAPTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
ROUNDS = {"t": list(range(24)), "n_reports": [5, 9] * 12, "epsilon": [1.0, 0.5] * 12}

# Text that is hard to read: [text, contrast] of everything below level AA.
FAINT = """() => {
  const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].reduce((sum, value, i) => {
    const share = value / 255;
    const linear = share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    return sum + linear * [0.2126, 0.7152, 0.0722][i];
  }, 0);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility() || node.closest("svg, script, noscript, .skip")) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(channels(style.color)), light(ground(node))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push([node.textContent.trim().slice(0, 40), contrast]);
  }
  return faint;
}"""

# Whatever reaches beyond the right edge, by its tag and class.
BEYOND = """() => [...document.querySelectorAll("body *")]
  .filter((node) => !node.closest(".skip, .scores thead, .speed span, .options input"))
  .filter((node) => node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((node) => `${node.tagName}.${node.getAttribute("class")}`)"""

# Whatever can be pressed or read and has no name.
NAMELESS = """() => [...document.querySelectorAll("button, input, select, canvas, svg[role]")]
  .filter((node) => !node.closest("[aria-hidden]"))
  .filter((node) => !node.getAttribute("aria-label") && !node.closest("label")?.innerText.trim())
  .map((node) => node.outerHTML)"""

# The colours in the middle of all squares of a map close up: edges are blended as browsers like.
MIDDLES = """(kind) => {
  const { width, height } = document.querySelector(`#fine-${kind} canvas`);
  const pen = document.querySelector(`#fine-${kind} canvas`).getContext("2d");
  const { data } = pen.getImageData(0, 0, width, height);
  return Array.from({ length: 48 * 48 }, (_, square) => {
    const column = Math.floor(((square % 48) + 0.5) / 48 * width);
    const row = Math.floor((Math.floor(square / 48) + 0.5) / 48 * height);
    return [...data.slice(4 * (row * width + column), 4 * (row * width + column) + 4)];
  });
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "report.html"
    pair, receipt = make_pair(), RECEIPT | {"rounds": ROUNDS}
    page_of(pair, path, clock=CLOCK, receipt=receipt, baselines=all_baselines(pair))
    return path


@pytest.fixture
def visit(browser):
    """Open a file, and check at the end that nothing was fetched, asked or complained about."""
    seen, contexts = [], []

    def open_page(path, *, size=LAPTOP, scheme="light"):
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("dialog", lambda dialog: seen.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:")) else seen.append(request.url)
            ),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("#map-real canvas")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert seen == []


def picture(page, place):
    """Return the pixels of the canvas in a place."""
    return page.evaluate("place => document.querySelector(`${place} canvas`).toDataURL()", place)


def slide_to(page, frame):
    page.locator("#slider").fill(str(frame))


def wait_until(page, is_so):
    """Wait for a few seconds at most; the page itself forbids code that is not its own."""
    for _ in range(200):
        if is_so():
            return
        page.wait_for_timeout(25)
    pytest.fail("it never happened")


def choose(page, name, value):
    page.locator(f"label:has(input[name='{name}'][value='{value}'])").click()


def test_the_slider_changes_the_density_the_clock_and_the_curves(visit, report):
    page = visit(report)
    slide_to(page, 2)
    before = [picture(page, f"#map-{kind}") for kind in ("real", "synthetic", "difference")]
    needle = page.locator("#curves .needle").first.get_attribute("x1")
    assert "2008-02-02 18:20" in page.locator("#now").inner_text()
    slide_to(page, 17)
    after = [picture(page, f"#map-{kind}") for kind in ("real", "synthetic", "difference")]
    assert all(a != b for a, b in zip(after, before, strict=True))
    assert page.locator("#curves .needle").first.get_attribute("x1") != needle
    assert "2008-02-02 20:50" in page.locator("#now").inner_text()


def test_the_slider_obeys_the_keyboard(visit, report):
    page = visit(report)
    slide_to(page, 5)
    page.locator("#slider").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#slider").input_value() == "6"
    page.keyboard.press("Home")
    assert page.locator("#slider").input_value() == "0"
    assert "t = 0" in page.locator("#slider").get_attribute("aria-valuetext")


def test_play_moves_time_on_until_pause(visit, report):
    page = visit(report)
    slide_to(page, 0)
    still = picture(page, "#map-synthetic")
    page.locator("#speed").select_option("fast")
    page.locator("#play").focus()
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    wait_until(page, lambda: int(page.locator("#slider").input_value()) >= 3)
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Play"
    stopped = page.locator("#slider").input_value()
    assert picture(page, "#map-synthetic") != still
    page.wait_for_timeout(300)
    assert page.locator("#slider").input_value() == stopped


def test_play_stops_at_the_end_and_begins_again(visit, report):
    page = visit(report)
    page.locator("#speed").select_option("very fast")
    slide_to(page, 22)
    page.locator("#play").click()
    wait_until(page, lambda: page.locator("#play").get_attribute("aria-label") == "Play")
    assert page.locator("#slider").input_value() == "23"
    page.locator("#play").click()
    wait_until(page, lambda: int(page.locator("#slider").input_value()) < 20)


def test_a_cell_is_read_by_pointing_and_by_keys(visit, report):
    page = visit(report)
    page.locator("#map-real canvas").hover(position={"x": 40, "y": 40})
    assert page.locator("#read-out").inner_text().startswith("Cell A5 (number 20): real ")
    page.locator("#map-synthetic canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.locator("#read-out").inner_text().startswith("Cell B4 (number 16): real ")


def test_a_tap_reads_a_cell_too(visit, report):
    page = visit(report, size=PHONE)
    page.locator("#map-real canvas").click(position={"x": 30, "y": 20})
    assert page.locator("#read-out").inner_text().startswith("Cell A5")


def test_both_maps_share_one_colour_scale(visit, tmp_path):
    pair = make_pair()
    same = type(pair)(pair.real, pair.real, pair.grid, 0, 24, 30, 30, ())
    page_of(same, tmp_path / "same.html")
    page = visit(tmp_path / "same.html")
    assert picture(page, "#map-real") == picture(page, "#map-synthetic")


def test_colours_can_be_fitted_to_the_moment(visit, report):
    page = visit(report)
    slide_to(page, 0)
    fixed = picture(page, "#map-real"), page.locator("#legend-density").inner_text()
    choose(page, "scale", "moment")
    assert picture(page, "#map-real") != fixed[0]
    assert page.locator("#legend-density").inner_text() != fixed[1]


def test_flows_follow_the_slider_when_asked_to(visit, report):
    page = visit(report)
    arrows = "() => [...document.querySelectorAll('#flow-real .arrow')].map(a => a.outerHTML)"
    whole = page.evaluate(arrows)
    slide_to(page, 3)
    assert page.evaluate(arrows) == whole
    choose(page, "flow-time", "frames")
    early = page.evaluate(arrows)
    slide_to(page, 20)
    assert page.evaluate(arrows) != early


def test_a_click_on_a_curve_goes_there(visit, report):
    page = visit(report)
    slide_to(page, 20)
    page.locator("#curves .chart svg").first.click(position={"x": 60, "y": 80})
    assert int(page.locator("#slider").input_value()) < 3


def test_there_are_curves_of_errors_users_reports_and_a_changing_budget(visit, report):
    titles = visit(report).locator("#curves h3").all_inner_texts()
    assert titles == ["Density error", "Transition error", "Active users", "Reports", "Budget"]


def test_patterns_are_drawn_by_length(visit, report):
    page = visit(report)
    choose(page, "pattern-length", "5")
    labels = [glyph.get_attribute("aria-label") for glyph in page.locator("#patterns .glyph").all()]
    assert labels
    assert all(label.count(" to ") == 4 for label in labels)


def test_the_sample_moves_with_the_slider_when_asked_to(visit, report):
    page = visit(report)
    still = picture(page, "#sample-synthetic")
    slide_to(page, 3)
    assert picture(page, "#sample-synthetic") == still
    choose(page, "sample-mode", "moving")
    assert not page.locator("#sample-real").is_visible()
    early = picture(page, "#sample-synthetic")
    slide_to(page, 12)
    assert picture(page, "#sample-synthetic") != early


def test_both_maps_close_up_share_one_colour_scale(visit, tmp_path):
    pair = make_pair()
    same = type(pair)(pair.real, pair.real, pair.grid, 0, 24, 30, 30, ())
    page_of(same, tmp_path / "same.html")
    real, synthetic = (visit(tmp_path / "same.html").evaluate(MIDDLES, kind) for kind in KINDS)
    assert real == synthetic
    assert len({tuple(colour) for colour in real}) > 3


def test_streets_are_drawn_where_a_public_map_has_them(visit, report, tmp_path):
    page_of(make_pair(), tmp_path / "streets.html", roads=street_grid())
    without, with_streets = visit(report), visit(tmp_path / "streets.html")
    for page in (without, with_streets):
        slide_to(page, 3)
    for place in ("#map-real", "#fine-synthetic", "#sample-real"):
        assert picture(with_streets, place) != picture(without, place)
    assert without.locator("#flow-real .street").count() == 0
    assert with_streets.locator("#flow-real .street").count() == 2


def test_the_theme_follows_the_system_and_the_button(visit, report):
    page = visit(report, scheme="dark")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    page.locator("#theme").click()
    light = page.evaluate(ground)
    assert light != dark
    assert page.locator("#theme").get_attribute("aria-pressed") == "false"
    assert visit(report, scheme="light").evaluate(ground) == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("private", [True, False, None], ids=["private", "not private", "unknown"])
def test_all_text_stands_out_from_its_ground(visit, tmp_path, scheme, private):
    page_of(make_pair(), tmp_path / "report.html", receipt=RECEIPT | {"private": private})
    assert visit(tmp_path / "report.html", scheme=scheme).evaluate(FAINT) == []


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1440])
def test_nothing_reaches_beyond_the_right_edge(visit, report, width):
    page = visit(report, size={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(BEYOND) == []


def test_everything_to_press_has_a_name(visit, report):
    page = visit(report)
    nameless = page.evaluate(NAMELESS)
    assert nameless == []


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_verdict_and_the_alarm_are_seen_without_scrolling(visit, report, size):
    page = visit(report, size=size)
    verdict, alarm = page.locator(".verdict"), page.get_by_role("alert").first
    assert verdict.inner_text().startswith("where crowds are:")
    assert "single trips:\N{NO-BREAK SPACE}do\N{NO-BREAK SPACE}not" in verdict.inner_text()
    above = page.locator(".player").bounding_box()["y"]
    boxes = [verdict.bounding_box(), alarm.bounding_box()]
    assert all(box["y"] + box["height"] <= above for box in boxes)
    assert boxes[0]["y"] < boxes[1]["y"]


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_every_bar_shows_its_baselines_apart(visit, report, size):
    page = visit(report, size=size)
    for bar in page.locator(".gauge").all():
        edge = bar.bounding_box()
        letters = [letter.bounding_box() for letter in bar.locator(".tick b").all()]
        assert len(letters) in (3, 4)
        assert bar.locator(".chance").count() == 1
        for letter in letters:
            middle = letter["x"] + letter["width"] / 2
            assert edge["x"] - 2 <= middle <= edge["x"] + edge["width"] + 2
        places = {(round(letter["x"]), round(letter["y"])) for letter in letters}
        assert len(places) > 1


@pytest.fixture(scope="module")
def demo_report(tmp_path_factory):
    """The report of the demo, with fewer people."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cities, "demo_city", functools.partial(cities.demo_city, n_users=1_000))
        done = run("demo", "--out", folder, "--quiet")
    assert done.code == 0, done.err
    return folder / "report.html"


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_report_of_the_demo_opens_with_its_verdict_and_has_all_baselines(
    visit, demo_report, size
):
    page = visit(demo_report, size=size)
    box = page.locator(".verdict").bounding_box()
    assert box["y"] + box["height"] < page.locator(".player").bounding_box()["y"]
    bars = page.locator(".gauge").all()
    assert len(bars) == 10
    for bar in bars:
        assert {"U", "L", "E"} <= set(bar.locator(".tick b").all_inner_texts())
        assert bar.locator(".chance").count() == 1
    assert "M" in bars[0].locator(".tick b").all_inner_texts()
    assert "standard error" in page.locator("#density .lede").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]


def test_the_reasons_of_the_verdict_can_be_opened(visit, report):
    page = visit(report)
    why = page.locator(".why")
    assert not why.locator("dd").first.is_visible()
    why.locator("summary").click()
    assert "of the way from a guess" in why.inner_text()


def test_degrees_and_standard_errors_are_shown_where_they_are_known(visit, tmp_path):
    errors = CellErrors(25)
    for t in range(24):
        errors.add(release_with_errors(t, np.full(25, 0.01)))
    page_of(make_pair(), tmp_path / "known.html", crs="EPSG:4326", errors=errors)
    page_of(make_pair(), tmp_path / "unknown.html")
    known, unknown = (visit(tmp_path / f"{name}.html") for name in ("known", "unknown"))
    for page in (known, unknown):
        slide_to(page, 3)
        page.locator("#map-synthetic canvas").focus()
        page.keyboard.press("ArrowRight")
    text = known.locator("#read-out").inner_text()
    assert "0.1\N{DEGREE SIGN} N 0.1\N{DEGREE SIGN} E" in text
    assert "\N{PLUS-MINUS SIGN} 1" in text
    assert not {"\N{DEGREE SIGN}", "\N{PLUS-MINUS SIGN}"} & set(
        unknown.locator("#read-out").inner_text()
    )
    assert "0\N{DEGREE SIGN} N to 1\N{DEGREE SIGN} N" in known.locator(".sizes").inner_text()
    assert picture(known, "#map-synthetic") != picture(unknown, "#map-synthetic")


def release_with_errors(t, cell_errors):
    """Return a release of a hundred points that knows the standard errors of its cells."""
    nothing = np.empty(0)
    return Release(
        t=t,
        n_points=100,
        ids=nothing,
        cells=nothing,
        x=nothing,
        y=nothing,
        n_born=0,
        n_ended=0,
        epsilon_t=0.0,
        n_reports=0,
        uncertainty=Uncertainty(
            cell_shares=cell_errors,
            cell_errors=cell_errors,
            flow_shares=nothing,
            flow_errors=nothing,
        ),
    )


def test_not_private_is_an_alarm_on_top(visit, tmp_path):
    page_of(make_pair(), tmp_path / "report.html", receipt=RECEIPT | {"private": False})
    alarms = visit(tmp_path / "report.html").get_by_role("alert")
    page, data = alarms.all()
    assert "Not private: shows real data" in page.inner_text()
    assert page.bounding_box()["y"] < 250
    assert "NOT PRIVATE" in data.inner_text()
    assert data.bounding_box()["y"] < 600


def test_hostile_words_stay_words_in_a_browser(visit, tmp_path):
    receipt = RECEIPT | {"method": HOSTILE, "guarantee": HOSTILE, "not_protected": [HOSTILE]}
    page_of(make_pair(), tmp_path / "report.html", title=HOSTILE, receipt=receipt)
    page = visit(tmp_path / "report.html")
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("shape", EDGES.values(), ids=EDGES)
def test_odd_data_is_shown_without_complaint(visit, tmp_path, shape):
    page_of(make_pair(**shape), tmp_path / "report.html")
    page = visit(tmp_path / "report.html", size=PHONE)
    last = int(page.locator("#slider").get_attribute("max"))
    if last:
        slide_to(page, last)
    for name, value in (("scale", "moment"), ("flow-time", "frames"), ("sample-mode", "moving")):
        choose(page, name, value)
    for length in ("any", "2", "4", "5"):
        choose(page, "pattern-length", "all" if length == "any" else length)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert "NaN" not in page.locator("main").inner_html()


def test_the_page_prints_without_its_controls(visit, report):
    page = visit(report)
    page.emulate_media(media="print")
    assert not page.locator(".player").is_visible()
    assert page.locator("#scores").is_visible()
