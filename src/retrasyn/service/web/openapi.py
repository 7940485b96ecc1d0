"""The OpenAPI document: what the framework knows, and by hand what goes past it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from retrasyn._version import __version__
from retrasyn.service.web.models import RETRY_AFTER, BoxCounts, ProblemDetails, bytes_of, problems
from retrasyn.wire.statuses import STATUSES

_ACKS = {
    200: "accepted, or the same bytes once more",
    401: "no device of this id, or a tag that does not fit",
    409: "other bytes came first; those are kept",
    410: "the round is over, or was never opened",
    422: "too soon after the last report, of a wrong length, or for another manifest",
    425: "the round opens later",
    503: "busy: the same bytes again, later",
}


Paths = dict[str, Any]
"""What the document says of addresses."""


def document(app: FastAPI, by_hand: Paths) -> dict[str, Any]:
    """Return the whole document, with addresses the framework does not know."""
    found = get_openapi(
        title="RetraSyn curator",
        version=__version__,
        description="Takes noisy reports, releases synthetic trajectories. See docs/api.md.",
        routes=app.routes,
    )
    found["paths"] |= by_hand
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
    schemas["BoxCounts"] = BoxCounts.model_json_schema()
    return found


def reporting() -> Paths:
    """Return what there is to say of reports."""
    return {"/v1/reports": {"post": _one()}, "/v1/reports/batch": {"post": _many()}}


def _one() -> dict[str, Any]:
    return {
        "tags": ["devices"],
        "summary": "Report",
        "operationId": "report",
        "description": "Take one report or heartbeat. The answer is an acknowledgement of 30 "
        "bytes, whatever the status; it is sent after the report is durable.",
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
        "responses": _named({200: bytes_of(f"A byte per frame: {names}.")} | problems(422, 503)),
    }


def _named(responses: dict[Any, Any]) -> dict[str, Any]:
    return {str(status): answer for status, answer in responses.items()}
