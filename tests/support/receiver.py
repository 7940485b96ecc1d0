"""Somebody who is told of alerts: a web server on the loopback that keeps what is posted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext


@dataclass
class Receiver:
    """What came, and how it is answered: each status once, then 200."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.posts.append((path, headers, body))
        return self.answers.pop(0) if self.answers else 200

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for _, headers, _ in self.posts]


@contextmanager
def receiving(*answers: int, tls: SSLContext | None = None) -> Iterator[Receiver]:
    """Listen on a free port of the loopback until the block ends."""
    receiver = Receiver(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(self.path, headers, body)
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        receiver.url = f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
