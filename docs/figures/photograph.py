"""Takes the pictures of the live map: python docs/figures/photograph.py [FILE] (needs Chromium).

FILE is a release with replicas, and roads (FILE's name with .roads.geojson) beside it. Without one,
the built-in city is synthesised on its public streets with a fixed seed. It is shown with `retrasyn
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
from retrasyn.data.writing_roads import roads_beside, write_roads
from retrasyn.simulation.city import CITY_BOX, city_roads

HERE = Path(__file__).parent
RETRASYN = (sys.executable, "-m", "retrasyn")
SIDE, REPLICAS = 12, 20
N_STEPS = 7  # that are seen before, so that trails are as long as they get
N_TRAVELLERS = 800
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
MOMENT = """() => {
  const { oldest_release: first, newest_release: last } = window.retrasyn.store.now.status;
  return Math.round(first + 0.6 * (last - first));
}"""
SEEK = """t => {
  const scrubber = document.getElementById("scrubber");
  scrubber.value = String(t);
  scrubber.dispatchEvent(new Event("input", { bubbles: true }));
}"""
FULLEST = """() => {
  const { n } = window.retrasyn.store.now.frame.cells;
  window.retrasyn.store.set({ cell: n.indexOf(Math.max(...n)) });
}"""
ARRIVED = "t => window.retrasyn.t() === t && window.retrasyn.progress() === 1"


def main(files: list[str]) -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or sys.exit("no chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        release = Path(files[0]) if files else _made_of_the_city(Path(folder))
        with _shown(release) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
            for name, size, theme in (
                ("map-light", WIDE, "light"),
                ("map-dark", WIDE, "dark"),
                ("map-phone", PHONE, "light"),
            ):
                page = browser.new_page(
                    viewport=size,
                    color_scheme=theme,
                    locale="en-GB",
                    reduced_motion="reduce",  # nothing plays by itself
                )
                _keep(_photograph(page, url), HERE / f"{name}.png")
            browser.close()


def _photograph(page: Any, url: str) -> bytes:
    """Wait until the map shows what is wanted, and take a picture."""
    page.goto(url)
    while not page.evaluate("document.documentElement.dataset.map === 'drawn'"):
        time.sleep(0.05)
    moment = page.evaluate(MOMENT)
    page.evaluate(SEEK, moment - N_STEPS)
    _wait_for(page, moment - N_STEPS)
    page.evaluate(FULLEST)
    for t in range(moment - N_STEPS + 1, moment + 1):
        page.keyboard.press("ArrowRight")
        _wait_for(page, t)
    while page.locator("#cell-chart .band").count() == 0:  # it comes with the next answer
        time.sleep(0.2)
    time.sleep(2)
    picture: bytes = page.screenshot()
    return picture


def _wait_for(page: Any, t: int) -> None:
    """Wait until the picture has come to rest at a timestamp."""
    while not page.evaluate(ARRIVED, t):
        time.sleep(0.05)


def _keep(picture: bytes, path: Path) -> None:
    """Write a picture with 256 colours, which are enough for a map and a third of the bytes."""
    with Image.open(io.BytesIO(picture)) as image:
        # Rare colours are kept, those of lines and marks.
        few = image.convert("RGB").quantize(
            256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
        )
    few.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def _made_of_the_city(folder: Path) -> Path:
    """Synthesise the built-in city on its streets, with replicas."""
    recorded, made = folder / "recorded.parquet", folder / "synthetic-city.parquet"
    retrasyn.write(retrasyn.demo_city(), recorded)
    write_roads(city_roads(), roads_beside(made))
    subprocess.run(  # noqa: S603 - our own command
        [
            *(*RETRASYN, "synthesize", str(recorded), "-o", str(made), "--seed", "0"),
            *("--grid", str(SIDE), "--box", ",".join(map(str, CITY_BOX))),
            *("--roads", str(roads_beside(made)), "--replicates", str(REPLICAS)),
        ],
        check=True,
    )
    return made


@contextmanager
def _shown(release: Path) -> Iterator[str]:
    """Show a release."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [
            *(*RETRASYN, "watch", str(release), "--set", f"travellers={N_TRAVELLERS}"),
            *("--port", "0"),
        ],
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
    main(sys.argv[1:])
