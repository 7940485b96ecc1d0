"""What the JSON answers of the map hold, exactly."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from retrasyn.service.map_settings import Coordinates
from retrasyn.service.viewing import histories
from retrasyn.service.web.models import Exact

Mode = Literal["campaign", "recording", "simulation"]


class MapDescription(Exact):
    """What a page has to know before it draws."""

    mode: Mode = Field(
        description="simulation: the real data is shown as well; recording: nobody reports to it."
    )
    unfolds: bool = Field(description="Whether more releases may come.")
    coordinates: Coordinates = Field(description="What the box is measured in.")
    style: str | None = Field(description="Address of the base map's style; null: there is none.")
    roads: bool = Field(description="Whether /v1/map/roads has any.")
    attribution: str = Field(description="Whom to thank for the base map, in plain text.")
    travellers: int = Field(description="Streams that a frame shows moving, about.")


class Neighbour(Exact):
    """A cell next to another, and the moves between them."""

    cell: int
    n: int


class CellHistory(Exact):
    """What happened in a cell. Moves are null where the timestamp before is not there."""

    cell: int
    t: list[int] = Field(description="Timestamps, ascending.")
    n: list[int] = Field(description="Points at each.")
    inflow: list[int | None] = Field(description="Moves into the cell from another.")
    outflow: list[int | None] = Field(description="Moves from the cell to another.")
    destinations: list[Neighbour] = Field(
        max_length=8, description="Where moves led to, summed over the range, most first."
    )
    origins: list[Neighbour] = Field(max_length=8, description="Where moves came from.")

    @classmethod
    def of(cls, history: histories.CellHistory) -> CellHistory:
        """Describe a history."""
        return cls(
            cell=history.cell,
            t=history.t,
            n=history.n,
            inflow=history.inflow,
            outflow=history.outflow,
            destinations=[Neighbour(cell=cell, n=n) for cell, n in history.destinations],
            origins=[Neighbour(cell=cell, n=n) for cell, n in history.origins],
        )


class BoxCounts(Exact):
    """How many points lay in a box."""

    box: list[float] = Field(min_length=4, max_length=4, description="x0, y0, x1, y1.")
    t: list[int] = Field(description="Timestamps, ascending.")
    n: list[int] = Field(description="Points at each.")


class DensityErrors(Exact):
    """How far the synthetic density is from the real one."""

    t: list[int] = Field(description="Timestamps, ascending.")
    density_error: list[float | None] = Field(
        description="Jensen-Shannon divergence in nats; null where nobody is."
    )
