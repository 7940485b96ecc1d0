"""Takes the pictures of the live map: python docs/figures/photograph.py (needs Chromium).

The built-in city is synthesised on its public streets with a fixed seed, shown with `retrasyn
watch`, and looked at in a browser without a window: on a wide screen in both themes, and on a
phone.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import retrasyn
from retrasyn.data.writing_roads import write_roads
from retrasyn.receipts.files import receipt_place, write_with_receipt
from retrasyn.roads.opening import open_map
from retrasyn.simulation.city import CITY_BOX, city_roads

HERE = Path(__file__).parent
SIDE, T, CELL = 12, 70, 66
N_STEPS = 7  # that are seen before, so that trails are as long as they get
N_TRAVELLERS = 800
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
SEEK = """t => {
  const scrubber = document.getElementById("scrubber");
  scrubber.value = String(t);
  scrubber.dispatchEvent(new Event("input", { bubbles: true }));
}"""
ARRIVED = "t => window.retrasyn.t() === t && window.retrasyn.progress() === 1"


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or sys.exit("no chromium: apt-get install chromium")
    with (
        tempfile.TemporaryDirectory() as folder,
        _shown(Path(folder)) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        for name, size, theme in (
            ("map-light", WIDE, "light"),
            ("map-dark", WIDE, "dark"),
            ("map-phone", PHONE, "light"),
        ):
            page = browser.new_page(viewport=size, color_scheme=theme, locale="en-GB")
            _keep(_photograph(page, url), HERE / f"{name}.png")
        browser.close()


def _photograph(page: Any, url: str) -> bytes:
    """Wait until the map shows what is wanted, and take a picture."""
    page.goto(url)
    while not page.evaluate("document.documentElement.dataset.map === 'drawn'"):
        time.sleep(0.05)
    while page.evaluate("window.retrasyn.store.now.playing"):
        page.keyboard.press("Space")
        time.sleep(0.2)
    page.evaluate(SEEK, T - N_STEPS)
    _wait_for(page, T - N_STEPS)
    page.evaluate(f"window.retrasyn.store.set({{ cell: {CELL} }})")
    for t in range(T - N_STEPS + 1, T + 1):
        page.keyboard.press("ArrowRight")
        _wait_for(page, t)
    time.sleep(2)  # charts come with the next answer
    picture: bytes = page.screenshot()
    return picture


def _wait_for(page: Any, t: int) -> None:
    """Wait until the picture has come to rest at a timestamp."""
    while not page.evaluate(ARRIVED, t):
        time.sleep(0.05)


def _keep(picture: bytes, path: Path) -> None:
    """Write a picture with 256 colours, which are enough for a map and a third of the bytes."""
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


@contextmanager
def _shown(folder: Path) -> Iterator[str]:
    """Show what was made of the city."""
    made = folder / "synthetic-city.parquet"
    city = retrasyn.demo_city()
    grid = retrasyn.Grid(CITY_BOX, SIDE)
    streets = open_map(CITY_BOX, roads=city_roads())
    synthetic, receipt = retrasyn.synthesize(city, grid=grid, seed=0, public_map=streets)
    write_with_receipt(synthetic, receipt, made, receipt_place(made))
    roads = folder / "roads.geojson"
    write_roads(city_roads(), roads)
    command = [sys.executable, "-m", "retrasyn", "watch", str(made), "--roads", str(roads)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--set", f"travellers={N_TRAVELLERS}", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = None
        while found is None:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                sys.exit("the map was not shown")
            found = re.search(r"http://\S+", line)
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()
