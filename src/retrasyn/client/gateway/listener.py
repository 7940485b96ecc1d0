"""HTTP listener of a gateway. It serves only the owner's phones, so `http.server` is enough.

Body and header sizes, time and concurrent requests are bounded; nothing is logged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from retrasyn.client.gateway.messages import PhonePosition, read_json, read_parameters
from retrasyn.device import read_clocks
from retrasyn.errors import InputError, SettingError
from retrasyn.host_names import REFUSAL, HostNames

MAX_BODY = 64 << 10
_SECONDS = 10
_AT_ONCE = 32
Hear = Callable[[PhonePosition], bool]


class _Handler(BaseHTTPRequestHandler):
    """Handles one connection."""

    timeout: ClassVar[int] = _SECONDS  # timeout of any single read
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet
    server_version = "retrasyn"
    sys_version = ""
    server: Listener

    def parse_request(self) -> bool:
        """Read the headers; refuse a request for another host name than this listener's."""
        if not super().parse_request():
            return False
        given = self.headers.get_all("Host", [])
        if self.server.hosts.allow(given) and self.path.startswith("/"):
            return True
        self.close_connection = True
        self._answer(421, REFUSAL)
        self.wfile.flush()
        return False

    def do_POST(self) -> None:
        """Receive a position from the request body."""
        body = self._body()
        if body is not None:
            self._take(body)

    do_PUT = do_POST  # noqa: N815 - the library's names

    def do_GET(self) -> None:
        """Receive a position from the query parameters."""
        self._take(b"")

    def log_message(self, *_: Any) -> None:
        """Log nothing: request lines hold coordinates."""

    def _body(self) -> bytes | None:
        """Read the body, or send an error response and return None."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isascii() or not length.isdigit():
            self.close_connection = True
            self._answer(411, b"send the length of the body\n")
        elif int(length) > MAX_BODY:
            self.close_connection = True
            self._answer(413, b"the body is too long\n")
        else:
            return self.rfile.read(int(length))
        return None

    def _take(self, body: bytes) -> None:
        query = urlsplit(self.path).query
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        owntracks = False
        try:
            if body.lstrip()[:1] == b"{" or kind == "application/json" or (not body and not query):
                owntracks = True
                heard = read_json(body, self._name(query), now=read_clocks().wall)
            else:
                text = query or body.decode("ascii")
                heard = read_parameters(text, now=read_clocks().wall)
        except (InputError, UnicodeDecodeError) as fault:
            why = str(fault) if isinstance(fault, InputError) else "the body is no text"
            self._answer(400, why.encode() + b"\n")
            return
        if heard is not None and not self.server.hear(heard):
            self._answer(403, b"this phone is none of this gateway's\n")
            return
        self._answer(200, b"[]" if owntracks else b"", kind="application/json")

    def _name(self, query: str) -> str:
        """Return OwnTracks' user and device, from its headers or the query parameters."""
        given = {key: values[-1] for key, values in parse_qs(query).items()}
        user = self.headers.get("X-Limit-U") or given.get("u", "")
        phone = self.headers.get("X-Limit-D") or given.get("d", "")
        return "/".join(part for part in (user, phone) if part)

    def _answer(self, code: int, body: bytes, *, kind: str = "text/plain") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Listener(ThreadingHTTPServer):
    """Receives positions over HTTP."""

    daemon_threads = True
    request_queue_size = _AT_ONCE

    def __init__(self, host: str, port: int, hear: Hear, names: Iterable[str] = ()) -> None:
        self.hear = hear
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        if not host:
            raise SettingError("--host is empty, which would mean every address; use 127.0.0.1")
        try:
            super().__init__((host, port), _Handler)
        except (OSError, UnicodeError) as fault:
            why = getattr(fault, "strerror", None) or fault
            raise SettingError(
                f"{host}:{port} cannot be listened on ({why}); choose another --host or --port"
            ) from None
        try:
            self.hosts = HostNames(host, str(self.server_address[0]), more=names)
        except BaseException:
            self.server_close()
            raise

    @property
    def url(self) -> str:
        """The URL to which phones send positions."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def start(self) -> None:
        """Listen in a thread."""
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a request in a thread, if the limit allows one more."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a request, then free its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the phone resends after a broken connection."""
