"""What the JSON answers and bodies hold, exactly; the OpenAPI document is made from it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrasyn.wire.batches import MAX_FRAMES

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]*$")]


class Exact(BaseModel):
    """Has the fields it names and no other."""

    model_config = ConfigDict(extra="forbid")


class Status(Exact):
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


class Summary(Exact):
    """What was released at one timestamp, in numbers."""

    t: int = Field(description="The timestamp.")
    time: str = Field(description="When its round opened, ISO 8601.")
    n_points: int = Field(description="Synthetic points.")
    n_born: int = Field(description="Synthetic streams that began.")
    n_ended: int = Field(description="Synthetic streams that ended.")
    n_reports: int = Field(description="Reports that were counted.")
    epsilon: float = Field(description="What each reporter spent.")


class Release(Summary):
    """What was released at one timestamp, with the points of each cell."""

    cells: list[int] = Field(description="Points in each cell, row by row.")


class ReleaseList(Exact):
    """Releases by ascending timestamp."""

    releases: list[Summary]


class EnrolmentRequest(Exact):
    """Tokens of devices that want to take part."""

    tokens: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MAX_FRAMES, description="One for each device."
    )


class Credentials(Exact):
    """What a device is told once, and never again."""

    device: Hex = Field(description="The device's id, 16 bytes in hexadecimal.")
    key: Hex = Field(description="The key of its tags, 32 bytes in hexadecimal.")


class Enrolment(Exact):
    """The devices made, in the order of the tokens."""

    devices: list[Credentials]


class TokenRequest(Exact):
    """How many devices may enrol."""

    n: int = Field(default=1, ge=1, le=MAX_FRAMES, strict=True, description="Tokens to make.")


class Tokens(Exact):
    """Tokens that can be used once each."""

    tokens: list[str]


class OperatorStatus(Status):
    """How the service is doing, for its operator."""

    n_enrolled: int = Field(description="Devices enrolled now.")
    n_ever_enrolled: int = Field(description="Devices that ever enrolled.")
    n_waiting_rounds: int = Field(description="Rounds that are open or not folded yet.")
    n_waiting_frames: int = Field(description="Frames taken in and not answered yet.")
    troubles: dict[str, str] = Field(description="What does not work now, and why.")
    counters: dict[str, float] = Field(description="Counted since the process started.")


class Health(Exact):
    """A sign of life."""

    status: Literal["ok"]
