"""Bodies of requests: no longer than a limit, no slower than a deadline.

A body that says it is too long is refused unread; one that turns out to be, a chunk later.
"""

from __future__ import annotations

from retrasyn.service.web.deadlines import Deadlines
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import Protocol, Scope


async def read_body(scope: Scope, protocol: Protocol, *, limit: int, deadline: Deadlines) -> bytes:
    """Return the whole body of a request."""
    headers = scope.headers
    said = headers.get("content-length")
    if said is None and headers.get("transfer-encoding") is None:
        return b""
    if said is not None and (not said.isdecimal() or int(said) > limit):
        raise Problem(413)
    try:
        # The server holds a body to the length it says; one that says none is counted here.
        body: bytes = await deadline.wait(protocol() if said else _pieces(protocol, limit))
    except TimeoutError:
        raise Problem(408) from None
    except (OSError, RuntimeError):  # what granian raises when a body ends before its end
        raise Problem(400) from None
    return body


async def _pieces(protocol: Protocol, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    async for part in protocol:
        room -= len(part)
        if room < 0:
            raise Problem(413)
        parts.append(bytes(part))
    return b"".join(parts)
