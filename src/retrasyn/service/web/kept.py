"""Files that never change while the service runs: zipped once, and sent again only if need be."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

_SMALLEST = 512  # bytes below which zipping gains nothing
_PACKED = ("image/png", "image/jpeg", "image/webp", "font/woff2")  # zipped inside
UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "What the reader has already (If-None-Match) is still right."}
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A body, plain and zipped, and the mark by which a reader knows it again."""

    body: bytes
    zipped: bytes | None
    media_type: str
    mark: str
    headers: dict[str, str]

    @classmethod
    def of(cls, body: bytes, media_type: str, headers: dict[str, str] | None = None) -> Kept:
        """Zip a body, if that makes it shorter."""
        zipped = None
        if len(body) >= _SMALLEST and media_type not in _PACKED:
            zipped = gzip.compress(body, mtime=0)
        mark = hashlib.sha256(body).hexdigest()[:32]
        return cls(body, zipped, media_type, mark, headers or {})

    def answer(self, request: Request) -> Response:
        """Answer a request: with nothing if the reader has it, and zipped if it can unzip."""
        zip_it = self.zipped is not None and takes_gzip(request)
        # Weak, because it stands for the plain body and for the zipped one alike.
        headers = self.headers | {
            "etag": f'W/"{self.mark}"',
            "cache-control": "no-cache",
            "vary": "accept-encoding",
        }
        if self.mark in _known(request):
            return Response(status_code=304, headers=headers)
        if zip_it and self.zipped is not None:
            headers["content-encoding"] = "gzip"
            return Response(self.zipped, media_type=self.media_type, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)


def _known(request: Request) -> list[str]:
    """Return the marks of what a reader has."""
    return re.findall(r'"([^"]*)"', request.headers.get("if-none-match", ""))


def takes_gzip(request: Request) -> bool:
    """Return whether a reader says that it can unzip."""
    said = request.headers.get("accept-encoding", "").lower()
    for part in said.split(","):
        name, _, quality = part.strip().partition(";")
        if name.strip() == "gzip":
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", quality)
    return False
