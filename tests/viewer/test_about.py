"""The map says how far its numbers may be off, as replicas tell it; and nothing without them."""

import io
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from retrasyn.answers.intervals import Intervals
from support.mapped import AXE, BEYOND, FAULTS, LAPTOP, PHONE, until
from support.recording import Recording, points_of
from support.showing import shown

pytestmark = pytest.mark.system

SIDE, TIMES = 3, range(6)
CELLS = range(SIDE * SIDE)
STEADY, DOUBTFUL, EMPTY = 4, 1, 8
"""Cells with about as many in every replica, with few and not in all, and with nobody at all."""
SEEK = """(t) => {
  const scrubber = document.getElementById("scrubber");
  scrubber.value = String(t);
  scrubber.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def walk(seed):
    """Return a crowd around the middle cell; who is elsewhere is there by chance."""
    dice, points = np.random.default_rng(seed), {}
    for t in TIMES:
        n_steady, n_doubtful = 200 + dice.integers(20), dice.integers(4) + (seed == 0)
        x = np.r_[np.full(n_steady, 1.5), np.full(n_doubtful, 1.5)]
        y = np.r_[np.full(n_steady, 1.5), np.full(n_doubtful, 0.5)]
        points[t] = points_of(np.arange(x.size), x + dice.uniform(-0.4, 0.4, x.size), y)
    return Recording(points, side=SIDE)


@pytest.fixture(scope="module")
def city():
    """A recording with eight replicas."""
    source = walk(0)
    source.replicas = [walk(seed) for seed in range(1, 9)]
    return source


def rectangle(name, x0, y0, x1, y1):
    ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": {"name": name}, "geometry": shape}


@pytest.fixture(scope="module")
def served(city, tmp_path_factory):
    """The recording, and two zones of it that are rows of cells."""
    zones = [rectangle("South", 0, 0, 3, 1), rectangle("North", 0, 1, 3, 3)]
    path = tmp_path_factory.mktemp("zones") / "halves.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": zones}))
    with shown(city, zones=path) as live:
        yield live


@pytest.fixture
def page(served, watched):
    one = watched(reduced_motion="reduce")
    yield still(one.go(f"http://{served.host}{served.prefix}/"))
    assert one.complaints == []


def still(page, t=4):
    """Stop at a timestamp."""
    page.evaluate("window.retrasyn.store.set({ playing: false, live: false })")
    page.evaluate(SEEK, t)
    until(page, f"window.retrasyn.store.now.frame?.t === {t}")
    return page


def counts(source, times, number):
    """Return a number of each cell or of all, averaged, in the release and in each replica."""
    every = [source, *source.replicas]
    return [np.mean([one.summary(t)[number] for t in times], axis=0) for one in every]


def told(text):
    """Read a number and how far it may be off."""
    found = re.fullmatch(r"([\d,.]+)(?: ± ([\d,.]+))?", text.strip())
    assert found, text
    return tuple(0.0 if one is None else float(one.replace(",", "")) for one in found.groups())


def wanted(counted):
    """Return what the page has to say of a number: itself and half of its interval."""
    found, n = Intervals.of(counted[0], counted[1:]), float(counted[0])
    half = float(found.high - found.low) / 2
    digits = 0 if n.is_integer() or max(n, half) >= 100 else 1
    return pytest.approx((round(n, digits), round(half, 1 if half < 1 else digits)), abs=0.051)


@pytest.mark.parametrize("over", [1, 4])
def test_every_number_has_the_interval_that_its_replicas_give(over, city, page):
    times = range(5 - over, 5)
    page.evaluate(f"window.retrasyn.store.set({{ over: {over}, cell: {DOUBTFUL} }})")
    until(page, f"window.retrasyn.store.now.frame?.rounds === {over}")
    cells = np.array(counts(city, times, "cells"))
    cell = told(page.locator("#cell-now").inner_text())
    assert cell == wanted(cells[:, DOUBTFUL])
    page.locator("#tab-now").click()
    for place, name in (("n-points", "n_points"), ("n-born", "n_born"), ("n-ended", "n_ended")):
        found = told(page.locator(f"#{place}").inner_text())
        assert found == wanted(counts(city, times, name)), name
    rows = page.locator("#hotspots li").all_inner_texts()
    assert len(rows) == 2, "as many as have somebody"
    assert told(rows[0].split("\n")[1]) == wanted(cells[:, STEADY])
    assert told(rows[1].split("\n")[1]) == cell


@pytest.mark.parametrize("over", [1, 4])
def test_the_histories_of_a_cell_and_a_box_have_their_bands(over, city, page):
    page.evaluate(f"window.retrasyn.store.set({{ over: {over} }})")
    page.evaluate(f"window.retrasyn.store.set({{ cell: {STEADY} }})")
    page.locator("#cell-chart .band[d*=Z]").wait_for(state="attached")
    page.locator("#moves-chart .band.in[d*=Z]").wait_for(state="attached")
    page.evaluate("window.retrasyn.store.set({ box: [0, 0, 3, 1] })")
    until(page, "/\\d/.test(document.getElementById('area-now').textContent)")
    doubtful = np.array(counts(city, range(5 - over, 5), "cells"))[:, DOUBTFUL]
    assert told(page.locator("#area-now").inner_text()) == wanted(doubtful)
    page.locator("#area-chart .band[d*=Z]").wait_for(state="attached")


def stripes(page, cell):
    """Return how often the colour changes along a line through a cell, without travellers."""
    page.evaluate(
        "const { store } = window.retrasyn;"
        "store.set({ layers: { ...store.now.layers, travellers: false } })"
    )
    page.wait_for_timeout(200)
    x, y = cell % SIDE + 0.5, cell // SIDE + 0.5
    place = f"[({x} - 1.5) * 360 / 4096 / 3, ({y} - 1.5) * 360 / 4096 / 3]"
    at = page.evaluate(f"window.retrasyn.map.project({place})")
    with Image.open(io.BytesIO(page.locator("#map").screenshot())) as image:
        column, row = round(at["x"]), round(at["y"])
        line = [image.convert("RGB").getpixel((column + k, row)) for k in range(-20, 21)]
    return sum(one != other for one, other in pairwise(line))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_below_their_error_are_hatched_and_no_others(scheme, city, served, watched):
    one = watched(color_scheme=scheme, reduced_motion="reduce")
    page = still(one.go(f"http://{served.host}{served.prefix}/"))
    cells = np.array(counts(city, [4], "cells"))
    unclear = Intervals.of(cells[0], cells[1:]).unclear
    assert unclear.tolist() == [cell == DOUBTFUL for cell in CELLS]
    assert stripes(page, DOUBTFUL) > 4
    assert stripes(page, STEADY) == stripes(page, EMPTY) == 0


@pytest.mark.parametrize("over", [1, 4])
def test_numbers_and_hatching_are_those_of_the_answers_of_the_server(over, served, page):
    question = f"/v1/ask/counts?zones=cells&from={5 - over}&to=4"
    rows = served.ask("GET", question).json()["rows"]
    page.evaluate(f"window.retrasyn.store.set({{ over: {over} }})")
    until(page, f"window.retrasyn.store.now.frame?.rounds === {over}")
    frame = page.evaluate(
        "(({ cells, flags }) => ({ n: [...cells.n], low: [...cells.low], high: [...cells.high],"
        " unclear: [...flags].map((flag) => Boolean(flag & 1)) }))(window.retrasyn.store.now.frame)"
    )
    for name, column in (("n", "value"), ("low", "low"), ("high", "high")):
        assert frame[name] == pytest.approx([row[column] for row in rows]), name
    assert frame["unclear"] == [row["unclear"] for row in rows]


def test_zones_are_shown_instead_of_cells_with_the_answers_of_the_server(served, page):
    page.locator("[data-layer=zones]").check()
    until(page, "window.retrasyn.store.now.zones.length === 2")
    rows = served.ask("GET", "/v1/ask/counts?zones=halves&from=4&to=4").json()["rows"]
    said = [text.split("\n") for text in page.locator("#zones li").all_inner_texts()]
    found = {name: told(number) for name, number in said}
    assert found == {
        row["zone"]: pytest.approx((row["value"], (row["high"] - row["low"]) / 2), abs=0.51)
        for row in rows
    }
    drawn = "window.retrasyn.map.queryRenderedFeatures({ layers: ['retrasyn-zones'] })"
    until(page, f"new Set({drawn}.map((one) => one.properties.zone)).size === 2")
    page.locator("#zones button").first.click()
    until(page, "window.retrasyn.store.now.trips.length > 0")
    trips = served.ask("GET", "/v1/ask/od?zones=halves&from=0&to=5").json()["rows"]
    wanted = {row["destination"]: row["value"] for row in trips if row["origin"] == "North"}
    said = [text.split("\n") for text in page.locator("#zone-trips li").all_inner_texts()]
    assert {name: told(number)[0] for name, number in said} == wanted


def test_the_legend_says_what_may_be_chance(page):
    assert page.locator("#legend-hatched").is_visible()
    assert page.locator("#legend-about").is_visible()
    assert not page.locator("#legend-unknown").is_visible()


def test_the_cell_under_the_pointer_is_told(city, page):
    box = page.locator("#map canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(page, "!document.getElementById('tip').hidden")
    name, number = page.locator("#tip").inner_text().split(": ")
    steady = np.array(counts(city, [4], "cells"))[:, STEADY]
    assert (name, told(number)) == ("B2", wanted(steady))


def test_without_replicas_numbers_stand_alone_and_the_legend_says_why(watched):
    with shown(walk(0)) as live:
        page = still(watched().go(f"http://{live.host}{live.prefix}/"))
        assert "±" not in page.locator("body").inner_text()
        assert page.locator("#legend-unknown").is_visible()
        assert not page.locator("#legend-hatched").is_visible()
        assert stripes(page, DOUBTFUL) == 0


@pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "de"), ("light", "zh")])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["1440", "390"])
def test_axe_finds_no_serious_fault_in_numbers_with_errors(size, scheme, language, served, watched):
    one = watched(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = still(one.go(f"http://{served.host}{served.prefix}/"))
    page.evaluate(f"window.retrasyn.store.set({{ cell: {STEADY}, language: '{language}' }})")
    page.evaluate("document.getElementById('layers').open = true")
    page.evaluate(AXE.read_text())
    for view in ("cell", "area", "now"):
        page.locator(f"#tab-{view}").click()
        assert page.evaluate(FAULTS) == [], view
        assert page.evaluate(BEYOND) == [], view
    page.locator("[data-layer=zones]").check()
    until(page, "window.retrasyn.store.now.zones.length === 2")
    page.locator("#zones button").first.click()
    page.locator("#zone-trips button").first.wait_for()
    assert page.evaluate(FAULTS) == page.evaluate(BEYOND) == [], "zones"
