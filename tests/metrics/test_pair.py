"""Two data sets made comparable, against plain loops; what is refused and what is noted."""

import re

import pytest
from hypothesis import given

import naive
from retrasyn.errors import InputError
from retrasyn.metrics.pair import Gridded, Pair
from support.metric_pairs import UNIT, Case, cases, columns

INSIDE = (0.5, 0.5)


def walk(begin, *points):
    return (begin, list(points))


def pair_of(real, synthetic, side=4):
    return Pair.of(*Case(real, synthetic, UNIT, side, span=1, seed=0).arguments)


def trips_of(gridded: Gridded) -> list[naive.NaiveTrip]:
    trips = []
    for begin, low, high in zip(
        gridded.begins.tolist(), gridded.starts[:-1], gridded.starts[1:], strict=True
    ):
        points = zip(gridded.x[low:high].tolist(), gridded.y[low:high].tolist(), strict=True)
        trips.append(naive.NaiveTrip(begin, gridded.cells[low:high].tolist(), list(points)))
    return trips


@given(cases())
def test_streams_are_put_on_the_grid_and_cut_as_in_the_plain_loop(case):
    pair, expected = Pair.of(*case.arguments), case.prepared
    assert trips_of(pair.real) == expected.real
    assert trips_of(pair.synthetic) == expected.synthetic
    assert pair.first_t == min(begin for begin, _ in case.real)
    assert pair.n_timestamps == expected.n_timestamps
    assert pair.n_streams_real == expected.n_streams_real
    assert pair.n_streams_synthetic == expected.n_streams_synthetic


@given(cases())
def test_notes_count_what_was_mended(case):
    pair, expected = Pair.of(*case.arguments), case.prepared
    first_t, n_timestamps = pair.first_t, expected.n_timestamps
    kept = naive.on_timeline(case.synthetic, first_t, n_timestamps)
    n_points = sum(len(points) for _, points in case.synthetic)
    counts = {
        ("synthetic", "real timestamps"): n_points - sum(len(points) for _, points in kept),
        ("real", "outside"): naive.count_outside(case.real, case.box),
        ("synthetic", "outside"): naive.count_outside(case.synthetic, case.box),
        ("real", "jump"): len(expected.real) - expected.n_streams_real,
        ("synthetic", "jump"): len(expected.synthetic) - expected.n_streams_synthetic,
    }
    for (name, word), n in counts.items():
        about = [note for note in pair.notes if note.startswith(f"{name}: ") and word in note]
        numbers = [re.findall(r"[\d,]+", note)[0] for note in about]
        assert numbers == ([f"{n:,}"] if n else [])
    assert len(pair.notes) == sum(n > 0 for n in counts.values())


@pytest.mark.parametrize("which", ["real", "synthetic"])
def test_one_point_in_a_hundred_may_lie_outside_and_no_more(which):
    inside = walk(0, *[INSIDE] * 198)

    def paths(n_outside):
        return [inside, walk(0, *[(1.5, 0.5)] * n_outside)]

    def sides(n_outside):
        mended = paths(n_outside)
        return (mended, [inside]) if which == "real" else ([inside], mended)

    pair = pair_of(*sides(2))  # 2 of 200
    assert getattr(pair, which).cells[-2:].tolist() == [11, 11]
    with pytest.raises(InputError, match=rf"3 of 201 {which} points lie outside the box 0,0,1,1"):
        pair_of(*sides(3))


@pytest.mark.parametrize(
    ("point", "cell"),
    [
        ((-5.0, 0.3), 4),
        ((2.0, 0.3), 7),
        ((0.6, -1e9), 2),
        ((0.6, 1.0000001), 14),
        ((-1.0, -1.0), 0),
        ((7.0, 7.0), 15),
    ],
)
def test_a_point_outside_goes_to_the_nearest_cell_and_keeps_its_place(point, cell):
    real = [walk(0, *[INSIDE] * 99, point)]
    pair = pair_of(real, real)
    assert pair.real.cells[-1] == cell
    assert (pair.real.x[-1], pair.real.y[-1]) == point


def test_only_points_on_the_timeline_count_among_those_that_may_lie_outside():
    real = [walk(0, *[INSIDE] * 10)]
    with pytest.raises(InputError, match="1 of 1 synthetic points lie outside"):
        pair_of(real, [walk(0, (1.5, 0.5)), walk(10, *[INSIDE] * 99)])
    pair = pair_of(real, [walk(3, *[INSIDE] * 7), walk(10, (1.5, 0.5), (1.5, 0.5))])
    assert pair.synthetic.n_points == 7


@pytest.mark.parametrize("begin", [-9, -2, 6, 20])
def test_data_sets_without_a_common_timestamp_are_refused(begin):
    real = [walk(0, INSIDE, INSIDE), walk(4, INSIDE, INSIDE)]
    with pytest.raises(InputError, match="no timestamp"):
        pair_of(real, [walk(begin, INSIDE, INSIDE)])


@pytest.mark.parametrize("begin", [-1, 2, 5])
def test_a_common_timestamp_is_enough_even_if_nobody_shares_it(begin):
    real = [walk(0, INSIDE, INSIDE), walk(4, INSIDE, INSIDE)]
    pair = pair_of(real, [walk(begin, INSIDE, INSIDE)])
    expected = naive.prepare(real, [walk(begin, INSIDE, INSIDE)], UNIT, 4)
    assert trips_of(pair.synthetic) == expected.synthetic


def test_a_stream_from_before_to_after_is_cut_at_both_ends():
    real = [walk(-3, INSIDE, INSIDE)]
    synthetic = [walk(-5, *[(0.1 * step, 0.9) for step in range(8)])]
    pair = pair_of(real, synthetic)
    assert pair.synthetic.begins.tolist() == [0]
    assert pair.synthetic.x.tolist() == [0.2, pytest.approx(0.3)]
    assert pair.notes == ("synthetic: 6 points beyond the real timestamps ignored",)


def test_a_step_to_a_diagonal_neighbour_is_no_jump_and_one_around_an_edge_is():
    centre = {cell: ((cell % 4 + 0.5) / 4, (cell // 4 + 0.5) / 4) for cell in range(16)}
    diagonal = [walk(0, *(centre[cell] for cell in (0, 5, 10, 15)))]
    around = [walk(0, *(centre[cell] for cell in (3, 4, 7, 8)))]  # numbers are near, cells are not
    pair = pair_of(diagonal, around)
    assert pair.real.n_streams == 1
    assert pair.synthetic.lengths.tolist() == [1, 1, 1, 1]
    assert pair.synthetic.begins.tolist() == [0, 1, 2, 3]


def test_the_data_given_is_left_as_it_was():
    real = columns([walk(5, INSIDE, (0.9, 0.9)), walk(6, INSIDE)])
    synthetic = columns([walk(3, INSIDE, INSIDE, (0.9, 0.9), INSIDE, INSIDE)])
    before = [array.copy() for data in (real, synthetic) for array in (data.starts, data.begins)]
    Pair.of(real, synthetic, Case([], [], UNIT, 4, span=1, seed=0).grid)
    after = [array for data in (real, synthetic) for array in (data.starts, data.begins)]
    assert [array.tolist() for array in before] == [array.tolist() for array in after]
