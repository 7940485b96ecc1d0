"""A sink for replicas: their points wait on the disk until one replica at a time is wanted."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from retrasyn.data.parts import drop_after, parts_in
from retrasyn.data.reading_files import read
from retrasyn.data.trajectories import Trajectories
from retrasyn.sinks.parts import ROWS, PartSink

if TYPE_CHECKING:
    from collections.abc import Iterable

    from retrasyn.data.metadata import Metadata
    from retrasyn.messages import Release


@dataclass(slots=True, weakref_slot=True, eq=False)
class SpooledReplicas(Sequence[Trajectories]):
    """Replicas as trajectories, each read when it is asked for."""

    sinks: list[PartSink]
    known: Metadata
    _n_rows: int = field(default=0)

    @classmethod
    def open(cls, n: int, known: Metadata, folder: Path | None) -> SpooledReplicas:
        """Open n sinks in a folder, or in one that goes when nobody needs it any more."""
        place = Path(tempfile.mkdtemp(prefix="retrasyn-replicas-")) if folder is None else folder
        sinks = [PartSink(place / f"{number:04d}.parquet", 0, known) for number in range(1, n + 1)]
        for sink in sinks:
            sink.folder.mkdir(parents=True, exist_ok=True)
        spooled = cls(sinks, known)
        if folder is None:
            weakref.finalize(spooled, shutil.rmtree, place, ignore_errors=True)
        return spooled

    def write(self, releases: Iterable[Release]) -> None:
        """Store the points that all replicas released at one timestamp."""
        for sink, release in zip(self.sinks, releases, strict=True):
            self._n_rows += release.n_points
            sink.write(release.t, {"ids": release.ids, "x": release.x, "y": release.y})
        if self._n_rows >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is buffered."""
        self._n_rows = 0
        for sink in self.sinks:
            sink.flush()

    def go_on_from(self, t: int) -> None:
        """Remove what was stored after timestamp t, which will be made again."""
        for sink in self.sinks:
            drop_after(sink.folder, t)

    def __len__(self) -> int:
        return len(self.sinks)

    @overload
    def __getitem__(self, which: int) -> Trajectories: ...
    @overload
    def __getitem__(self, which: slice) -> list[Trajectories]: ...
    def __getitem__(self, which: int | slice) -> Trajectories | list[Trajectories]:
        if isinstance(which, slice):
            return [self._read(sink.folder) for sink in self.sinks[which]]
        return self._read(self.sinks[which].folder)

    def _read(self, folder: Path) -> Trajectories:
        if parts_in(folder):
            found = read(folder)
        else:
            nobody, nowhere = np.empty(0, np.int64), np.empty(0)
            found = Trajectories(nobody, nobody, np.zeros(1, np.int64), nowhere, nowhere)
        return dataclasses.replace(found, clock=self.known.clock, crs=self.known.crs)
