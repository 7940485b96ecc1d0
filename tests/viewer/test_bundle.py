"""What the page weighs, and what is in it."""

import gzip
import re
from importlib import resources

LIMIT = 400_000  # bytes, compressed, of everything a browser loads


def files():
    folder = resources.files("retrasyn.service.web") / "static" / "map"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_all_that_a_browser_loads_weighs_at_most_400_kilobytes():
    weights = {name: len(gzip.compress(body, 9)) for name, body in files().items()}
    assert sum(weights.values()) <= LIMIT, weights


def test_the_page_has_no_script_or_style_of_its_own():
    page = files()["index.html"].decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)=", page)
    assert not re.search(r"(src|href)=\"(\w+:|//)", page), "nothing from elsewhere"
