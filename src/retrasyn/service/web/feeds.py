"""The live feed: a server-sent event for every release, resumable by its timestamp."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from retrasyn.service.feed import Feed
from retrasyn.service.web.documented import answers
from retrasyn.service.web.problems import Problem

if TYPE_CHECKING:
    from retrasyn.service.web.counts import Counts

PAUSE = 15.0  # seconds after which a silent feed says that it lives
_STREAM: dict[str, Any] = {
    "description": "Events named release: id is the timestamp, data a summary in JSON.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
Seen = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,10}$",
        description="The last timestamp seen: what came after it is sent first.",
    ),
]


def routes(news: Feed, most: int, counts: Counts, stopping: asyncio.Event) -> APIRouter:
    """Return the route; all feeds end when `stopping` is set."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/feed", response_class=StreamingResponse, responses=answers(_STREAM, 422, 503))
    async def feed(seen: Seen = None) -> StreamingResponse:
        """Send a summary of every release as soon as it is there."""
        if counts.n_feeds >= most or stopping.is_set():
            raise Problem(503, "No more can listen now; read /v1/releases.", retry_after=10)
        events = _events(news, int(seen) if seen else None, counts, stopping)
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    return router


async def _events(
    news: Feed, after: int | None, counts: Counts, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    """Write releases as events, with a sign of life in between."""
    counts.n_feeds += 1
    stop = asyncio.ensure_future(stopping.wait())
    waiting: asyncio.Future[Any] | None = None
    subscription = aiter(news.subscribe(after))
    try:
        yield b": retrasyn\n\n"
        while not stopping.is_set():
            waiting = waiting or asyncio.ensure_future(anext(subscription))
            await asyncio.wait({waiting, stop}, timeout=PAUSE, return_when="FIRST_COMPLETED")
            if not waiting.done():
                yield b": still here\n\n"
                continue
            try:
                t, summary = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield f"event: release\nid: {t}\ndata: {json.dumps(summary)}\n\n".encode()
    finally:
        counts.n_feeds -= 1
        stop.cancel()
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
