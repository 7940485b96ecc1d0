"""A simulation on show: every release is added as it is made, at a pace that eyes can follow."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from retrasyn.service.feed import Feed
from retrasyn.service.viewing.exhibit import Exhibit
from retrasyn.service.viewing.in_memory import InMemory
from retrasyn.service.viewing.statement import status_of

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.messages import Release
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.simulation.unfolding import Unfolding


@dataclass(slots=True)
class LiveSimulation:
    """What is shown of a simulation so far."""

    unfolding: Unfolding
    pace: float  # seconds from one release to the next, at least
    title: str
    _showing: str = field(default_factory=partial(secrets.token_hex, 16), init=False)
    source: InMemory = field(init=False)
    feed: Feed = field(init=False)
    _receipt: Receipt = field(init=False)  # of what is shown, not of what is being made

    def __post_init__(self) -> None:
        self.source = InMemory(self.unfolding.simulation.curator.grid)
        self.feed = Feed(self.source.after)
        self._receipt = self.unfolding.receipt()

    def status(self) -> dict[str, Any]:
        """Return what /v1/status says."""
        return status_of(
            self.source,
            self._receipt,
            title=self.title,
            showing=self._showing,
            period=self.pace,
        )

    def exhibit(self, real: Trajectories) -> Exhibit:
        """Put together what the page shows, the real data beside it."""
        return Exhibit(
            source=self.source,
            kind="recording",
            status=self.status,
            feed=self.feed,
            real=InMemory.of_recording(real, self.source.grid),
        )

    async def run(self) -> None:
        """Make and show release after release until there are no more."""
        loop, releases = asyncio.get_running_loop(), self.unfolding.releases()
        due = loop.time()
        while (made := await asyncio.to_thread(self._make, releases)) is not None:
            await asyncio.sleep(due - loop.time())
            due = max(due + self.pace, loop.time())
            release, self._receipt = made
            self.source.add_release(release, self._receipt)
            self.feed.publish(release.t)

    def _make(self, releases: Iterator[Release]) -> tuple[Release, Receipt] | None:
        release = next(releases, None)
        return None if release is None else (release, self.unfolding.receipt())
