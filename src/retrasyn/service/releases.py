"""The releases of a campaign on the disk: a Parquet file, a receipt and a summary each."""

from __future__ import annotations

import bisect
import datetime as dt
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from retrasyn.bounded_json import parse_json
from retrasyn.data.metadata import Clock, Metadata
from retrasyn.data.reading_files import read_columns
from retrasyn.data.replica_table import count_replicas, read_replica, write_replicas
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write
from retrasyn.errors import InputError, OutputError
from retrasyn.files import make_durable, write_whole
from retrasyn.messages import Release
from retrasyn.privacy.receipt import Receipt
from retrasyn.receipts.files import describe, receipt_place
from retrasyn.service.campaign import Campaign
from retrasyn.service.viewing.source import ReleaseSource, Summary, TimestampPoints
from retrasyn.space import Grid

_CACHED = 512  # summaries


@dataclass(slots=True)
class Releases(ReleaseSource):
    """The folder of one campaign's releases."""

    folder: Path
    campaign: Campaign
    timestamps: list[int] = field(default_factory=list)  # of what is there, ascending
    _recent: OrderedDict[int, Summary] = field(default_factory=OrderedDict, repr=False)
    _sizes: dict[int, int] = field(default_factory=dict, repr=False)  # points of releases

    @classmethod
    def open(cls, folder: Path, campaign: Campaign) -> Releases:
        """Make the folder if need be, and list the releases in it."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"folder {folder} cannot be made: {error.strerror}") from None
        return cls(folder, campaign, sorted(int(path.stem) for path in folder.glob("*.parquet")))

    def path(self, t: int) -> Path:
        """Return the path of release t, whether it exists or not."""
        return self.folder / f"{t:010d}.parquet"

    def lacks(self, t: int) -> bool:
        """Return whether release t is not there, or not with replicas where there are to be any."""
        replicas = self.campaign.n_replicas and not self._replicas_place(t).exists()
        return bool(replicas) or not self.path(t).exists()

    def write(self, release: Release, receipt: Receipt, replicas: Sequence[Release] = ()) -> None:
        """Write a release, durable when this returns; one that exists is not changed.

        The Parquet file comes last: where it is, the others are, too.
        """
        path = self.path(release.t)
        if replicas and not self._replicas_place(release.t).exists():
            self._write_replicas(release.t, replicas)
        if not path.exists():
            points = _trajectories(release, self._clock)

            def bind(finished: Path) -> None:
                make_durable(finished)
                bound = receipt.travelling_with(describe(finished, name=path.name))
                write_whole(receipt_place(path), bound.to_json().encode() + b"\n")
                summary = json.dumps(self._summary_of(release), indent=None)
                write_whole(self._summary_place(release.t), summary.encode() + b"\n")

            write(points, path, on_written=bind)
            make_durable(self.folder)
        place = bisect.bisect_left(self.timestamps, release.t)
        if self.timestamps[place : place + 1] != [release.t]:
            self.timestamps.insert(place, release.t)

    def _write_replicas(self, t: int, replicas: Sequence[Release]) -> None:
        """Write the replicas of a release."""
        place = self._replicas_place(t)
        place.parent.mkdir(exist_ok=True)
        write_replicas(place, t, [(one.ids, one.x, one.y) for one in replicas], self.metadata())
        make_durable(place.parent)

    @property
    def grid(self) -> Grid:
        """The campaign's box and its cells."""
        return self.campaign.grid

    def summary(self, t: int) -> Summary | None:
        """Return the summary of release t, with points per cell; None if it does not exist."""
        if not self.has(t):
            return None
        found = self._recent.get(t)
        if found is None:
            try:
                found = parse_json(self._summary_place(t).read_bytes())
            except (OSError, ValueError):
                return None
            self._recent[t] = found  # readers in other threads may add and drop others meanwhile
            while len(self._recent) > _CACHED:
                self._recent.popitem(last=False)
        return found

    def points_at(self, t: int) -> TimestampPoints | None:
        """Return the points of release t; None if it does not exist."""
        columns = self._columns(t, "traj_id", "x", "y")
        return None if columns is None else TimestampPoints(*columns)

    def places_at(self, t: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return x and y of release t; None if it does not exist."""
        columns = self._columns(t, "x", "y")
        return None if columns is None else (columns[0], columns[1])

    def replicas_at(self, t: int) -> Sequence[TimestampPoints]:
        """Return the points of release t in every replica; none where there are no replicas."""
        numbers = range(1, self.n_replicas(t) + 1)
        return [found for n in numbers if (found := self.replica_at(t, n)) is not None]

    def n_replicas(self, t: int) -> int:
        """Return how many replicas release t has."""
        try:
            return count_replicas(self._replicas_place(t)) if self.has(t) else 0
        except InputError:
            return 0

    def replica_at(self, t: int, number: int) -> TimestampPoints | None:
        """Return the points of release t in one replica, from 1 on; None if there is none."""
        try:
            found = read_replica(self._replicas_place(t), number) if self.has(t) else None
        except InputError:  # deleted, perhaps
            return None
        return None if found is None else TimestampPoints(*found)

    def _columns(self, t: int, *names: str) -> list[npt.NDArray[Any]] | None:
        """Read columns of a release, which an operator may have deleted meanwhile."""
        if not self.has(t):
            return None
        try:
            return read_columns(self.path(t), names)
        except InputError:
            return None

    def metadata(self) -> Metadata:
        """Return the clock and the coordinate system of the points."""
        return Metadata(self._clock, None)

    def n_points(self, t: int) -> int:
        """Return how many points release t has; 0 if it does not exist."""
        found = self._sizes.get(t) or super(Releases, self).n_points(t)
        self._sizes[t] = found
        return found

    def open_receipt(self, t: int | None = None) -> BinaryIO | None:
        """Open the receipt of release t, or of the newest; None if it does not exist."""
        t = self.newest if t is None else t
        if t is None or not self.has(t):
            return None
        try:
            return receipt_place(self.path(t)).open("rb")
        except OSError:
            return None

    @property
    def _clock(self) -> Clock:
        manifest = self.campaign.manifest
        begin = dt.datetime.fromtimestamp(manifest.epoch, dt.UTC)
        return Clock(begin.isoformat(), float(manifest.period))

    def _replicas_place(self, t: int) -> Path:
        return self.folder / "replicas" / f"{t:010d}.parquet"

    def _summary_place(self, t: int) -> Path:
        return self.folder / f"{t:010d}.summary.json"

    def _summary_of(self, release: Release) -> Summary:
        """Return the summary of a release."""
        n_cells = self.campaign.grid.n_cells
        return {
            "t": release.t,
            "time": self._clock.time_of(release.t).isoformat(),
            "n_points": release.n_points,
            "n_born": release.n_born,
            "n_ended": release.n_ended,
            "n_reports": release.n_reports,
            "epsilon": release.epsilon_t,
            "cells": np.bincount(release.cells, minlength=n_cells).tolist(),
        }


def _trajectories(release: Release, clock: Clock) -> Trajectories:
    """Return the points of one timestamp; their ids ascend."""
    n = release.ids.size
    return Trajectories(
        stream_ids=release.ids,
        begins=np.full(n, release.t, np.int64),
        starts=np.arange(n + 1),
        x=release.x,
        y=release.y,
        clock=clock,
    )
