"""The grid and its states against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.errors import SettingError
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.space.kernels import OUTSIDE

SIDES = [1, 2, 3, 6, 17, 64]
unit = st.floats(0, 1)


@given(st.lists(st.tuples(unit, unit), min_size=1), st.sampled_from(SIDES))
def test_points_fall_into_the_cell_the_plain_loop_says(points, side):
    box = (-3.0, 10.0, 5.0, 11.5)
    xs = [box[0] + u * (box[2] - box[0]) for u, _ in points]
    ys = [box[1] + v * (box[3] - box[1]) for _, v in points]
    inside = [(min(x, box[2]), min(y, box[3])) for x, y in zip(xs, ys, strict=True)]
    cells = Grid(Box(*box), side).cells_of(*np.array(inside).T)
    assert cells.tolist() == [naive.cell_of(x, y, box, side) for x, y in inside]


def test_the_upper_edge_belongs_to_the_last_cell():
    grid = Grid(Box(0, 0, 3, 3), 3)
    assert grid.cells_of([3.0, 0.0, 3.0], [3.0, 3.0, 0.0]).tolist() == [8, 6, 2]


def test_points_off_the_box_are_marked_and_counted():
    grid = Grid(Box(0, 0, 1, 1), 2)
    x, y = np.array([0.5, 1.1, -0.1, 1.0, 1e300]), np.array([0.5, 0.5, 0.5, 1.0, 0.5])
    cells, n_outside = grid.locate(x, y)
    assert n_outside == 3
    assert (cells == OUTSIDE).tolist() == [False, True, True, False, True]


@pytest.mark.parametrize("side", SIDES)
def test_neighbours_are_those_of_the_plain_loop(side):
    grid = Grid(Box(0, 0, 1, 1), side)
    for cell in range(grid.n_cells):
        assert grid.neighbours(cell).tolist() == naive.neighbours(cell, side)


@pytest.mark.parametrize("side", range(1, 65))
def test_there_are_as_many_states_as_the_formula_says(side):
    states = StateSpace(Grid(Box(0, 0, 1, 1), side))
    assert states.n_states == (3 * side - 2) ** 2 + 2 * side**2
    assert states.move_index.max() == states.n_moves - 1


@pytest.mark.parametrize("side", [1, 2, 3, 6])
@pytest.mark.parametrize("endpoints", [True, False])
def test_states_are_numbered_as_in_the_plain_loop_both_ways(side, endpoints):
    states = StateSpace(Grid(Box(0, 0, 1, 1), side), endpoints=endpoints)
    expected = naive.all_states(side, endpoints)
    assert states.n_states == len(expected)
    for number, state in enumerate(expected):
        kind, first, last = states.describe(number)
        assert (kind, first, last)[: len(state)] == state
        if kind == "move":
            assert states.moves(first, last) == number
        else:
            assert {"enter": states.enters, "quit": states.quits}[kind](first) == number


@given(st.integers(1, 12), st.data())
def test_moves_beyond_the_neighbours_are_no_states(side, data):
    cells = st.integers(0, side * side - 1)
    origin, destination = data.draw(cells), data.draw(cells)
    state = StateSpace(Grid(Box(0, 0, 1, 1), side)).moves(origin, destination)
    assert (state >= 0) == (destination in naive.neighbours(origin, side))


@pytest.mark.parametrize("side", [0, 65, -1])
def test_a_side_outside_1_to_64_is_refused(side):
    with pytest.raises(SettingError, match=rf"{side} is outside 1\.\.64"):
        Grid(Box(0, 0, 1, 1), side)


@pytest.mark.parametrize("box", [(0, 0, 0, 1), (0, 0, 1, 0), (1, 0, 0, 1), (0, 0, float("nan"), 1)])
def test_a_box_without_area_is_refused(box):
    with pytest.raises(SettingError, match=r"no area|not finite"):
        Grid(Box(*box), 6)


def test_a_box_too_narrow_for_floats_is_refused():
    with pytest.raises(SettingError, match="too narrow"):
        Grid(Box(1e9, 0, 1e9 + 1e-5, 1), 6)
