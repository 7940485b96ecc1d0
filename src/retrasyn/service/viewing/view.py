"""A source with a memory: points, flows and frames that were needed lately are still there."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrasyn.service.viewing.flows import Flows, Placed, count_flows
from retrasyn.service.viewing.frames import encode_frame
from retrasyn.service.viewing.recent import Recent
from retrasyn.service.viewing.source import Source

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class View:
    """Frames and flows of a source, asked from several threads at once.

    A map that plays asks for one timestamp after the other, and the flows of each need the points
    of two: with the latest points at hand every file is read once.
    """

    source: Source
    _placed: Recent[Placed] = field(default_factory=lambda: Recent(16 * _MIB, lambda p: p.n_bytes))
    _flows: Recent[Flows] = field(default_factory=lambda: Recent(32 * _MIB, lambda f: f.nbytes))
    _frames: Recent[bytes] = field(default_factory=lambda: Recent(32 * _MIB, len))

    def frame(self, t: int, most: int) -> bytes | None:
        """Return the frame of a timestamp; None if it is not there."""
        return self._frames.get((t, most), lambda: self._encode(t, most))

    def flows(self, t: int) -> Flows | None:
        """Return the moves from t - 1 to t; None if one of them is not there."""
        return self._flows.get(t, lambda: self._count(t))

    def placed(self, t: int) -> Placed | None:
        """Return the points of a timestamp with their cells; None if it is not there."""
        return self._placed.get(t, lambda: self._place(t))

    def _encode(self, t: int, most: int) -> bytes | None:
        summary, placed = self.source.summary(t), self.placed(t)
        if summary is None or placed is None:
            return None
        return encode_frame(summary, placed, self.flows(t), self.source.grid, most=most)

    def _count(self, t: int) -> Flows | None:
        before, after = self.placed(t - 1), self.placed(t)
        if before is None or after is None:
            return None
        return count_flows(before, after, self.source.grid.side)

    def _place(self, t: int) -> Placed | None:
        points = self.source.points_at(t)
        return None if points is None else Placed.on(self.source.grid, points)
