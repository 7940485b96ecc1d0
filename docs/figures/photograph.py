"""Takes the pictures of the live map: python docs/figures/photograph.py (needs Chromium).

The built-in city is synthesised with a fixed seed, shown with `retrasyn watch`, and looked at in a
browser without a window: on a wide screen in both themes, and on a phone.
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
from retrasyn.simulation.city import city_roads

HERE = Path(__file__).parent
SIDE, T, CELL = 12, 70, 66
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
LOOK = f"""() => {{
  const scrubber = document.getElementById("scrubber");
  scrubber.value = "{T}";
  scrubber.dispatchEvent(new Event("input", {{ bubbles: true }}));
  window.retrasyn.store.set({{ cell: {CELL} }});
}}"""


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
    page.evaluate(LOOK)
    while not page.evaluate(f"window.retrasyn.store.now.frame.t === {T}"):
        time.sleep(0.05)
    time.sleep(2)  # charts come with the next answer
    picture: bytes = page.screenshot()
    return picture


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
    grid = retrasyn.Grid((0, 0, 10, 10), SIDE)
    synthetic, receipt = retrasyn.synthesize(city, grid=grid, seed=0)
    write_with_receipt(synthetic, receipt, made, receipt_place(made))
    roads = folder / "roads.geojson"
    write_roads(city_roads(), roads)
    command = [sys.executable, "-m", "retrasyn", "watch", str(made), "--roads", str(roads)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--port", "0"], stdout=subprocess.PIPE, text=True
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
