"""What a server answers."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back: the status code, the whole body, and when to come again."""

    code: int
    body: bytes = field(repr=False)
    retry_after: float | None = None  # seconds; only of those who said so


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What the curator calls a device, and the key they share."""

    device: bytes = field(repr=False)
    key: bytes = field(repr=False)
