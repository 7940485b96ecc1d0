"""A server that dies and comes back: the page says so, and goes on by itself."""

import pytest

from support import live_service
from support.mapped import Mapped, fleet_of, until, wait_for_release

pytestmark = pytest.mark.system

# What Chromium itself says about a server that is gone is no fault of the page's.
GONE = "net::ERR_"


def test_a_killed_server_is_noticed_and_its_return_needs_no_hand(tmp_path, watched):
    folder = tmp_path / "service"
    settings = {"period": 1, "window": 2, "seed": 5}
    with live_service.service(folder, **settings) as live:
        port = int(live.url.rpartition(":")[2])
        mapped = Mapped(live, port)
        with fleet_of(live, tmp_path / "fleet", devices=50):
            wait_for_release(mapped, 4)
            one = watched()
            page = one.go(f"{mapped.url}/")
            page.evaluate("window.same = true")
            live.process.kill()
            live.process.wait()
            until(page, "window.retrasyn.store.now.connection === 'stale'")
            assert "again" in page.locator("#connection-text").inner_text()
            assert page.locator("#connection").is_visible()
            held = page.evaluate("window.retrasyn.store.now.t")
            with live_service.service(folder, port=port, **settings) as again:
                until(page, "window.retrasyn.store.now.connection === 'live'")
                until(page, f"window.retrasyn.store.now.frame.t > {held + 1}")
                assert page.evaluate("window.same"), "the page was not loaded again"
                t = page.evaluate("window.retrasyn.store.now.frame.t")
                shown = page.evaluate("Array.from(window.retrasyn.store.now.frame.cells.n)")
                page.locator("#play").click()
                if page.evaluate("window.retrasyn.store.now.frame.t") == t:
                    assert shown == Mapped(again, port).json(f"/v1/releases/{t}")["cells"]
                assert one.foreign(mapped.url) == []
                assert [line for line in one.complaints if GONE not in line] == []
