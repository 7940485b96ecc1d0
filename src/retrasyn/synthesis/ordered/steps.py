"""Streams taken through one timestamp in order: quits, surplus, steered moves; then points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.randomness.addresses import address
from retrasyn.synthesis import kernels as shared
from retrasyn.synthesis.lifecycle import AGE_EDGES, OrderedPlan
from retrasyn.synthesis.ordered import kernels
from retrasyn.synthesis.workers import over_slices

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Grid
    from retrasyn.synthesis.streams import Streams

_ROUNDS = 16
_KEPT_PULL = 0.95  # power of the last pull that the next timestamp begins with
_MOST = 0.98
_FLOOR = 1e-12  # lets a stream that would never quit end, last of all


@lru_cache(maxsize=1)
def _angles() -> npt.NDArray[np.float64]:
    """Return cosine and sine of evenly spread directions: [4096, 2]."""
    turn = (np.arange(kernels.ANGLES) + 0.5) * (2.0 * np.pi / kernels.ANGLES)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)


@dataclass(frozen=True, slots=True)
class OrderedSteps:
    """Moves a population in order. All draws are addressed by (seed, t, purpose, id)."""

    grid: Grid
    seed: int
    steers: bool
    continuous: bool
    n_threads: int | None = None

    def advance(self, streams: Streams, plan: OrderedPlan, t: int) -> int:
        """Let streams quit, end a surplus and move the rest; return how many ended."""
        n_before = streams.n
        kept = np.empty(n_before, np.uint16)
        if plan.ends is None:
            self._quit(streams, plan, kept, t)
        else:
            self._end_as_seen(streams, plan, kept, t)
        n_alive = n_before if not n_before else int(np.count_nonzero(kept != shared.ENDED))
        if n_alive < n_before:
            if self.continuous:
                kernels.compact_points(streams.x[:n_before], streams.y[:n_before], kept)
            streams.n = shared.compact(*streams.living(), kept)
        self._move(streams, plan, t)
        return n_before - n_alive

    def place_newborn(self, streams: Streams, first: int, t: int) -> None:
        """Give the streams from one on their first point."""
        if not self.continuous:
            return
        streams.follow_points()
        part = slice(first, streams.n)
        kernels.place_newborn(
            streams.ids[part],
            streams.cells[part],
            self._key(t, "first point"),
            self.grid.side,
            streams.x[part],
            streams.y[part],
        )

    def points(self, streams: Streams) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return where every stream is, in the units of the data."""
        box = self.grid.box
        return (
            box.x0 + streams.x[: streams.n] * self.grid.cell_width,
            box.y0 + streams.y[: streams.n] * self.grid.cell_height,
        )

    def _key(self, t: int, purpose: str) -> np.uint64:
        return np.uint64(address(self.seed, t, purpose))

    def _quit(
        self, streams: Streams, plan: OrderedPlan, kept: npt.NDArray[np.uint16], t: int
    ) -> None:
        """Draw who quits, then end what is too many by the same probabilities."""
        ids, cells, entered = streams.living()
        law = plan.by_age, plan.by_cell
        factor, cap = 1.0, plan.cap
        if plan.keeps_sum and ids.size:
            plain, tilted = kernels.sum_hazards(cells, entered, t, *law, 1.0, np.inf)
            factor = plain / tilted if tilted > 0 else 1.0
            _, expected = kernels.sum_hazards(cells, entered, t, *law, factor, cap)
            if 0 < expected < plan.at_least:
                more = plan.at_least / expected
                factor, cap = factor * more, min(_MOST, cap * more)
        alive = over_slices(
            lambda part: kernels.draw_quits(
                ids[part],
                cells[part],
                entered[part],
                t,
                self._key(t, "quit"),
                *law,
                factor,
                cap,
                kept[part],
            ),
            ids.size,
            self.n_threads,
        )
        n_surplus = sum(alive) - plan.target
        if n_surplus > 0:
            keys = kernels.surplus_keys(
                ids, entered, kept, t, self._key(t, "surplus"), *law, factor, cap, _FLOOR
            )
            kept[np.argpartition(keys, n_surplus - 1)[:n_surplus]] = shared.ENDED

    def _end_as_seen(
        self, streams: Streams, plan: OrderedPlan, kept: npt.NDArray[np.uint16], t: int
    ) -> None:
        """End as many streams of each age bucket as asked; what one lacks, others make up for.

        More end only where the size demands it, which it does not if it counts the active.
        """
        assert plan.ends is not None  # noqa: S101 - the caller's case
        ids, cells, entered = streams.living()
        kept[:] = cells
        if not ids.size:
            return
        keys = kernels.surplus_keys(
            ids,
            entered,
            kept,
            t,
            self._key(t, "surplus"),
            plan.by_age,
            plan.by_cell,
            1.0,
            plan.cap,
            0.0,
        )
        order = np.argsort(keys, kind="stable")
        buckets = np.searchsorted(AGE_EDGES, t - entered[order], side="right") - 1
        places = np.argsort(buckets, kind="stable")  # by bucket, smallest keys first
        sizes = np.bincount(buckets, minlength=AGE_EDGES.size)
        rank = np.arange(ids.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen = np.empty(ids.size, np.bool_)
        chosen[places] = rank < np.repeat(plan.ends, sizes)
        kept[order[chosen]] = shared.ENDED
        n_ends = max(min(int(plan.ends.sum()), ids.size), ids.size - plan.target)
        n_missing = n_ends - int(np.count_nonzero(chosen))
        kept[order[~chosen][:n_missing]] = shared.ENDED

    def _move(self, streams: Streams, plan: OrderedPlan, t: int) -> None:
        """Move everybody who is left."""
        ids, cells, _ = streams.living()
        table = self.grid.neighbour_table
        near = table >= 0
        kernel = near / near.sum(axis=1, keepdims=True)
        if plan.mass is not None:
            rows = plan.mass.sum(axis=1, keepdims=True)
            kernel = np.where(rows > 0, plan.mass / np.where(rows > 0, rows, 1.0), kernel)
            if self.steers:
                movers = kernels.count_kept(cells, self.grid.n_cells)
                plan.pull[:] **= _KEPT_PULL
                kernel = kernels.steer(kernel, plan.mass, movers, table, plan.pull, _ROUNDS)
        alias = shared.build_alias(
            kernel, table, np.arange(self.grid.n_cells, dtype=np.int32), shared.MOVE_SLOTS
        )
        moved = np.empty(ids.size, np.uint16)
        lengths = np.pi / 4.0 * (1.0 - kernel[:, 4])
        move_key, step_key = self._key(t, "move"), self._key(t, "step")

        def work(part: slice) -> None:
            kernels.move_streams(ids[part], cells[part], move_key, alias, moved[part])
            if self.continuous:
                kernels.step_points(
                    ids[part],
                    cells[part],
                    moved[part],
                    step_key,
                    lengths,
                    _angles(),
                    self.grid.side,
                    streams.x[: ids.size][part],
                    streams.y[: ids.size][part],
                )

        over_slices(work, ids.size, self.n_threads)
        cells[:] = moved
