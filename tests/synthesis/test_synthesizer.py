"""One step of the synthetic population: sizes, neighbours, threads, readings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrasyn.interpretation import SAFE
from retrasyn.mobility.model import MobilityModel
from retrasyn.randomness.words import address
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.synthesis import kernels
from retrasyn.synthesis.lifecycle import EnterQuit, Immortal, LifecycleMemory
from retrasyn.synthesis.shard import MIN_SLICE, Streams
from retrasyn.synthesis.synthesizer import Shard, Synthesizer
from support.contexts import context_of
from support.shards import dealt

GRID = Grid(Box(0, 0, 1, 1), 4)
STATES = StateSpace(GRID)


def random_model(seed, quit_mass=0.1):
    random = np.random.default_rng(seed)
    released = random.random(STATES.n_states) * (random.random(STATES.n_states) < 0.7)
    released[STATES.n_moves + GRID.n_cells :] *= quit_mass
    return MobilityModel.from_frequencies(released / released.sum(), STATES)


def advance(sizes, *, seed=0, model_seed=0, n_threads=1, n_shards=1, reading=SAFE, grid=GRID):
    """Run steps of given sizes; yield streams after each."""
    streams, memory = dealt(grid, n_threads=n_threads, n_shards=n_shards), LifecycleMemory()
    synthesizer = Synthesizer(grid, seed)
    for t, size in enumerate(sizes):
        model = random_model(model_seed + t)
        plan = EnterQuit().plan(
            context_of(model, memory, grid=grid, reading=reading, length_scale=5.0, size=size)
        )
        before = {int(i): int(c) for i, c in zip(*streams.living()[:2], strict=True)}
        born, ended, *_ = synthesizer.step(streams, plan, t)
        yield streams, before, born, ended


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(0, 50))
def test_every_step_has_the_wanted_size_and_moves_only_to_neighbours(sizes, seed):
    for size, (streams, before, born, ended) in zip(
        sizes, advance(sizes, seed=seed, model_seed=seed), strict=True
    ):
        ids, cells, _ = streams.living()
        assert streams.n == size
        assert np.all(np.diff(ids) > 0)
        now = dict(zip(ids.tolist(), cells.tolist(), strict=True))
        assert len(now.keys() - before.keys()) == born
        assert len(before.keys() - now.keys()) == ended
        for stream in now.keys() & before.keys():
            assert now[stream] in GRID.neighbours(before[stream])


@given(st.lists(st.integers(0, 200), min_size=1, max_size=6))
def test_points_lie_in_their_cells(sizes):
    synthesizer = Synthesizer(Grid(Box(116.15, 39.75, 116.60, 40.10), 4), 3)
    for t, (streams, *_) in enumerate(advance(sizes, grid=synthesizer.grid)):
        points = synthesizer.release(streams, t)
        cells = synthesizer.grid.cells_of(points["x"], points["y"])
        assert cells.tolist() == points["cells"].tolist() == streams.living()[1].tolist()


def test_many_threads_make_the_same_bytes_as_one():
    sizes = [4 * MIN_SLICE, 5 * MIN_SLICE, 3 * MIN_SLICE + 17]
    states = [
        [tuple(part.tobytes() for part in s.living()) for s, *_ in advance(sizes, n_threads=n)]
        for n in (1, 2, 3)
    ]
    assert states[0] == states[1] == states[2]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.integers(2, 7), st.integers(0, 50))
def test_many_shards_make_the_same_bytes_as_one(sizes, n_shards, seed):
    one, many = (
        [[part.tobytes() for part in s.living()] for s, *_ in advance(sizes, seed=seed, n_shards=n)]
        for n in (1, n_shards)
    )
    assert one == many


def test_draws_do_not_depend_on_who_else_is_there():
    synthesizer, model = Synthesizer(GRID, 7), random_model(1)
    plan = EnterQuit().plan(
        context_of(model, LifecycleMemory(), grid=GRID, reading=SAFE, length_scale=5.0, size=100)
    )
    streams = dealt(GRID)
    synthesizer.step(streams, plan, 0)
    half = dealt(GRID)
    half.take({name: column[:100:2] for name, column in streams.columns().items()}, 100)
    for some in (streams, half):
        plan.decide(some.shards, synthesizer.inputs(some, 1))
    (whole,), (part,) = streams.shards.engine.workers, half.shards.engine.workers
    assert whole._kept[::2].tolist() == part._kept.tolist()


@pytest.mark.parametrize("n_surplus", [1, 7, 500, 1999, 2000])
@pytest.mark.parametrize("n_shards", [1, 3])
def test_a_surplus_ends_exactly_the_smallest_keys(n_surplus, n_shards):
    model = random_model(5)
    plan = EnterQuit().plan(
        context_of(model, LifecycleMemory(), grid=GRID, reading=SAFE, length_scale=5.0, size=2000)
    )
    synthesizer, streams = Synthesizer(GRID, 9), dealt(GRID, n_shards=n_shards)
    synthesizer.step(streams, plan, 0)
    ids, cells, _ = (part.copy() for part in streams.living())
    streams.shards.each(Shard.quit_nobody)
    step = synthesizer.inputs(streams, 1)
    plan.end_surplus(streams.shards, step, n_alive=2000, n_surplus=n_surplus)
    streams.shards.each(Shard.settle)
    ended = set(ids.tolist()) - set(streams.living()[0].tolist())
    everybody = np.zeros(GRID.n_cells, np.uint64)
    _, _, places, keys = kernels.keys_above(
        ids,
        cells,
        cells,
        np.uint64(address(9, 1, "surplus")),
        plan.surplus_weights,
        everybody,
        np.full(GRID.n_cells, 2**64 - 1, np.uint64),
        2000,
    )
    smallest = places[np.argsort(keys)[:n_surplus]]
    assert ended == set(ids[smallest].tolist())


def test_an_empty_model_lets_everybody_stay_and_enter_anywhere():
    model = MobilityModel.from_frequencies(None, STATES)
    synthesizer, streams, memory = Synthesizer(GRID, 1), dealt(GRID), LifecycleMemory()
    for t in range(3):
        plan = EnterQuit().plan(
            context_of(model, memory, grid=GRID, reading=SAFE, length_scale=None, size=4000)
        )
        before = streams.living()[1].copy()
        synthesizer.step(streams, plan, t)
        if t:
            assert streams.living()[1].tolist() == before.tolist()
    assert np.bincount(streams.living()[1], minlength=16).min() > 150


def test_the_last_entering_distribution_is_kept():
    memory = LifecycleMemory()
    model, empty = random_model(2), MobilityModel.from_frequencies(None, STATES)
    keywords = {"grid": GRID, "reading": SAFE, "length_scale": 5.0, "size": 10}
    EnterQuit().plan(context_of(model, memory, **keywords))
    assert np.array_equal(
        EnterQuit().plan(context_of(empty, memory, **keywords)).enter, model.enter
    )


def test_a_cell_everybody_quits_from_is_left_at_once():
    released = np.zeros(STATES.n_states)
    released[STATES.quits(3)] = 1.0
    released[STATES.enters(3)] = 1.0
    model = MobilityModel.from_frequencies(released / 2, STATES)
    synthesizer, streams, memory = Synthesizer(GRID, 1), dealt(GRID), LifecycleMemory()
    for t in range(2):
        plan = EnterQuit().plan(
            context_of(model, memory, grid=GRID, reading=SAFE, length_scale=5.0, size=50)
        )
        born, ended, *_ = synthesizer.step(streams, plan, t)
    assert (born, ended) == (50, 50)


def test_immortal_streams_begin_once_and_never_end():
    model, memory = random_model(3), LifecycleMemory()
    synthesizer, streams = Synthesizer(GRID, 1), dealt(GRID)
    numbers = []
    for t, size in enumerate([0, 30, 5, 90]):
        plan = Immortal().plan(
            context_of(model, memory, grid=GRID, reading=SAFE, length_scale=None, size=size)
        )
        synthesizer.step(streams, plan, t)
        numbers.append(streams.n)
    assert numbers == [0, 30, 30, 30]


def moved_from(cell, released, lifecycle, n=9000):
    """Return how many of n streams in a cell go to each cell in one step."""
    model = MobilityModel.from_frequencies(released, STATES)
    synthesizer = Synthesizer(GRID, 11)
    streams = dealt(
        GRID, Streams(np.arange(n), np.full(n, cell, np.uint16), np.zeros(n, np.int32), n)
    )
    memory = LifecycleMemory(started=True)
    plan = lifecycle.plan(
        context_of(model, memory, grid=GRID, reading=SAFE, length_scale=None, size=n)
    )
    synthesizer.step(streams, plan, 1)
    return np.bincount(streams.living()[1], minlength=GRID.n_cells)


def only_from_cell(origin, destination):
    released = np.zeros(STATES.n_states)
    released[STATES.moves(np.array([origin]), np.array([destination]))] = 0.5
    released[STATES.quits(0)] = 0.25
    released[STATES.enters(3)] = 0.25
    return released


@pytest.mark.parametrize("cell", [0, 1, 9])  # a corner, where people only quit; an edge; inside
def test_a_wandering_stream_leaves_an_unknown_cell_to_any_neighbour(cell):
    counts = moved_from(cell, only_from_cell(6, 7), Immortal(wanders=True))
    neighbours = GRID.neighbours(cell)
    assert counts.sum() == counts[neighbours].sum() == 9000
    assert stats.chisquare(counts[neighbours]).pvalue > 1e-6


@pytest.mark.parametrize("cell", [0, 1, 9])
def test_without_wandering_it_stays(cell):
    assert moved_from(cell, only_from_cell(6, 7), Immortal())[cell] == 9000


def test_a_wandering_stream_follows_the_moves_that_are_known():
    assert moved_from(6, only_from_cell(6, 7), Immortal(wanders=True))[7] == 9000


def test_before_any_release_everybody_wanders():
    counts = moved_from(9, None, Immortal(wanders=True))
    assert stats.chisquare(counts[GRID.neighbours(9)]).pvalue > 1e-6
