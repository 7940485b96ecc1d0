"""A wire that somebody listens to."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit


class Tap:
    """A TCP proxy that keeps every byte: `kept` went to the curator, `answered` came back."""

    def __init__(self, goal: str) -> None:
        parts = urlsplit(goal)
        self.goal, self.open = (parts.hostname, parts.port), []
        self.kept, self.answered = bytearray(), bytearray()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            far = socket.create_connection(self.goal)
            self.open += [near, far]
            for source, sink, kept in ((near, far, self.kept), (far, near, self.answered)):
                threading.Thread(target=_pump, args=(source, sink, kept), daemon=True).start()

    def close(self) -> None:
        for one in (self.server, *self.open):
            one.close()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    try:
        while part := source.recv(1 << 16):
            kept += part
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
