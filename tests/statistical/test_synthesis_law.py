"""The compiled step has the law of the plain loop. Every test states its significance level."""

import random

import numpy as np
import pytest
from scipy import stats

import naive
from retrasyn.interpretation import SAFE
from retrasyn.mobility.model import MobilityModel
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.synthesis.lifecycle import EnterQuit, LifecycleMemory
from retrasyn.synthesis.shard import Streams
from retrasyn.synthesis.synthesizer import Synthesizer
from support.contexts import context_of
from support.shards import dealt

LEVEL = 1e-6
SIDE, SCALE, T = 2, 4.0, 10
GRID = Grid(Box(0, 0, 1, 1), SIDE)
STATES = StateSpace(GRID)
N_CELLS = GRID.n_cells


def frequencies():
    generator = np.random.default_rng(1)
    released = generator.random(STATES.n_states)
    released[STATES.n_moves + N_CELLS :] *= 0.4
    return released / released.sum()


def ours(n_each, target, *, seed, reading=SAFE):
    """Step streams of every cell and of lengths 1..6 once; return ids and cells of the living."""
    model = MobilityModel.from_frequencies(frequencies(), STATES)
    cells = np.tile(np.arange(N_CELLS, dtype=np.uint16), 6 * n_each)
    entered = np.repeat(T - np.arange(1, 7, dtype=np.int32), N_CELLS * n_each)
    streams = dealt(GRID, Streams(np.arange(cells.size), cells, entered, cells.size))
    plan = EnterQuit().plan(
        context_of(
            model, LifecycleMemory(), grid=GRID, reading=reading, length_scale=SCALE, size=target
        )
    )
    Synthesizer(GRID, seed).step(streams, plan, T)
    return cells, entered, streams


def same_law(table):
    table = np.asarray(table)
    table = table[:, table.sum(axis=0) >= 10]
    return stats.chi2_contingency(table).pvalue > LEVEL


def test_quits_follow_equation_8_by_cell_and_length():
    n_each = 4000
    cells, entered, streams = ours(n_each, target=0, seed=5)
    # A target of zero would end everybody: look at the natural quits alone.
    model = MobilityModel.from_frequencies(frequencies(), STATES)
    plan = EnterQuit().plan(
        context_of(model, LifecycleMemory(), grid=GRID, reading=SAFE, length_scale=SCALE, size=0)
    )
    begun = dealt(GRID, Streams(np.arange(cells.size), cells, entered, cells.size))
    plan.decide(begun.shards, Synthesizer(GRID, 5).inputs(begun, T))
    moved = begun.shards.engine.workers[0]._kept
    quit_at = moved == 0xFFFF
    for cell in range(N_CELLS):
        for length in range(1, 7):
            who = (cells == cell) & (T - entered == length)
            p = naive.quit_probability(model.quit_hazard[cell], length, SCALE)
            assert stats.binomtest(int(quit_at[who].sum()), n_each, p).pvalue > LEVEL / 24
    assert streams.n == 0


def test_quits_are_plain_products_when_read_as_printed():
    n_each = 4000
    cells, entered, _ = ours(n_each, target=0, seed=5)
    model = MobilityModel.from_frequencies(frequencies(), STATES)
    plan = EnterQuit().plan(
        context_of(
            model,
            LifecycleMemory(),
            grid=GRID,
            reading=SAFE.answer(quit="plain"),
            length_scale=SCALE,
            size=0,
        )
    )
    begun = dealt(GRID, Streams(np.arange(cells.size), cells, entered, cells.size))
    plan.decide(begun.shards, Synthesizer(GRID, 6).inputs(begun, T))
    moved = begun.shards.engine.workers[0]._kept
    for length in (1, 6):
        who = (cells == 0) & (T - entered == length)
        p = min(1.0, length / SCALE * model.quit_hazard[0])
        found = int((moved[who] == 0xFFFF).sum())
        assert stats.binomtest(found, n_each, p).pvalue > LEVEL / 2


@pytest.mark.parametrize("change", ["births", "surplus"])
def test_a_whole_step_has_the_law_of_the_plain_loop(change):
    n_each, rounds = 2, 1500
    n_begun = 6 * N_CELLS * n_each
    target = n_begun + 10 if change == "births" else n_begun - 25
    model = naive.mobility_model(frequencies().tolist(), SIDE)
    generator = random.Random(4)
    tables = np.zeros((2, N_CELLS, N_CELLS + 2), int)  # from cell: to cell, ended; births last
    lengths = np.zeros((2, 6, 2), int)  # by length: ended, living
    for r in range(rounds):
        cells, entered, streams = ours(n_each, target, seed=1000 + r)
        ids, now, _ = streams.living()
        fate = np.full(n_begun, N_CELLS)
        fate[ids[ids < n_begun]] = now[ids < n_begun]
        np.add.at(tables[0], (cells, fate), 1)
        np.add.at(tables[0], (now[ids >= n_begun], N_CELLS + 1), 1)
        np.add.at(lengths[0], (T - entered - 1, (fate < N_CELLS).astype(int)), 1)
        begun = [
            naive.NaiveStream(i, [int(c)] * int(T - e), int(e))
            for i, (c, e) in enumerate(zip(cells, entered, strict=True))
        ]
        living, ended, _ = naive.synthesis_step(
            begun,
            model,
            t=T,
            target=target,
            scale=SCALE,
            enter=model.enter,
            next_identifier=n_begun,
            side=SIDE,
            rng=generator,
        )
        for stream in living:
            if stream.identifier >= n_begun:
                tables[1, stream.cells[-1], N_CELLS + 1] += 1
            else:
                tables[1, cells[stream.identifier], stream.cells[-1]] += 1
                lengths[1, T - stream.entered_at - 1, 1] += 1
        for stream in ended:
            tables[1, cells[stream.identifier], N_CELLS] += 1
            lengths[1, T - stream.entered_at - 1, 0] += 1
    assert tables[0, :, : N_CELLS + 1].sum() == tables[1, :, : N_CELLS + 1].sum()
    for cell in range(N_CELLS):
        assert same_law(tables[:, cell, : N_CELLS + 1])
    if change == "births":
        assert same_law(tables[:, :, N_CELLS + 1])
    assert same_law(lengths.reshape(2, -1))


def test_points_are_uniform_in_their_cell():
    nowhere = np.zeros(50_000, np.uint16)
    streams = dealt(GRID, Streams(np.arange(50_000), nowhere, np.zeros(50_000, np.int32), 50_000))
    points = Synthesizer(GRID, 3).release(streams, 8)
    x, y = points["x"], points["y"]
    assert stats.kstest(x / GRID.cell_width, "uniform").pvalue > LEVEL
    assert stats.kstest(y / GRID.cell_height, "uniform").pvalue > LEVEL
    assert abs(np.corrcoef(x, y)[0, 1]) < stats.norm.isf(LEVEL / 2) / 50_000**0.5
