"""All that everybody may look at, of a campaign or of a recording."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.viewing.exhibit import Exhibit
from retrasyn.service.viewing.view import View
from retrasyn.service.web import (
    feeds,
    frames,
    maps,
    page,
    points,
    queries,
    real,
    releases,
    status,
)
from retrasyn.service.web.counts import Counts

_FRAMES_AT_ONCE = 2
_QUERIES_AT_ONCE = 2
"""Others wait. Together they leave threads to those who fold and release."""


def routes(
    exhibit: Exhibit, base_map: BaseMap, counts: Counts, stopping: asyncio.Event
) -> list[APIRouter]:
    """Return the routes."""
    view, source = View(exhibit.source), exhibit.source
    quick, slow = asyncio.Semaphore(_FRAMES_AT_ONCE), asyncio.Semaphore(_QUERIES_AT_ONCE)
    routers = [
        status.routes(exhibit.status),
        releases.routes(source),
        points.routes(source, slow),
        feeds.routes(exhibit.feed, exhibit.feed_clients, counts, stopping),
        frames.routes(view, base_map.travellers, quick),
        queries.routes(view, slow),
        maps.routes(
            base_map,
            exhibit.kind if exhibit.real is None else "simulation",
            unfolds=exhibit.unfolds,
        ),
        page.routes(exhibit.status, base_map),
    ]
    if exhibit.real is not None:
        routers.append(real.routes(exhibit.real, source, base_map.travellers, quick))
    return routers
