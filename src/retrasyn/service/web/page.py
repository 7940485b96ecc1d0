"""The web page: the live map if it was built, or else a small status page.

Styles and scripts come from here. The content-security-policy of every answer forbids anything
inline, and anything from elsewhere but what the operator's base map needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from string import Template
from typing import Any

from fastapi import APIRouter, Request, Response

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.web.responses import CachedResponse, policy_with

INDEX = "index.html"
BUILT = resources.files("retrasyn.service.web") / "static" / "map"
"""Where the files of the live map are, if it was built."""
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
_ICON = {"icon.svg": "image/svg+xml"}
_FILES = _ICON | {"status.css": "text/css", "status.js": "text/javascript"}


def routes(status: Callable[[], dict[str, Any]], base_map: BaseMap) -> APIRouter:
    """Return the routes of the page and its files."""
    router = APIRouter(include_in_schema=False)
    # A worker goes by the policy of its own file, so all files have that of the page.
    policy = {"content-security-policy": policy_with(base_map.origins)} if base_map.style else {}
    built = built_files(policy)
    if built:
        _add(router, "/", built.pop(INDEX))
    else:
        router.add_api_route("/", _status_page(status), methods=["GET"])
    for name, cached in built.items():
        _add(router, f"/static/map/{name}", cached)
    for name, media in (_ICON if built else _FILES).items():
        _add(router, f"/static/{name}", CachedResponse.of(_text(name).encode(), media))
    return router


def _add(router: APIRouter, path: str, cached: CachedResponse) -> None:
    """Serve a file at one fixed path, so that no other file can be reached."""

    async def file(request: Request) -> Response:
        return cached.answer(request)

    router.add_api_route(path, file, methods=["GET"])


def _status_page(status: Callable[[], dict[str, Any]]) -> Callable[[], Awaitable[Response]]:
    text = Template(_text("status.html"))

    async def status_page() -> Response:
        """Show how the campaign is doing."""
        shown = {name: escape(str(value)) for name, value in _shown(status()).items()}
        return Response(text.substitute(shown), media_type="text/html")

    return status_page


def _text(name: str) -> str:
    return (resources.files("retrasyn.service.web") / "static" / name).read_text(encoding="utf-8")


def _shown(status: dict[str, Any]) -> dict[str, object]:
    """Return the values of the status page; "none" where there is nothing yet."""
    shown = {name: "none" if value is None else value for name, value in status.items()}
    return shown | {"state": status["reason"] or "ready"}


def built_files(headers: dict[str, str]) -> dict[str, CachedResponse]:
    """Read the files of the page by name; there are none if it was not built."""
    if not (BUILT / INDEX).is_file():
        return {}
    found = {}
    for name, file in _walk(BUILT, ""):
        media = _MEDIA.get(name[name.rfind(".") :])
        if media is not None:  # what has no place on a page stays where it is
            found[name] = CachedResponse.of(file.read_bytes(), media, headers)
    return found


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    """Return all files below a folder with their relative names."""
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        else:
            found.append((prefix + entry.name, entry))
    return found
