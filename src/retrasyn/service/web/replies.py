"""Answers without a framework: a status, a body and its headers, sent in two messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

BINARY = "application/octet-stream"
JSON = "application/json"
_POLICY = (
    b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"object-src 'none'"
)
SECURITY: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _POLICY),
)
"""What every answer says, the page included: nothing from elsewhere, nothing inline, no frame."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, whole."""

    status: int
    body: bytes = b""
    content_type: str = BINARY
    headers: Headers = ()

    async def send(self, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.lines()})
        await send({"type": "http.response.body", "body": self.body})

    def lines(self) -> list[tuple[bytes, bytes]]:
        """Return all headers."""
        return [
            (b"content-type", self.content_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            *SECURITY,
            *self.headers,
        ]
