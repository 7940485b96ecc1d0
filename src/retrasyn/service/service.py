"""The curator service without a web server: one campaign, its rounds, devices and releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrasyn.service.clock import Clock, SystemClock
from retrasyn.service.settings import Settings


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What a device is told once: who it is, and the key of its tags."""

    device: bytes = field(repr=False)  # id, 16 bytes
    key: bytes = field(repr=False)  # 32 bytes


class Service:
    """Everything behind the web server. All methods belong to one event loop."""

    campaign: Any  # Campaign: manifest, text, id, envelope, plan
    store: Any
    gate: Any
    ingest: Any
    rounds: Any
    releases: Any
    feed: Any
    counters: Any

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()

    async def start(self) -> None:
        """Open the folder and the store, recover, and let rounds run."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop asking, save a snapshot, close the store and leave the folder."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether reports can be taken."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why the service is not ready; empty if it is."""
        raise NotImplementedError

    def current_round(self) -> bytes | None:
        """Return the signed round that is open, if one is."""
        raise NotImplementedError

    def seconds_to_next_round(self) -> float:
        """Return how long it is until a round opens, for Retry-After."""
        raise NotImplementedError

    def round_envelope(self, t: int) -> bytes | None:
        """Return a signed round, as long as it is remembered."""
        raise NotImplementedError

    def asked(self, t: int, ids: bytes) -> bytes:
        """Return one byte per device id, 16 bytes each: 1 if round t is meant for it."""
        raise NotImplementedError

    async def mint(self, n: int) -> list[str]:
        """Make single-use enrolment tokens."""
        raise NotImplementedError

    async def enrol(self, tokens: list[str]) -> list[Enrolled]:
        """Use tokens up, one device each; all of them or none (UnknownToken)."""
        raise NotImplementedError

    async def leave(self, device: bytes, tag: bytes) -> bool:
        """Forget a device that asks for it with its own tag; False if the tag is wrong."""
        raise NotImplementedError

    async def revoke(self, device: bytes) -> bool:
        """Forget a device; False if there is none of that id."""
        raise NotImplementedError

    def status(self) -> dict[str, Any]:
        """Return what anybody may know."""
        raise NotImplementedError

    def operator_status(self) -> dict[str, Any]:
        """Return what the operator may know besides."""
        raise NotImplementedError
