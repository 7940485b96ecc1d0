"""The HTTP/1.1 server in the event loop of the service: granian, on our own socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import ssl
from pathlib import Path
from typing import Any

from retrasyn.errors import MissingExtra, SettingError
from retrasyn.host_names import HostNames
from retrasyn.service.settings import LimitSettings, ServerSettings

try:
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.net import SocketHolder  # type: ignore[attr-defined]  # not in its stubs
    from granian.server.embed import Server as _Embedded
except ImportError:
    raise MissingExtra('granian is not installed: pip install "retrasyn[serve]"') from None

MAX_CONNECTIONS = 8192
_BACKLOG = 2048
_HEADER_ROOM = 16_384  # bytes of headers, all together
_LETTING_GO = 0.25  # seconds: granian's threads drop what they hold of Python after they said they
# had ended; a process that is gone by then aborts with a message of theirs
_FILES = 2 * MAX_CONNECTIONS
_SPARE_THREADS = 32  # beside those that wait at the pipes of readers, one each
_SEND_BUFFER = 1 << 17  # bytes, which Linux doubles; left alone, it grows to 4 MiB a connection


class WebServer:
    """Listens from construction on, so that early clients wait; answers from `start` on."""

    def __init__(self, settings: ServerSettings, limits: LimitSettings) -> None:
        check_tls(settings.tls_certificate, settings.tls_key)
        self._settings, self._limits = settings, limits
        self._socket = listen(settings.host, settings.port)
        _bound_memory(self._socket, limits.reader_seconds)
        bound, self.port = self._socket.getsockname()[:2]
        more = [*settings.allowed_hosts, *([settings.public_url] if settings.public_url else [])]
        try:
            self.hosts = HostNames(settings.host, bound, more=more)
        except BaseException:
            self.close()
            raise
        self._inner: _OnSocket | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The URL of the server, with the host it listens on."""
        host = self._settings.host
        named = f"[{host}]" if ":" in host else host
        return f"{'https' if self._settings.tls_certificate else 'http'}://{named}:{self.port}"

    async def start(self, app: Any) -> None:
        """Answer requests from now on."""
        raise_file_limit()
        self._inner = _OnSocket(
            app,
            address=self._settings.host,
            port=self.port,
            interface=Interfaces.RSGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(self._limits.header_seconds * 1000),
                max_buffer_size=_HEADER_ROOM,
            ),
            websockets=False,
            backlog=_BACKLOG,
            backpressure=MAX_CONNECTIONS,
            runtime_blocking_threads=self._limits.readers + _SPARE_THREADS,
            log_enabled=False,
            ssl_cert=self._settings.tls_certificate,
            ssl_key=self._settings.tls_key,
        )
        self._inner.own_socket = self._socket
        begun = asyncio.Event()
        self._inner.on_startup(begun.set)
        self._task = asyncio.create_task(self._inner.serve())
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait({self._task, waiting}, return_when="FIRST_COMPLETED")
        waiting.cancel()
        if self._task.done():
            self._task.result()

    async def stop(self, seconds: float = 10.0) -> None:
        """Accept no more requests; running ones may finish within some seconds."""
        if self._task is not None and self._inner is not None:
            self._inner.stop()  # type: ignore[no-untyped-call]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._task, seconds)
            await asyncio.sleep(_LETTING_GO)
        self.close()

    def close(self) -> None:
        """Close the socket of a server that was never started or has been stopped."""
        self._socket.close()


class _OnSocket(_Embedded):  # type: ignore[misc, unused-ignore]  # granian has no types here
    """The embedded server, on a socket that is open already."""

    own_socket: socket.socket

    def _init_shared_socket(self) -> None:
        # granian closes what it is given, so it is given a copy.
        self._ssp: Any = None
        holder: Any = SocketHolder  # its stub does not know how it is made
        self._shd: Any = holder(os.dup(self.own_socket.fileno()), False, _BACKLOG)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; a `SettingError` says why that is not possible."""
    try:
        if not host:
            raise OSError("empty")  # noqa: TRY301 - it would mean every address
        family, kind, proto, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, proto)
    except (OSError, OverflowError, UnicodeError) as error:
        raise SettingError(f"host {host!r} is no address ({error}); use 127.0.0.1") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Those that are accepted inherit it: small answers do not wait for one another.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.bind(place)
        found.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise SettingError(
            f"{host}:{port} cannot be listened on ({reason}); stop what uses it or choose another "
            "with --port"
        ) from None
    found.setblocking(False)
    return found


def _bound_memory(listening: socket.socket, seconds: float) -> None:
    """Bound what the kernel keeps for readers, and for how long; connections inherit both."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    if hasattr(
        socket, "TCP_USER_TIMEOUT"
    ):  # Linux: also ends those who take none of a short answer
        patience = round(seconds * 1000)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)


def check_tls(certificate: Path | None, key: Path | None) -> None:
    """Refuse a certificate without its key, or either that cannot be used."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise SettingError("tls_certificate and tls_key belong together; give both or neither")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: b"")
    except (OSError, ValueError) as error:
        raise SettingError(
            f"tls_certificate {certificate} and tls_key {key} cannot be used "
            f"({getattr(error, 'reason', None) or getattr(error, 'strerror', None) or error}); "
            "give a PEM certificate and its PEM key without a password"
        ) from None


def raise_file_limit() -> None:
    """Raise the limit of open files to the number of connections, as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
