"""Where in their cells streams are: by density and by a map, against plain loops."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.randomness.kernels import words_at
from retrasyn.space import Box, Grid
from retrasyn.synthesis import points
from retrasyn.synthesis.point_kernels import ANGLES
from retrasyn.synthesis.points import ByDensity, ByMap, FineMap, log_density
from retrasyn.synthesis.shard import StepInputs

T, SEED = 1500, 7
sides = st.integers(1, 6)
seeds = st.integers(0, 9999)


def step_on(side):
    return StepInputs(Grid(Box(0, 0, 1, 1), side), SEED, T, 0)


def scene(side, n, seed):
    """Return ids, cells before and after, and points of n streams, half of which change cells."""
    random, table = np.random.default_rng(seed), Grid(Box(0, 0, 1, 1), side).neighbour_table
    before = random.integers(0, side * side, n).astype(np.uint16)
    other = np.array([random.choice(table[cell][table[cell] >= 0]) for cell in before], np.uint16)
    after = np.where(random.random(n) < 0.5, before, other).astype(np.uint16)
    x = before % side + random.uniform(naive.MARGIN, 1 - naive.MARGIN, n)
    y = before // side + random.uniform(naive.MARGIN, 1 - naive.MARGIN, n)
    return np.cumsum(random.integers(1, 5, n)), before, after, x, y


def mass_of(side, seed):
    random, near = np.random.default_rng(seed), step_on(side).grid.neighbour_table >= 0
    mass = near * random.random(near.shape) ** 4
    return mass / mass.sum()


def raster_of(n, seed, *, holes=False):
    """Return a public map, squares without anybody included only if it has holes."""
    random = np.random.default_rng(seed)
    raster = random.random((n, n)) ** 3
    raster *= (random.random((n, n)) < 0.5) if holes else 1.0
    return 0.998 * raster / max(raster.sum(), 1e-9) + 0.002 / raster.size


def words_of(key, ids):
    return words_at(np.uint64(key), ids.astype(np.uint64)).tolist()


def cells_at(x, y, side):
    return (y.astype(int) * side + x.astype(int)).tolist()


def places_by_density(law, ids, cells, side):
    """Return, by stream, the places of which a newcomer takes the nearest."""
    columns = [words_of(key, ids) for key in law.newcomer_keys]
    return [
        [naive.place_in(int(cell), (w >> 32) / 2**32, (w & 0xFFFFFFFF) / 2**32, side) for w in row]
        for cell, row in zip(cells, zip(*columns, strict=True), strict=False)
    ]


@given(sides, st.integers(0, 60), st.booleans(), st.booleans(), seeds)
def test_points_step_as_in_the_plain_loop_and_end_up_in_the_right_cell(side, n, still, known, seed):
    ids, before, after, x, y = scene(side, n, seed)
    mass = mass_of(side, seed) if known else None
    stay = np.ones(side * side) if still else np.random.default_rng(seed).random(side * side)
    law = ByDensity.of(step_on(side), mass, np.pi / 4 * (1 - stay))
    rows = None if mass is None else mass.tolist()
    places, expected = places_by_density(law, ids, after, side), []
    for i, word in enumerate(words_of(law.key, ids)):
        at, cell = (float(x[i]), float(y[i])), int(after[i])
        if before[i] != after[i]:
            expected.append(naive.nearest_of(at, places[i]))
            continue
        turn = (word % ANGLES + 0.5) * 2 * math.pi / ANGLES
        uniform = (word >> 12) / 2**52
        found = naive.step_by_density(at, cell, float(stay[cell]), turn, uniform, rows, side)
        expected.append(found)
    law.step(ids, before, after, x, y)
    np.testing.assert_allclose(
        np.stack([x, y], axis=1), np.array(expected).reshape(-1, 2), atol=1e-9
    )
    assert cells_at(x, y, side) == after.tolist()


@given(sides, st.integers(0, 60), st.booleans(), seeds)
def test_the_newborn_are_placed_in_their_cells_as_in_the_plain_loop(side, n, known, seed):
    ids, cells, _, x, y = scene(side, n, seed)
    mass = mass_of(side, seed) if known else None
    law = ByDensity.of(step_on(side), mass, np.zeros(side * side))
    law.place(ids, cells, x, y)
    words = [[words_of(key, ids) for key in pair] for pair in law.newborn_keys]
    rows = None if mass is None else mass.tolist()
    for i, cell in enumerate(cells.tolist()):
        tries = [
            ((at[i] >> 32) / 2**32, (at[i] & 0xFFFFFFFF) / 2**32, (taken[i] >> 11) / 2**53)
            for at, taken in words
        ]
        expected = naive.first_point(cell, tries, rows, side)
        assert (x[i], y[i]) == pytest.approx(expected, abs=1e-12)
    assert cells_at(x, y, side) == cells.tolist()


@given(sides, st.sampled_from([1, 2, 5, 48, 100]), st.booleans(), seeds)
def test_a_map_is_resampled_as_in_the_plain_loop(side, n, holes, seed):
    raster = raster_of(n, seed, holes=holes)
    fine = FineMap.of(step_on(side).grid, raster)
    assert fine.density.tolist() == naive.squares_of(raster.tolist(), side, points._FINEST)
    assert fine.limits.shape == (side * side, (fine.density.shape[0] // side) ** 2 - 1)


@given(sides, st.integers(0, 40), st.sampled_from([0.0, 0.4, 0.95]), st.booleans(), seeds)
def test_points_step_on_a_map_as_in_the_plain_loop(side, n, parked, holes, seed):
    ids, before, after, x, y = scene(side, n, seed)
    fine = FineMap.of(step_on(side).grid, raster_of(7, seed, holes=holes))
    squares = fine.density.tolist()
    lengths = np.random.default_rng(seed).random(side * side) * 0.7854
    law = ByMap.of(step_on(side), fine, lengths, parked)
    words = list(zip(*(words_of(key, ids) for key in law.keys), strict=True))
    tries = list(zip(*(words_of(key, ids) for key in law.newcomer_keys), strict=True))
    expected = []
    for i, cell in enumerate(after.tolist()):
        at = float(x[i]), float(y[i])
        if before[i] != after[i]:
            places = [naive.point_by_map(cell, word, squares, side) for word in tries[i]]
            expected.append(naive.nearest_of(at, places))
            continue
        length = float(lengths[cell])
        expected.append(naive.step_by_map(at, cell, length, parked, words[i], squares, side))
    law.step(ids, before, after, x, y)
    np.testing.assert_allclose(
        np.stack([x, y], axis=1), np.array(expected).reshape(-1, 2), atol=1e-9
    )
    assert cells_at(x, y, side) == after.tolist()


@given(sides, st.integers(0, 40), st.booleans(), seeds)
def test_the_newborn_are_placed_by_the_map_as_in_the_plain_loop(side, n, holes, seed):
    ids, cells, _, x, y = scene(side, n, seed)
    fine = FineMap.of(step_on(side).grid, raster_of(9, seed, holes=holes))
    law = ByMap.of(step_on(side), fine, np.zeros(side * side), 0.0)
    law.place(ids, cells, x, y)
    squares = fine.density.tolist()
    for i, word in enumerate(words_of(law.newborn_key, ids)):
        expected = naive.point_by_map(int(cells[i]), word, squares, side)
        assert (x[i], y[i]) == pytest.approx(expected, abs=1e-12)
    assert cells_at(x, y, side) == cells.tolist()


def test_whoever_walks_on_a_map_stays_where_it_has_people():
    fine = FineMap.of(step_on(2).grid, raster_of(48, 3))
    n, side = 20_000, 2
    ids, cells = np.arange(n), np.zeros(n, np.uint16)
    x, y = np.empty(n), np.empty(n)
    ByMap.of(step_on(side), fine, np.zeros(4), 0.0).place(ids, cells, x, y)
    for t in range(20):
        step = StepInputs(step_on(side).grid, SEED, t, n)
        ByMap.of(step, fine, np.full(4, 0.3), 0.1).step(ids, cells, cells, x, y)
    width = fine.density.shape[0] // side
    seen = np.zeros((width, width))
    np.add.at(seen, (np.int64(y * width), np.int64(x * width)), 1 / n)
    wanted = fine.density[:width, :width] / fine.density[:width, :width].sum()
    by_chance = np.sqrt(wanted / n).sum()  # about; of independent draws
    assert np.abs(seen - wanted).sum() < by_chance


def test_a_parked_stream_does_not_move_at_all():
    fine = FineMap.of(step_on(1).grid, np.ones((1, 1)))
    ids, x, y = np.arange(4000), np.full(4000, 0.5), np.full(4000, 0.5)
    cells = np.zeros(4000, np.uint16)
    ByMap.of(step_on(1), fine, np.full(1, 0.2), 0.3).step(ids, cells, cells, x, y)
    assert abs(np.mean((x == 0.5) & (y == 0.5)) - 0.3) < 0.03


def test_all_draws_of_all_points_have_keys_of_their_own():
    step = step_on(2)
    walking = ByDensity.of(step, None, np.zeros(4))
    keys = [walking.key, *walking.newcomer_keys, *walking.newborn_keys.ravel()]
    assert max(Counter(int(key) for key in keys).values()) == 1
    on_map = ByMap.of(step, FineMap.of(step.grid, np.ones((1, 1))), np.zeros(4), 0.0)
    keys = [*on_map.keys, *on_map.newcomer_keys, on_map.newborn_key]
    assert max(Counter(int(key) for key in keys).values()) == 1


@given(sides, seeds)
def test_nothing_of_the_surface_of_density_is_above_a_peak_of_its_cells(side, seed):
    mass, random = mass_of(side, seed), np.random.default_rng(seed)
    surface = log_density(step_on(side).grid, mass)
    assert surface.shape == (side + 1, side + 1, 4)
    for x, y in random.uniform(0, side, (5, 2)).tolist():
        row, column = int(y), int(x)
        nine = [(column + i / 2, row + j / 2) for i in range(3) for j in range(3)]
        peak = max(naive.log_density(place, mass.tolist(), side) for place in nine)
        assert naive.log_density((x, y), mass.tolist(), side) <= peak + 1e-12
