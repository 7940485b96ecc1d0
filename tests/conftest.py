"""Settings every test shares."""

import importlib.util
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from support import components

settings.register_profile(
    "default",
    deadline=None,  # the first call of a kernel compiles it
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile("long", parent=settings.get_profile("default"), max_examples=2000)
# A mutant is to fail, not to be explained: no smaller example is looked for. Thousands are run.
settings.register_profile(
    "mutants",
    parent=settings.get_profile("default"),
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
    database=None,
)
# A runner in the background may have been told to ignore Ctrl-C; the tests send it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Maps are drawn by WebGL, and no machine of ours has a graphics card.
_CHROMIUM = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")

# The modules that take longest, in the order of how long.
_LONGEST = (
    *("test_blocks.py", "test_ray.py", "test_reproduce.py", "test_inspection.py"),
    *("test_watch.py", "test_serve.py", "test_site.py", "test_notebooks.py"),
)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items):
    """Begin with what takes longest, so that no worker is left alone with it at the end."""
    order = {name: number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


ROOT = Path(__file__).parents[1]
# Modules that cannot be imported without ray, which has no wheel for the newest Python.
_WITH_RAY = (ROOT / "src/retrasyn/engines/ray.py", ROOT / "tests/support/ray_runs.py")


def pytest_configure(config):
    if importlib.util.find_spec("ray") is None:
        config.option.ignore = [*(config.option.ignore or ()), *map(str, _WITH_RAY)]


@pytest.fixture(scope="module")
def browser():
    """Give a real Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    chromium = components.need("chromium", package="chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(chromium), args=[*_CHROMIUM], headless=True
        )
        yield browser
        browser.close()
