"""The files of the page, as `make viewer` builds them into the package."""

from __future__ import annotations

import importlib.resources
from importlib.resources.abc import Traversable

from retrasyn.service.web.kept import Kept

INDEX = "index.html"
BUILT = importlib.resources.files("retrasyn.service.web") / "static" / "map"
"""Where they are, if they were built."""
_MEDIA = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}


def built_files(headers: dict[str, str]) -> dict[str, Kept]:
    """Read the files of the page by name; there are none if it was not built."""
    if not (BUILT / INDEX).is_file():
        return {}
    found = {}
    for name, file in _walk(BUILT, ""):
        media = _MEDIA.get(name[name.rfind(".") :])
        if media is not None:  # what has no place on a page stays where it is
            found[name] = Kept.of(file.read_bytes(), media, headers)
    return found


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    """Return all files of a folder with their names below it."""
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        else:
            found.append((prefix + entry.name, entry))
    return found
