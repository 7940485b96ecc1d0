"""The web application: limits around everything, the short way for reports, routes for the rest."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from retrasyn.errors import Busy, StoreError
from retrasyn.service.web import (
    campaign,
    enrolments,
    feeds,
    operators,
    page,
    points,
    probes,
    releases,
)
from retrasyn.service.web.bodies import read_body
from retrasyn.service.web.bridge import Bridge, scope_of
from retrasyn.service.web.counts import Counts
from retrasyn.service.web.deadlines import Deadlines
from retrasyn.service.web.metrics import Metrics
from retrasyn.service.web.openapi import document
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.rates import Rates
from retrasyn.service.web.replies import Protocol, Reply, Scope
from retrasyn.service.web.reports import Reports

if TYPE_CHECKING:
    from retrasyn.service.service import Service

log = logging.getLogger(__name__)
Short = Callable[[Scope, Protocol], Awaitable[Reply]]
STORE_PAUSE = 5  # seconds after which to try again while the store does not work


class Web:
    """An RSGI application around a service that has been started."""

    def __init__(self, service: Service, *, operator_token: str) -> None:
        limits = service.settings.limits
        self.counts, self.stopping = Counts(), asyncio.Event()
        self.metrics = Metrics(service, self.counts)
        self._max_body, self._deadline = limits.max_body, Deadlines(limits.body_seconds)
        self._rates = Rates(limits.rate_per_second, limits.burst)
        reports = Reports(service, self.counts, self._deadline)
        self._short: dict[str, Short] = {
            "/v1/reports": reports.one,
            "/v1/reports/batch": reports.many,
        }
        self._routes = _framework(self, service, operator_token)

    async def __rsgi__(self, scope: Scope, protocol: Protocol) -> None:
        """Answer one request."""
        short = self._short.get(scope.path)
        try:
            wait = self._rates.wait(scope.client.rpartition(":")[0])
            if wait:
                raise Problem(429, retry_after=wait)  # noqa: TRY301 - a refusal like any other
            if short is None:
                await self._long(scope, protocol)
                return
            began = perf_counter()
            reply = await _posted(short, scope, protocol)
            self.metrics.ack_seconds.observe(perf_counter() - began)
        except Problem as problem:
            reply = problem.reply()
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            _log_fault(error)
            reply = Problem(500).reply()
        self.counts.requests[scope.path if short else "other", reply.status] += 1
        reply.send(protocol)

    async def _long(self, scope: Scope, protocol: Protocol) -> None:
        """Let the framework answer, once the whole body is there."""
        body = await read_body(scope, protocol, limit=self._max_body, deadline=self._deadline)
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


def _framework(web: Web, service: Service, operator_token: str) -> FastAPI:
    """Return all routes but those of reports."""
    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False, exception_handlers={})
    for router in (
        campaign.routes(service),
        enrolments.routes(service),
        releases.routes(service),
        points.routes(service),
        feeds.routes(service, web.counts, web.stopping),
        operators.routes(service, operator_token),
        probes.routes(service, web.metrics),
        page.routes(service),
    ):
        app.include_router(router)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    text = document(app)
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
