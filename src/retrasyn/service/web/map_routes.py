"""The routes of the map: frames, cells and boxes, the base map, real data in simulations."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.viewing.frames import MAX_TRAVELLERS
from retrasyn.service.viewing.histories import (
    CellCounts,
    box_counts,
    cell_history,
    density_errors,
)
from retrasyn.service.viewing.source import ReleaseSource
from retrasyn.service.viewing.tallies import Means
from retrasyn.service.viewing.view import CachedSource
from retrasyn.service.web.models import (
    Band,
    BoxCounts,
    CellHistory,
    DensityErrors,
    MapDescription,
    Mode,
    Timestamp,
    answers,
    bytes_of,
    known,
    problems,
)
from retrasyn.service.web.release_routes import First, Last, check_range, timestamps_in
from retrasyn.service.web.responses import (
    BINARY,
    JSON,
    UNCHANGED,
    CachedResponse,
    Problem,
    takes_gzip,
)
from retrasyn.space import Box
from retrasyn.space.grid import MAX_SIDE

Travellers = Annotated[
    int | None,
    Query(
        ge=0,
        le=MAX_TRAVELLERS,
        description="Streams to show moving, about; what is set if not given.",
    ),
]
MAX_OVER = 120
Over = Annotated[
    int,
    Query(
        ge=1,
        le=MAX_OVER,
        description="Timestamps up to this one over which numbers are averaged; fewer if their "
        "points are too many for one answer.",
    ),
]
FRAME = bytes_of("The frame; docs/api.md has its form.")
GEOJSON = "application/geo+json"
MAX_ZOOM = 31
Zoom = Annotated[int, Path(ge=0, le=MAX_ZOOM, description="Zoom level.")]
Place = Annotated[int, Path(ge=0, lt=1 << MAX_ZOOM, description="Column or row of the tile.")]
Theme = Annotated[Literal["light", "dark"], Query(description="For which surroundings.")]
_ROADS: dict[str, Any] = {
    "description": "A FeatureCollection of lines in the coordinates of the data.",
    "content": {GEOJSON: {"schema": {"type": "object", "required": ["type", "features"]}}},
}
_STYLE: dict[str, Any] = {
    "description": "A MapLibre style.",
    "content": {JSON: {"schema": {"type": "object", "required": ["version", "layers"]}}},
}
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
    "description": "Points in the box at each timestamp; csv has t, time and n, and with replicas "
    "low and high.",
    "content": {
        JSON: {"schema": {"$ref": "#/components/schemas/BoxCounts"}},
        "text/csv": {"schema": {"type": "string"}},
    },
}


def frame_routes(view: CachedSource, usual: int, turns: asyncio.Semaphore, most: int) -> APIRouter:
    """Return the route of the frames; one goes through `most` points at most."""
    router = APIRouter(prefix="/v1", tags=["map"])

    @router.get("/frames/{t}", response_class=Response, responses=answers(FRAME, 404, 422))
    async def frame(t: Timestamp, travellers: Travellers = None, over: Over = 1) -> Response:
        """Return what the map shows of a timestamp, or of the latest ones up to it."""
        return await answer(view, t, usual if travellers is None else travellers, over, turns, most)

    return router


async def answer(
    view: CachedSource, t: int, travellers: int, over: int, turns: asyncio.Semaphore, most: int
) -> Response:
    """Make a frame in a thread, a few at a time."""

    def make() -> bytes | None:
        window = timestamps_in(view.source, max(t - over + 1, 0), t, most)
        return view.frame(t, travellers, window)

    async with turns:
        body = await asyncio.to_thread(make)
    if body is None:
        raise Problem(404, "Nothing was released at this timestamp.")
    return Response(body, media_type=BINARY)


def base_map_routes(
    base_map: BaseMap, mode: Mode, *, unfolds: bool, zones: FilePath | None
) -> APIRouter:
    """Return the routes of the base map."""
    router = APIRouter(prefix="/v1/map", tags=["map"])
    described = MapDescription(
        mode=mode,
        unfolds=unfolds,
        coordinates=base_map.coordinates,
        style=base_map.style,
        roads=base_map.roads is not None,
        attribution=base_map.attribution,
        travellers=base_map.travellers,
        zones=None if zones is None else zones.stem,
    )
    roads = None if base_map.roads is None else CachedResponse.of(base_map.roads, GEOJSON)
    styles = {theme: CachedResponse.of(text, JSON) for theme, text in base_map.styles.items()}

    @router.get("", responses=problems())
    async def describe() -> MapDescription:
        """Return what a page has to know before it draws."""
        return described

    @router.get("/roads", response_class=Response, responses=answers(_ROADS, 404) | UNCHANGED)
    async def show_roads(request: Request) -> Response:
        """Return the roads that lie under the data."""
        if roads is None:
            raise Problem(404, "No roads were configured.")
        return roads.answer(request)

    @router.get(
        "/style.json", response_class=Response, responses=answers(_STYLE, 404, 422) | UNCHANGED
    )
    async def style(request: Request, theme: Theme = "light") -> Response:
        """Return the style of the base map."""
        if theme not in styles:
            raise Problem(404, "No base map of this server's own was configured.")
        return styles[theme].answer(request)

    _add_tiles(router, base_map)
    return router


def _add_tiles(router: APIRouter, base_map: BaseMap) -> None:
    """Add the route of the tiles."""
    tiles = base_map.tiles
    media = BINARY if tiles is None else tiles.media_type
    found = {
        "description": "A tile, as it is stored.",
        "content": {media: {"schema": {"type": "string", "format": "binary"}}},
    }
    none: dict[int | str, dict[str, Any]] = {204: {"description": "There is nothing on this tile."}}

    @router.get(
        "/tiles/{z}/{x}/{y}",
        response_class=Response,
        responses=answers(found, 404, 422) | none,
    )
    async def tile(request: Request, z: Zoom, x: Place, y: Place) -> Response:
        """Return a tile of the base map."""
        if tiles is None or max(x, y) >= 1 << z:
            raise Problem(404, "There is no such tile.")
        body = await asyncio.to_thread(tiles.tile, z, x, y)
        if body is None:
            return Response(status_code=204)
        headers = {"cache-control": "no-cache"}
        if tiles.zipped and takes_gzip(request):
            headers["content-encoding"] = "gzip"
        elif tiles.zipped:
            body = await asyncio.to_thread(tiles.unzip, body)
        return Response(body, media_type=media, headers=headers)


def query_routes(view: CachedSource, turns: asyncio.Semaphore, most: int) -> APIRouter:
    """Return the routes of cells and boxes; an answer goes through `most` points at most."""
    router, source = APIRouter(prefix="/v1", tags=["map"]), view.source

    @router.get("/cells/{cell}", responses=problems(404, 422))
    async def cell(
        cell: Cell, first: First = None, last: Last = None, over: Over = 1
    ) -> CellHistory:
        """Return what happened in a cell: points, moves in and out, where from and where to."""
        if cell >= source.grid.n_cells:
            raise Problem(404, "There is no such cell.")
        check_range(first, last)

        def look() -> CellCounts:
            return cell_history(view, cell, timestamps_in(source, first, last, most), over)

        async with turns:
            return CellHistory.of(await asyncio.to_thread(look))

    @router.get("/count", response_class=Response, responses=answers(_COUNTS, 422))
    async def count(
        box: Corners,
        first: First = None,
        last: Last = None,
        over: Over = 1,
        format: Format = "json",  # noqa: A002 - the name in the address
    ) -> Response:
        """Count the synthetic points in a box at each timestamp."""
        corners = _box(box)
        check_range(first, last)

        def look() -> tuple[list[int], Means]:
            return box_counts(source, corners, timestamps_in(source, first, last, most), over)

        async with turns:
            t, found = await asyncio.to_thread(look)
            counts = BoxCounts(box=list(corners), t=t, n=known(found[0]), band=Band.of(found))
            if format == "csv":
                return _download(await asyncio.to_thread(_rows, source, counts))
        return Response(counts.model_dump_json(), media_type=JSON)

    return router


def _box(text: str) -> Box:
    """Read a box; a number may be too large to be finite."""
    x0, y0, x1, y1 = map(float, text.split(","))
    if not all(map(math.isfinite, (x0, y0, x1, y1))) or x0 > x1 or y0 > y1:
        raise Problem(422, "A box is x0,y0,x1,y1 with x0 <= x1 and y0 <= y1.")
    return Box(x0, y0, x1, y1)


def _rows(source: ReleaseSource, counts: BoxCounts) -> str:
    """Return counts as CSV, with their intervals where they are known."""
    columns: list[list[Any]] = [counts.t, [_time(source, t) for t in counts.t], counts.n]
    if counts.band:
        columns += [counts.band.low, counts.band.high]
    names = ["t", "time", "n", "low", "high"][: len(columns)]
    rows = [["" if one is None else one for one in row] for row in zip(*columns, strict=True)]
    return "".join(",".join(map(str, row)) + "\n" for row in [names, *rows])


def _time(source: ReleaseSource, t: int) -> str:
    summary = source.summary(t)
    return str(summary["time"]) if summary else ""


def _download(text: str) -> Response:
    headers = {"content-disposition": 'attachment; filename="count.csv"'}
    return Response(text, media_type="text/csv", headers=headers)


def real_routes(
    real: ReleaseSource, synthetic: ReleaseSource, usual: int, turns: asyncio.Semaphore, most: int
) -> APIRouter:
    """Return the routes that show the real data of a simulation."""
    router, view = APIRouter(prefix="/v1/real", tags=["simulation"]), CachedSource(real)

    @router.get("/frames/{t}", response_class=Response, responses=answers(FRAME, 404, 422))
    async def real_frame(t: Timestamp, travellers: Travellers = None, over: Over = 1) -> Response:
        """Return what the map shows of the real data at a timestamp."""
        return await answer(view, t, usual if travellers is None else travellers, over, turns, most)

    @router.get("/errors", responses=problems(422))
    async def errors(first: First = None, last: Last = None) -> DensityErrors:
        """Return how far the synthetic density is from the real one at each timestamp."""
        check_range(first, last)

        def look() -> DensityErrors:
            asked = timestamps_in(synthetic, first, last, most)
            known = [t for t in asked if _spans(real, t)]
            return DensityErrors(t=known, density_error=density_errors(real, synthetic, known))

        async with turns:
            return await asyncio.to_thread(look)

    return router


def _spans(real: ReleaseSource, t: int) -> bool:
    """Return whether a timestamp lies between the first and the last real one."""
    return real.oldest is not None and real.newest is not None and real.oldest <= t <= real.newest
