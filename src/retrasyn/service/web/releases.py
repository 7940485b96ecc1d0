"""What is released: summaries, the release of a timestamp, and receipts."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from retrasyn.service.viewing.source import Source
from retrasyn.service.web.documented import MAX_T, Timestamp, answers, problems
from retrasyn.service.web.models import Release, ReleaseList
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import JSON

MAX_LISTED = 1000
First = Annotated[int | None, Query(alias="from", ge=0, le=MAX_T, description="First timestamp.")]
Last = Annotated[int | None, Query(alias="to", ge=0, le=MAX_T, description="Last timestamp.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="Most releases to list.")]
_RECEIPT: dict[str, Any] = {
    "description": "The receipt; docs/privacy.md explains each field.",
    "content": {JSON: {"schema": {"type": "object", "required": ["format_version", "guarantee"]}}},
}


def routes(source: Source) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/releases", responses=problems(422))
    async def listed(first: First = None, last: Last = None, limit: Limit = 100) -> ReleaseList:
        """List releases by ascending timestamp: the latest ones, if there are more than asked."""
        found = await asyncio.to_thread(source.summaries, first, last, limit)
        return ReleaseList.model_validate({"releases": found})

    @router.get("/releases/{t}", responses=problems(404, 422))
    async def one(t: Timestamp) -> Release:
        """Return what was released at a timestamp, with the number of points in each cell."""
        found = await asyncio.to_thread(source.summary, t)
        if found is None:
            raise Problem(404, "Nothing was released at this timestamp.")
        return Release.model_validate(found)

    @router.get("/receipts/latest", response_class=Response, responses=answers(_RECEIPT, 404))
    async def latest_receipt() -> Response:
        """Return the receipt of everything released so far."""
        return await receipt_of(None)

    @router.get("/receipts/{t}", response_class=Response, responses=answers(_RECEIPT, 404, 422))
    async def receipt(t: Timestamp) -> Response:
        """Return the receipt of everything released up to a timestamp."""
        return await receipt_of(t)

    async def receipt_of(t: int | None) -> Response:
        text = await asyncio.to_thread(source.receipt, t)
        if text is None:
            raise Problem(404, "There is no receipt for this timestamp.")
        return Response(text, media_type=JSON)

    return router
