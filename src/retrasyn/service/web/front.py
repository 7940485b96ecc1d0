"""The base of the web applications: names, token, rates, deadlines and errors of all routes."""

from __future__ import annotations

import asyncio
import hmac
import logging
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from time import monotonic, perf_counter
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from retrasyn.errors import Busy, StoreError
from retrasyn.host_names import REFUSAL, HostNames
from retrasyn.service.settings import LimitSettings
from retrasyn.service.web.bridge import Bridge, Places, scope_of
from retrasyn.service.web.metrics import RequestCounts
from retrasyn.service.web.openapi import Paths, document
from retrasyn.service.web.responses import Problem, Protocol, Reply, Scope

Handler = Callable[[Scope, Protocol], Awaitable[Reply]]
MAX_ADDRESSES = 65_536
"""Addresses whose rate is remembered."""
STORE_PAUSE = 5
"""Seconds after which to try again while the store does not work."""
PATIENCE = 3.0
"""Seconds for which long answers may go on when the server stops."""
_LOOK = 0.01  # seconds from one look at whether they have ended to the next
SWEEP = 0.25
"""Seconds from one check of the deadlines to the next."""
_IPV6_HOST_BITS = 64
_NOT_OURS = Reply(421, REFUSAL, "text/plain")
_NO_TOKEN = Reply(403, b"Forbidden\n", "text/plain")
_Value = TypeVar("_Value")
_log = logging.getLogger(__name__)


class Front:
    """An RSGI application with limits on requests; subclasses set `direct` and call `mount`.

    With a token every path begins with it, and nothing is answered without.
    """

    def __init__(self, limits: LimitSettings, hosts: HostNames, token: str = "") -> None:
        self.readers, self.feeds = Places(limits.readers), Places(limits.feed_clients)
        self.counts = RequestCounts()
        self.stopping = asyncio.Event()
        self.deadline = Deadlines(limits.body_seconds)
        self.direct: dict[str, Handler] = {}  # by path: answered without the framework
        self.observe_seconds: Callable[[float], None] | None = None  # that a direct answer took
        self.limits, self._hosts, self._token = limits, hosts, token.encode()
        self._rates = Rates(limits.rate_per_second, limits.burst)
        self._routes = FastAPI()
        self._said_not_ours = False
        self._answering: dict[asyncio.Task[Any], Bridge] = {}

    def mount(self, routers: Sequence[APIRouter], direct: Paths | None = None) -> None:
        """Add routes; `direct` describes those that are answered without the framework."""
        self._routes = _framework(routers, direct or {}, self._token.decode())

    async def stop(self) -> None:
        """End the feeds, let other long answers end for a moment, then cut them.

        granian waits for its pipes when it stops and lets no Python run: none may be open then.
        """
        self.stopping.set()
        self.readers.most = 0
        until = monotonic() + PATIENCE
        while self.readers.n:
            for task, bridge in self._answering.items():
                if bridge.is_long and monotonic() > until:
                    task.cancel()
            await asyncio.sleep(_LOOK)

    async def __rsgi__(self, scope: Scope, protocol: Protocol) -> None:
        """Answer one request."""
        given, target = scope.headers.get_all("host"), scope.authority
        if not self._hosts.allow(given) or (target is not None and target != given[0]):
            self._refuse(_NOT_OURS, protocol)
            return
        path = scope.path
        if self._token:
            token, slash, path = path[1:].partition("/")
            if not slash or not hmac.compare_digest(token.encode(), self._token):
                self._refuse(_NO_TOKEN, protocol)
                return
            path = f"/{path}"
        await self._answer(scope, path, protocol)

    def _refuse(self, refusal: Reply, protocol: Protocol) -> None:
        """Say nothing of ours; the log of a service names the way out, once."""
        if not (self._token or self._said_not_ours):
            self._said_not_ours = True
            _log.warning(
                "refused a request for another host name than ours (421); if it is ours, name it "
                "in server.public_url or server.allowed_hosts"
            )
        self.counts.requests["other", refusal.status] += 1
        refusal.send(protocol)

    async def _answer(self, scope: Scope, path: str, protocol: Protocol) -> None:
        handler = self.direct.get(path)
        try:
            wait = self._rates.wait(scope.client.rpartition(":")[0])
            if wait:
                raise Problem(429, retry_after=wait)  # noqa: TRY301 - a refusal like any other
            if handler is None:
                await self._ask_framework(scope, path, protocol)
                return
            began = perf_counter()
            reply = await _posted(handler, scope, protocol)
            if self.observe_seconds is not None:
                self.observe_seconds(perf_counter() - began)
        except Problem as problem:
            reply = problem.reply()
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            _log_fault(error)
            reply = Problem(500).reply()
        self.counts.requests[path if handler else "other", reply.status] += 1
        reply.send(protocol)

    async def _ask_framework(self, scope: Scope, path: str, protocol: Protocol) -> None:
        """Read the whole body, then let the framework answer."""
        limits, asgi = self.limits, scope_of(scope, path)
        body = await read_body(scope, protocol, limit=limits.max_body, deadline=self.deadline)
        patience, task = limits.reader_seconds, asyncio.current_task()
        if task is None:  # pragma: no cover - only tasks take requests
            raise RuntimeError("a request needs a task")
        with Bridge(scope, protocol, body, readers=self.readers, patience=patience) as bridge:
            self._answering[task] = bridge
            try:
                await self._routes(asgi, bridge.receive, bridge.send)
            except OSError:
                _log.debug("reader hung up")
            except asyncio.CancelledError:
                if not self.stopping.is_set():
                    raise
            except Exception as error:  # noqa: BLE001 - it was answered already, by `_failed`
                _log_fault(error)
            finally:
                del self._answering[task]
                route = getattr(asgi.get("route"), "path", "other")
                self.counts.requests[route, bridge.status] += 1


async def _posted(handler: Handler, scope: Scope, protocol: Protocol) -> Reply:
    """Ask a direct handler, which takes POST only."""
    if scope.method != "POST":
        raise Problem(405, headers=(("allow", "POST"),))
    return await handler(scope, protocol)


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


@dataclass(slots=True)
class Rates:
    """Lets every address make `rate` requests per second, and `burst` at once.

    >>> now = [0.0]
    >>> rates = Rates(rate=1, burst=2, clock=lambda: now[0])
    >>> [rates.wait("192.0.2.1") for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] += 1
    >>> rates.wait("192.0.2.1")
    0.0
    """

    rate: float  # 0: no limit
    burst: float
    clock: Callable[[], float] = monotonic
    _known: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, address: str, cost: float = 1.0) -> float:
        """Take tokens and return 0, or return the seconds until there are enough.

        A request that costs more than the burst needs a full bucket, so that it can be made at all.
        """
        if self.rate <= 0:
            return 0.0
        cost, now, name = min(cost, self.burst), self.clock(), bucket_of(address)
        tokens, seen = self._known.pop(name, (self.burst, now))
        tokens = min(self.burst, tokens + (now - seen) * self.rate)
        short = cost - tokens
        self._known[name] = (tokens if short > 0 else tokens - cost, now)
        if len(self._known) > MAX_ADDRESSES:
            self._known.popitem(last=False)  # seen longest ago, so its bucket is the fullest
        return max(0.0, short / self.rate)


def bucket_of(address: str) -> str:
    """Return the bucket of an address: all of an IPv6 network of 64 bits share one.

    >>> bucket_of("192.0.2.1"), bucket_of("2001:db8::1:2:3"), bucket_of("")
    ('192.0.2.1', '2001:db8::', '')
    """
    if ":" not in address:
        return address
    try:
        found = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address) or found.ipv4_mapped is not None:
        return address
    return str(IPv6Address(int(found) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS))


@dataclass(slots=True)
class Deadlines:
    """Raises TimeoutError for a task that takes longer than `seconds`, up to a sweep late."""

    seconds: float
    _running: dict[asyncio.Task[Any], float] = field(default_factory=dict)  # by deadline
    _over: set[asyncio.Task[Any]] = field(default_factory=set)
    _sweeper: asyncio.TimerHandle | None = None

    async def wait(self, something: Awaitable[_Value]) -> _Value:
        """Wait for something within the deadline."""
        task = asyncio.current_task()
        if task is None:  # pragma: no cover - only tasks take requests
            raise RuntimeError("a deadline needs a task")
        self._running[task] = monotonic() + self.seconds
        if self._sweeper is None:
            self._sweeper = task.get_loop().call_later(SWEEP, self._sweep)
        try:
            return await something
        except asyncio.CancelledError:
            if task in self._over and task.uncancel() == 0:
                raise TimeoutError from None
            raise
        finally:
            self._running.pop(task, None)
            self._over.discard(task)

    def _sweep(self) -> None:
        """Cancel tasks that are too late: the first of a table ordered by deadline."""
        now, over = monotonic(), []
        for task, deadline in self._running.items():
            if deadline > now:
                break
            over.append(task)
        for task in over:
            del self._running[task]
            self._over.add(task)
            task.cancel()
        again = asyncio.get_running_loop().call_later(SWEEP, self._sweep) if self._running else None
        self._sweeper = again


def _framework(routers: Sequence[APIRouter], direct: Paths, prefix: str) -> FastAPI:
    """Return the framework with all routes and their OpenAPI document."""
    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False, exception_handlers={})
    for router in routers:
        app.include_router(router)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    text = document(app, direct, prefix)
    app.openapi = lambda: text  # type: ignore[method-assign]  # the way FastAPI documents
    return app


def _log_fault(error: Exception) -> None:
    """Log where a request failed, without the error's message: it may quote the request."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    _log.error(
        "request failed error=%s in=%s line=%s", type(error).__name__, place.name, place.lineno
    )


def _response(problem: Problem) -> Response:
    reply = problem.reply()
    return Response(reply.body, reply.status, dict(reply.headers), media_type=reply.content_type)


async def _refused(_: Request, problem: Any) -> Response:
    return _response(problem)


async def _no_route(_: Request, error: Any) -> Response:
    allowed = (error.headers or {}).get("Allow")
    return _response(Problem(error.status_code, headers=(("allow", allowed),) if allowed else ()))


async def _malformed(_: Request, error: Any) -> Response:
    """Name the first parameter that is wrong, but nothing that was sent."""
    place, *rest = error.errors()[0]["loc"]
    if place in ("query", "path", "header") and rest:
        return _response(Problem(422, f"The {place} parameter {rest[0]} is not valid."))
    return _response(Problem(422))


async def _not_now(_: Request, error: Any) -> Response:
    _log.warning("store failed, answered 503")
    return _response(Problem(503, retry_after=getattr(error, "retry_after", STORE_PAUSE)))


async def _failed(_: Request, __: Any) -> Response:
    return _response(Problem(500))


_HANDLERS: dict[type[Exception], Any] = {
    Problem: _refused,
    HTTPException: _no_route,
    RequestValidationError: _malformed,
    StoreError: _not_now,
    Busy: _not_now,
    Exception: _failed,
}
