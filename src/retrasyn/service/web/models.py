"""What the JSON answers and bodies hold, exactly; the OpenAPI document is made from it."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from retrasyn.answers.intervals import Intervals
from retrasyn.service.settings import Coordinates
from retrasyn.service.viewing.histories import CellCounts
from retrasyn.service.viewing.tallies import Means
from retrasyn.service.web.responses import BINARY, JSON, PROBLEM_JSON, SENTENCES
from retrasyn.wire.batches import MAX_FRAMES

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]*$")]
PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Mode = Literal["campaign", "recording", "simulation"]
MAX_T = (1 << 32) - 1
Timestamp = Annotated[int, Path(ge=0, le=MAX_T, description="The timestamp.")]
DEVICE = r"^[0-9a-f]{32}$"
Device = Annotated[str, Path(pattern=DEVICE, description="A device id, 32 hexadecimal digits.")]
_WAITS = {429, 503}
EVERYWHERE = (400, 408, 413, 429, 503)
"""Refusals that any address may give: what cannot be read, is too slow, too long or too much."""
Responses = dict[int | str, dict[str, Any]]
RETRY_AFTER = {
    "description": "Seconds to wait.",
    "schema": {"type": "integer", "minimum": 1},
}
ENVELOPE = {
    "type": "object",
    "required": ["body", "signature"],
    "additionalProperties": False,
    "properties": {
        "body": {"type": "object", "description": "What is signed, in canonical JSON."},
        "signature": {
            "type": "string",
            "pattern": "^[0-9a-f]{128}$",
            "description": "Ed25519, in hexadecimal.",
        },
    },
}
"""A sealed manifest or round."""


class Exact(BaseModel):
    """Has the fields it names and no other."""

    model_config = ConfigDict(extra="forbid")


class CampaignStatus(Exact):
    """How a campaign is doing, for everybody."""

    campaign: str = Field(description="Name of the campaign.")
    manifest: Hex = Field(description="Id of the manifest.")
    method: str = Field(description="How releases are made.")
    guarantee: str = Field(description="What is promised, in a sentence.")
    epsilon: float = Field(description="Privacy budget over any window.")
    window: int = Field(description="Rounds of a window.")
    unit: str = Field(description="What a window protects: position or transition.")
    presence: str = Field(description="What is public about presence: count, flags or hidden.")
    period: int = Field(description="Seconds from one round to the next.")
    epoch: int = Field(description="Unix seconds at which round 0 opened.")
    box: list[float] = Field(min_length=4, max_length=4, description="x0, y0, x1, y1.")
    grid: int = Field(description="Cells along a side of the box.")
    round: int | None = Field(description="The round that is open; null if none is.")
    next_round_in: float = Field(description="Seconds until the next round opens.")
    n_reports: int = Field(description="Reports counted so far.")
    n_releases: int = Field(description="Timestamps released so far.")
    oldest_release: int | None = Field(description="First timestamp released; null if none.")
    newest_release: int | None = Field(description="Latest timestamp released; null if none.")
    ready: bool = Field(description="Whether reports are taken and rounds go on.")
    reason: str = Field(description="Why not; empty if they are.")


class ReleaseSummary(Exact):
    """What was released at one timestamp, in numbers."""

    t: int = Field(description="The timestamp.")
    time: str = Field(description="When its round opened, ISO 8601.")
    n_points: int = Field(description="Synthetic points.")
    n_born: int = Field(description="Synthetic streams that began.")
    n_ended: int = Field(description="Synthetic streams that ended.")
    n_reports: int = Field(description="Reports that were counted.")
    epsilon: float = Field(description="What each reporter spent.")


class ReleaseDetail(ReleaseSummary):
    """What was released at one timestamp, with the points of each cell."""

    cells: list[int] = Field(description="Points in each cell, row by row.")


class ReleaseList(Exact):
    """Releases by ascending timestamp."""

    releases: list[ReleaseSummary]


class EnrolmentRequest(Exact):
    """Enrolment tokens of devices, and their halves of the keys to agree on."""

    tokens: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MAX_FRAMES, description="One for each device."
    )
    keys: list[PublicKey] = Field(
        min_length=1,
        max_length=MAX_FRAMES,
        description="The X25519 public key of each, drawn for this alone.",
    )
    agreement: PublicKey = Field(description="The curator's X25519 key, from /v1/keys.")


class Credentials(Exact):
    """What a device is told; its key is agreed on, and not among it."""

    device: Hex = Field(description="The device's id, 16 bytes in hexadecimal.")
    tag: Hex = Field(description="Shows that the same key was agreed on, 16 bytes.")


class Enrolment(Exact):
    """The devices made, in the order of the tokens."""

    devices: list[Credentials]


class TokenRequest(Exact):
    """How many devices may enrol."""

    n: int = Field(
        default=1, ge=1, le=MAX_FRAMES, strict=True, description="Enrolment tokens to make."
    )


class Tokens(Exact):
    """Enrolment tokens, each for one use, and the curator's key that goes into their links."""

    tokens: list[str]
    key: Hex = Field(description="The curator's Ed25519 key, 32 bytes in hexadecimal.")


class AlertStatus(Exact):
    """How the operator's webhook is doing."""

    checked: int | None = Field(description="Latest release that was looked at; null if none.")
    waiting: int = Field(description="Alerts that are not sent yet.")
    trouble: str = Field(description="Why the last try failed; empty if it worked.")


class OperatorStatus(CampaignStatus):
    """How the service is doing, for its operator."""

    n_enrolled: int = Field(description="Devices enrolled now.")
    n_ever_enrolled: int = Field(description="Devices that ever enrolled.")
    n_waiting_rounds: int = Field(description="Rounds that are open or not folded yet.")
    n_waiting_frames: int = Field(description="Frames taken in and not answered yet.")
    n_waiting_reports: int = Field(description="Reports that are too few to be estimated yet.")
    alarms: dict[str, list[str]] = Field(
        description="Tests on reports that were alarmed in the last gap, by timestamp."
    )
    not_tested: list[str] = Field(
        description="What the tests on the last round could not be made for, or would rather miss."
    )
    alerts: AlertStatus | None = Field(
        description="Alerts about zones; null if there is no webhook."
    )
    troubles: dict[str, str] = Field(description="What does not work now, and why.")
    counters: dict[str, float] = Field(description="Counted since the process started.")


class Health(Exact):
    """A sign of life."""

    status: Literal["ok"]


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
    zones: str | None = Field(description="What /v1/ask calls the operator's zones, if any.")


Count = int | float
"""A whole number, unless it is an average."""


class Band(Exact):
    """Intervals that cover the true values nine times of ten; null where they are not known."""

    low: list[float | None]
    high: list[float | None]
    unclear: list[bool] = Field(description="Whether the interval says next to nothing.")

    @classmethod
    def of(cls, counts: Means) -> Band | None:
        """Describe how far counts may be off; None without replicas: counts are [1 + B, n]."""
        if len(counts) < 2:  # noqa: PLR2004 - the release, and one replica at least
            return None
        found = Intervals.of(counts[0], counts[1:])
        return cls(low=known(found.low), high=known(found.high), unclear=found.unclear.tolist())


def known(values: Means) -> list[Any]:
    """Return values, whole ones as such, with None for those that are NaN."""
    listed = values.tolist()
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in listed
    ]


_BAND = "Intervals of {}; null without replicas."


class Neighbour(Exact):
    """A cell next to another, and the moves between them."""

    cell: int
    n: int
    low: float | None = Field(description="The interval of n; null without replicas.")
    high: float | None


def _neighbours(cells: list[int], moves: Means) -> list[Neighbour]:
    """Describe the moves between a cell and its neighbours, most first."""
    band = Band.of(moves)
    nothing = [None] * len(cells)
    low, high = (band.low, band.high) if band else (nothing, nothing)
    found = [
        Neighbour(cell=cell, n=n, low=least, high=most)
        for cell, n, least, most in zip(cells, moves[0].astype(int), low, high, strict=True)
        if n
    ]
    return sorted(found, key=lambda one: (-one.n, one.cell))


class CellHistory(Exact):
    """What happened in a cell. Moves are null where the timestamp before is not there."""

    cell: int
    t: list[int] = Field(description="Timestamps, ascending.")
    n: list[Count] = Field(description="Points at each.")
    inflow: list[Count | None] = Field(description="Moves into the cell from another.")
    outflow: list[Count | None] = Field(description="Moves from the cell to another.")
    n_band: Band | None = Field(description=_BAND.format("n"))
    inflow_band: Band | None = Field(description=_BAND.format("inflow"))
    outflow_band: Band | None = Field(description=_BAND.format("outflow"))
    destinations: list[Neighbour] = Field(
        max_length=8, description="Where moves led to, summed over the range, most first."
    )
    origins: list[Neighbour] = Field(max_length=8, description="Where moves came from.")

    @classmethod
    def of(cls, history: CellCounts) -> CellHistory:
        """Describe a history."""
        return cls(
            cell=history.cell,
            t=history.t,
            n=known(history.n[0]),
            inflow=known(history.inflow[0]),
            outflow=known(history.outflow[0]),
            n_band=Band.of(history.n),
            inflow_band=Band.of(history.inflow),
            outflow_band=Band.of(history.outflow),
            destinations=_neighbours(history.neighbours, history.destinations),
            origins=_neighbours(history.neighbours, history.origins),
        )


class BoxCounts(Exact):
    """How many points lay in a box."""

    box: list[float] = Field(min_length=4, max_length=4, description="x0, y0, x1, y1.")
    t: list[int] = Field(description="Timestamps, ascending.")
    n: list[Count] = Field(description="Points at each.")
    band: Band | None = Field(description=_BAND.format("n"))


class AnswerRow(BaseModel):
    """One row of an answer, with what tells it: zones, t and time, a rank, a measure."""

    model_config = ConfigDict(extra="allow")
    value: float | None = Field(description="The answer; null if there is none.")
    standard_error: float | None = Field(description="Of the value; null without replicas.")
    low: float | None = Field(description="Where the 90 % interval begins.")
    high: float | None = Field(description="Where it ends.")
    unclear: bool | None = Field(description="Whether the interval says next to nothing.")


class AnswerBody(Exact):
    """An answer about the releases of a range."""

    what: str = Field(description="What was asked.")
    first: int = Field(description="First timestamp of the answer.")
    last: int = Field(description="Last timestamp of the answer.")
    zones: str | None = Field(description="Zones by name; null: those that are usual for it.")
    by: str | None = Field(description="Length of a period; null: all in one.")
    n_replicas: int = Field(description="Replicas that errors follow from.")
    rows: list[AnswerRow]


class DensityErrors(Exact):
    """How far the synthetic density is from the real one."""

    t: list[int] = Field(description="Timestamps, ascending.")
    density_error: list[float | None] = Field(
        description="Jensen-Shannon divergence in nats; null where nobody is."
    )


class ProblemDetails(BaseModel):
    """A refusal: one sentence, and nothing of what was sent."""

    model_config = ConfigDict(extra="forbid")
    type: str = Field(description="Always about:blank.")
    title: str = Field(description="The name of the status.")
    status: int = Field(description="The HTTP status once more.")
    detail: str = Field(description="What is wrong and what to do about it.")


def answers(ok: dict[str, Any], *statuses: int, status: int = 200) -> Responses:
    """Describe the answer when all is well, and refusals."""
    return {status: ok, **problems(*statuses)}


def problems(*statuses: int) -> Responses:
    """Describe refusals, those that may be given everywhere included."""
    found: Responses = {}
    for status in sorted({*statuses, *EVERYWHERE}):
        answer: dict[str, Any] = {
            "description": SENTENCES[status],
            "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        if status in _WAITS:
            answer["headers"] = {"Retry-After": RETRY_AFTER}
        found[status] = answer
    return found


def bytes_of(description: str, *, example: str | None = None) -> dict[str, Any]:
    """Describe an answer or body that is bytes."""
    schema: dict[str, Any] = {"type": "string", "format": "binary"}
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {"description": description, "content": {BINARY: content}}


def sealed(description: str) -> dict[str, Any]:
    """Describe an answer that is a sealed text, byte for byte."""
    return {"description": description, "content": {JSON: {"schema": ENVELOPE}}}
