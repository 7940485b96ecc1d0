"""The map for everybody: what axe finds, what reaches beyond the edge, what a keyboard can do."""

import pytest

from support.mapped import AXE, BEYOND, FAULTS, LAPTOP, PHONE, TABLET, until

pytestmark = pytest.mark.system

VIEWS = ("now", "cell", "area", "privacy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, TABLET, PHONE], ids=["1440", "1024", "390"])
def test_axe_finds_no_serious_fault_and_nothing_is_cut_off(mapped, watched, size, scheme):
    one = watched(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = one.go(f"{mapped.url}/")
    page.evaluate("window.retrasyn.store.set({ cell: 14, box: [2, 2, 6, 6] })")
    page.evaluate(AXE.read_text())
    for view in VIEWS:
        page.locator(f"#tab-{view}").click()
        assert page.evaluate(FAULTS) == [], view
        assert page.evaluate(BEYOND) == [], view
    assert one.complaints == []


def test_the_tab_key_reaches_every_control_and_shows_where_it_is(mapped, watched):
    page = watched().go(f"{mapped.url}/")
    wanted = {"language", "theme", "play", "scrubber", "speed", "live", "tab-now", "zoom-in", "fit"}
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
        if page.evaluate("document.activeElement.tagName") == "CANVAS":
            reached.add("map")
    assert wanted | {"map"} <= reached


def test_whoever_wants_no_motion_gets_none(mapped, watched):
    page = watched(reduced_motion="reduce").go(f"{mapped.url}/")
    before = page.evaluate("window.retrasyn.store.now.t")
    until(page, f"window.retrasyn.store.now.t > {before}")
    assert page.evaluate("window.retrasyn.progress()") == 1
