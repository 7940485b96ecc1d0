"""What the JSON answers and bodies hold, exactly; the OpenAPI document is made from it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrasyn.wire.batches import MAX_FRAMES

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]*$")]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Status(_Exact):
    """How a campaign is doing, for everybody."""

    campaign: str = Field(description="Name of the campaign.")
    manifest: Hex = Field(description="Id of the manifest.")
    method: str = Field(description="How releases are made.")
    guarantee: str = Field(description="What is promised, in a sentence.")
    epsilon: float = Field(description="Privacy budget over any window.")
    window: int = Field(description="Rounds of a window.")
    period: int = Field(description="Seconds from one round to the next.")
    t: int | None = Field(description="The round that is open; null if none is.")
    n_devices: int = Field(description="Devices enrolled.")
    n_reports: int = Field(description="Reports counted so far.")
    last_release: int | None = Field(description="Latest timestamp released; null if none was.")


class Summary(_Exact):
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


class ReleaseList(_Exact):
    """Releases by ascending timestamp."""

    releases: list[Summary]


class EnrolmentRequest(_Exact):
    """Tokens of devices that want to take part."""

    tokens: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MAX_FRAMES, description="One for each device."
    )


class Credentials(_Exact):
    """What a device is told once, and never again."""

    device: Hex = Field(description="The device's id, 16 bytes in hexadecimal.")
    key: Hex = Field(description="The key of its tags, 32 bytes in hexadecimal.")


class Enrolment(_Exact):
    """The devices made, in the order of the tokens."""

    devices: list[Credentials]


class TokenRequest(_Exact):
    """How many devices may enrol."""

    n: int = Field(default=1, ge=1, le=MAX_FRAMES, strict=True, description="Tokens to make.")


class Tokens(_Exact):
    """Tokens that can be used once each."""

    tokens: list[str]


class OperatorStatus(Status):
    """How the service is doing, for its operator."""

    model_config = ConfigDict(extra="allow")


class Health(_Exact):
    """A sign of life."""

    status: Literal["ok"]
