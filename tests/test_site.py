"""The documentation site: complete, up to date, without a broken link, and nobody else's guest."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer

import retrasyn
from retrasyn.cli import app
from retrasyn.service.settings import Settings
from support.pages import ROOT

DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "making"))
import reference  # noqa: E402 - a script beside the documents

QUIET = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # news of the theme's next version


class Links(HTMLParser):
    """What a page leads to and loads, and the places in it one can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: set[str] = set()
        self.loads: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {given[name] or "" for name in ("id", "name") if name in given}
        if tag == "a":
            self.leads.add(given.get("href") or "")
        elif tag == "link":
            self.loads.add(given.get("href") or "")
        else:
            self.loads.add(given.get("src") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site; a warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=QUIET, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.parametrize("name", list(reference.pages()))
def test_a_generated_page_says_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text() == reference.pages()[name], "type: make reference"


def _commands(command: object, path: str) -> list[tuple[str, object]]:
    below = getattr(command, "commands", {})
    return [(path, command)] + [
        row for name, part in below.items() for row in _commands(part, f"{path} {name}")
    ]


@pytest.mark.parametrize(
    ("path", "command"), _commands(typer.main.get_command(app), "retrasyn"), ids=str
)
def test_every_command_and_option_has_its_place_in_the_reference(path: str, command) -> None:
    text = (DOCS / "commands.md").read_text()
    if path != "retrasyn":
        text = text.partition(f"\n### {path}\n")[2]
        assert text, f"{path} has no heading"
    section = text.partition("\n##")[0] if path != "retrasyn" else text
    for parameter in command.params:
        for option in parameter.opts:
            assert not option.startswith("-") or f"`{option}`" in section, f"{path} {option}"


def test_every_setting_has_a_row_in_its_table() -> None:
    text = (DOCS / "settings.md").read_text()
    for section, table in Settings.model_fields.items():
        part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        for name in type(table.default).model_fields:
            assert f"\n| `{name}` | " in part, f"{section}.{name}"


@pytest.mark.parametrize("name", retrasyn.__all__)
def test_every_public_name_has_its_heading_and_its_words(name: str) -> None:
    text = (DOCS / "python.md").read_text().partition(f"\n### `retrasyn.{name}`\n\n")[2]
    assert text.partition("\n")[0].strip()


@pytest.mark.system
@pytest.mark.parametrize("name", [name for name in retrasyn.__all__ if name != "__version__"])
def test_every_public_name_has_its_docstring_on_the_site(name: str, site: Path) -> None:
    home = retrasyn._HOMES[name]
    text = (site / "python.html").read_text()
    section = text.partition(f'id="retrasyn{name.lower()}"')[2].partition("<h3")[0]
    assert 'class="doc doc-object' in section, f"{home}.{name}"


@pytest.mark.system
def test_no_link_of_the_site_is_broken(site: Path) -> None:
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    faults = []
    for path, page in pages.items():
        for link in page.leads | page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            if not goal.exists():
                faults.append(f"{path.relative_to(site)}: {link}")
            elif goal in pages and unquote(parts.fragment) not in {"", *pages[goal].places}:
                faults.append(f"{path.relative_to(site)}: {link} (no such place)")
    assert not faults, "\n".join(sorted(faults))


@pytest.mark.system
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        for link in Links(path.read_text()).loads:
            assert not urlsplit(link).netloc, f"{path.relative_to(site)}: {link}"


@pytest.fixture
def address(site: Path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.system
@pytest.mark.parametrize("width", [1440, 390])
def test_in_a_browser_pages_fit_and_ask_nobody_else(address: str, browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in ("index", "first-steps", "how-it-works", "architecture", "commands", "python"):
        page.goto(f"{address}{name}.html", wait_until="networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.close()
    assert asked
    assert not [url for url in asked if not url.startswith((address, "data:", "blob:"))]
    assert not errors


@pytest.mark.system
@pytest.mark.parametrize("name", ["index.html", "proofs/oue.html"])
def test_the_search_finds_words_on_the_disk_as_on_a_server(
    site: Path, address: str, browser, name: str
) -> None:
    found = []
    for place in (f"{site.as_uri()}/", address):
        page = browser.new_page()
        page.goto(place + name, wait_until="networkidle")
        page.fill(".md-search__input", "quarantine")
        page.keyboard.press("End")  # the search listens to keys; a single one asks but once
        page.wait_for_selector(".md-search-result__item", state="attached")
        found.append(page.locator(".md-search-result__meta").inner_text())
        page.close()
    assert found[0] == found[1]
    assert re.fullmatch(r"[2-9] matching documents", found[0])


@pytest.mark.system
def test_the_copy_button_takes_the_command_without_its_prompt(address: str, browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}first-steps.html", wait_until="networkidle")
    block = page.locator(".highlight", has_text="retrasyn demo --out")
    block.hover()
    block.locator("button").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text !== '')")
    assert page.evaluate("navigator.clipboard.readText()") == "retrasyn demo --out demo-out"
    context.close()
