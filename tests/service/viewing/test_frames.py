"""A frame holds what a plain loop over the points finds."""

import numpy as np
import pytest

from retrasyn.answers.intervals import Intervals
from retrasyn.service.viewing.frames import chosen, halvings, mix
from retrasyn.service.viewing.view import CachedSource
from support import plain_frames as plain
from support.recording import Recording, crowd, nobody, points_of

BOXES = [(0.0, 0.0, 3.0, 3.0), (-7.5, 1e6, 3.25, 1e6 + 2)]


def check(source, t, most, header):
    """Compare a frame with the points it was made of."""
    side, box, points = source.grid.side, tuple(source.grid.box), source._points[t]
    cells = list(plain.located(points, side, box).values())
    assert (header["version"], header["rounds"], header["n_replicas"]) == (2, 1, 0)
    assert (header["t"], header["side"]) == (t, side)
    assert header["n_points"] == len(points.ids)
    for name in ("n_born", "n_ended", "n_reports"):
        assert header[name] == source.summary(t)[name]
    assert header["cells"] == [cells.count(cell) for cell in range(side * side)]
    before = source._points.get(t - 1)
    assert header["moves"] == (
        None if before is None else plain.balance(plain.flows(before, points, side, box)[0])
    )
    k, left = plain.travellers(points, most, box)
    assert header["sampled"] == k
    assert [*zip(header["ids"], header["x"], header["y"], strict=True)] == left


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("side", [1, 2, 3, 18, 64])
def test_a_frame_is_what_a_loop_over_the_points_finds(side, box):
    source = crowd(side, [4, 5, 7], side=side, box=box)
    view = CachedSource(source)
    for t in source.timestamps:
        for most in (400, 399, 60, 1):
            check(source, t, most, plain.decode(view.frame(t, most)))


def test_there_are_moves_only_where_the_timestamp_before_is_there():
    view = CachedSource(crowd(0, [0, 1, 3]))
    has_moves = [plain.decode(view.frame(t, 9))["has_moves"] for t in (0, 1, 3)]
    assert has_moves == [0, 1, 0]
    assert view.frame(2, 9) is view.frame(9, 9) is None


def test_frames_of_nobody_are_whole_and_empty():
    source = Recording({0: nobody(), 1: points_of([5], [1.5], [1.5]), 2: nobody()})
    view = CachedSource(source)
    for t in (0, 1, 2):
        check(source, t, 10, plain.decode(view.frame(t, 10)))
    last = plain.decode(view.frame(2, 10))
    assert (last["has_moves"], last["moves"], last["n_ended"]) == (1, [0] * 18, 1)


def test_jumps_beyond_a_neighbour_are_no_moves():
    points = {0: points_of([1, 2], [0.5, 0.5], [0.5, 0.5])}
    points[1] = points_of([1, 2], [2.5, 1.5], [0.5, 1.5])
    moves = plain.decode(CachedSource(Recording(points)).frame(1, 9))["moves"]
    assert moves == [1, 1] + [0] * 16


def test_points_on_and_beyond_an_edge_are_shown_at_the_edge():
    source = Recording({0: points_of([1, 2, 3], [0.0, 3.0, 99.0], [-5.0, 3.0, 3.0])})
    header = plain.decode(CachedSource(source).frame(0, 9))
    assert header["x"] == [0, 65535, 65535]
    assert header["y"] == [0, 65535, 65535]
    assert [header["cells"][cell] for cell in (0, 8)] == [1, 2]


def test_fewer_travellers_are_among_more_and_stay_the_same_from_one_timestamp_to_the_next():
    source = crowd(1, range(4), n=2000)
    view = CachedSource(source)
    for fewer, more in ((0, 1), (1, 7), (7, 200), (200, 1999), (1999, 2000)):
        small = set(plain.decode(view.frame(1, fewer))["ids"])
        assert small <= set(plain.decode(view.frame(1, more))["ids"])
    shown = [set(plain.decode(view.frame(t, 300))["ids"]) for t in range(4)]
    there = [set(source._points[t].ids.tolist()) for t in range(4)]
    for t in range(3):
        both = there[t] & there[t + 1]
        assert shown[t] & both == shown[t + 1] & both


def test_about_as_many_travel_as_were_asked_for():
    ids = np.arange(100_000)
    for most in (1000, 3000, 10_000):
        k = halvings(ids.size, most)
        # A binomial count of mean n / 2^k; six standard deviations are one in five hundred million.
        mean = ids.size / 2**k
        assert most / 2 < mean <= most
        assert abs(chosen(ids, k).size - mean) < 6 * mean**0.5


def test_nobody_travels_if_nobody_was_asked_for():
    header = plain.decode(CachedSource(crowd(0, [0])).frame(0, 0))
    assert (header["n_travellers"], header["sampled"]) == (0, 64)


def test_ids_are_mixed_as_published():
    ids = np.array([0, 1, 2**31, 2**40, 2**62, -1])
    assert mix(ids).tolist() == [plain.splitmix64(one % 2**64) for one in ids.tolist()]


def test_travellers_with_large_ids_are_told_by_their_low_half_in_its_order():
    ids = [3, 2**32 + 1, 2**33 + 2]
    source = Recording({0: points_of(ids, [0.5, 1.5, 2.5], [0.5, 1.5, 2.5])})
    header = plain.decode(CachedSource(source).frame(0, 9))
    assert header["ids"] == [1, 2, 3]
    assert [round(x / 65535 * 3, 3) for x in header["x"]] == [1.5, 2.5, 0.5]


def copies(n, times, *, side=3, n_points=60):
    """Return a recording with replicas: crowds of their own, all on the same cells."""
    made = [crowd(seed, times, side=side, n=n_points) for seed in range(n + 1)]
    made[0].replicas = made[1:]
    return made[0]


@pytest.mark.parametrize("over", [1, 3])
def test_intervals_are_those_of_the_same_counts_in_every_replica(over):
    source, times = copies(6, range(4)), range(4 - over, 4)
    found = plain.decode(CachedSource(source).frame(3, 9, times))
    assert (found["rounds"], found["n_replicas"]) == (over, 6)
    every = [source, *source.replicas]
    counted = [np.mean([one.summary(t)["cells"] for t in times], axis=0) for one in every]
    wanted = Intervals.of(counted[0], counted[1:])
    assert found["cells"] == pytest.approx(counted[0])
    assert found["cells_low"] == pytest.approx(wanted.low)
    assert found["cells_high"] == pytest.approx(wanted.high)
    assert found["unclear_cells"] == wanted.unclear.tolist()
    names = ("n_points", "n_born", "n_ended")
    totals = [[np.mean([one.summary(t)[n] for t in times]) for n in names] for one in every]
    wanted = Intervals.of(totals[0], totals[1:])
    assert found["totals"] == pytest.approx(totals[0])
    assert found["totals_low"] == pytest.approx(wanted.low)
    assert found["totals_high"] == pytest.approx(wanted.high)


def test_moves_that_replicas_do_not_share_may_be_chance():
    """All walk to the right in the lower row; in the middle row replicas walk wherever."""
    low, middle = np.full(40, 0.5), np.full(40, 1.5)
    y = np.r_[low, middle]
    ids = np.arange(80)

    def walk(seed):
        to = np.r_[np.full(40, 1.5), np.random.default_rng(seed).choice([0.5, 2.5], 40)]
        before = np.r_[np.full(40, 0.5), middle]
        return Recording({0: points_of(ids, before, y), 1: points_of(ids, to, y)})

    source = walk(0)
    source.replicas = [walk(seed) for seed in range(1, 11)]
    found = plain.decode(CachedSource(source).frame(1, 9))
    assert found["moves"][:2] == [40, 0]
    assert found["moves"][8] != 0, "the middle cell moves on balance, by chance"
    assert found["unclear_moves"] == [cell == 4 for cell in range(9)]


def test_where_replicas_begin_nobody_knows_which_moves_are_chance():
    source = copies(4, range(2))
    for one in source.replicas:
        del one._points[0]
    source.replicas_at = lambda t: [one.points_at(1) for one in source.replicas] if t else []
    found = plain.decode(CachedSource(source).frame(1, 9))
    assert found["n_replicas"] == 4
    assert all(found["unclear_moves"])
    assert found["totals_low"][1:] == found["totals"][1:], "nothing is known of who began"


def test_an_average_is_over_the_timestamps_that_are_there():
    source = crowd(4, [0, 1, 3])
    found = plain.decode(CachedSource(source).frame(3, 9, [0, 1, 3]))
    cells = [source.summary(t)["cells"] for t in (0, 1, 3)]
    assert found["rounds"] == 3
    assert found["cells"] == pytest.approx(np.mean(cells, axis=0))
    table = plain.flows(source._points[0], source._points[1], 3, (0, 0, 3, 3))[0]
    assert found["moves"] == plain.balance(table), "only one of them has a timestamp before"
