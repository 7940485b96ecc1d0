"""The base map: what there is of it, its style, its tiles and the roads."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.web.documented import answers, problems
from retrasyn.service.web.kept import UNCHANGED, Kept, takes_gzip
from retrasyn.service.web.map_models import MapDescription, Mode
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import BINARY, JSON

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


def routes(base_map: BaseMap, mode: Mode, *, unfolds: bool) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1/map", tags=["map"])
    described = MapDescription(
        mode=mode,
        unfolds=unfolds,
        coordinates=base_map.coordinates,
        style=base_map.style,
        roads=base_map.roads is not None,
        attribution=base_map.attribution,
        travellers=base_map.travellers,
    )
    roads = None if base_map.roads is None else Kept.of(base_map.roads, GEOJSON)
    styles = {theme: Kept.of(text, JSON) for theme, text in base_map.styles.items()}

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
