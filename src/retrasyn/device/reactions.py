"""What a device does about an acknowledgement. It never refunds, and never makes a report anew."""

from typing import Literal

Reaction = Literal["done", "stop", "resend", "drop", "enrol", "ignore"]

REACTIONS: dict[str, Reaction] = {
    "accepted": "done",
    "duplicate": "done",
    "conflict": "stop",
    "early": "resend",
    "late": "drop",
    "unknown round": "drop",
    "too soon": "drop",
    "bad length": "drop",
    "bad manifest": "drop",
    "unauthenticated": "enrol",
    "busy": "resend",
}
HTTP_STATUS = {
    "accepted": 200,
    "duplicate": 200,
    "conflict": 409,
    "early": 425,
    "late": 410,
    "unknown round": 410,
    "too soon": 422,
    "bad length": 422,
    "bad manifest": 422,
    "unauthenticated": 401,
    "busy": 503,
}
"""How each status travels over HTTP; busy may also be 429."""
