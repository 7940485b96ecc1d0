"""Steps in order against plain loops: quits, a surplus, ends as seen, steering."""

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.interpretation import SAFE
from retrasyn.mobility.model import MobilityModel
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.space import Box, Grid
from retrasyn.synthesis import kernels, shard, steered_steps
from retrasyn.synthesis import kernels as shared
from retrasyn.synthesis.lifecycle import LifecycleMemory, QuitAsSeen, QuitByAge, QuitByLength
from retrasyn.synthesis.shard import MIN_SLICE, StepInputs, Streams
from retrasyn.synthesis.steered_steps import _FLOOR, AGE_EDGES, first_words
from retrasyn.synthesis.synthesizer import Shard, Synthesizer
from support.contexts import context_of
from support.shards import dealt

T, SEED = 1500, 7
sides = st.integers(1, 6)
seeds = st.integers(0, 9999)


def grid_of(side):
    return Grid(Box(0, 0, 1, 1), side)


def crowd(side, n, seed, oldest=1200):
    """Return n living streams at T - 1 whose points lie in their cells, ages 1 and up."""
    random = np.random.default_rng(seed)
    cells = random.integers(0, side * side, n).astype(np.uint16)
    age = np.minimum(random.geometric(0.02, n) ** 2, oldest)
    streams = Streams(np.cumsum(random.integers(1, 5, n)), cells, (T - age).astype(np.int32), n)
    streams.x = cells % side + random.uniform(naive.MARGIN, 1 - naive.MARGIN, n)
    streams.y = cells // side + random.uniform(naive.MARGIN, 1 - naive.MARGIN, n)
    return streams


def ages_of(streams):
    return (T - streams.entered[: streams.n]).tolist()


def model_of(side, seed, *, quits=True):
    random = np.random.default_rng(seed)
    n = side * side
    return MobilityModel(
        move=np.zeros((n, 9)),
        quit_hazard=random.random(n) * (random.random(n) < 0.8),
        enter=random.dirichlet(np.ones(n)),
        quit_share=random.dirichlet(np.full(n, 0.3)) if quits else np.zeros(n),
    )


def mass_of(side, seed):
    random = np.random.default_rng(seed)
    near = grid_of(side).neighbour_table >= 0
    mass = near * random.random(near.shape) ** 4
    return mass / mass.sum()


def plan_of(lifecycle, streams, side, size, seed, *, quits=True, scale=40.0, **scene):
    counts = np.bincount(streams.cells[: streams.n], minlength=side * side)
    return lifecycle.plan(
        context_of(
            model_of(side, seed, quits=quits),
            LifecycleMemory(),
            grid=grid_of(side),
            reading=SAFE,
            length_scale=scale,
            size=size,
            cell_counts=counts,
            mass=mass_of(side, seed),
            **scene,
        )
    )


def uniforms(streams, purpose):
    """Return the uniform figure of every stream for quits, or above zero for a surplus."""
    words = words_at(
        np.uint64(address(SEED, T, purpose)), streams.ids[: streams.n].astype(np.uint64)
    )
    half = 0.5 if purpose == "surplus" else 0.0
    return [((word >> 11) + half) * 2.0**-53 for word in words.tolist()]


def survivors(streams, probabilities, size):
    """Return the places of the streams that live on, by the plain loop."""
    alive = [
        i
        for i, (u, p) in enumerate(zip(uniforms(streams, "quit"), probabilities, strict=True))
        if not u < p
    ]
    if len(alive) > size:
        weights = [probabilities[i] + _FLOOR for i in alive]
        keys = uniforms(streams, "surplus")
        ended = naive.choose_surplus(weights, [keys[i] for i in alive], len(alive) - size)
        alive = [place for k, place in enumerate(alive) if k not in set(ended)]
    return alive


def advance(streams, plan, side, *, t=T, **settings):
    """Take streams through one timestamp in place; return how many ended, and the pull."""
    sharded = dealt(grid_of(side), streams, next_id=10 * streams.n, continuous=True, **settings)
    step = StepInputs(grid_of(side), SEED, t, streams.n, steers=True)
    n_left, pull = plan.advance(sharded.shards, step)
    n_ended = streams.n - n_left
    left = Streams.of(sharded.columns())
    for name in ("ids", "cells", "entered", "n", "x", "y"):
        setattr(streams, name, getattr(left, name))
    return n_ended, pull


def test_the_age_buckets_are_those_of_the_plain_loop():
    assert AGE_EDGES.tolist() == naive.EDGES


@given(
    sides,
    st.integers(0, 60),
    st.integers(1, 400),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([0.2, 0.95, np.inf]),
    seeds,
)
def test_ages_and_quits_equal_the_plain_loop(side, n, oldest, factor, cap, seed):
    streams, random = crowd(side, n, seed), np.random.default_rng(seed)
    by_age, by_cell = random.random(oldest), random.random(side * side) * 3
    ids, cells, entered = streams.living()
    found = kernels.count_ages(cells, entered, T, oldest, side * side)
    seen = Counter(
        (min(age, oldest) - 1, cell) for age, cell in zip(ages_of(streams), cells, strict=True)
    )
    assert {(a, c): found[a, c] for a, c in zip(*np.nonzero(found), strict=True)} == seen
    hazards = [by_age[min(age, oldest) - 1] for age in ages_of(streams)]
    probabilities = [
        min(cap, factor * h * by_cell[cell]) for h, cell in zip(hazards, cells, strict=True)
    ]
    kept = np.empty(n, np.uint16)
    n_alive = kernels.draw_quits(
        ids, cells, entered, T, np.uint64(address(SEED, T, "quit")), by_age, by_cell, factor, cap,
        kept,
    )  # fmt: skip
    drawn = zip(uniforms(streams, "quit"), probabilities, cells.tolist(), strict=True)
    expected = [shared.ENDED if u < p else cell for u, p, cell in drawn]
    assert kept.tolist() == expected
    assert n_alive == sum(cell != shared.ENDED for cell in expected)
    counts = shared.count_cells(kept, side * side).tolist()
    assert counts == [expected.count(cell) for cell in range(side * side)]


@given(sides, st.integers(0, 80), st.floats(0, 1.3), st.floats(1e-4, 0.9), seeds)
def test_streams_quit_by_age_and_a_surplus_ends_as_in_the_plain_loop(side, n, part, level, seed):
    streams = crowd(side, n, seed)
    size = int(part * n)
    hazard = np.clip(level / np.arange(1, 401) ** 0.5, 1e-4, 0.9)
    plan = plan_of(QuitByAge(), streams, side, size, seed, hazard=hazard)
    probabilities = naive.hazard_by_age(
        ages_of(streams),
        streams.cells[:n].tolist(),
        hazard.tolist(),
        model_of(side, seed).quit_share.tolist(),
        size,
    )
    expected = [int(streams.ids[i]) for i in survivors(streams, probabilities, size)]
    n_ended, _ = advance(streams, plan, side)
    assert streams.ids[: streams.n].tolist() == expected
    assert n_ended == n - len(expected)
    assert streams.n <= size or size >= n


@given(sides, st.integers(0, 80), st.floats(0, 1.3), st.sampled_from([2.0, 40.0, 1000.0]), seeds)
def test_streams_quit_by_length_and_a_surplus_ends_as_in_the_plain_loop(side, n, part, scale, seed):
    streams = crowd(side, n, seed)
    size = int(part * n)
    plan = plan_of(QuitByLength(), streams, side, size, seed, scale=scale)
    hazards = model_of(side, seed).quit_hazard
    probabilities = [
        naive.hazard_by_length(age, scale, hazards[cell], 1 - hazards[cell])
        for age, cell in zip(ages_of(streams), streams.cells[:n].tolist(), strict=True)
    ]
    expected = [int(streams.ids[i]) for i in survivors(streams, probabilities, size)]
    advance(streams, plan, side)
    assert streams.ids[: streams.n].tolist() == expected


def test_before_any_quit_was_reported_age_alone_decides():
    streams = crowd(3, 50, 1)
    hazard = np.full(400, 0.2)
    plan = plan_of(QuitByAge(), streams, 3, 50, 1, quits=False, hazard=hazard)
    expected = [int(streams.ids[i]) for i in survivors(streams, [0.2] * 50, 50)]
    advance(streams, plan, 3)
    assert streams.ids[: streams.n].tolist() == expected


def test_a_size_of_nothing_ends_everybody():
    for lifecycle, scene in [
        (QuitByAge(), {"hazard": np.full(400, 1e-4)}),
        (QuitByLength(), {}),
        (QuitAsSeen(), {"ages_of_quitters": np.full(30, 5)}),
    ]:
        streams = crowd(2, 30, 3)
        plan = plan_of(lifecycle, streams, 2, 0, 3, **scene)
        sharded = dealt(grid_of(2), streams, continuous=True)
        synthesizer = Synthesizer(grid_of(2), SEED, steers=True)
        born, ended, *_ = synthesizer.step(sharded, plan, T)
        assert (sharded.n, born, ended) == (0, 0, 30)


def test_lifecycles_that_need_answers_say_so():
    streams = crowd(2, 5, 1)
    with pytest.raises(AssertionError, match="ask about ages"):
        plan_of(QuitByAge(), streams, 2, 5, 1)
    with pytest.raises(AssertionError, match="presence is public"):
        plan_of(QuitAsSeen(), streams, 2, 5, 1)


@given(
    sides,
    st.integers(0, 80),
    st.lists(st.one_of(st.integers(1, 12), st.integers(1, 900)), max_size=40),
    seeds,
)
def test_streams_end_by_age_bucket_as_in_the_plain_loop(side, n, real_ages, seed):
    streams = crowd(side, n, seed)
    real_ages = real_ages[:n]
    seen = np.array(real_ages, np.int64)
    plan = plan_of(QuitAsSeen(), streams, side, n, seed, ages_of_quitters=seen)
    ended = naive.choose_endings(
        ages_of(streams),
        streams.cells[:n].tolist(),
        model_of(side, seed).quit_share.tolist(),
        uniforms(streams, "surplus"),
        real_ages,
    )
    expected = [int(stream) for i, stream in enumerate(streams.ids[:n]) if i not in set(ended)]
    n_ended, _ = advance(streams, plan, side)
    assert streams.ids[: streams.n].tolist() == expected
    assert n_ended == len(real_ages)


def test_more_ends_than_streams_end_all_of_them():
    streams = crowd(2, 3, 1)
    plan = plan_of(QuitAsSeen(), streams, 2, 4, 1, ages_of_quitters=np.full(9, 2))
    assert advance(streams, plan, 2)[0] == 3
    assert streams.n == 0


@given(sides, st.integers(0, 3000), st.booleans(), st.sampled_from([1, 8, 16]), seeds)
def test_a_steered_kernel_equals_the_plain_loop(side, n, everybody_in_one_cell, rounds, seed):
    random, table = np.random.default_rng(seed), grid_of(side).neighbour_table
    mass = mass_of(side, seed)
    kernel = mass / mass.sum(axis=1, keepdims=True)
    weights = np.full(side * side, 1.0) if not everybody_in_one_cell else np.eye(side * side)[0]
    movers = random.multinomial(n, weights / weights.sum())
    pull = np.exp(random.normal(0, 1, side * side))
    given_pull = pull.tolist()
    found = kernels.steer(kernel, mass, movers, table, pull, rounds)
    expected, expected_pull = naive.steer(
        kernel.tolist(), mass.tolist(), movers.tolist(), side, given_pull, rounds
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(pull, expected_pull, rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_steering_brings_movers_to_where_the_mass_is():
    grid, random = grid_of(4), np.random.default_rng(2)
    mass, movers = mass_of(4, 5), random.integers(0, 500, 16)
    kernel = mass / mass.sum(axis=1, keepdims=True)
    near = grid.neighbour_table >= 0

    def arriving(weights):
        return np.bincount(grid.neighbour_table[near], weights[near], 16)

    goal = arriving(mass * movers.sum())
    bent = kernels.steer(kernel, mass, movers, grid.neighbour_table, np.ones(16), 8)
    before, after = (np.abs(arriving(movers[:, None] * k) - goal).sum() for k in (kernel, bent))
    assert after < before / 3


@given(st.integers(1, 4), st.integers(0, 500), seeds)
def test_steering_goes_on_from_the_pull_before(side, n, seed):
    streams, memory = crowd(side, n, seed), LifecycleMemory()
    expected = [1.0] * side**2
    for t in range(3):
        counts = np.bincount(streams.cells[: streams.n], minlength=side * side)
        mass = mass_of(side, seed + t)
        plan = QuitAsSeen().plan(
            context_of(
                model_of(side, seed),
                memory,
                grid=grid_of(side),
                reading=SAFE,
                length_scale=None,
                size=n,
                cell_counts=counts,
                mass=mass,
                ages_of_quitters=np.empty(0, np.int64),
            )
        )
        before = plan.pull.copy()
        _, memory.pull = advance(streams, plan, side, t=T + t)
        assert np.array_equal(plan.pull, before)
        kernel = mass / mass.sum(axis=1, keepdims=True)
        begin = [v**steered_steps._KEPT_PULL for v in expected]
        _, expected = naive.steer(
            kernel.tolist(), mass.tolist(), counts.tolist(), side, begin, steered_steps._ROUNDS
        )
        np.testing.assert_allclose(memory.pull, expected, rtol=1e-9)


@given(sides, st.integers(0, 400), st.integers(1, 3), st.integers(1, 70), seeds)
def test_streams_move_evenly_as_in_the_plain_loop(side, n, n_threads, n_shards, seed):
    streams, grid, random = crowd(side, n, seed), grid_of(side), np.random.default_rng(seed)
    kernel = mass_of(side, seed) * (random.random((side**2, 9)) < 0.8)
    kernel /= np.maximum(kernel.sum(axis=1, keepdims=True), 1e-300)
    step = StepInputs(grid, SEED, T, n)
    sharded = dealt(grid, streams, n_shards=n_shards, n_threads=n_threads)
    limits = kernels.build_limits(kernel, grid.neighbour_table)
    with patch.object(shard, "MIN_SLICE", 8):
        sharded.shards.each(Shard.quit_nobody)
        counts = sum(sharded.shards.each(Shard.leave_ended))
        words = first_words(step, counts)
        sharded.shards.each(Shard.move, words, *limits, None)
    own = words_at(np.uint64(step.key("move")), np.arange(side**2, dtype=np.uint64)) / 2.0**64
    ids, cells, _ = streams.living()
    assert sharded.columns()["cells"].tolist() == naive.even_moves(
        ids.tolist(), cells.tolist(), kernel.tolist(), own.tolist(), side
    )
    assert np.array_equal(words, first_words(step, counts))


def test_moves_are_far_more_even_than_independent_draws():
    grid, n, share = grid_of(3), 1000, 0.3
    kernel = np.zeros((9, 9))
    kernel[4, [4, 5]] = 1 - share, share
    limits, targets = kernels.build_limits(kernel, grid.neighbour_table)
    ids, cells, moved = np.arange(n), np.full(n, 4, np.uint16), np.empty(n, np.uint16)
    found = []
    for t in range(200):
        counts = kernels.count_classes(ids, cells, 9)
        words = first_words(StepInputs(grid, SEED, t, n), counts)
        kernels.move_streams(ids, cells, words, limits, targets, moved)
        found.append(np.count_nonzero(moved == 5))
    assert abs(np.mean(found) - n * share) < 0.2
    assert np.var(found) < n * share * (1 - share) / 100


def test_what_rounding_leaves_goes_to_the_last_neighbour():
    kernel = np.zeros((4, 9))
    kernel[0, [4, 5, 7]] = 0.5, 0.25, 0.25 - 2.0**-40
    limits, targets = kernels.build_limits(kernel, grid_of(2).neighbour_table)
    words = np.full((kernels.N_CLASSES, 4), (1 << 64) - 1, np.uint64)
    moved = np.empty(1, np.uint16)
    ids, cells = np.zeros(1, np.int64), np.zeros(1, np.uint16)
    kernels.move_streams(ids, cells, words, limits, targets, moved)
    assert moved.tolist() == [3]


def test_a_surplus_does_not_depend_on_the_guess_of_where_it_ends():
    """Neither if far too many streams are looked at, nor if too few are at first."""
    ends = []
    for spare in (steered_steps._SPARE, 1e4, -1e4):
        streams = crowd(4, 3000, 2)
        plan = plan_of(QuitByLength(), streams, 4, 2000, 2, scale=1e4)
        with patch.object(steered_steps, "_SPARE", spare):
            advance(streams, plan, 4)
        ends.append(streams.ids[: streams.n].tolist())
    assert ends[0] == ends[1] == ends[2]
    assert len(ends[0]) == 2000


@given(
    st.lists(st.one_of(st.just(0), st.integers(1, 120)), min_size=1, max_size=6),
    st.sampled_from([QuitByAge(), QuitByLength()]),
    sides,
    seeds,
)
def test_steps_in_order_keep_sizes_cells_and_points_together(many, lifecycle, side, seed):
    grid = Grid(Box(116.15, 39.75, 116.60, 40.10), side)
    synthesizer = Synthesizer(grid, SEED, steers=True)
    streams, known = dealt(grid, continuous=True, n_shards=1 + seed % 4), seed % 3 > 0
    for t, size in enumerate(many):
        before = dict(zip(*streams.living()[:2], strict=True))
        counts = np.bincount(streams.living()[1], minlength=grid.n_cells)
        assert counts.tolist() == streams.counts.tolist()
        plan = lifecycle.plan(
            context_of(
                model_of(side, seed + t),
                LifecycleMemory(),
                grid=grid,
                reading=SAFE,
                length_scale=10.0,
                size=size,
                cell_counts=counts,
                mass=mass_of(side, t) if known else None,
                hazard=np.full(400, 0.1),
            )
        )
        synthesizer.step(streams, plan, t)
        ids, cells, entered = streams.living()
        assert streams.n == size
        points = synthesizer.release(streams, t)
        assert np.array_equal(points["ids"], ids)
        assert np.array_equal(grid.cells_of(points["x"], points["y"]), cells)
        for stream, cell, began in zip(ids, cells, entered, strict=True):
            if stream in before:
                assert cell in grid.neighbours(before[stream])
            else:
                assert began == t


@pytest.mark.parametrize("lifecycle", [QuitByAge(), QuitByLength()])
def test_steps_in_order_do_not_depend_on_the_number_of_threads(lifecycle):
    ends = []
    for n_threads in (1, 3):
        streams = crowd(5, 3 * MIN_SLICE, 8)
        plan = plan_of(lifecycle, streams, 5, 2 * MIN_SLICE, 1, hazard=np.full(400, 0.05))
        advance(streams, plan, 5, n_threads=n_threads)
        parts = (*streams.living(), streams.x[: streams.n], streams.y[: streams.n])
        ends.append([part.tobytes() for part in parts])
    assert ends[0] == ends[1]


def test_a_size_below_what_the_ends_leave_ends_more():
    streams = crowd(3, 60, 4)
    plan = plan_of(QuitAsSeen(), streams, 3, 20, 4, ages_of_quitters=np.full(5, 1))
    keys = naive.choose_endings(
        ages_of(streams),
        streams.cells[:60].tolist(),
        model_of(3, 4).quit_share.tolist(),
        uniforms(streams, "surplus"),
        [1] * 5,
    )
    first = {int(streams.ids[i]) for i in keys}
    assert advance(streams, plan, 3)[0] == 40
    assert streams.n == 20
    assert not first & set(streams.ids[:20].tolist())


@pytest.mark.parametrize("more", [0.98, 1.005, 1.02, 1.1])
def test_both_caps_bind_as_in_the_plain_loop(more):
    side, n, seed = 2, 4000, 6
    streams, hazard = crowd(side, n, seed), np.full(400, 0.6)
    quits, cells = model_of(side, seed).quit_share.tolist(), streams.cells[:n].tolist()
    free = naive.hazard_by_age(ages_of(streams), cells, hazard.tolist(), quits, n)
    size = n - int(more * sum(free))
    plan = plan_of(QuitByAge(), streams, side, size, seed, hazard=hazard)
    probabilities = naive.hazard_by_age(ages_of(streams), cells, hazard.tolist(), quits, size)
    assert max(free) == 0.95
    assert max(probabilities) == pytest.approx(min(max(0.95 * more, 0.95), 0.98), abs=1e-3)
    expected = [int(streams.ids[i]) for i in survivors(streams, probabilities, size)]
    advance(streams, plan, side)
    assert streams.ids[: streams.n].tolist() == expected


@given(
    sides,
    st.integers(0, 200),
    st.floats(0, 1.3),
    st.lists(st.one_of(st.integers(1, 12), st.integers(1, 900)), max_size=60),
    st.integers(2, 7),
    seeds,
)
def test_steps_in_order_do_not_depend_on_the_number_of_shards(
    side, n, part, real_ages, n_shards, seed
):
    scenes = {
        QuitByAge(): {"hazard": np.full(400, 0.05)},
        QuitByLength(): {},
        QuitAsSeen(): {"ages_of_quitters": np.array(real_ages, np.int64)},
    }
    for lifecycle, scene in scenes.items():
        ends = []
        for shards in (1, n_shards):
            streams = crowd(side, n, seed)
            plan = plan_of(lifecycle, streams, side, int(part * n), seed, **scene)
            n_ended, pull = advance(streams, plan, side, n_shards=shards)
            columns = {name: column.tobytes() for name, column in streams.columns().items()}
            ends.append((n_ended, pull.tobytes(), columns))
        assert ends[0] == ends[1]
