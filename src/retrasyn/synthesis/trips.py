"""Streams as trips on public roads: drive, arrive, and begin anew where people are missing.

A stream is an arc, the time spent on it, an anchor it heads for, and its own speed. At a timestamp
all drive, those that arrive end, a surplus ends, after a sudden change some end where there are too
many, and new trips make up the number. What is known of cells enters by where trips begin and
end, and by how fast streams drive in a cell.

No stream is ever faster than the speed of a typical one times `_FACTORS[1]` times
e^(sqrt(3) x spread) on a road of the fastest class, and 1.5^class times slower on others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.engines.base import total
from retrasyn.randomness.kernels import words_at
from retrasyn.synthesis import kernels, trip_kernels
from retrasyn.synthesis.ranking import RankedShard, end_smallest

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.engines.base import Workers
    from retrasyn.mobility.speeds import SpeedMemory
    from retrasyn.roads.next_hops import NextHops
    from retrasyn.space import Grid
    from retrasyn.synthesis.shard import StepInputs

    Vector = npt.NDArray[np.float64]

_FIRST_SPEED, _FIRST_SPREAD = 0.05, 0.3  # in cell widths per timestamp; of ln(own speed)
_N_STEPS = 1500  # that tell how fast streams are
_SPEED_FACTORS = np.geomspace(0.25, 4.0, 81)
_SPREADS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.75])
_SPREAD_SCALE = 0.2  # of the prior
_FIT_RATE = 0.15
_GROWTH = 1.1  # of a threshold's answers, after which speeds are fitted again
_FACTORS = (2 / 3, 3 / 2)  # of speed by cell
_FACTOR_MEMORY, _FACTOR_RATE, _FACTOR_SLACK = 0.9, 0.3, 0.2
_MISSING = (0.25, 4.0)  # how much births may favour a cell
_LEAST_SHARE = 1e-9  # of goals in a cell: there may be no anchor where trips end
_FEW = 100  # streams up to which nobody knows where some are missing
_ALARM = 0.5
_CROWDED = 1.1  # factor of speed in a cell that has had too many streams for a while
_RELIEF = 0.1  # share of a cell's streams that may end for relief
_GOAL_POWERS = (1, 3)  # of how many are missing, by which goals are favoured: as a rule, in alarm


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast streams drive, and from how many answers that is known."""

    speed: float  # of a typical stream on the fastest roads, per timestamp
    spread: float  # of the logarithm of streams' own speeds
    factors: Vector  # [n_cells], of speed
    answered: Vector  # [n_thresholds], answers at the last fit
    fitted: int = -1  # timestamp of the last fit

    @classmethod
    def before_any_answer(cls, roads: NextHops, grid: Grid, speeds: SpeedMemory | None) -> Pace:
        """Return a pace at which streams take twenty timestamps through a cell."""
        n_thresholds = 0 if speeds is None else len(speeds.thresholds)
        speed = _FIRST_SPEED * grid.cell_width / roads.mean_limit
        return cls(speed, _FIRST_SPREAD, np.ones(grid.n_cells), np.zeros(n_thresholds))

    def is_due(self, t: int, speeds: SpeedMemory | None, gap: int) -> bool:
        """Whether to fit: after a gap, or if the answers about a threshold have grown enough."""
        if speeds is None or not speeds.answers[:, 0].any():
            return False
        grown = speeds.answers[:, 0] >= _GROWTH * np.maximum(self.answered, 1.0)
        return bool(grown.any()) or t - self.fitted >= gap

    def fit(self, t: int, speeds: SpeedMemory, log_steps: Vector, first_speed: float) -> Pace:
        """Fit speed and spread to the answers; steps are at the present speed, own speeds removed.

        The prior is log-normal around the first speed; the fit moves a part of the way only.
        """
        answers = speeds.answers
        known = answers[:, 0] > 0
        n, bits = answers[known].T
        thresholds = np.log(np.array(speeds.thresholds)[known] / 1000.0)
        factors = np.log(_SPEED_FACTORS)
        expected = trip_kernels.share_above(log_steps, thresholds, factors, _SPREADS)
        score = (n * (expected - bits / n) ** 2).sum(axis=2) / (2.0 * speeds.variance)
        score += (factors[:, None] + np.log(self.speed / first_speed)) ** 2 / 2.0
        score += ((_SPREADS - _FIRST_SPREAD) / _SPREAD_SCALE) ** 2 / 2.0
        weights = np.exp(score.min() - score)
        weights /= weights.sum()  # [n_factors, n_spreads]
        change = float(weights.sum(axis=1) @ factors)
        return replace(
            self,
            speed=self.speed * float(np.exp(_FIT_RATE * change)),
            spread=float(weights.sum(axis=0) @ _SPREADS),
            answered=answers[:, 0].copy(),
            fitted=t,
        )

    def follow(self, counts: npt.NDArray[np.int64], flow: Vector) -> Pace:
        """Let streams drive faster where there are too many of them, and slower elsewhere."""
        log_ratio = np.log((counts + 0.5) / (flow * counts.sum() + 0.5))
        excess = np.sign(log_ratio) * np.maximum(np.abs(log_ratio) - _FACTOR_SLACK, 0.0)
        factors = self.factors**_FACTOR_MEMORY * np.exp(_FACTOR_RATE * excess)
        return replace(self, factors=np.clip(factors, *_FACTORS))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the pace as plain arrays."""
        return {
            "speed": np.array([self.speed, self.spread]),
            "factors": self.factors,
            "answered": self.answered,
            "fitted": np.array([self.fitted], np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Pace:
        """Restore a pace from plain arrays."""
        speed, spread = arrays["speed"].tolist()
        return cls(speed, spread, arrays["factors"], arrays["answered"], int(arrays["fitted"][0]))


class TripShard(RankedShard):
    """Drives streams along their ways, and begins new trips."""

    __slots__ = ()

    @property
    def _roads(self) -> NextHops:
        if self.roads is None:
            raise AssertionError("this shard was made without roads")
        return self.roads

    def remember_points(self) -> None:
        """Keep the points of the last timestamp, to tell how far streams will have driven."""
        n, self._midway = self.streams.n, True
        self._before = self.streams.x[:n].copy(), self.streams.y[:n].copy()

    def drive(self, speeds: Vector) -> npt.NDArray[np.int64]:
        """Drive every stream; return how many are in each cell and have not arrived."""
        streams, roads, grid = self.streams, self._roads, self.grid
        streams.follow_points()
        streams.follow_roads()
        moved = self._fresh_marks()
        corner, extent = grid.box[:2], np.subtract(grid.box[2:], grid.box[:2])
        box = np.concatenate([corner, extent, [grid.cell_width, grid.cell_height]])

        def work(part: slice) -> npt.NDArray[np.int64]:
            trip_kernels.drive(
                streams.cells[part],
                streams.anchor[part],
                streams.own[part],
                streams.arc[part],
                streams.offset[part],
                streams.x[part],
                streams.y[part],
                moved[part],
                speeds,
                roads.begin,
                roads.tail,
                roads.head,
                roads.duration,
                roads.anchors,
                roads.ranks,
                roads.x,
                roads.y,
                box,
                grid.side,
            )
            return kernels.count_cells(moved[part], grid.n_cells)

        return total(self._over_slices(work))

    def list_steps(self, key: int, n: int) -> tuple[npt.NDArray[np.uint64], Vector]:
        """Return the words of the n streams with the smallest ones, and step and own speed."""
        streams = self.streams
        places = np.flatnonzero(self._kept != kernels.ENDED)
        words = words_at(np.uint64(key), streams.ids[places].astype(np.uint64))
        if words.size > n:
            chosen = np.argpartition(words, n)[:n]
            places, words = places[chosen], words[chosen]
        x, y = self._before
        self._before = ()
        steps = (streams.x[places] - x[places], streams.y[places] - y[places], streams.own[places])
        return words, np.stack(steps, axis=1)

    def rank_by_time_left(self) -> None:
        """Rank streams by the time that is left of their trips; all are in one group."""
        streams, roads, n = self.streams, self._roads, self.streams.n
        left = np.empty(n)
        self._over_slices(
            lambda part: trip_kernels.times_left(
                streams.anchor[part],
                streams.own[part],
                streams.arc[part],
                streams.offset[part],
                roads.head,
                roads.duration,
                roads.times,
                left[part],
            )
        )
        self._keys, self._groups = left, np.zeros(n, np.uint16)

    def group_by_cell(self) -> None:
        """Assign every stream to the group of its cell."""
        alive = self._kept != kernels.ENDED
        self._groups = np.where(alive, self._kept, np.uint16(0))

    def count_kept(self) -> npt.NDArray[np.int64]:
        """Return how many streams are kept in each cell: [n_cells]."""
        return kernels.count_cells(self._kept, self.grid.n_cells)

    def leave_arrived(self) -> None:
        """Remove streams that have arrived or ended."""
        self._remove_ended()

    def begin_trips(
        self,
        t: int,
        first_id: int,
        n_born: int,
        keys: npt.NDArray[np.uint64],
        start_slots: npt.NDArray[np.uint64],
        goal_slots: npt.NDArray[np.uint64],
        survival: Vector,
        speed: float,
        spread: float,
    ) -> None:
        """Create this shard's part of n_born new streams."""
        streams, roads, first = self.streams, self._roads, self.streams.n
        ids = self._own_ids(first_id, first_id + n_born)
        streams.reserve(first + ids.size)
        streams.follow_points()
        streams.follow_roads()
        streams.n = first + ids.size
        born = slice(first, streams.n)
        streams.ids[born], streams.entered[born], streams.offset[born] = ids, t, 0.0
        trip_kernels.begin_trips(
            ids,
            keys,
            start_slots,
            goal_slots,
            survival,
            speed,
            spread,
            roads.by_cell,
            roads.cell_begin,
            roads.weight_below,
            roads.begin,
            roads.anchors,
            roads.times,
            roads.ranks,
            roads.x,
            roads.y,
            roads.stretch,
            roads.usual_time,
            roads.usual_power,
            streams.cells[born],
            streams.anchor[born],
            streams.own[born],
            streams.arc[born],
            streams.x[born],
            streams.y[born],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TripPlan:
    """A plan for streams that drive: in order, they drive, arrive, end, begin."""

    roads: NextHops
    target: int
    flow: Vector  # [n_cells], where streams should be; sums to 1
    ends: Vector  # [n_cells], where trips begin and end; sums to 1
    hazard: Vector  # of quitting, by age from 1 on
    alarm: float  # how surely people do other things than they used to, 0 to 1
    speeds: SpeedMemory | None
    gap: int
    pace: Pace

    def advance(
        self, shards: Workers[TripShard], step: StepInputs, next_id: int
    ) -> tuple[int, int, Pace]:
        """Advance all streams; return how many are left, how many are born, and the next pace."""
        pace = self.pace
        is_due = step.n_streams > 0 and pace.is_due(step.t, self.speeds, self.gap)
        if is_due:
            shards.each(TripShard.remember_points)
        counts = total(shards.each(TripShard.drive, pace.speed * pace.factors))  # [n_cells]
        if is_due:
            pace = self._fitted(shards, step)
        self._end_surplus(shards, int(counts.sum()))
        if self.alarm > _ALARM:
            self._relieve(shards)
        shards.each(TripShard.leave_arrived)
        counts = total(shards.each(TripShard.count_cells))
        n_alive = int(counts.sum())
        n_born = max(self.target - n_alive, 0)
        if n_born:
            self._give_birth(shards, step, next_id, n_born, counts, pace)
            counts = total(shards.each(TripShard.count_cells))
        return n_alive, n_born, pace.follow(counts, self.flow)

    def _fitted(self, shards: Workers[TripShard], step: StepInputs) -> Pace:
        """Fit speeds to the answers, by the steps of the streams with the smallest words."""
        lists = shards.each(TripShard.list_steps, step.key("steps"), _N_STEPS)
        words, steps = (np.concatenate(column) for column in zip(*lists, strict=True))
        chosen = steps[np.argsort(words)[:_N_STEPS]]  # no two ids have the same word
        x0, y0, x1, y1 = step.grid.box
        sizes = np.array([step.grid.cell_width, step.grid.cell_height]) / max(x1 - x0, y1 - y0)
        lengths = np.hypot(*(chosen[:, :2] * sizes).T)
        moving = lengths > trip_kernels.LEAST_STEP
        if self.speeds is None or not moving.any():
            return self.pace
        log_steps = np.log(lengths[moving]) - np.log(chosen[moving, 2])
        first = Pace.before_any_answer(self.roads, step.grid, self.speeds)
        return self.pace.fit(step.t, self.speeds, log_steps, first.speed)

    def _end_surplus(self, shards: Workers[TripShard], n_alive: int) -> None:
        """End the streams beyond the wanted number that have the least time left."""
        if n_alive > self.target:
            shards.each(TripShard.rank_by_time_left)
            end_smallest(shards, np.array([n_alive - self.target]), np.array([n_alive]))

    def _relieve(self, shards: Workers[TripShard]) -> None:
        """End streams where there are far too many, those with the least time left first."""
        counts = total(shards.each(TripShard.count_kept))
        wanted = self.flow * counts.sum()
        surely = 0.2 + 2.0 / np.sqrt(wanted + 1.0)
        crowded = np.log((counts + 0.5) / (wanted + 0.5)) > surely
        crowded &= self.pace.factors >= _CROWDED  # for a while: noise comes and goes
        most = np.floor(np.minimum(_RELIEF * counts, counts - wanted))
        ends = np.where(crowded, most, 0.0).astype(np.int64)
        if ends.any():
            shards.each(TripShard.rank_by_time_left)
            shards.each(TripShard.group_by_cell)
            end_smallest(shards, ends, counts)

    def _give_birth(
        self,
        shards: Workers[TripShard],
        step: StepInputs,
        next_id: int,
        n_born: int,
        counts: npt.NDArray[np.int64],
        pace: Pace,
    ) -> None:
        """Begin new trips where trips usually begin and streams are missing, and so end them."""
        n, roads = counts.sum(), self.roads
        missing = np.clip((self.flow * n + 0.5) / (counts + 0.5), *_MISSING)
        if n <= _FEW:
            missing = np.ones(counts.size)
        in_cell = np.bincount(roads.anchor_cells, minlength=counts.size)  # anchors
        favoured = missing ** _GOAL_POWERS[self.alarm > _ALARM]
        goals = (self.ends * favoured + _LEAST_SHARE) / np.maximum(in_cell, 1)
        purposes = ["start cell", "start node", "own speed", "duration"]
        purposes += [f"goal {k}" for k in range(2 * trip_kernels.N_GOALS)]
        shards.each(
            TripShard.begin_trips,
            step.t,
            next_id,
            n_born,
            np.array([step.key(purpose) for purpose in purposes], np.uint64),
            _alias(self.ends * missing**2),
            _alias(goals[roads.anchor_cells]),
            np.cumprod(np.append(1.0, 1.0 - self.hazard)),
            pace.speed,
            pace.spread,
        )


def _alias(weights: Vector) -> npt.NDArray[np.uint64]:
    """Return an alias table of one row."""
    choices = np.arange(weights.size, dtype=np.int32)
    n_slots = 1 << (weights.size - 1).bit_length()
    table = kernels.build_alias(weights[None, :], choices[None, :], choices[:1], n_slots)
    slots: npt.NDArray[np.uint64] = table[0]
    return slots
