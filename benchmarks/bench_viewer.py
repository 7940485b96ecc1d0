"""The live map in a real Chromium: 50,000 synthetic streams on 18 x 18 cells, drawn in software.

The bars are absolute, since eyes know no ratios. MINUTES of playing (RETRASYN_MAP_MINUTES) show
whether memory grows; ten were used for the figure in the documents.
"""

from __future__ import annotations

import json
import os
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

from workloads import Line

N_STREAMS, N_STEPS, SIDE = 50_000, 80, 18
MINUTES = float(os.environ.get("RETRASYN_MAP_MINUTES", "1"))
SCREEN = {"width": 1440, "height": 900}
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
_COMMAND = (sys.executable, "-m", "retrasyn")
_ALL_LAYERS = """() => {
  const { store } = window.retrasyn;
  store.set({ layers: { ...store.now.layers, flows: true } });
}"""
_IN_HISTORY = """() => {
  const { playing, live } = window.retrasyn.store.now;
  return playing && !live;
}"""
_DRAWN = "document.documentElement.dataset.map === 'drawn'"


def lines() -> Iterator[Line]:
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of the development tools

    with (
        tempfile.TemporaryDirectory() as folder,
        _watched(Path(folder)) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        loads = [_load(browser, url) for _ in range(3)]
        yield Line(
            name="the map's first picture, s",
            ratio=sorted(loads)[1],
            bar=2.0,
            detail=f"of three: {', '.join(f'{load:.2f}' for load in loads)} s",
        )
        yield from _playing(browser, url)
        browser.close()


def _load(browser: Any, url: str) -> float:
    """Return how long it takes from the address to a map with data."""
    context = browser.new_context(viewport=SCREEN)
    page = context.new_page()
    began = time.perf_counter()
    page.goto(url)
    while not page.evaluate(_DRAWN):
        time.sleep(0.005)
    taken = time.perf_counter() - began
    context.close()
    return taken


def _playing(browser: Any, url: str) -> Iterator[Line]:
    """Play history over and over, with everything shown."""
    context = browser.new_context(viewport=SCREEN)
    page = context.new_page()
    page.goto(url)
    while not page.evaluate(_DRAWN):
        time.sleep(0.005)
    session = context.new_cdp_session(page)
    page.evaluate(_ALL_LAYERS)
    rates: list[float] = []
    held: list[float] = []
    end = time.monotonic() + 60 * MINUTES
    while time.monotonic() < end:
        if not page.evaluate(
            "window.retrasyn.store.now.playing && !window.retrasyn.store.now.live"
        ):
            page.evaluate("document.getElementById('scrubber').value = '0'")
            page.evaluate("document.getElementById('scrubber').dispatchEvent(new Event('input'))")
            page.keyboard.press("Space")
        time.sleep(5)
        rates.append(page.evaluate("window.retrasyn.fps()"))
        session.send("HeapProfiler.collectGarbage")
        held.append(page.evaluate("performance.memory.usedJSHeapSize") / 2**20)
    shown = page.evaluate("window.retrasyn.travellers()")
    n_streams = page.evaluate("window.retrasyn.store.now.frame.totals.n[0]")
    context.close()
    rates = sorted(rates)
    yield Line(
        name="pictures a second while playing",
        ratio=rates[len(rates) // 2],
        bar=10.0,
        at_least=True,
        detail=f"least {rates[0]:.0f}; {shown:,} of {n_streams:,.0f} travellers drawn",
    )
    third = max(len(held) // 3, 1)  # the first fills the page's own caches
    before, after = max(held[third : 2 * third] or held), max(held[-third:])
    yield Line(
        name="memory at the end of playing, to that in the middle",
        ratio=after / before,
        bar=1.2,
        detail=f"{before:.1f} then {after:.1f} MiB in {MINUTES:g} min",
    )


@contextmanager
def _watched(folder: Path) -> Iterator[str]:
    """Synthesise a large city and show it."""
    real, made = folder / "real.parquet", folder / "synthetic.parquet"
    new = N_STREAMS // 25
    _run(
        "generate",
        "--network",
        "city",
        "--objects",
        N_STREAMS,
        "--new",
        new,
        "--steps",
        N_STEPS,
        "-o",
        real,
    )
    told = json.loads(_run("synthesize", real, "-o", made, "--grid", SIDE, "--json"))
    box = ",".join(str(value) for value in told["box"])
    process = subprocess.Popen(
        [
            *_COMMAND,
            "watch",
            str(real),
            str(made),
            "--grid",
            str(SIDE),
            "--box",
            box,
            "--port",
            "0",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = ""
        while "http://" not in said:
            line = (process.stdout or sys.stdin).readline()
            if not line:
                raise SystemExit("the map was not served")
            said += line
        found = re.search(r"http://\S+", said)
        yield found[0] if found else ""
    finally:
        process.terminate()
        process.wait(30)


def _run(*words: object) -> str:
    done = subprocess.run([*_COMMAND, *map(str, words)], capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    for line in lines():
        print(f"{line.name}: {line.ratio:.2f} (bar {line.bar:g}), {line.detail}")
