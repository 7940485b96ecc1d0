"""The status page: one small page, a style and a program, all from here.

The content-security-policy of every answer forbids anything from elsewhere and anything inline.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from retrasyn.service.web.documented import problems

if TYPE_CHECKING:
    from retrasyn.service.service import Service

_FILES = {"status.css": "text/css", "status.js": "text/javascript", "icon.svg": "image/svg+xml"}


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(include_in_schema=False)
    texts = {name: _text(name) for name in (*_FILES, "status.html")}

    @router.get("/", responses=problems())
    async def status_page() -> Response:
        """Show how the campaign is doing."""
        shown = {name: escape(str(value)) for name, value in _shown(service).items()}
        return Response(Template(texts["status.html"]).substitute(shown), media_type="text/html")

    for name, media in _FILES.items():
        router.add_api_route(f"/static/{name}", _file(texts[name], media), methods=["GET"])
    return router


def _file(text: str, media: str) -> Callable[[], Awaitable[Response]]:
    async def static_file() -> Response:
        return Response(text, media_type=media)

    return static_file


def _text(name: str) -> str:
    return (resources.files("retrasyn.service.web") / "static" / name).read_text(encoding="utf-8")


def _shown(service: Service) -> dict[str, object]:
    """Return what the page says; "none" where there is nothing yet."""
    status = service.status()
    shown = {name: "none" if value is None else value for name, value in status.items()}
    return shown | {"state": status["reason"] or "ready"}
