"""Answers without a framework: a status, a body and its headers, handed over in one call.

The server's own interface (RSGI) is used here, because it crosses between the server and Python
half as often as ASGI does; `bridge` is there for the routes that need a framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Scope = Any
"""What granian tells of a request: method, path, query_string, headers, client, scheme."""
Protocol = Any
"""How granian gives a request's body and takes its answer."""
Headers = tuple[tuple[str, str], ...]

BINARY = "application/octet-stream"
JSON = "application/json"
_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)


def policy_with(origins: Sequence[str]) -> str:
    """Return the policy of a page with a base map: pictures it makes itself, and these servers."""
    others = "".join(f" {origin}" for origin in origins)
    return f"{_POLICY}; img-src 'self' data: blob:{others}; connect-src 'self'{others}"


SECURITY: Headers = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
    ("content-security-policy", _POLICY),
)
"""What every answer says, the page included: nothing from elsewhere, nothing inline, no frame."""
_LINES = {kind: [("content-type", kind), *SECURITY] for kind in (BINARY, JSON)}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, whole."""

    status: int
    body: bytes = b""
    content_type: str = BINARY
    headers: Headers = ()

    def send(self, protocol: Protocol) -> None:
        """Hand it to the server."""
        lines = _LINES.get(self.content_type) or [("content-type", self.content_type), *SECURITY]
        if self.headers:
            lines = [*lines, *self.headers]
        protocol.response_bytes(self.status, lines, self.body)
