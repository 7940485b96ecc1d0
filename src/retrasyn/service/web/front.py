"""The front of every web application here: limits around everything, routes behind them.

A campaign and a recording are shown by the same front; a campaign adds the short way for reports.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from retrasyn.errors import Busy, StoreError
from retrasyn.service.settings import LimitSettings
from retrasyn.service.web.bodies import read_body
from retrasyn.service.web.bridge import Bridge, scope_of
from retrasyn.service.web.counts import Counts
from retrasyn.service.web.deadlines import Deadlines
from retrasyn.service.web.openapi import Paths, document
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.rates import Rates
from retrasyn.service.web.replies import Protocol, Reply, Scope

log = logging.getLogger(__name__)
Short = Callable[[Scope, Protocol], Awaitable[Reply]]
STORE_PAUSE = 5  # seconds after which to try again while the store does not work


class Front:
    """An RSGI application; those who build on it set `short` and call `mount`."""

    def __init__(self, limits: LimitSettings) -> None:
        self.counts, self.stopping = Counts(), asyncio.Event()
        self.deadline = Deadlines(limits.body_seconds)
        self.short: dict[str, Short] = {}
        self._max_body = limits.max_body
        self._rates = Rates(limits.rate_per_second, limits.burst)
        self._routes = FastAPI()

    def mount(self, routers: Sequence[APIRouter], short: Paths | None = None) -> None:
        """Take routes in; `short` describes what goes past the framework."""
        self._routes = _framework(routers, short or {})

    def observe_ack(self, seconds: float) -> None:
        """Note how long a report waited for its answer."""

    async def __rsgi__(self, scope: Scope, protocol: Protocol) -> None:
        """Answer one request."""
        short = self.short.get(scope.path)
        try:
            wait = self._rates.wait(scope.client.rpartition(":")[0])
            if wait:
                raise Problem(429, retry_after=wait)  # noqa: TRY301 - a refusal like any other
            if short is None:
                await self._long(scope, protocol)
                return
            began = perf_counter()
            reply = await _posted(short, scope, protocol)
            self.observe_ack(perf_counter() - began)
        except Problem as problem:
            reply = problem.reply()
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            _log_fault(error)
            reply = Problem(500).reply()
        self.counts.requests[scope.path if short else "other", reply.status] += 1
        reply.send(protocol)

    async def _long(self, scope: Scope, protocol: Protocol) -> None:
        """Let the framework answer, once the whole body is there."""
        body = await read_body(scope, protocol, limit=self._max_body, deadline=self.deadline)
        bridge, told = Bridge(protocol, body), scope_of(scope)
        try:
            await self._routes(told, bridge.receive, bridge.send)
        except OSError:
            log.debug("reader hung up")
        except Exception as error:  # noqa: BLE001 - it was answered already, by `_failed`
            _log_fault(error)
        finally:
            route = getattr(told.get("route"), "path", "other")
            self.counts.requests[route, bridge.status] += 1


async def _posted(short: Short, scope: Scope, protocol: Protocol) -> Reply:
    """Take the short way, which knows one method only."""
    if scope.method != "POST":
        raise Problem(405, headers=(("allow", "POST"),))
    return await short(scope, protocol)


def _framework(routers: Sequence[APIRouter], short: Paths) -> FastAPI:
    """Return all routes, with the document that describes them."""
    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False, exception_handlers={})
    for router in routers:
        app.include_router(router)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    text = document(app, short)
    app.openapi = lambda: text  # type: ignore[method-assign]  # the way FastAPI documents
    return app


def _log_fault(error: Exception) -> None:
    """Say what went wrong and where, but not in the error's words: they may quote a request."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    log.error(
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
    log.warning("store failed, answered 503")
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
