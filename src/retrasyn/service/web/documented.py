"""Words that all routes share in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from retrasyn.service.web.problems import CONTENT_TYPE, SENTENCES
from retrasyn.service.web.replies import BINARY, JSON

MAX_T = (1 << 32) - 1
Timestamp = Annotated[int, Path(ge=0, le=MAX_T, description="The timestamp.")]
DEVICE = r"^[0-9a-f]{32}$"
Device = Annotated[str, Path(pattern=DEVICE, description="A device id, 32 hexadecimal digits.")]
_WAITS = {429, 503}
EVERYWHERE = (400, 408, 413, 429)
"""Refusals that any address may give: what cannot be read, is too slow, too long or too much."""


class ProblemDetails(BaseModel):
    """A refusal: one sentence, and nothing of what was sent."""

    model_config = ConfigDict(extra="forbid")
    type: str = Field(description="Always about:blank.")
    title: str = Field(description="The name of the status.")
    status: int = Field(description="The HTTP status once more.")
    detail: str = Field(description="What is wrong and what to do about it.")


Responses = dict[int | str, dict[str, Any]]


def answers(ok: dict[str, Any], *statuses: int, status: int = 200) -> Responses:
    """Describe the answer when all is well, and refusals."""
    return {status: ok, **problems(*statuses)}


def problems(*statuses: int) -> Responses:
    """Describe refusals, those that may be given everywhere included."""
    found: Responses = {}
    for status in sorted({*statuses, *EVERYWHERE}):
        answer: dict[str, Any] = {
            "description": SENTENCES[status],
            "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        if status in _WAITS:
            answer["headers"] = {"Retry-After": RETRY_AFTER}
        found[status] = answer
    return found


RETRY_AFTER = {
    "description": "Seconds to wait.",
    "schema": {"type": "integer", "minimum": 1},
}


def bytes_of(description: str, *, example: str | None = None) -> dict[str, Any]:
    """Describe an answer or body that is bytes."""
    schema: dict[str, Any] = {"type": "string", "format": "binary"}
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {"description": description, "content": {BINARY: content}}


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


def sealed(description: str) -> dict[str, Any]:
    """Describe an answer that is a sealed text, byte for byte."""
    return {"description": description, "content": {JSON: {"schema": ENVELOPE}}}
