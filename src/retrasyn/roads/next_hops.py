"""Ways through a road network to a thousand anchors: which arc comes next, how long it takes.

The tables depend on the network and the grid alone, both public. Anchors are drawn by length of
road, the first of them one in every cell that has a node. Every node knows the time that is left to
each of them and the rank of the next arc: five bytes per anchor and node. Ways between anchors also
tell how long it usually takes to go so far as the crow flies.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import check_seal, load_arrays, save_arrays
from retrasyn.errors import CheckpointError, InputError, OutputError
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.roads import way_kernels
from retrasyn.roads.coordinates import is_degrees
from retrasyn.roads.network import CLASS_RATIO, Arcs, RoadNetwork

if TYPE_CHECKING:
    from retrasyn.space import Grid

N_ANCHORS = 1024
MOST_BYTES = 1 << 30
"""Bytes that both tables may take together: a large network has fewer anchors for it."""
FEWEST_BY_CELL = 4
"""Anchors by cell that has nodes, on average, that there are all the same."""
UTMOST_BYTES = 3 << 30
"""Bytes that the tables may take for those."""
LARGE = 20_000
"""Nodes above which tables are kept on disk, since finding them anew takes much longer."""
Progress = Callable[[int, int], None]
"""Called after every anchor with the number done and the total."""
_MOST_ARCS = 256  # that may leave a node: their ranks are bytes
_INSIDE = 2.0**-40  # of the box, which nodes keep off its upper edges, so rounding cannot cross one
_LEAST_WEIGHT = 1e-9  # of a node, relative to the mean, so that none is ruled out
_LEAST_SPREAD = 1e-12  # of distances, in logarithms, that tells a power
_POWERS = (0.5, 1.0)  # of distance: a longer way is rather a faster one, on larger roads
_FORM = b"retrasyn next hops 1"

Tables = tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True, eq=False)
class NextHops:
    """Roads over a grid, their anchors, and the ways from every node to them."""

    x: npt.NDArray[np.float64]  # [n_nodes], in cell widths
    y: npt.NDArray[np.float64]  # [n_nodes]
    begin: npt.NDArray[np.int32]  # [n_nodes + 1], first arc of every node
    tail: npt.NDArray[np.int32]  # [n_arcs]
    head: npt.NDArray[np.int32]  # [n_arcs]
    duration: npt.NDArray[np.float64]  # [n_arcs], in units of the fastest class
    mean_limit: float  # mean speed by length of road, that of the fastest class being 1
    drivable: npt.NDArray[np.bool_]  # [n_cells], whether a road crosses the cell
    by_cell: npt.NDArray[np.int32]  # [n_nodes], nodes in the order of their cells
    cell_begin: npt.NDArray[np.int32]  # [n_cells + 1], first place of every cell in by_cell
    weight_below: npt.NDArray[np.float64]  # [n_nodes + 1], of the nodes before each place
    anchors: npt.NDArray[np.int32]  # [n_anchors], nodes, ascending
    anchor_cells: npt.NDArray[np.uint16]  # [n_anchors]
    times: npt.NDArray[np.float32]  # [n_anchors, n_nodes], left to the anchor
    ranks: npt.NDArray[np.uint8]  # [n_anchors, n_nodes], of the next arc among the node's
    stretch: float  # height of a cell on the ground, in its widths
    usual_time: float  # that a way takes to a place one cell width away as the crow flies
    usual_power: float  # of the distance, to which that time grows

    @classmethod
    def of(
        cls,
        network: RoadNetwork,
        grid: Grid,
        *,
        n_threads: int = 1,
        progress: Progress | None = None,
    ) -> NextHops:
        """Find the ways to all anchors, or read them where they were found before."""
        box, arcs = grid.box, Arcs.of(network)
        if np.diff(arcs.begin).max() > _MOST_ARCS:
            raise InputError(f"more than {_MOST_ARCS} roads leave one node; split the node")
        x = _in_cells("x", network.x, box.x0, box.x1, grid.side, grid.cell_width)
        y = _in_cells("y", network.y, box.y0, box.y1, grid.side, grid.cell_height)
        cells = grid.cells_of(box.x0 + x * grid.cell_width, box.y0 + y * grid.cell_height)
        crossed = np.zeros((grid.side, grid.side), np.bool_)
        way_kernels.mark_crossed(x, y, network.tail, network.head, crossed)
        by_cell = np.argsort(cells, kind="stable").astype(np.int32)
        begins = np.searchsorted(cells[by_cell], np.arange(grid.n_cells + 1))
        weights = node_weights(network)
        anchors = draw_anchors(weights, cells)
        slow = slownesses(network)
        duration = np.maximum(network.length * slow, np.finfo(float).tiny)[arcs.edge]
        times, ranks = _tables(arcs, duration, anchors, n_threads, progress)
        stretch = grid.cell_height / grid.cell_width
        if is_degrees(network.crs, box):
            stretch /= math.cos(math.radians((box.y0 + box.y1) / 2))
        usual = usual_times(times[:, anchors], x[anchors], stretch * y[anchors])
        return cls(
            x=x,
            y=y,
            begin=arcs.begin,
            tail=arcs.tail,
            head=arcs.head,
            duration=duration,
            mean_limit=float(network.length @ (1.0 / slow) / network.length.sum()),
            drivable=crossed.ravel(),
            by_cell=by_cell,
            cell_begin=begins.astype(np.int32),
            weight_below=np.append(0.0, np.cumsum(weights[by_cell])),
            anchors=anchors,
            anchor_cells=cells[anchors],
            times=times,
            ranks=ranks,
            stretch=stretch,
            usual_time=usual[0],
            usual_power=usual[1],
        )

    @property
    def cell_weights(self) -> npt.NDArray[np.float64]:
        """Share of all road, by its nodes, in every cell: [n_cells]."""
        weights = np.diff(self.weight_below[self.cell_begin])
        shares: npt.NDArray[np.float64] = weights / self.weight_below[-1]
        return shares

    def shares_on(
        self, allowed: npt.NDArray[np.bool_], shares: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.float64]:
        """Return shares on the allowed cells only, of sum 1; by road where there are none."""
        left = np.zeros(allowed.size) if shares is None else np.where(allowed, shares, 0.0)
        whole = left.sum()
        return left / whole if whole > 0 else self.cell_weights


def slownesses(network: RoadNetwork) -> npt.NDArray[np.float64]:
    """Return how much slower every edge is than the fastest class; guessed classes do not count."""
    if not network.classed:
        return np.ones(network.n_edges)
    slow: npt.NDArray[np.float64] = CLASS_RATIO ** network.road_class.astype(np.float64)
    return slow


def node_weights(network: RoadNetwork) -> npt.NDArray[np.float64]:
    """Return the length of road at every node, never quite zero: [n_nodes]."""
    ends = np.concatenate([network.tail, network.head])
    weights = np.bincount(ends, np.tile(network.length, 2), network.n_nodes)
    least = _LEAST_WEIGHT * weights.mean()
    whole: npt.NDArray[np.float64] = np.maximum(weights, least)
    return whole


def draw_anchors(
    weights: npt.NDArray[np.float64], cells: npt.NDArray[np.uint16]
) -> npt.NDArray[np.int32]:
    """Draw nodes by weight without replacement, first one in every cell; return them ascending.

    The nodes with the smallest -ln(U) / weight are drawn, where U is always the same.
    """
    n_nodes = weights.size
    words = words_at(np.uint64(address(0, 0, "roads/anchors")), np.arange(n_nodes, dtype=np.uint64))
    uniforms = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    order = np.argsort(-np.log(uniforms) / weights, kind="stable")
    places = np.unique(cells[order], return_index=True)[1]  # the first node of every cell
    is_first = np.zeros(n_nodes, np.bool_)
    is_first[places] = True
    order = np.concatenate([order[is_first], order[~is_first]])
    room, utmost = (max(size // (5 * n_nodes), 2) for size in (MOST_BYTES, UTMOST_BYTES))
    wanted = max(N_ANCHORS, places.size)
    fewest = min(wanted, FEWEST_BY_CELL * places.size)
    n_anchors = min(max(min(wanted, room), fewest), utmost, n_nodes)
    return np.sort(order[:n_anchors]).astype(np.int32)


def usual_times(
    times: npt.NDArray[np.float32], x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """Fit times between places by a multiple of a power of the distance; return both.

    Logarithms are fitted by least squares. As many more places are far apart than close together,
    a pair counts as much as the inverse of its distance: then all distances count alike.
    """
    far = np.hypot(x[:, None] - x, y[:, None] - y)
    apart = (far > 0) & (times > 0)
    if not apart.any():
        return 1.0, 1.0
    log_far, log_times = np.log(far[apart]), np.log(times[apart].astype(np.float64))
    weights = 1.0 / far[apart]
    weights /= weights.sum()
    middle, mean = (weights * log_far).sum(), (weights * log_times).sum()
    spread = (weights * (log_far - middle) ** 2).sum()
    power = _POWERS[1]
    if spread > _LEAST_SPREAD:
        slope = (weights * (log_far - middle) * (log_times - mean)).sum() / spread
        power = float(np.clip(slope, *_POWERS))
    return float(np.exp(mean - power * middle)), power


def _in_cells(
    name: str, places: npt.NDArray[np.float64], low: float, high: float, side: int, width: float
) -> npt.NDArray[np.float64]:
    """Return coordinates in cell widths, inside the box even where rounding would leave it."""
    if places.min() < low or places.max() > high:
        raise InputError(
            f"the road network reaches from {name}={places.min():g} to {places.max():g}, beyond "
            f"the box ({low:g} to {high:g}); clip it to the box"
        )
    return np.minimum((places - low) / width, side * (1.0 - _INSIDE))


def _tables(
    arcs: Arcs,
    duration: npt.NDArray[np.float64],
    anchors: npt.NDArray[np.int32],
    n_threads: int,
    progress: Progress | None,
) -> Tables:
    """Return the tables of all anchors; those of a large network are kept on disk."""
    if arcs.begin.size - 1 <= LARGE:
        return find_tables(arcs, duration, anchors, n_threads, progress)
    digest = hashlib.blake2b(_FORM, digest_size=16)
    for array in (arcs.begin, arcs.head, duration, anchors):
        digest.update(np.ascontiguousarray(array).tobytes())
    path = cache_folder() / f"next-hops-{digest.hexdigest()}.npz"
    with contextlib.suppress(CheckpointError, OSError):  # absent or damaged: found anew
        return _read(path, arcs, anchors)
    times, ranks = find_tables(arcs, duration, anchors, n_threads, progress)
    with contextlib.suppress(OutputError, OSError):  # a disk that is full is no reason to stop
        path.parent.mkdir(parents=True, exist_ok=True)
        save_arrays(path, {"times": times, "ranks": ranks})
    return times, ranks


def cache_folder() -> Path:
    """Return the folder where the user's programs keep what can be made again."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named else Path.home() / ".cache") / "retrasyn"


def _read(path: Path, arcs: Arcs, anchors: npt.NDArray[np.int32]) -> Tables:
    """Read tables; kernels trust every rank, so all are checked."""
    arrays = load_arrays(path)
    check_seal(path, arrays)
    times, ranks = arrays.get("times"), arrays.get("ranks")
    shape = anchors.size, arcs.begin.size - 1
    for table, kind in ((times, np.float32), (ranks, np.uint8)):
        if table is None or table.shape != shape or table.dtype != kind:
            raise CheckpointError(f"{path} holds other tables")
    if times is None or ranks is None or (ranks.max(axis=0) >= np.diff(arcs.begin)).any():
        raise CheckpointError(f"{path} holds other tables")
    return times, ranks


def find_tables(
    arcs: Arcs,
    duration: npt.NDArray[np.float64],
    anchors: npt.NDArray[np.int32],
    n_threads: int,
    progress: Progress | None = None,
) -> Tables:
    """Find the ways to all anchors, each by one thread."""
    into = np.argsort(arcs.head, kind="stable").astype(np.int32)
    n_nodes = arcs.begin.size - 1
    into_begin = np.searchsorted(arcs.head[into], np.arange(n_nodes + 1)).astype(np.int32)
    times = np.empty((anchors.size, n_nodes), np.float32)
    ranks = np.empty((anchors.size, n_nodes), np.uint8)

    def find(row: int) -> None:
        ways = (arcs.begin, arcs.tail, duration, into_begin, into)
        way_kernels.find_ways(anchors[row], *ways, times[row], ranks[row])

    with ThreadPoolExecutor(n_threads, thread_name_prefix="retrasyn-ways") as pool:
        for done, _ in enumerate(pool.map(find, range(anchors.size)), 1):
            if progress is not None:
                progress(done, anchors.size)
    return times, ranks
