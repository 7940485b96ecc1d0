"""The synthetic points of a range of timestamps, as Parquet, GeoJSON or CSV."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from retrasyn.data.writing_files import write
from retrasyn.errors import InputError
from retrasyn.service.viewing.source import Source
from retrasyn.service.web.documented import answers
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.releases import First, Last

MAX_TIMESTAMPS = 1000
_CHUNK = 1 << 18
Format = Literal["parquet", "geojson", "csv"]
MEDIA = {
    "parquet": "application/vnd.apache.parquet",
    "geojson": "application/geo+json",
    "csv": "text/csv; charset=utf-8",
}
_ANSWER: dict[str, Any] = {
    "description": "The points: traj_id, t, x and y.",
    "content": {
        MEDIA["parquet"]: {"schema": {"type": "string", "format": "binary"}},
        MEDIA["geojson"]: {"schema": {"type": "object", "required": ["type", "features"]}},
        "text/csv": {"schema": {"type": "string"}},
    },
}


def routes(source: Source, turns: asyncio.Semaphore) -> APIRouter:
    """Return the route."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/points", response_class=StreamingResponse, responses=answers(_ANSWER, 404, 422))
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
    """Fill in what was left out of a range, and refuse one that is none."""
    if latest is None:
        raise Problem(404, "Nothing was released yet.")
    last = min(latest, latest if last is None else last)
    first = last if first is None else first
    if first > last:
        raise Problem(404, "Nothing was released in this range.")
    if last - first >= MAX_TIMESTAMPS:
        raise Problem(422, f"A range has at most {MAX_TIMESTAMPS:,} timestamps; ask in parts.")
    return first, last


def _make(source: Source, first: int, last: int, kind: str) -> tempfile.TemporaryDirectory[str]:
    """Write the points to a file in a folder of its own."""
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
    """Read the file piece by piece, and delete it whatever happens."""
    try:
        with (Path(folder.name) / f"points.{kind}").open("rb") as file:
            while piece := await asyncio.to_thread(file.read, _CHUNK):
                yield piece
    finally:
        folder.cleanup()
