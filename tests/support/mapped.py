"""A real service and a fleet of real devices behind the live map, for tests in a browser."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import retrasyn
from support import live_service

LAPTOP = {"width": 1440, "height": 900}
SMALL = {"width": 1130, "height": 560}
"""Laid out like a laptop's, with a third of its pixels: here a processor draws them."""
TABLET = {"width": 1024, "height": 768}
PHONE = {"width": 390, "height": 844}
AXE = Path(retrasyn.__file__).parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
FAULTS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(" ")}`)"""
BEYOND = """() => [...document.querySelectorAll("body *")]
  .filter((node) => node.checkVisibility() && !node.closest(".unseen, .skip, svg, #maps, dialog"))
  .filter((node) => node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((node) => `${node.tagName}#${node.id}.${node.className}`)"""
DRAWN = "document.documentElement.dataset.map === 'drawn'"


@dataclass
class Mapped:
    """A running service whose fleet reports."""

    live: live_service.Live
    port: int
    first: int = 0  # the first timestamp with points; seven more have been released

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:  # noqa: S310 - loopback
            body: bytes = answer.read()
            return body

    def json(self, path: str) -> Any:
        return json.loads(self.ask(path))

    @property
    def newest(self) -> int:
        found = self.json("/v1/status")["newest_release"]
        return -1 if found is None else int(found)


@contextmanager
def fleet_of(live: live_service.Live, folder: Path, *, devices: int) -> Iterator[None]:
    """Let the devices of the built-in city take part for as long as the block lasts."""
    words = ("fleet", "--server", live.url, "--devices", devices, "--rounds", 3000)
    kept = ("--folder", folder, "--operator-token", live.operator_token)
    with (folder.parent / "fleet.log").open("a") as log:
        process = subprocess.Popen(
            [*live_service.COMMAND, *map(str, words + kept)], stdout=log, stderr=log, text=True
        )
    try:
        yield
    finally:
        live_service.end(process)


def wait_for_release(mapped: Mapped, t: int, seconds: float = 90) -> None:
    """Wait until a timestamp has been released."""
    end = time.monotonic() + seconds
    while mapped.newest < t:
        assert time.monotonic() < end, f"release {t} did not come"
        time.sleep(0.1)


def wait_for_points(mapped: Mapped, n: int) -> None:
    """Wait for n releases in a row that have points: a busy fleet may miss a round."""
    end, mapped.first = time.monotonic() + 180, mapped.newest + 1
    while mapped.newest < mapped.first + n - 1:
        assert time.monotonic() < end, f"no {n} releases in a row had points"
        listed = mapped.json(f"/v1/releases?from={mapped.first}")["releases"]
        mapped.first = max([mapped.first, *(r["t"] + 1 for r in listed if not r["n_points"])])
        time.sleep(0.1)


class Watched:
    """A page in a browser, with all that it asked for and complained of."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**({"viewport": SMALL, "locale": "en-GB"} | options))
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation',"
            " (event) => console.error('blocked', event.violatedDirective, event.blockedURI))"
        )

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def go(self, url: str) -> Any:
        """Open an address and wait until the map has drawn something."""
        self.page.goto(url)
        until(self.page, DRAWN)
        return self.page

    def foreign(self, url: str) -> list[str]:
        """Return what was asked of any other server."""
        return [one for one in self.asked if not one.startswith(f"{url}/")]

    def close(self) -> None:
        self.context.close()


def until(page: Any, holds: str, seconds: float = 60) -> None:
    """Wait until something holds on the page.

    The page's own policy forbids the polling that playwright would do inside of it.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(holds):
        assert time.monotonic() < end, f"it did not happen: {holds}"
        page.wait_for_timeout(20)


def figure(page: Any, element: str) -> int:
    """Return a whole number that the page shows, with or without how far it may be off."""
    return int(page.locator(f"#{element}").inner_text().partition(" ±")[0].replace(",", ""))
