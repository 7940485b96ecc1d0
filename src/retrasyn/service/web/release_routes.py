"""The routes of the releases: status, summaries, points, receipts and the live feed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from retrasyn.data.writing_files import write
from retrasyn.errors import InputError
from retrasyn.service.viewing.source import Feed, ReleaseSource
from retrasyn.service.web.models import (
    MAX_T,
    CampaignStatus,
    ReleaseDetail,
    ReleaseList,
    Timestamp,
    answers,
    problems,
)
from retrasyn.service.web.responses import JSON, Problem

if TYPE_CHECKING:
    from retrasyn.service.web.metrics import RequestCounts


MAX_LISTED = 1000
First = Annotated[int | None, Query(alias="from", ge=0, le=MAX_T, description="First timestamp.")]
Last = Annotated[int | None, Query(alias="to", ge=0, le=MAX_T, description="Last timestamp.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="Most releases to list.")]
_RECEIPT: dict[str, Any] = {
    "description": "The receipt; docs/privacy.md explains each field.",
    "content": {JSON: {"schema": {"type": "object", "required": ["format_version", "guarantee"]}}},
}
MAX_TIMESTAMPS = 1000
_CHUNK = 1 << 18
Format = Literal["parquet", "geojson", "csv"]
MEDIA = {
    "parquet": "application/vnd.apache.parquet",
    "geojson": "application/geo+json",
    "csv": "text/csv; charset=utf-8",
}
_POINTS: dict[str, Any] = {
    "description": "The points: traj_id, t, x and y.",
    "content": {
        MEDIA["parquet"]: {"schema": {"type": "string", "format": "binary"}},
        MEDIA["geojson"]: {"schema": {"type": "object", "required": ["type", "features"]}},
        "text/csv": {"schema": {"type": "string"}},
    },
}
PAUSE = 15.0  # seconds after which a silent feed says that it lives
_FEED: dict[str, Any] = {
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
MAX_QUERIED = 1000
USUAL_QUERIED = 200


def release_routes(source: ReleaseSource) -> APIRouter:
    """Return the routes of summaries and receipts."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/releases", responses=problems(422))
    async def listed(first: First = None, last: Last = None, limit: Limit = 100) -> ReleaseList:
        """List releases by ascending timestamp: the latest ones, if there are more than asked."""
        found = await asyncio.to_thread(source.summaries, first, last, limit)
        return ReleaseList.model_validate({"releases": found})

    @router.get("/releases/{t}", responses=problems(404, 422))
    async def one(t: Timestamp) -> ReleaseDetail:
        """Return what was released at a timestamp, with the number of points in each cell."""
        found = await asyncio.to_thread(source.summary, t)
        if found is None:
            raise Problem(404, "Nothing was released at this timestamp.")
        return ReleaseDetail.model_validate(found)

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


def point_routes(source: ReleaseSource, turns: asyncio.Semaphore) -> APIRouter:
    """Return the route of the points."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/points", response_class=StreamingResponse, responses=answers(_POINTS, 404, 422))
    async def points(
        first: First = None,
        last: Last = None,
        format: Annotated[Format, Query(description="How to write them.")] = "parquet",  # noqa: A002 - the name in the address
    ) -> StreamingResponse:
        """Return the synthetic points of a range of timestamps; of the latest one by default."""
        first, last = _range(source.newest, first, last)
        async with turns:
            folder = await asyncio.to_thread(_make, source, first, last, format)
        headers = {"content-disposition": f'attachment; filename="points-{first}-{last}.{format}"'}
        return StreamingResponse(_read(folder, format), media_type=MEDIA[format], headers=headers)

    return router


def _range(latest: int | None, first: int | None, last: int | None) -> tuple[int, int]:
    """Fill in the ends that were left out of a range, and refuse an empty or long one."""
    if latest is None:
        raise Problem(404, "Nothing was released yet.")
    last = min(latest, latest if last is None else last)
    first = last if first is None else first
    if first > last:
        raise Problem(404, "Nothing was released in this range.")
    if last - first >= MAX_TIMESTAMPS:
        raise Problem(422, f"A range has at most {MAX_TIMESTAMPS:,} timestamps; ask in parts.")
    return first, last


def _make(
    source: ReleaseSource, first: int, last: int, kind: str
) -> tempfile.TemporaryDirectory[str]:
    """Write the points to a file in a temporary folder."""
    folder = tempfile.TemporaryDirectory(prefix="retrasyn-points-")
    try:
        write(source.points(first, last), Path(folder.name) / f"points.{kind}")
    except InputError:
        folder.cleanup()
        raise Problem(404, "There are no points in this range.") from None
    except BaseException:
        folder.cleanup()
        raise
    return folder


async def _read(folder: tempfile.TemporaryDirectory[str], kind: str) -> AsyncIterator[bytes]:
    """Read the file in chunks, and delete it in any case."""
    try:
        with (Path(folder.name) / f"points.{kind}").open("rb") as file:
            while piece := await asyncio.to_thread(file.read, _CHUNK):
                yield piece
    finally:
        folder.cleanup()


def feed_routes(news: Feed, most: int, counts: RequestCounts, stopping: asyncio.Event) -> APIRouter:
    """Return the route; all feeds end when `stopping` is set."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/feed", response_class=StreamingResponse, responses=answers(_FEED, 422, 503))
    async def feed(seen: Seen = None) -> StreamingResponse:
        """Send a summary of every release as soon as it is there."""
        if counts.n_feeds >= most or stopping.is_set():
            raise Problem(503, "No more can listen now; read /v1/releases.", retry_after=10)
        events = _events(news, int(seen) if seen else None, counts, stopping)
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    return router


async def _events(
    news: Feed, after: int | None, counts: RequestCounts, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    """Send releases as server-sent events, with keep-alive comments in between."""
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


def status_routes(status: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the route of the status."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/status", responses=problems())
    async def show_status() -> CampaignStatus:
        """Return what everybody may know of how the campaign is doing."""
        return CampaignStatus.model_validate(status())

    return router


def timestamps_in(source: ReleaseSource, first: int | None, last: int | None) -> list[int]:
    """Return the timestamps of a range: the latest ones, and fewer if `first` is not given."""
    if first is not None and last is not None and first > last:
        raise Problem(422, "A range begins before it ends; exchange from and to.")
    return source.within(first, last)[-(USUAL_QUERIED if first is None else MAX_QUERIED) :]
