"""What a reporter says, and what it asks a tracker."""

from dataclasses import dataclass, field
from typing import Protocol

from retrasyn.messages import Question


class Whereabouts(Protocol):
    """What a reporter asks a tracker."""

    def kind(self, t: int) -> int:
        """Return whether the device enters, moves, quits or is absent."""
        ...  # pragma: no cover - a protocol has no body

    def sampled(self, t: int) -> int | None:
        """Return what the boot-time clock showed when the position of t was taken."""
        ...  # pragma: no cover - a protocol has no body

    def answer(self, question: Question, t: int) -> int:
        """Return the true answer at t, or -1."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class Refusal:
    """Silence, and why: the number of the rule and what it found."""

    rule: int
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes to send at an instant; they are durable, and the same whenever they are asked for."""

    frame: bytes = field(repr=False)
    send_at: int  # milliseconds since 1970


@dataclass(frozen=True, slots=True)
class Drawn:
    """This device answers the round at an instant drawn before any place was read."""

    t: int
    send_at: int  # milliseconds since 1970
    question: Question = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What an owner may see of their own device."""

    campaign: str  # empty if no manifest is pinned
    quarantine: str  # why the device is silent; empty if it is not
    rounds_left: int  # of quarantine
    spent: int  # micro-nats, in all its life
    lifetime_cap: int  # micro-nats
