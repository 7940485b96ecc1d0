"""What the site needs beyond the pages: links out of docs/, and the Python reference.

The same pages are read in the repository and on the site. In the repository a page may link to
`../src/...` or `../CHANGELOG.md`; the site has no such folder, so each file that is linked becomes
a page of its own.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import retrasyn

ROOT = Path(__file__).parents[2]
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}
"""Documents beside docs/, and the pages they are on the site."""
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
_LANGUAGES = {".py": "python", ".toml": "toml", ".ts": "typescript", ".json": "json"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the documents beside docs/, and every file a page links to outside of it."""
    texts = {
        file.src_uri: Path(file.abs_src_path).read_text(encoding="utf-8")
        for file in files.documentation_pages()
        if file.abs_src_path
    }
    for source, uri in PAGES.items():
        if uri not in texts:
            texts[uri] = _moved(source)
            files.append(File.generated(config, uri, content=texts[uri]))
    linked = {path for uri, text in texts.items() for path in _outside(uri, text)}
    for path in sorted(linked):
        files.append(File.generated(config, _source_page(path), content=_shown(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to the pages made for them, and fill in the Python reference."""
    del config, files
    if page.file.src_uri == "python.md":
        markdown = _with_docstrings(markdown)
    return _outside_fences(markdown, lambda text: _relink(page.file.src_uri, text))


def _outside_fences(markdown: str, change: Any) -> str:
    parts = _FENCE.split(markdown)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def _moved(source: str) -> str:
    """Return a document of the root with its links as seen from docs/."""
    text = (ROOT / source).read_text(encoding="utf-8")

    def lead(link: re.Match[str]) -> str:
        target = link[2]
        if re.match(r"[a-z]+:", target):
            return link[0]
        return f"{link[1]}{posixpath.relpath(target, 'docs')}{link[3]}"

    return _outside_fences(text, lambda part: _LINK.sub(lead, part))


def _target(uri: str, link: str) -> str | None:
    """Return the path in the repository that a page links to, if it lies outside docs/."""
    if re.match(r"[a-z]+:", link):
        return None
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link))
    return None if path.startswith("docs/") or not (ROOT / path).exists() else path


def _outside(uri: str, text: str) -> set[str]:
    """Return the files outside docs/ that a page links to."""
    found = set()
    for part in _FENCE.split(text)[::2]:
        for link in _LINK.finditer(part):
            path = _target(uri, link[2])
            if path is not None and path not in PAGES:
                found.add(path)
    return found


def _relink(uri: str, text: str) -> str:
    def lead(link: re.Match[str]) -> str:
        path = _target(uri, link[2])
        if path is None:
            return link[0]
        goal = PAGES.get(path) or _source_page(path)
        if path == "README.md":
            return f"{link[1]}{posixpath.relpath(goal, posixpath.dirname(uri) or '.')})"
        return f"{link[1]}{posixpath.relpath(goal, posixpath.dirname(uri) or '.')}{link[3]}"

    return _LINK.sub(lead, text)


def _source_page(path: str) -> str:
    return f"source/{path}.md"


def _shown(path: str) -> str:
    """Return a page that shows one file of the repository, or what a folder holds."""
    place, head = ROOT / path, f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n"
    if place.is_dir():
        names = sorted(
            part.name for part in place.iterdir() if not part.name.startswith((".", "_"))
        )
        return head + "\n".join(f"- `{name}`" for name in names) + "\n"
    language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
    return f"{head}````{language}\n{place.read_text(encoding='utf-8')}````\n"


def _with_docstrings(markdown: str) -> str:
    """Put the docstring of every public name below its heading."""

    def fill(heading: re.Match[str]) -> str:
        name = heading[1]
        home = retrasyn._HOMES.get(name)  # noqa: SLF001 - the one table of public names
        if home is None:
            return heading[0]  # the version has no docstring
        return f"### `retrasyn.{name}`\n\n::: {home}.{name}\n"

    return re.sub(r"^### `retrasyn\.(\w+)`\n\n.*$", fill, markdown, flags=re.MULTILINE)
