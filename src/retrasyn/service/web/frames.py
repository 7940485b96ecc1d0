"""One timestamp at a time for the map: cells, flows and travellers in bytes."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response

from retrasyn.service.viewing.travellers import MOST
from retrasyn.service.viewing.view import View
from retrasyn.service.web.documented import Timestamp, answers, bytes_of
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import BINARY

Travellers = Annotated[
    int | None,
    Query(ge=0, le=MOST, description="Streams to show moving, about; what is set if not given."),
]
FRAME = bytes_of("The frame; docs/api.md has its form.")


def routes(view: View, usual: int, turns: asyncio.Semaphore) -> APIRouter:
    """Return the route."""
    router = APIRouter(prefix="/v1", tags=["map"])

    @router.get("/frames/{t}", response_class=Response, responses=answers(FRAME, 404, 422))
    async def frame(t: Timestamp, travellers: Travellers = None) -> Response:
        """Return what the map shows of a timestamp."""
        return await answer(view, t, usual if travellers is None else travellers, turns)

    return router


async def answer(view: View, t: int, most: int, turns: asyncio.Semaphore) -> Response:
    """Make a frame in a thread, a few at a time."""
    async with turns:
        body = await asyncio.to_thread(view.frame, t, most)
    if body is None:
        raise Problem(404, "Nothing was released at this timestamp.")
    return Response(body, media_type=BINARY)
