"""Sending one frame until somebody has it for good, or it is too late."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from retrasyn.client.clock import Clock
from retrasyn.client.http import Server
from retrasyn.device.reactions import REACTIONS, Reaction
from retrasyn.errors import ServerError, WireError
from retrasyn.wire.frames import decode_ack, report_digest

log = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 100, 5_000  # milliseconds
Hear = Callable[[bytes], Reaction]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a frame: the last status heard, and what a device does about it.

    What is still to be sent again when there is no time left was not heard in time.
    """

    status: str  # empty if nobody answered
    reaction: Reaction = "resend"


def send(
    server: Server, frame: bytes, hear: Hear | None, clock: Clock, *, until: int, what: str
) -> Fate:
    """Send the same bytes again, with growing pauses, until they are settled or `until` is past.

    `until` has milliseconds since 1970. Frames without a listener are judged by their status alone.
    """
    wait, fate = _FIRST_WAIT, Fate("")
    while True:
        pause: float = wait
        try:
            answered = server.send(frame)
            ack = decode_ack(answered.body)
            if ack.digest == report_digest(frame):
                fate = Fate(
                    ack.status, REACTIONS[ack.status] if hear is None else hear(answered.body)
                )
                if fate.reaction != "resend":
                    return fate
            if answered.retry_after is not None:
                pause = max(wait, answered.retry_after * 1000)
        except (ServerError, WireError) as fault:
            log.info("%s not sent yet: %s", what, fault)
        wait = min(2 * wait, _LONGEST_WAIT)
        again = clock.now().wall + pause
        if again >= until or not clock.wait_until(again):
            return fate
