"""From the server's own interface (RSGI) to a framework's (ASGI), for one request at a time.

The body is there already. An answer in one piece leaves in one call, any other as a stream.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from retrasyn.service.web.replies import SECURITY, Protocol, Scope

Message = MutableMapping[str, Any]


def scope_of(scope: Scope) -> dict[str, Any]:
    """Describe a request as ASGI does."""
    return {
        "type": "http",
        # With this version frameworks wait for a hang-up themselves, also while nothing is sent.
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": scope.http_version,
        "method": scope.method,
        "scheme": scope.scheme,
        "path": scope.path,
        "raw_path": scope.path.encode(),
        "query_string": scope.query_string.encode(),
        "root_path": "",
        "headers": [
            (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in scope.headers.items()
        ],
        "client": None,
        "server": None,
        "state": {},
    }


class Bridge:
    """Carries one request to a framework and its answer back."""

    def __init__(self, protocol: Protocol, body: bytes) -> None:
        self._protocol, self._body = protocol, body
        self._given = False
        self._start: Message = {}
        self._stream: Any = None
        self.status = 0

    async def receive(self) -> Message:
        """Give the body, and then wait until whoever asked hangs up."""
        if self._given:
            await self._protocol.client_disconnect()
            return {"type": "http.disconnect"}
        self._given = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self._start, self.status = message, message["status"]
            return
        body, more = bytes(message.get("body", b"")), message.get("more_body", False)
        if self._stream is None and not more:
            self._protocol.response_bytes(self.status, self._headers(), body)
            return
        if self._stream is None:
            self._stream = self._protocol.response_stream(self.status, self._headers())
        if body:
            await self._send_piece(body)

    async def _send_piece(self, body: bytes) -> None:
        try:
            await self._stream.send_bytes(body)
        except RuntimeError as error:  # granian's word for a connection that is lost
            raise OSError("the reader hung up") from error

    def _headers(self) -> list[tuple[str, str]]:
        """Return the headers of the answer, with those that every answer has."""
        own = [(name.decode(), value.decode()) for name, value in self._start["headers"]]
        named = {name for name, _ in own}
        return [*own, *(line for line in SECURITY if line[0] not in named)]
