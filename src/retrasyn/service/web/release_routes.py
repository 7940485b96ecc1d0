"""The routes of the releases: status, summaries, points, receipts and the live feed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from retrasyn.service.viewing.downloads import FileFormat, point_pieces
from retrasyn.service.viewing.source import Feed, ReleaseSource, ReplicaSource
from retrasyn.service.viewing.view import CachedSource
from retrasyn.service.web.bridge import INLINE, Places
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

MAX_LISTED = 1000
First = Annotated[int | None, Query(alias="from", ge=0, le=MAX_T, description="First timestamp.")]
Last = Annotated[int | None, Query(alias="to", ge=0, le=MAX_T, description="Last timestamp.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="Most releases to list.")]
_RECEIPT: dict[str, Any] = {
    "description": "The receipt; docs/privacy.md explains each field.",
    "content": {JSON: {"schema": {"type": "object", "required": ["format_version", "guarantee"]}}},
}
MAX_TIMESTAMPS = 1000
MEDIA: dict[FileFormat, str] = {
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
PAUSE = 5.0  # seconds after which a silent feed says that it lives
_BETWEEN = 0.05  # seconds between the two parts of it
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
Replica = Annotated[
    int | None,
    Query(ge=1, le=1000, description="A replica, by its number; the release itself if not given."),
]
MAX_QUERIED = 1000
USUAL_QUERIED = 200


def release_routes(source: ReleaseSource, turns: asyncio.Semaphore) -> APIRouter:
    """Return the routes of summaries and receipts."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/releases", responses=problems(422))
    async def listed(first: First = None, last: Last = None, limit: Limit = 100) -> ReleaseList:
        """List releases by ascending timestamp: the latest ones, if there are more than asked."""
        async with turns:
            found = await asyncio.to_thread(source.summaries, first, last, limit)
        return ReleaseList.model_validate({"releases": found})

    @router.get("/releases/{t}", responses=problems(404, 422))
    async def one(t: Timestamp) -> ReleaseDetail:
        """Return what was released at a timestamp, with the number of points in each cell."""
        async with turns:
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
        async with turns:
            opened = await asyncio.to_thread(source.open_receipt, t)
        if opened is None:
            raise Problem(404, "There is no receipt for this timestamp.")
        return await streamed(_read(opened), turns, media_type=JSON)

    return router


def _read(opened: BinaryIO) -> Iterator[bytes]:
    """Yield a file in pieces, and close it in any case."""
    with opened:
        while piece := opened.read(INLINE):
            yield piece


async def streamed(
    pieces: Iterator[bytes],
    turns: asyncio.Semaphore,
    *,
    media_type: str,
    headers: dict[str, str] | None = None,
) -> Response:
    """Answer with pieces that are made in a thread, a few at a time, as the reader takes them."""
    first: list[bytes] = []
    while sum(map(len, first)) <= INLINE:
        piece = await _next(pieces, turns)
        if not piece:
            return Response(b"".join(first), media_type=media_type, headers=headers)
        first.append(piece)
    rest = _rest(b"".join(first), pieces, turns)
    return StreamingResponse(rest, media_type=media_type, headers=headers)


async def _rest(
    first: bytes, pieces: Iterator[bytes], turns: asyncio.Semaphore
) -> AsyncIterator[bytes]:
    piece = first
    del first
    while piece:
        yield piece
        piece = await _next(pieces, turns)


async def _next(pieces: Iterator[bytes], turns: asyncio.Semaphore) -> bytes:
    """Make the next piece; there is none after the last."""
    async with turns:
        return await asyncio.to_thread(next, pieces, b"")


def point_routes(view: CachedSource, turns: asyncio.Semaphore, most: int) -> APIRouter:
    """Return the route of the points; an answer has `most` of them at most."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/points", response_class=StreamingResponse, responses=answers(_POINTS, 404, 422))
    async def points(
        first: First = None,
        last: Last = None,
        format: Annotated[FileFormat, Query(description="How to write them.")] = "parquet",  # noqa: A002 - the name in the address
        replica: Replica = None,
    ) -> Response:
        """Return the synthetic points of a range of timestamps; of the latest one by default."""
        first, last = _range(view.source.newest, first, last)
        read = view if replica is None else CachedSource(ReplicaSource(view.source, replica))
        async with turns:
            asked = await asyncio.to_thread(_with_points, read.source, first, last)
        n = sum(asked.values())
        if not n:
            raise Problem(404, "There are no points in this range.")
        if n > most:
            raise Problem(
                422, f"The range has {n:,} points, an answer at most {most:,}; ask in parts."
            )
        headers = {"content-disposition": f'attachment; filename="points-{first}-{last}.{format}"'}
        pieces = point_pieces(read, list(asked), format)
        return await streamed(pieces, turns, media_type=MEDIA[format], headers=headers)

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


def _with_points(source: ReleaseSource, first: int, last: int) -> dict[int, int]:
    """Return the timestamps of a range that have points, and how many each."""
    found = {t: source.n_points(t) for t in source.within(first, last)}
    return {t: n for t, n in found.items() if n}


def feed_routes(news: Feed, places: Places, stopping: asyncio.Event) -> APIRouter:
    """Return the route; all feeds end when `stopping` is set."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/feed", response_class=StreamingResponse, responses=answers(_FEED, 422, 503))
    async def feed(seen: Seen = None) -> StreamingResponse:
        """Send a summary of every release as soon as it is there."""
        if stopping.is_set():
            raise _full()
        return _FeedResponse(_events(news, int(seen) if seen else None, stopping), places)

    return router


def _full() -> Problem:
    return Problem(503, "No more can listen now; read /v1/releases.", retry_after=10)


class _FeedResponse(StreamingResponse):
    """Holds a place from before its first byte until it has ended, however it ends."""

    def __init__(self, events: AsyncGenerator[bytes], places: Places) -> None:
        headers = {"x-accel-buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._events, self._places = events, places

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the events, if there is a place."""
        with self._places.take() as taken:
            if not taken:
                raise _full()
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._events.aclose()


async def _events(news: Feed, after: int | None, stopping: asyncio.Event) -> AsyncGenerator[bytes]:
    """Send releases as server-sent events, with keep-alive comments in between."""
    stop = asyncio.ensure_future(stopping.wait())
    waiting: asyncio.Future[Any] | None = None
    subscription = aiter(news.subscribe(after))
    try:
        yield b": retrasyn\n\n"
        while not stopping.is_set():
            waiting = waiting or asyncio.ensure_future(anext(subscription))
            await asyncio.wait({waiting, stop}, timeout=PAUSE, return_when="FIRST_COMPLETED")
            if not waiting.done():
                # In two parts: the first reaches a reader that is gone, the second finds it out.
                yield b": still"
                await asyncio.sleep(_BETWEEN)
                yield b" here\n\n"
                continue
            try:
                t, summary = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield f"event: release\nid: {t}\ndata: {json.dumps(summary)}\n\n".encode()
    finally:
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


def timestamps_in(
    source: ReleaseSource, first: int | None, last: int | None, most: int
) -> list[int]:
    """Return the latest timestamps of a range, fewer if `first` is not given.

    Their points are `most` together, or they are a single one.
    """
    found = source.within(first, last)[-(USUAL_QUERIED if first is None else MAX_QUERIED) :]
    begin, n = len(found), 0
    while begin and (begin == len(found) or n + source.n_points(found[begin - 1]) <= most):
        begin -= 1
        n += source.n_points(found[begin])
    return found[begin:]


def check_range(first: int | None, last: int | None) -> None:
    """Refuse a range that ends before it begins."""
    if first is not None and last is not None and first > last:
        raise Problem(422, "A range begins before it ends; exchange from and to.")
