"""Bodies of requests: no longer than a limit, no slower than a deadline.

A body that says it is too long is refused unread; one that turns out to be, a chunk later.
"""

from __future__ import annotations

import asyncio

from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import Receive, Scope


class Gone(Exception):  # noqa: N818 - named after what happened
    """Whoever asked has hung up: nobody waits for an answer."""


async def read_body(scope: Scope, receive: Receive, *, limit: int, seconds: float) -> bytes:
    """Return the whole body of a request."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value) > limit):
            raise Problem(413)
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, limit)
    except TimeoutError:
        raise Problem(408) from None


async def _read(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part: bytes = message.get("body", b"")
        room -= len(part)
        if room < 0:
            raise Problem(413)
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)
