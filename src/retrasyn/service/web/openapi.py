"""The OpenAPI document: the framework's routes, and by hand those that take reports."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from retrasyn._version import __version__
from retrasyn.service.web.models import (
    RETRY_AFTER,
    AnswerBody,
    BoxCounts,
    ProblemDetails,
    bytes_of,
    problems,
)
from retrasyn.wire.statuses import STATUSES

_ACKS = {
    200: "accepted, or the same bytes once more",
    401: "no device of this id, or a tag that does not fit",
    409: "other bytes came first; those are kept",
    410: "the round is over, or was never opened",
    422: "too soon after the last report, of a wrong length or version, or for another manifest",
    425: "the round opens later",
    503: "busy: the same bytes again, later",
}
_PUBLISHED = {"CampaignStatus": "Status", "ReleaseSummary": "Summary", "ReleaseDetail": "Release"}
"""The names under which the document has always published these models."""
Paths = dict[str, Any]
"""Descriptions of routes, by path."""


def document(app: FastAPI, by_hand: Paths, prefix: str = "") -> dict[str, Any]:
    """Return the whole document, with the routes that the framework does not know."""
    found = get_openapi(
        title="RetraSyn curator",
        version=__version__,
        description="Takes noisy reports, releases synthetic trajectories. See docs/api.md.",
        routes=app.routes,
        servers=[{"url": f"/{prefix}"}] if prefix else None,
    )
    found = _published(found)
    found["paths"] |= by_hand
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
    schemas["BoxCounts"] = BoxCounts.model_json_schema()
    rows = AnswerBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= rows.pop("$defs")
    schemas["AnswerBody"] = rows
    return found


def _published(found: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the published names of our models, in alphabetical order."""
    text = json.dumps(found)
    for name, published in _PUBLISHED.items():
        text = text.replace(f'schemas/{name}"', f'schemas/{published}"')
        text = text.replace(f'"title": "{name}"', f'"title": "{published}"')
        text = text.replace(f'"{name}": {{', f'"{published}": {{')
    renamed: dict[str, Any] = json.loads(text)
    schemas = renamed["components"]["schemas"]
    renamed["components"]["schemas"] = {name: schemas[name] for name in sorted(schemas)}
    return renamed


def reporting() -> Paths:
    """Describe the routes that take reports."""
    return {"/v1/reports": {"post": _one()}, "/v1/reports/batch": {"post": _many()}}


def _one() -> dict[str, Any]:
    return {
        "tags": ["devices"],
        "summary": "Report",
        "operationId": "report",
        "description": "Take one report or heartbeat. The answer is an acknowledgement that "
        "proves itself, whatever the status; it is sent after the report is durable.",
        "requestBody": bytes_of("A frame as in docs/wire.md.") | {"required": True},
        "responses": _named(problems()) | _named({code: _ack(code) for code in _ACKS}),
    }


def _ack(code: int) -> dict[str, Any]:
    answer = bytes_of(f"Acknowledged: {_ACKS[code]}.")
    return answer | ({"headers": {"Retry-After": RETRY_AFTER}} if code == 503 else {})  # noqa: PLR2004 - an HTTP status


def _many() -> dict[str, Any]:
    names = ", ".join(f"{code} {name}" for code, name in enumerate(STATUSES))
    return {
        "tags": ["devices"],
        "summary": "Report many",
        "operationId": "report_many",
        "description": "Take a batch of reports and heartbeats, at most 10,000.",
        "requestBody": bytes_of("Frames, each behind its length; see docs/wire.md.")
        | {"required": True},
        "responses": _named(
            {200: bytes_of(f"For each frame a byte ({names}) and a tag of 16.")}
            | problems(422, 503)
        ),
    }


def _named(responses: dict[Any, Any]) -> dict[str, Any]:
    return {str(status): answer for status, answer in responses.items()}
