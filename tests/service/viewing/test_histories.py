"""Histories of cells and counts of boxes are what a plain loop over the points finds."""

import numpy as np
import pytest

from retrasyn.answers.intervals import Intervals
from retrasyn.metrics.density import density_errors as densities
from retrasyn.metrics.pair import Pair
from retrasyn.service.viewing.histories import box_counts, cell_history, density_errors
from retrasyn.service.viewing.view import CachedSource
from retrasyn.service.web.models import CellHistory
from retrasyn.space import Box
from support import plain_frames as plain
from support.recording import Recording, crowd, nobody, points_of


@pytest.mark.parametrize("side", [1, 2, 3, 5])
def test_the_history_of_a_cell_is_what_a_loop_finds(side):
    source = crowd(side, [0, 1, 2, 5, 6, 8], side=side)
    for cell in range(side * side):
        found = cell_history(CachedSource(source), cell, source.timestamps)
        wanted = plain.history(
            source._points, cell, source.timestamps, side, tuple(source.grid.box)
        )
        told = CellHistory.of(found).model_dump()
        for name in ("t", "n", "inflow", "outflow"):
            assert told[name] == wanted[name]
        for name in ("destinations", "origins"):
            nothing = {"low": None, "high": None}
            assert told[name] == [one | nothing for one in wanted[name]]


def test_a_cell_that_nobody_visits_has_a_history_of_zeros():
    source = Recording({0: nobody(), 1: nobody()})
    found = CellHistory.of(cell_history(CachedSource(source), 4, [0, 1]))
    assert (found.n, found.inflow, found.outflow) == ([0, 0], [None, 0], [None, 0])
    assert found.destinations == found.origins == []


def test_a_box_counts_the_points_on_its_edges():
    source = Recording({0: points_of([1, 2, 3], [1.0, 2.0, 2.0], [1.0, 2.0, 2.0000001])})
    assert counted(source, Box(1.0, 1.0, 2.0, 2.0), [0]) == ([0], [[2]])
    assert counted(source, Box(2.0, 2.0, 2.0, 2.0), [0]) == ([0], [[1]])


def test_counts_of_boxes_are_what_a_loop_finds():
    source = crowd(3, [0, 2, 3])
    for box in [(0, 0, 3, 3), (0.5, 1, 1.7, 2.9), (-9, -9, 0, 0), (5, 5, 6, 6), (1, 1, 1, 1)]:
        wanted = [plain.inside(source._points[t], box) for t in (0, 2, 3)]
        assert counted(source, Box(*box), [0, 2, 3]) == ([0, 2, 3], [wanted])


def test_a_timestamp_that_was_deleted_meanwhile_is_left_out():
    source = crowd(3, [0, 1, 2])
    del source._points[1]
    assert counted(source, Box(0, 0, 3, 3), [0, 1, 2]) == ([0, 2], [[400, 400]])
    found = CellHistory.of(cell_history(CachedSource(source), 0, [0, 1, 2]))
    assert (found.t, found.inflow) == ([0, 2], [None, None])


def counted(source, box, timestamps):
    t, counts = box_counts(source, box, timestamps)
    return t, counts.tolist()


def test_replicas_are_counted_as_the_release_is():
    source, times, box = crowd(1, range(4)), range(4), Box(0.5, 1, 1.7, 2.9)
    source.replicas = [crowd(seed, times) for seed in (2, 3, 4)]
    every = [source, *source.replicas]
    assert counted(source, box, times)[1] == [counted(one, box, times)[1][0] for one in every]
    found = cell_history(CachedSource(source), 4, times)
    alone = [cell_history(CachedSource(one), 4, times) for one in every]
    for name in ("n", "inflow", "outflow", "destinations", "origins"):
        wanted = [getattr(one, name)[0] for one in alone]
        np.testing.assert_array_equal(getattr(found, name), wanted)
    told, band = CellHistory.of(found), Intervals.of(found.n[0], found.n[1:])
    assert told.n_band.high == pytest.approx(band.high)
    assert told.inflow_band.high[0] is None, "there is no timestamp before the first"
    assert all(one.low <= one.n <= one.high for one in told.destinations)


def test_an_average_is_over_the_timestamps_that_are_there_and_known():
    source, box = crowd(3, [0, 1, 2, 5]), Box(0, 1, 2, 3)
    n = counted(source, box, [0, 1, 2, 5])[1][0]
    _, [found] = box_counts(source, box, [0, 1, 2, 5], 3)
    assert found == pytest.approx([n[0], np.mean(n[:2]), np.mean(n[:3]), n[3]])
    alone = cell_history(CachedSource(source), 4, [0, 1, 2, 5]).inflow[0]
    over = cell_history(CachedSource(source), 4, [0, 1, 2, 5], 3).inflow[0]
    wanted = [np.nan, alone[1], np.mean(alone[1:3]), np.nan]
    np.testing.assert_allclose(over, wanted)


def test_density_errors_are_those_of_the_metrics():
    real, synthetic = crowd(1, range(6)), crowd(2, range(6))
    found = density_errors(real, synthetic, list(range(6)))
    wanted = densities(Pair.of(separate(real), separate(synthetic), real.grid))
    assert found == pytest.approx(wanted.tolist(), abs=0)


def test_where_nobody_is_there_is_no_error_and_where_one_side_is_empty_the_largest():
    real = Recording({0: nobody(), 1: nobody(), 2: points_of([1], [1], [1])})
    synthetic = Recording({0: nobody(), 1: points_of([1], [1], [1])})
    found = density_errors(real, synthetic, [0, 1, 2])
    assert found[0] is None
    assert found[1:] == pytest.approx([0.6931471805599453] * 2)


def separate(source):
    """Return the points of a recording as streams of one point each: ids come and go here."""
    from retrasyn.data.trajectories import Trajectories

    rows = [
        (t, x, y)
        for t, points in source._points.items()
        for x, y in zip(points.x.tolist(), points.y.tolist(), strict=True)
    ]
    t, x, y = zip(*rows, strict=True)
    return Trajectories.from_columns(traj_id=range(len(rows)), t=t, x=x, y=y)
