"""HTTP answers: replies without the framework, problem JSON (RFC 9457), cached files."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response

Scope = Any
"""granian's description of a request: method, path, query_string, headers, client, scheme."""
Protocol = Any
"""granian's way to read a request's body and to send the answer."""
Headers = tuple[tuple[str, str], ...]

BINARY = "application/octet-stream"
JSON = "application/json"
_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)
SECURITY: Headers = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
    ("content-security-policy", _POLICY),
)
"""Headers of every answer, the page included: nothing from elsewhere, nothing inline, no frame."""
_LINES = {kind: [("content-type", kind), *SECURITY] for kind in (BINARY, JSON)}
PROBLEM_JSON = "application/problem+json"
SENTENCES = {
    400: "The request cannot be read; see /openapi.json for what each address takes.",
    401: "The token, tag or device is not one this curator knows, or is no longer valid.",
    404: "There is nothing at this address; see /openapi.json for what there is.",
    405: "This address does not take this method; see /openapi.json for those it takes.",
    408: "The body came too slowly; send it within the deadline.",
    409: "The curator agrees by another key now; ask for /v1/keys again.",
    413: "The body is larger than this curator takes; send less at once.",
    422: "The request does not have the form that /openapi.json asks for.",
    429: "Requests come too fast from this address; wait as long as Retry-After says.",
    500: "Something went wrong here; nothing of the request was kept. The operator's log has more.",
    503: "The curator cannot take this now; wait as long as Retry-After says.",
}
_SMALLEST = 512  # bytes below which zipping gains nothing
_PACKED = ("image/png", "image/jpeg", "image/webp", "font/woff2")  # zipped inside
UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "What the reader has already (If-None-Match) is still right."}
}


def policy_with(origins: Sequence[str]) -> str:
    """Return the content security policy of a page whose base map comes from these servers."""
    others = "".join(f" {origin}" for origin in origins)
    return f"{_POLICY}; img-src 'self' data: blob:{others}; connect-src 'self'{others}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP answer."""

    status: int
    body: bytes = b""
    content_type: str = BINARY
    headers: Headers = ()

    def send(self, protocol: Protocol) -> None:
        """Send it through the server."""
        lines = _LINES.get(self.content_type) or [("content-type", self.content_type), *SECURITY]
        if self.headers:
            lines = [*lines, *self.headers]
        protocol.response_bytes(self.status, lines, self.body)


class Problem(Exception):  # noqa: N818 - it becomes an answer
    """An error that becomes the answer to a request."""

    def __init__(
        self,
        status: int,
        detail: str | None = None,
        *,
        retry_after: float | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers = status, detail, headers
        if retry_after is not None:
            seconds = max(1, math.ceil(retry_after))
            self.headers = (*headers, ("retry-after", str(seconds)))

    def reply(self) -> Reply:
        """Return the answer."""
        return Reply(self.status, body_of(self.status, self.detail), PROBLEM_JSON, self.headers)


def body_of(status: int, detail: str | None = None) -> bytes:
    """Return the JSON of a problem.

    >>> json.loads(body_of(404))["title"]
    'Not Found'
    """
    said = detail or SENTENCES.get(status) or SENTENCES[400]
    title = HTTPStatus(status).phrase
    return json.dumps(
        {"type": "about:blank", "title": title, "status": status, "detail": said}
    ).encode()


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A body, plain and zipped, with its entity tag."""

    body: bytes
    zipped: bytes | None
    media_type: str
    mark: str
    headers: dict[str, str]

    @classmethod
    def of(
        cls, body: bytes, media_type: str, headers: dict[str, str] | None = None
    ) -> CachedResponse:
        """Zip a body where that makes it shorter."""
        zipped = None
        if len(body) >= _SMALLEST and media_type not in _PACKED:
            zipped = gzip.compress(body, mtime=0)
        mark = hashlib.sha256(body).hexdigest()[:32]
        return cls(body, zipped, media_type, mark, headers or {})

    def answer(self, request: Request) -> Response:
        """Answer a request: 304 if the client has the body, zipped if it accepts gzip."""
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
    """Return the entity tags of If-None-Match."""
    return re.findall(r'"([^"]*)"', request.headers.get("if-none-match", ""))


def takes_gzip(request: Request) -> bool:
    """Return whether Accept-Encoding names gzip."""
    said = request.headers.get("accept-encoding", "").lower()
    for part in said.split(","):
        name, _, quality = part.strip().partition(";")
        if name.strip() == "gzip":
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", quality)
    return False
