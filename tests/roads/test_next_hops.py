"""Tables of the ways to anchors: against plain loops, and how they are kept."""

import dataclasses
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import InputError
from retrasyn.randomness.words import address
from retrasyn.roads import next_hops
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.next_hops import NextHops, draw_anchors, usual_times
from retrasyn.space import Box, Grid
from support import plain_trips
from support.road_networks import road_networks

BOXES = [Box(0, 0, 12, 12), Box(-1, -2, 13.5, 14), Box(0, 0, 12, 40)]
sides = st.integers(1, 5)
boxes = st.sampled_from(BOXES)
networks = road_networks(one_way=True)


def ring(n=60):
    """Return a ring road of n nodes in the box (0, 0, 1, 1)."""
    turn = np.arange(n) * 2 * np.pi / n
    x, y = 0.5 + 0.45 * np.cos(turn), 0.5 + 0.45 * np.sin(turn)
    return RoadNetwork.from_edges(x=x, y=y, tail=np.arange(n), head=(np.arange(n) + 1) % n)


GRID = Grid(Box(0, 0, 1, 1), 4)


@given(networks, boxes, sides)
def test_times_and_next_arcs_are_those_of_the_fastest_ways(network, box, side):
    roads = NextHops.of(network, Grid(box, side))
    arcs, expected = plain_trips.arcs_of(network), plain_trips.plain_times(network)
    assert list(zip(roads.tail.tolist(), roads.head.tolist(), strict=True)) == [a for a, _ in arcs]
    np.testing.assert_allclose(roads.duration, [duration for _, duration in arcs], rtol=1e-12)
    for row, anchor in enumerate(roads.anchors.tolist()):
        for node in range(network.n_nodes):
            left = expected[node][anchor]
            assert roads.times[row, node] == pytest.approx(left, rel=1e-6, abs=1e-30)
            if node != anchor:
                (_, after), duration = arcs[roads.begin[node] + roads.ranks[row, node]]
                assert duration + expected[after][anchor] == pytest.approx(left, rel=1e-12)
        assert roads.ranks[row, anchor] == 0


@given(networks, boxes, sides)
def test_how_long_a_distance_usually_takes_is_that_of_the_plain_loop(network, box, side):
    grid = Grid(box, side)
    roads = NextHops.of(network, grid)
    middle = math.radians((box.y0 + box.y1) / 2)  # these boxes could be degrees
    stretch = grid.cell_height / (grid.cell_width * math.cos(middle))
    assert roads.stretch == pytest.approx(stretch, rel=1e-12)
    times = roads.times.T[roads.anchors].tolist()
    y = [stretch * at for at in roads.y[roads.anchors].tolist()]
    usual = plain_trips.usual_times(times, roads.x[roads.anchors].tolist(), y)
    assert (roads.usual_time, roads.usual_power) == pytest.approx(usual, rel=1e-6)


def test_times_that_are_a_power_of_the_distance_are_found_whatever_the_places():
    x, y = np.random.default_rng(2).random((2, 40))
    far = np.hypot(x[:, None] - x, y[:, None] - y)
    found = usual_times((3 * far**0.8).astype(np.float32), x, y)
    assert found == pytest.approx((3, 0.8), rel=1e-5)


def test_every_distance_counts_alike_and_longer_ways_are_not_slower():
    x, y = np.array([0.0, 1.0, 3.0]), np.zeros(3)
    times = np.array([[0, 1, 4], [1, 0, 9], [4, 9, 0]], np.float32)
    assert usual_times(times, x, y)[1] == 1.0
    assert usual_times(times[:1, :1], x[:1], y[:1]) == (1.0, 1.0)
    assert usual_times(times[:2, :2], x[:2], y[:2]) == (1.0, 1.0)


@given(networks, boxes, sides)
def test_every_way_reaches_its_anchor(network, box, side):
    roads = NextHops.of(network, Grid(box, side))
    for row, anchor in enumerate(roads.anchors):
        for start in range(network.n_nodes):
            node, n_arcs = start, 0
            while node != anchor:
                node, n_arcs = roads.head[roads.begin[node] + roads.ranks[row, node]], n_arcs + 1
                assert n_arcs < network.n_nodes


@given(networks, boxes, sides)
def test_nodes_lie_in_the_cells_of_their_places_and_are_listed_there(network, box, side):
    grid = Grid(box, side)
    roads = NextHops.of(network, grid)
    x, y = box.x0 + roads.x * grid.cell_width, box.y0 + roads.y * grid.cell_height
    np.testing.assert_allclose(np.stack([x, y]), np.stack([network.x, network.y]), atol=1e-9)
    cells = grid.cells_of(x, y)
    assert sorted(roads.by_cell.tolist()) == list(range(network.n_nodes))
    for cell in range(grid.n_cells):
        listed = roads.by_cell[roads.cell_begin[cell] : roads.cell_begin[cell + 1]]
        assert listed.tolist() == np.flatnonzero(cells == cell).tolist()
    assert roads.cell_weights.sum() == pytest.approx(1.0)
    assert roads.drivable[cells].all()
    assert (np.diff(roads.weight_below) > 0).all()


@given(networks, boxes, sides)
def test_a_cell_is_drivable_where_a_road_crosses_it(network, box, side):
    grid = Grid(box, side)
    drivable = NextHops.of(network, grid).drivable
    along = np.linspace(0, 1, 41)[1:-1]
    for a, b in zip(network.tail, network.head, strict=True):
        x = network.x[a] + along * (network.x[b] - network.x[a])
        y = network.y[a] + along * (network.y[b] - network.y[a])
        assert drivable[grid.cells_of(x, y)].mean() > 0.9  # walls belong to one of two cells
    if (network.x < 6).all():
        assert not drivable.reshape(side, side)[:, side // 2 + 1 :].any()


@given(networks, boxes, sides, st.integers(2, 6))
def test_anchors_are_drawn_by_length_of_road_the_first_of_every_cell_first(
    network, box, side, most
):
    grid = Grid(box, side)
    cells = grid.cells_of(network.x, network.y)
    key = np.uint64(address(0, 0, "roads/anchors"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_hops, "N_ANCHORS", most)
        found = draw_anchors(next_hops.node_weights(network), cells)
    assert found.tolist() == plain_trips.plain_anchors(network, cells.tolist(), key, most)
    assert set(cells[found]) == set(cells)


def test_what_cannot_be_a_share_of_the_roads_is_shared_by_length_of_road():
    roads = NextHops.of(ring(), GRID)
    nowhere = np.zeros(16, np.bool_)
    np.testing.assert_allclose(roads.shares_on(nowhere, np.full(16, 1 / 16)), roads.cell_weights)
    np.testing.assert_allclose(roads.shares_on(~nowhere, None), roads.cell_weights)
    half = roads.shares_on(np.arange(16) < 8, np.arange(16.0))
    np.testing.assert_allclose(half, np.where(np.arange(16) < 8, np.arange(16), 0) / 28)


def test_where_no_classes_are_known_all_roads_are_equally_fast():
    network = ring()
    assert (next_hops.slownesses(network) == 1).all()
    assert NextHops.of(network, GRID).mean_limit == pytest.approx(1)
    classed = dataclasses.replace(network, classed=True)
    assert (
        next_hops.slownesses(classed).tolist() == (1.5 ** network.road_class.astype(float)).tolist()
    )


def test_a_network_beyond_the_box_is_refused():
    with pytest.raises(InputError, match=r"reaches from x=0\.05 to 0\.95, beyond the box"):
        NextHops.of(ring(), Grid(Box(0, 0, 0.9, 1), 4))


def test_a_node_with_more_than_256_roads_is_refused():
    turn = np.arange(257) * 2 * np.pi / 257
    star = RoadNetwork.from_edges(
        x=np.append(0.5 + 0.4 * np.cos(turn), 0.5),
        y=np.append(0.5 + 0.4 * np.sin(turn), 0.5),
        tail=np.arange(257),
        head=np.full(257, 257),
    )
    with pytest.raises(InputError, match="more than 256 roads leave one node"):
        NextHops.of(star, GRID)


def test_many_threads_find_the_same_ways_and_tell_how_far_they_are():
    told = []
    one, many = (
        NextHops.of(ring(), GRID, n_threads=n, progress=lambda *seen: told.append(seen))
        for n in (1, 3)
    )
    assert one.times.tobytes() == many.times.tobytes()
    assert one.ranks.tobytes() == many.ranks.tobytes()
    assert told == [(k, 60) for k in range(1, 61)] * 2


def test_whoever_stops_half_way_does_not_wait_for_the_other_half(monkeypatch):
    found, whole = [], next_hops.way_kernels.find_ways

    def count(goal, *rest):
        found.append(goal)
        time.sleep(0.005)
        whole(goal, *rest)

    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(next_hops.way_kernels, "find_ways", count)
    with pytest.raises(KeyboardInterrupt):
        NextHops.of(ring(), GRID, progress=stop)
    assert len(found) < 60


@pytest.mark.parametrize(
    ("room", "utmost", "n_anchors"), [(50, 60, 50), (20, 60, 48), (20, 30, 30), (99, 99, 60)]
)
def test_a_large_network_has_fewer_anchors_but_four_by_cell_if_they_fit(
    room, utmost, n_anchors, monkeypatch
):
    network = ring()
    cells = GRID.cells_of(network.x, network.y)
    assert np.unique(cells).size == 12
    monkeypatch.setattr(next_hops, "MOST_BYTES", 5 * 60 * room)
    monkeypatch.setattr(next_hops, "UTMOST_BYTES", 5 * 60 * utmost)
    roads = NextHops.of(network, GRID)
    assert roads.anchors.size == n_anchors
    assert set(roads.anchor_cells) == set(cells)
    assert roads.times.nbytes + roads.ranks.nbytes == 5 * 60 * n_anchors


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keep tables of every network in a folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(next_hops, "LARGE", 10)
    return tmp_path / "retrasyn"


def same(one, other):
    assert one.times.tobytes() == other.times.tobytes()
    assert one.ranks.tobytes() == other.ranks.tobytes()


def test_tables_of_a_large_network_are_found_once(kept):
    told = []
    first = NextHops.of(ring(), GRID, progress=lambda *seen: told.append(seen))
    (file,) = kept.iterdir()
    assert told[-1] == (60, 60)
    again = NextHops.of(ring(), GRID, progress=lambda *seen: pytest.fail("found anew"))
    same(first, again)
    assert list(kept.iterdir()) == [file]


def test_another_network_and_another_grid_have_tables_of_their_own(kept):
    for network, grid in [(ring(), GRID), (ring(59), GRID)]:
        NextHops.of(network, grid)
    assert len(list(kept.iterdir())) == 2
    slow = dataclasses.replace(ring(), classed=True)
    NextHops.of(slow, GRID)
    assert len(list(kept.iterdir())) == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_hops, "N_ANCHORS", 30)
        NextHops.of(ring(), GRID)
    assert len(list(kept.iterdir())) == 4


def damaged(arrays):
    ranks = arrays["ranks"].copy()
    ranks[3, 5] = 2  # a ring's nodes have two arcs
    return arrays | {"ranks": ranks}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"no archive"),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: flipped(path, 3000),
        lambda path: saved(path, damaged),
        lambda path: saved(path, lambda arrays: {"times": arrays["times"]}),
        lambda path: saved(path, lambda arrays: {name: a[1:] for name, a in arrays.items()}),
        lambda path: saved(path, lambda arrays: {name: a * 1.0 for name, a in arrays.items()}),
    ],
    ids=["text", "empty", "cut", "bit", "rank", "missing", "shape", "kind"],
)
def test_damaged_tables_are_found_anew(kept, spoil):
    first = NextHops.of(ring(), GRID)
    (file,) = kept.iterdir()
    sound = file.read_bytes()
    spoil(file)
    assert file.read_bytes() != sound
    same(first, NextHops.of(ring(), GRID))
    same(first, NextHops.of(ring(), GRID, progress=lambda *_: pytest.fail("not mended")))


def flipped(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def saved(path, change):
    arrays = next_hops.load_arrays(path)
    next_hops.save_arrays(path, change({name: arrays[name] for name in ("times", "ranks")}))


def test_a_folder_that_cannot_be_written_costs_time_only(kept):
    kept.parent.joinpath("retrasyn").write_text("a file where the folder should be")
    same(NextHops.of(ring(), GRID), NextHops.of(ring(), GRID))


def test_small_networks_leave_no_files(kept, monkeypatch):
    monkeypatch.setattr(next_hops, "LARGE", 60)
    NextHops.of(ring(), GRID)
    assert not kept.exists()


def test_ways_of_a_city_are_finite():
    roads = NextHops.of(ring(), GRID)
    assert np.isfinite(roads.times).all()
    assert math.isclose(roads.times.max(), ring().length.sum() / 2, rel_tol=0.05)
