"""Travellers in a real browser: along streets from one released place to the next."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from retrasyn.service.viewing.source import TimestampPoints
from support.mapped import until
from support.recording import Recording
from support.showing import shown

pytestmark = pytest.mark.system

ON_STREET, STRAIGHT = (9.0, 5.0), (7.25, 6.25)  # not far from where the trip ends
ENDS = [(2.0, 1.0), (9.0, 8.0)]
STREET = {"type": "LineString", "coordinates": [[1, 1], [9, 1], [9, 9]]}
SEEK = """(t) => {
  const scrubber = document.getElementById("scrubber");
  scrubber.value = String(t);
  scrubber.dispatchEvent(new Event("input", { bubbles: true }));
}"""
LAYERS = """(travellers) => {
  const { store } = window.retrasyn;
  store.set({ layers: { ...store.now.layers, density: false, roads: false, travellers } });
}"""


def trip():
    """One traveller, seen at two timestamps."""
    points = {
        t: TimestampPoints(np.array([7]), np.array([x]), np.array([y]))
        for t, (x, y) in enumerate(ENDS)
    }
    return Recording(points, side=2, box=(0.0, 0.0, 10.0, 10.0))


def arrive(page, t):
    until(page, f"window.retrasyn.t() === {t} && window.retrasyn.progress() === 1")


def surroundings(page):
    """Return the pixels around the two places."""
    page.wait_for_timeout(200)
    with Image.open(io.BytesIO(page.locator("#map").screenshot())) as image:
        picture = image.convert("RGB")
    found = []
    for x, y in (ON_STREET, STRAIGHT):
        at = page.evaluate(
            f"window.retrasyn.map.project([({x} - 5) * 360 / 40960, ({y} - 5) * 360 / 40960])"
        )
        column, row = round(at["x"]), round(at["y"])
        found.append(picture.crop((column - 2, row - 2, column + 3, row + 3)).tobytes())
    return found


@pytest.mark.parametrize("on_streets", [True, False])
def test_a_trail_follows_the_street_or_is_straight_where_there_is_none(
    on_streets, tmp_path, watched
):
    roads = tmp_path / "roads.geojson"
    roads.write_text(json.dumps(STREET))
    with shown(trip(), **({"roads": roads} if on_streets else {})) as live:
        page = watched().go(f"http://{live.host}{live.prefix}/")
        page.evaluate("window.retrasyn.store.set({ playing: false, live: false })")
        page.wait_for_load_state("networkidle")
        page.evaluate(SEEK, 0)
        arrive(page, 0)
        page.keyboard.press("ArrowRight")
        arrive(page, 1)
        pictures = []
        for travellers in (False, True):
            page.evaluate(LAYERS, travellers)
            pictures.append(surroundings(page))
    drawn = [before != after for before, after in zip(*pictures, strict=True)]
    assert drawn == [on_streets, not on_streets]
