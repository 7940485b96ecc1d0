"""What becomes of a frame: its name, its number, how it travels over HTTP and what a device does.

The number of a status is its place in `STATUSES`. A device does it only if the acknowledgement
proves to be the curator's; any other answer is as good as none.
"""

from dataclasses import dataclass
from typing import Literal

Reaction = Literal["done", "stop", "resend", "drop", "enrol", "ignore"]


@dataclass(frozen=True, slots=True)
class Status:
    """One possible status of a frame."""

    name: str
    http: int  # busy may also be 429
    reaction: Reaction


_ROWS = (
    Status("accepted", 200, "done"),
    Status("duplicate", 200, "done"),
    Status("conflict", 409, "stop"),
    Status("early", 425, "resend"),
    Status("late", 410, "drop"),
    Status("unknown round", 410, "drop"),
    Status("too soon", 422, "drop"),
    Status("bad length", 422, "drop"),
    Status("bad manifest", 422, "drop"),
    Status("unauthenticated", 401, "enrol"),
    Status("busy", 503, "resend"),
    Status("bad version", 422, "stop"),
)
STATUSES = tuple(row.name for row in _ROWS)
HTTP_STATUS = {row.name: row.http for row in _ROWS}
REACTIONS = {row.name: row.reaction for row in _ROWS}
