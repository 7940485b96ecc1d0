"""Questions about a place: what happened in a cell, how many points lay in a box."""

from __future__ import annotations

import asyncio
import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response

from retrasyn.service.viewing.boxes import box_counts
from retrasyn.service.viewing.histories import cell_history
from retrasyn.service.viewing.source import Source
from retrasyn.service.viewing.view import View
from retrasyn.service.web.documented import answers, problems
from retrasyn.service.web.map_models import BoxCounts, CellHistory
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.ranges import timestamps_in
from retrasyn.service.web.releases import First, Last
from retrasyn.service.web.replies import JSON
from retrasyn.space import Box
from retrasyn.space.grid import MAX_SIDE

_NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?"
Corners = Annotated[
    str,
    Query(
        pattern=rf"^{_NUMBER}(,{_NUMBER}){{3}}$",
        max_length=200,
        description="x0,y0,x1,y1 in the coordinates of the data; x0 <= x1, y0 <= y1.",
    ),
]
Cell = Annotated[int, Path(ge=0, lt=MAX_SIDE**2, description="A cell, row by row.")]
Format = Annotated[Literal["json", "csv"], Query(description="How to write them.")]
_COUNTS: dict[str, Any] = {
    "description": "Points in the box at each timestamp; csv has t, time and n.",
    "content": {
        JSON: {"schema": {"$ref": "#/components/schemas/BoxCounts"}},
        "text/csv": {"schema": {"type": "string"}},
    },
}


def routes(view: View, turns: asyncio.Semaphore) -> APIRouter:
    """Return the routes."""
    router, source = APIRouter(prefix="/v1", tags=["map"]), view.source

    @router.get("/cells/{cell}", responses=problems(404, 422))
    async def cell(cell: Cell, first: First = None, last: Last = None) -> CellHistory:
        """Return what happened in a cell: points, moves in and out, where from and where to."""
        if cell >= source.grid.n_cells:
            raise Problem(404, "There is no such cell.")
        found = timestamps_in(source, first, last)
        async with turns:
            history = await asyncio.to_thread(cell_history, view, cell, found)
        return CellHistory.of(history)

    @router.get("/count", response_class=Response, responses=answers(_COUNTS, 422))
    async def count(
        box: Corners,
        first: First = None,
        last: Last = None,
        format: Format = "json",  # noqa: A002 - the name in the address
    ) -> Response:
        """Count the synthetic points in a box at each timestamp."""
        corners, asked = _box(box), timestamps_in(source, first, last)
        async with turns:
            if format == "csv":
                return _download(await asyncio.to_thread(_rows, source, corners, asked))
            t, n = await asyncio.to_thread(box_counts, source, corners, asked)
        counts = BoxCounts(box=list(corners), t=t, n=n)
        return Response(counts.model_dump_json(), media_type=JSON)

    return router


def _box(text: str) -> Box:
    """Read a box; a number may still be too large to be one."""
    x0, y0, x1, y1 = map(float, text.split(","))
    if not all(map(math.isfinite, (x0, y0, x1, y1))) or x0 > x1 or y0 > y1:
        raise Problem(422, "A box is x0,y0,x1,y1 with x0 <= x1 and y0 <= y1.")
    return Box(x0, y0, x1, y1)


def _rows(source: Source, box: Box, timestamps: list[int]) -> str:
    """Write counts as a table."""
    lines = ["t,time,n"]
    for t, n in zip(*box_counts(source, box, timestamps), strict=True):
        summary = source.summary(t)
        lines.append(f"{t},{summary['time'] if summary else ''},{n}")
    return "\n".join(lines) + "\n"


def _download(text: str) -> Response:
    headers = {"content-disposition": 'attachment; filename="count.csv"'}
    return Response(text, media_type="text/csv", headers=headers)
