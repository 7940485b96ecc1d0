"""The route of questions: counts, trips and flows by zones and periods, with their errors."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response

from retrasyn.errors import InputError, OutputError, SettingError
from retrasyn.service.viewing.asked import MAX_ROWS, AnswerFormat, AnswerRequest, AskedSource
from retrasyn.service.web.models import answers
from retrasyn.service.web.release_routes import (
    MEDIA,
    First,
    Last,
    check_range,
    timestamps_in,
)
from retrasyn.service.web.responses import JSON, Problem

What = Annotated[
    Literal["counts", "od", "flows", "hotspots", "profile", "trips"],
    Path(description="What is asked; docs/ask.md defines each."),
]
ZoneName = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=100,
        description="cells, grid:K, h3:RES, or the name of the operator's file of zones; what is "
        "usual for the question if not given.",
    ),
]
By = Annotated[
    str | None,
    Query(
        pattern=r"^([0-9]{1,6}(\.[0-9]{1,3})?(s|sec|min|h|d)?|hour|day)$",
        description="Length of a period: 15min, 1h, day, or a number of timestamps.",
    ),
]
Top = Annotated[int, Query(ge=1, le=1000, description="How many hotspots.")]
Format = Annotated[AnswerFormat, Query(description="How to write them.")]
MAX_SPAN = 10_000
_ROWS: dict[str, Any] = {
    "description": "A row each, as `retrasyn ask` writes them.",
    "content": {
        JSON: {"schema": {"$ref": "#/components/schemas/AnswerBody"}},
        "text/csv": {"schema": {"type": "string"}},
        MEDIA["geojson"]: {"schema": {"type": "object", "required": ["type", "features"]}},
    },
}


def routes(asked: AskedSource, turns: asyncio.Semaphore) -> APIRouter:
    """Return the route; a few questions are answered at a time."""
    router = APIRouter(prefix="/v1", tags=["answers"])

    @router.get("/ask/{what}", response_class=Response, responses=answers(_ROWS, 404, 422))
    async def ask(
        what: What,
        zones: ZoneName = None,
        by: By = None,
        first: First = None,
        last: Last = None,
        top: Top = 10,
        format: Format = "json",  # noqa: A002 - the name in the address
    ) -> Response:
        """Answer a question about the releases of a range; of the latest ones by default."""
        check_range(first, last)

        def look() -> bytes:
            begin, end = _span(asked, first, last)
            question = AnswerRequest(
                what=what, first=begin, last=end, zones=zones, by=by, top=top, format=format
            )
            try:
                found = asked.body(question)
            except (SettingError, InputError, OutputError):
                raise Problem(422, _how(asked)) from None
            if found is None:
                raise _nothing()
            return found

        async with turns:
            body = await asyncio.to_thread(look)
        media = {"json": JSON, "csv": MEDIA["csv"], "geojson": MEDIA["geojson"]}[format]
        headers = {"content-disposition": f'attachment; filename="{what}.{format}"'}
        return Response(body, media_type=media, headers=None if format == "json" else headers)

    return router


def _span(asked: AskedSource, first: int | None, last: int | None) -> tuple[int, int]:
    """Return the first and the last timestamp of a range; the latest that fit if none is named."""
    source, most = asked.source, asked.most
    if first is None:
        found = timestamps_in(source, None, last, most)
    else:
        found = source.within(first, last)
        if len(found) > MAX_SPAN:
            raise Problem(422, f"A range has at most {MAX_SPAN:,} timestamps; ask in parts.")
        if (n := sum(map(source.n_points, found))) > most:
            raise Problem(
                422, f"The range has {n:,} points, an answer at most {most:,}; ask in parts."
            )
    if not found:
        raise _nothing()
    return found[0], found[-1]


def _nothing() -> Problem:
    return Problem(404, "Nothing was released in this range.")


def _how(asked: AskedSource) -> str:
    """Say what can be asked, without repeating what was."""
    file = asked.zones.file
    own = "" if file is None else f" or {file.stem}"
    return (
        f"Zones are cells, grid:K, h3:RES (where positions are degrees){own}; a period is 15min, "
        "1h, day or a number of timestamps, and no shorter than one; geojson needs zones; an "
        f"answer has at most {MAX_ROWS:,} rows."
    )
