"""Passes requests to the ASGI framework, and its answers to granian no faster than they are read.

granian's own stream takes whatever it is given at once and keeps it in memory until the reader has
read it: 100 MiB for a reader of 100 MiB that reads nothing. A file it reads piece by piece, as the
reader takes them. So a long answer is a file for granian, and that file is a pipe: writing waits
where the reader does, and a reader holds some 64 KiB here, and as much again in granian.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import stat
import struct
import tempfile
import termios
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retrasyn.service.web.responses import SECURITY, Problem, Protocol, Scope

INLINE = 1 << 16
"""Bytes up to which an answer is handed over whole."""
_SLICE = 1 << 16  # bytes that are written at once
_LOOK = 0.002  # seconds from one look at whether the pipe was opened to the next
_OPENED_WITHIN = 5.0  # seconds; granian takes a few milliseconds
_AGAIN = 10  # seconds after which to ask again for a place
Message = MutableMapping[str, Any]


@dataclass(slots=True)
class Places:
    """Room for so many at once; a place counts from the instant at which it is taken.

    >>> places = Places(1)
    >>> with places.take() as first, places.take() as second:
    ...     first, second, places.n
    (True, False, 1)
    >>> places.n
    0
    """

    most: int
    n: int = 0  # taken at the moment

    @contextlib.contextmanager
    def take(self) -> Iterator[bool]:
        """Take a place until the block ends; False: there is none, and none is taken."""
        if self.n >= self.most:
            yield False
            return
        self.n += 1
        try:
            yield True
        finally:
            self.n -= 1


def scope_of(scope: Scope, path: str) -> dict[str, Any]:
    """Return the ASGI scope of a request for a path."""
    return {
        "type": "http",
        # With this version frameworks wait for a hang-up themselves, also while nothing is sent.
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": scope.http_version,
        "method": scope.method,
        "scheme": scope.scheme,
        "path": path,
        "raw_path": path.encode(),
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
    """Passes one request to an ASGI framework, and its answer to granian.

    An answer that has begun and is not finished when the block ends is cut, so that nobody takes a
    part for the whole.
    """

    def __init__(
        self, scope: Scope, protocol: Protocol, body: bytes, *, readers: Places, patience: float
    ) -> None:
        self._protocol, self._body, self._client = protocol, body, scope.client
        self._readers, self._patience = readers, patience
        self._given = False
        self._start: Message = {}
        self._pipe: _Pipe | None = None
        self._held = contextlib.ExitStack()
        self.status = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._pipe is not None and self._pipe.is_read:
            hang_up(self._client)
        self._held.close()

    @property
    def is_long(self) -> bool:
        """Whether a long answer has begun."""
        return self._pipe is not None

    async def receive(self) -> Message:
        """Return the body, and after that wait until the client disconnects."""
        if self._given:
            await self._protocol.client_disconnect()  # that of a long answer is not told
            return {"type": "http.disconnect"}
        self._given = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Send a part of the answer; wait until the reader has taken most of it."""
        if message["type"] == "http.response.start":
            self._start, self.status = message, message["status"]
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._pipe is None and not more and len(body) <= INLINE:
            self._protocol.response_bytes(self.status, self._headers(), bytes(body))
            return
        if body:
            self._pipe = self._pipe or self._open()
            await self._pipe.write(body)
        if self._pipe is not None and not more:
            self._pipe.close()

    def _open(self) -> _Pipe:
        """Begin a long answer, if one more may be read."""
        if not self._held.enter_context(self._readers.take()):
            refusal = Problem(503, "Too many are reading now; ask again.", retry_after=_AGAIN)
            self.status = refusal.status
            refusal.reply().send(self._protocol)
            raise OSError("there is no place for another reader")
        try:
            pipe = _Pipe(self._patience)
        except OSError as error:  # no reader's fault: to be logged
            raise RuntimeError("there is no pipe to be had") from error
        self._held.callback(pipe.close)
        self._protocol.response_file(self.status, self._headers(), str(pipe.path))
        return pipe

    def _headers(self) -> list[tuple[str, str]]:
        """Return the headers of the answer and the security headers."""
        own = [(name.decode(), value.decode()) for name, value in self._start["headers"]]
        named = {name for name, _ in own}
        return [*own, *(line for line in SECURITY if line[0] not in named)]


class _Pipe:
    """A named pipe that granian reads; its name is gone as soon as granian has opened it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        with contextlib.ExitStack() as named:
            folder = named.enter_context(tempfile.TemporaryDirectory(prefix="retrasyn-"))
            self.path = Path(folder) / "answer"
            os.mkfifo(self.path, 0o600)
            # Without a reading end of our own it could not be written before granian opens it.
            self._reading = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            named.callback(os.close, self._reading)
            self._writing = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._named = named.pop_all()  # let go of once granian has opened it
        self._opened = self._lost = self._closed = False

    @property
    def is_read(self) -> bool:
        """Whether there may be a reader who still waits for the end."""
        return not (self._closed or self._lost)

    async def write(self, body: bytes) -> None:
        """Write all of it as the reader makes room; an OSError says that the reader is gone."""
        rest = memoryview(body)
        while rest:
            try:
                written = os.write(self._writing, rest[:_SLICE])
            except BlockingIOError:
                await self._room()
                continue
            except BrokenPipeError:
                self._lost = True
                raise
            rest = rest[written:]
            if not self._opened:
                await self._opening(written)

    def close(self) -> None:
        """End the answer; what was written is still read."""
        if not self._closed:
            self._closed = True
            self._named.close()
            os.close(self._writing)

    async def _opening(self, written: int) -> None:
        """Wait until granian takes what was written first: it has opened the pipe then."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _OPENED_WITHIN
        while _waiting_bytes(self._reading) == written:
            await asyncio.sleep(_LOOK)
            if loop.time() > until:
                raise OSError("the reader hung up")
        self._opened = True
        self._named.close()

    async def _room(self) -> None:
        """Wait until there is room; whoever takes nothing for too long is gone."""
        loop = asyncio.get_running_loop()
        free = loop.create_future()
        loop.add_writer(self._writing, _wake, free)
        try:
            async with asyncio.timeout(self._patience):
                await free
        except TimeoutError:
            raise OSError("the reader takes nothing") from None
        finally:
            loop.remove_writer(self._writing)


def _wake(free: asyncio.Future[None]) -> None:
    if not free.done():
        free.set_result(None)


def _waiting_bytes(pipe: int) -> int:
    """Return how many bytes are in a pipe."""
    (n,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(n)


def hang_up(client: str) -> None:
    """End the connection of a client; granian has no call for it."""
    for name in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):
            number = int(name.name)
            # Copies of other files must not be made: closing one would give up SQLite's locks.
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as one:
                    if _written(one.getpeername()) == client:
                        one.shutdown(socket.SHUT_RDWR)


def _written(address: Any) -> str:
    """Return an address as granian writes it; empty for one that is not of the internet."""
    if not isinstance(address, tuple):
        return ""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
