"""Sources for the viewer besides a campaign: recorded files, and a simulation as it runs."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import itertools
import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from retrasyn.data.metadata import Metadata
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, RetraSynError
from retrasyn.methods import find_method
from retrasyn.service.viewing.source import (
    Feed,
    ReleaseSource,
    Summary,
    TimestampPoints,
    ViewerContent,
)
from retrasyn.space import Grid

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.metadata import Clock
    from retrasyn.messages import Release
    from retrasyn.privacy.receipt import Receipt
    from retrasyn.simulation.run import SimulatedRun

UNKNOWN = "NOT KNOWN TO BE PRIVATE: there is no receipt that says how this data was made."


@dataclass(slots=True, eq=False)
class InMemory(ReleaseSource):
    """Points by timestamp. Readers in other threads see a timestamp once all of it is there."""

    _grid: Grid
    clock: Clock | None = None
    crs: str | None = None
    timestamps: list[int] = field(default_factory=list)
    _points: dict[int, TimestampPoints] = field(default_factory=dict, repr=False)
    _numbers: dict[int, Summary] = field(default_factory=dict, repr=False)
    _receipts: dict[int, bytes] = field(default_factory=dict, repr=False)
    _replicas: list[dict[int, TimestampPoints]] = field(default_factory=list, repr=False)

    @classmethod
    def of_recording(
        cls,
        data: Trajectories,
        grid: Grid,
        receipt: Receipt | None = None,
        replicas: Iterable[Trajectories] = (),
    ) -> InMemory:
        """Split a whole file by timestamp, empty ones between the first and the last included.

        >>> from retrasyn.space import Box
        >>> walk = Trajectories.from_columns(traj_id=[7, 7], t=[3, 4], x=[0.1, 0.9], y=[0.1, 0.1])
        >>> shown = InMemory.of_recording(walk, Grid(Box(0, 0, 1, 1), 2))
        >>> shown.timestamps, shown.summary(4)["cells"]
        ([3, 4], [0, 1, 0, 0])
        """
        first = data.first_t
        if first < 0:
            raise InputError(f"the data begins at t={first}; number its timestamps from 0 on")
        n_timestamps = data.last_t - first + 1
        begins = data.begins - first
        born = np.bincount(begins, minlength=n_timestamps).tolist()
        ended = np.bincount(begins + data.lengths, minlength=n_timestamps).tolist()
        reports = {} if receipt is None else _reports_of(receipt)
        text = None if receipt is None else receipt.to_json().encode()
        shown = cls(grid, data.clock, data.crs)
        shown._replicas = [_by_timestamp(one, first, data.last_t) for one in replicas]
        for number, points in enumerate(_by_timestamp(data, first, data.last_t).values()):
            n_reports, epsilon = reports.get(first + number, (0, 0.0))
            shown.add(
                first + number,
                points,
                n_born=born[number],
                n_ended=ended[number],
                n_reports=n_reports,
                epsilon=epsilon,
                receipt=text,
            )
        return shown

    def add(
        self,
        t: int,
        points: TimestampPoints,
        *,
        n_born: int,
        n_ended: int,
        n_reports: int = 0,
        epsilon: float = 0.0,
        receipt: bytes | None = None,
    ) -> None:
        """Add the next timestamp."""
        self._points[t] = points
        self._numbers[t] = {
            "t": t,
            "time": "" if self.clock is None else self.clock.time_of(t).isoformat(),
            "n_points": int(points.ids.size),
            "n_born": n_born,
            "n_ended": n_ended,
            "n_reports": n_reports,
            "epsilon": epsilon,
        }
        if receipt is not None:
            self._receipts[t] = receipt
        self.timestamps.append(t)

    def add_release(self, release: Release, receipt: Receipt) -> None:
        """Add the next release of a simulation."""
        self.add(
            release.t,
            TimestampPoints(release.ids, release.x, release.y),
            n_born=release.n_born,
            n_ended=release.n_ended,
            n_reports=release.n_reports,
            epsilon=release.epsilon_t,
            receipt=receipt.to_json().encode(),
        )

    @property
    def grid(self) -> Grid:
        """The box and its cells."""
        return self._grid

    def summary(self, t: int) -> Summary | None:
        """Return the summary of timestamp t, with points per cell; None if it does not exist."""
        if not self.has(t):
            return None
        points = self._points[t]
        where = self.grid.cells_of(points.x, points.y)
        cells = np.bincount(where, minlength=self.grid.n_cells)  # [n_cells]
        return {**self._numbers[t], "cells": cells.tolist()}

    def summaries(self, first: int | None, last: int | None, limit: int) -> list[Summary]:
        """Return the summaries of the newest timestamps of a range, without counting cells."""
        found = self.within(first, last)[-limit:] if limit > 0 else []
        return [dict(self._numbers[t]) for t in found]

    def points_at(self, t: int) -> TimestampPoints | None:
        """Return the points of timestamp t; None if it does not exist."""
        return self._points[t] if self.has(t) else None

    def replicas_at(self, t: int) -> Sequence[TimestampPoints]:
        """Return the points of timestamp t in every replica; none where there are no replicas."""
        return [replica[t] for replica in self._replicas] if self.has(t) else ()

    def places_at(self, t: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return x and y of timestamp t; None if it does not exist."""
        points = self.points_at(t)
        return None if points is None else (points.x, points.y)

    def n_points(self, t: int) -> int:
        """Return how many points timestamp t has; 0 if it does not exist."""
        return int(self._numbers[t]["n_points"]) if self.has(t) else 0

    def metadata(self) -> Metadata:
        """Return the clock and the coordinate system of the points."""
        return Metadata(self.clock, self.crs)

    def open_receipt(self, t: int | None = None) -> BinaryIO | None:
        """Open the receipt of timestamp t, or of the newest; None if there is none."""
        t = self.newest if t is None else t
        if t is None or not self.has(t) or t not in self._receipts:
            return None
        return io.BytesIO(self._receipts[t])


def _by_timestamp(data: Trajectories, first: int, last: int) -> dict[int, TimestampPoints]:
    """Return the points of each timestamp of a range, whether there are any or not."""
    t = data.t
    order = np.argsort(t, kind="stable")  # streams of a timestamp stay in ascending order
    edges = np.searchsorted(t[order], np.arange(first, last + 2)).tolist()
    ids, x, y = data.traj_id[order], data.x[order], data.y[order]
    return {
        first + number: TimestampPoints(ids[low:high], x[low:high], y[low:high])
        for number, (low, high) in enumerate(itertools.pairwise(edges))
    }


def _reports_of(receipt: Receipt) -> dict[int, tuple[int, float]]:
    """Return how many reported at each timestamp, and what each of them spent."""
    rounds = receipt.rounds
    return {
        t: (n, spent)
        for t, n, spent in zip(rounds.t, rounds.n_reports, rounds.epsilon, strict=True)
    }


def recording_content(
    synthetic: Trajectories,
    grid: Grid,
    *,
    real: Trajectories | None,
    receipt: Receipt | None,
    title: str,
    replicas: Iterable[Trajectories] = (),
) -> ViewerContent:
    """Return what the page shows of a recording, beside the real data if there is any."""
    if receipt is not None and receipt.standard_error is None:
        replicas = ()  # they repeat noise alone, and say less than is chance
    source = InMemory.of_recording(synthetic, grid, receipt, replicas)
    known: dict[str, Any] = {
        "title": title,
        "showing": secrets.token_hex(16),
        "clock": synthetic.clock,
    }
    return ViewerContent(
        source=source,
        kind="recording",
        unfolds=False,
        status=partial(status_of, source, receipt, **known),
        feed=Feed(source.after, newest=source.newest),
        real=None if real is None else InMemory.of_recording(real, grid),
    )


@dataclass(slots=True)
class LiveSimulation:
    """A running simulation, shown release by release."""

    simulated: SimulatedRun
    pace: float  # seconds from one release to the next, at least
    title: str
    _showing: str = field(default_factory=partial(secrets.token_hex, 16), init=False)
    source: InMemory = field(init=False)
    feed: Feed = field(init=False)
    _receipt: Receipt = field(init=False)  # of what is shown, not of what is being made

    def __post_init__(self) -> None:
        self.source = InMemory(self.simulated.simulation.curator.grid)
        self.feed = Feed(self.source.after)
        self._receipt = self.simulated.receipt()

    def status(self) -> dict[str, Any]:
        """Return /v1/status."""
        return status_of(
            self.source,
            self._receipt,
            title=self.title,
            showing=self._showing,
            period=self.pace,
        )

    def content(self, real: Trajectories) -> ViewerContent:
        """Return what the page shows, the real data beside it."""
        return ViewerContent(
            source=self.source,
            kind="recording",
            status=self.status,
            feed=self.feed,
            real=InMemory.of_recording(real, self.source.grid),
        )

    async def run(self) -> None:
        """Make and show release after release until there are no more."""
        loop, releases = asyncio.get_running_loop(), self.simulated.releases()
        due = loop.time()
        while (made := await asyncio.to_thread(self._make, releases)) is not None:
            await asyncio.sleep(due - loop.time())
            due = max(due + self.pace, loop.time())
            release, self._receipt = made
            self.source.add_release(release, self._receipt)
            self.feed.publish(release.t)

    def _make(self, releases: Iterator[Release]) -> tuple[Release, Receipt] | None:
        release = next(releases, None)
        return None if release is None else (release, self.simulated.receipt())


def status_of(
    source: ReleaseSource,
    receipt: Receipt | None,
    *,
    title: str,
    showing: str,  # names this showing: a page that sees another one begins anew
    clock: Clock | None = None,
    period: float = 1,
) -> dict[str, Any]:
    """Return /v1/status of a source that is no campaign; 0 where nothing is known."""
    return {
        "campaign": title,
        "manifest": showing,
        "method": "" if receipt is None else receipt.method,
        "guarantee": UNKNOWN if receipt is None else _promise(receipt),
        "epsilon": 0.0 if receipt is None else receipt.epsilon,
        "window": 0 if receipt is None else receipt.window,
        "unit": "" if receipt is None else receipt.unit,
        "presence": "" if receipt is None else _presence(receipt.method),
        "period": max(1, math.ceil(period if clock is None else clock.period)),
        "epoch": 0 if clock is None else int(dt.datetime.fromisoformat(clock.epoch).timestamp()),
        "box": list(source.grid.box),
        "grid": source.grid.side,
        "round": None,
        "next_round_in": 0.0,
        "n_reports": 0 if receipt is None else receipt.n_reports,
        "n_releases": len(source.timestamps),
        "oldest_release": source.oldest,
        "newest_release": source.newest,
        "ready": True,
        "reason": "",
    }


def _promise(receipt: Receipt) -> str:
    """Return the guarantee, after what a number as the seed does to it."""
    seeded = receipt.seed is not None and receipt.private
    return f"{receipt.due_headline}. {receipt.guarantee}" if seeded else receipt.guarantee


def _presence(method: str) -> str:
    """Return what a method makes public of presence; empty for one that we do not know."""
    try:
        return find_method(method).presence
    except RetraSynError:
        return ""
