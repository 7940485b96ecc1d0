"""The real data beside the synthetic: in simulations only, where the two were given as files.

A campaign has no such data. There these routes are not even mounted.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from retrasyn.service.viewing.errors import density_errors
from retrasyn.service.viewing.source import Source
from retrasyn.service.viewing.view import View
from retrasyn.service.web.documented import Timestamp, answers, problems
from retrasyn.service.web.frames import FRAME, Travellers, answer
from retrasyn.service.web.map_models import DensityErrors
from retrasyn.service.web.ranges import timestamps_in
from retrasyn.service.web.releases import First, Last


def routes(real: Source, synthetic: Source, usual: int, turns: asyncio.Semaphore) -> APIRouter:
    """Return the routes."""
    router, view = APIRouter(prefix="/v1/real", tags=["simulation"]), View(real)

    @router.get("/frames/{t}", response_class=Response, responses=answers(FRAME, 404, 422))
    async def real_frame(t: Timestamp, travellers: Travellers = None) -> Response:
        """Return what the map shows of the real data at a timestamp."""
        return await answer(view, t, usual if travellers is None else travellers, turns)

    @router.get("/errors", responses=problems(422))
    async def errors(first: First = None, last: Last = None) -> DensityErrors:
        """Return how far the synthetic density is from the real one at each timestamp."""
        known = [t for t in timestamps_in(synthetic, first, last) if _spans(real, t)]
        async with turns:
            found = await asyncio.to_thread(density_errors, real, synthetic, known)
        return DensityErrors(t=known, density_error=found)

    return router


def _spans(real: Source, t: int) -> bool:
    """Return whether a timestamp lies between the first and the last real one."""
    return real.oldest is not None and real.newest is not None and real.oldest <= t <= real.newest
