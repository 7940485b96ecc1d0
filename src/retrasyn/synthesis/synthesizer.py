"""One timestamp of the synthetic stream: quits, moves, size adjustment, births, points."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.mobility.model import MobilityModel
from retrasyn.randomness.addresses import address
from retrasyn.space import Grid
from retrasyn.synthesis import kernels
from retrasyn.synthesis.lifecycle import OrderedPlan, Plan
from retrasyn.synthesis.ordered.steps import OrderedSteps
from retrasyn.synthesis.streams import Streams
from retrasyn.synthesis.workers import over_slices

_BRACKET = 5.0  # standard deviations to either side of the first guess of the surplus threshold


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """Extends streams by one timestamp. All draws are addressed by (seed, t, purpose, id)."""

    grid: Grid
    seed: int
    n_threads: int | None = None
    steers: bool = False
    continuous: bool = False
    _scratch: list[npt.NDArray[np.uint16]] = field(default_factory=list, compare=False, repr=False)

    def step(
        self, streams: Streams, model: MobilityModel, plan: Plan | OrderedPlan, t: int
    ) -> tuple[int, int]:
        """Advance every stream to t in place; return how many were born and how many ended."""
        if isinstance(plan, OrderedPlan):
            n_ended = self.ordered.advance(streams, plan, t)
            first = streams.n
            self._give_birth(streams, plan.enter, plan.target - first, t)
            self.ordered.place_newborn(streams, first, t)
            return streams.n - first, n_ended
        before = streams.n
        moved, n_alive = self._decide(streams, model, plan, t)
        target = n_alive if plan.target is None else plan.target
        if n_alive > target:
            self._end_surplus(streams, moved, plan, t, n_alive=n_alive, n_surplus=n_alive - target)
            n_alive = target
        if n_alive < before:
            streams.n = kernels.compact(*streams.living(), moved)
        else:
            streams.cells[:before] = moved
        n_born = target - n_alive
        self._give_birth(streams, plan.enter, n_born, t)
        return n_born, before - n_alive

    @property
    def ordered(self) -> OrderedSteps:
        """The steps of plans that have an order."""
        return OrderedSteps(self.grid, self.seed, self.steers, self.continuous, self.n_threads)

    def points(
        self, streams: Streams, t: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return a point in the cell of every stream: where its path led, or uniformly drawn."""
        if self.continuous:
            return self.ordered.points(streams)
        ids, cells, _ = streams.living()
        x, y = np.empty(streams.n), np.empty(streams.n)
        key = np.uint64(address(self.seed, t, "point"))
        over_slices(
            lambda part: kernels.draw_points(
                ids[part],
                cells[part],
                key,
                self.grid.corners,
                self.grid.cell_width,
                self.grid.cell_height,
                x[part],
                y[part],
            ),
            streams.n,
            self.n_threads,
        )
        return x, y

    def _decide(
        self, streams: Streams, model: MobilityModel, plan: Plan, t: int
    ) -> tuple[npt.NDArray[np.uint16], int]:
        """Return the next cell of every stream, or the mark of one that quits."""
        moved = self._buffer(streams.n)
        ids, cells, entered = streams.living()
        table = kernels.build_alias(
            self._wandering(model.move) if plan.wanders else model.move,
            self.grid.neighbour_table,
            np.arange(self.grid.n_cells, dtype=np.int32),
            kernels.MOVE_SLOTS,
        )
        key = np.uint64(address(self.seed, t, "move"))
        alive = over_slices(
            lambda part: kernels.decide(
                ids[part],
                cells[part],
                entered[part],
                moved[part],
                t,
                key,
                table,
                plan.quit_odds,
                1.0 / plan.length_scale,
                1.0 if plan.against_moves else np.inf,
                1.0 if plan.against_moves else 0.0,
            ),
            streams.n,
            self.n_threads,
        )
        return moved, sum(alive)

    def _wandering(self, move: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Let every neighbour be as likely where no move is known: [n_cells, 9]."""
        unknown = move.sum(axis=1, keepdims=True) == 0
        exists = (self.grid.neighbour_table >= 0).astype(np.float64)
        return np.where(unknown, exists / exists.sum(axis=1, keepdims=True), move)

    def _end_surplus(
        self,
        streams: Streams,
        moved: npt.NDArray[np.uint16],
        plan: Plan,
        t: int,
        *,
        n_alive: int,
        n_surplus: int,
    ) -> None:
        """Mark the n_surplus living streams with the smallest keys -ln(U) / weight as ended.

        That is drawing without replacement by weight. Two floors found from the cell counts
        bracket the n_surplus-th key; only the few streams between them are ranked. Should the
        bracket miss, it is widened: the outcome never depends on the guess.
        """
        ids, cells, _ = streams.living()
        weighed = moved if plan.surplus_by_newest else cells
        key = np.uint64(address(self.seed, t, "surplus"))
        stride = max(1, streams.n >> 16)
        counts = kernels.count_alive(weighed, moved, self.grid.n_cells, stride)
        margin = _BRACKET * (n_surplus**0.5 + n_surplus * (stride / n_alive) ** 0.5 + 1)
        while True:
            low, high = (n_surplus - margin) / n_alive, (n_surplus + margin) / n_alive
            room = int(min(n_alive, n_surplus + 3 * margin))
            n_found, n_sure, places, keys = kernels.keys_above(
                ids,
                weighed,
                moved,
                key,
                plan.surplus_weights,
                kernels.find_floors(counts, plan.surplus_weights, high),
                kernels.find_floors(counts, plan.surplus_weights, low),
                room,
            )
            if n_sure <= n_surplus <= n_found <= room:
                break
            margin *= 4
        last = np.partition(keys, n_surplus - 1)[n_surplus - 1]
        below = keys < last
        moved[places[below]] = kernels.ENDED
        tied = places[keys == last]  # in ascending order of id; one, unless two keys collide
        moved[tied[: n_surplus - np.count_nonzero(below)]] = kernels.ENDED

    def _give_birth(
        self, streams: Streams, enter: npt.NDArray[np.float64], n_born: int, t: int
    ) -> None:
        """Append n_born streams that begin at t."""
        if n_born <= 0:
            return
        first = streams.n
        streams.reserve(first + n_born)
        cells = np.arange(self.grid.n_cells, dtype=np.int32)[None, :]  # [1, n_cells]
        n_slots = 1 << (self.grid.n_cells - 1).bit_length()
        table = kernels.build_alias(enter[None, :], cells, cells[0], n_slots)
        streams.n = first + n_born
        streams.ids[first : streams.n] = np.arange(streams.next_id, streams.next_id + n_born)
        streams.entered[first : streams.n] = t
        kernels.draw_births(
            streams.next_id,
            streams.cells[first : streams.n],
            np.uint64(address(self.seed, t, "birth")),
            table,
        )
        streams.next_id += n_born

    def _buffer(self, n: int) -> npt.NDArray[np.uint16]:
        """Return scratch space for n cells, kept between timestamps."""
        if not self._scratch or self._scratch[0].size < n:
            self._scratch[:] = [np.empty(n + n // 4 + 1, np.uint16)]
        return self._scratch[0][:n]
