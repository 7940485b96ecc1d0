"""The figures of a report are those one counts by hand."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from retrasyn.data.metadata import Clock
from retrasyn.metrics.density import density_error, density_errors
from retrasyn.metrics.transition import transition_errors
from retrasyn.report.places import N_FLOWS
from retrasyn.report.streams import N_STILL
from retrasyn.report.timeline import Timeline
from retrasyn.space import Box, Grid
from support.report_pairs import (
    CLOCK,
    EDGES,
    RECEIPT,
    content_of,
    make_pair,
    paths,
    unpack,
    walks,
)

SIDES = ("real", "synthetic")


@pytest.fixture(scope="module")
def pair():
    return make_pair()


@pytest.fixture(scope="module")
def content(pair):
    return content_of(pair)


@pytest.mark.parametrize("kind", SIDES)
@pytest.mark.parametrize("shape", [{}, EDGES["more timestamps than frames"]], ids=["few", "many"])
def test_density_counts_the_points_of_every_frame_and_cell(kind, shape):
    pair = make_pair(**shape)
    data = content_of(pair).data
    counted = Counter(
        ((begin + k) // data["time"]["width"], cell)
        for begin, cells in paths(getattr(pair, kind))
        for k, cell in enumerate(cells)
    )
    packed = unpack(data["density"][kind], data["time"]["frames"], pair.grid.n_cells)
    assert {place: n for place, n in np.ndenumerate(packed) if n} == counted


@pytest.mark.parametrize("kind", SIDES)
def test_flows_are_the_most_frequent_moves_between_different_cells(pair, content, kind):
    other = "real" if kind == "synthetic" else "synthetic"
    moves = {side: moves_of(pair, side) for side in SIDES}
    told = content.data["flows"][kind]["whole"]
    counted = Counter(code for _, code in moves[kind])
    elsewhere = Counter(code for _, code in moves[other])
    expected = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))[:N_FLOWS]
    assert list(zip(told["codes"], told["counts"], strict=True)) == expected
    assert told["elsewhere"] == [elsewhere[code] for code in told["codes"]]


@pytest.mark.parametrize("kind", SIDES)
def test_flows_of_a_moment_are_those_of_the_span_up_to_it(pair, content, kind):
    told = content.data["flows"][kind]["frames"]
    codes, counts = (unpack(told[name], pair.n_timestamps, N_FLOWS) for name in ("codes", "counts"))
    moves = moves_of(pair, kind)
    for t in range(pair.n_timestamps):
        counted = Counter(code for when, code in moves if t - 6 < when <= t)
        expected = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))[:N_FLOWS]
        seen = counts[t] > 0
        assert list(zip(codes[t, seen], counts[t, seen], strict=True)) == expected


def test_shared_flows_are_among_the_main_ones_of_both_sides(pair, content):
    tops = []
    for side in SIDES:
        counted = Counter(code for _, code in moves_of(pair, side))
        order = sorted(counted, key=lambda code: (-counted[code], code))
        tops.append(set(order[:N_FLOWS]))
    assert content.shared_flows == (len(tops[0] & tops[1]), N_FLOWS)


def test_on_a_fine_grid_flows_join_blocks_of_cells():
    pair = make_pair(side=64, n=200)
    flows = content_of(pair).data["flows"]
    assert (flows["block"], flows["across"]) == (4, 16)
    counted = Counter(code for _, code in moves_of(pair, "real", block=4))
    assert flows["real"]["whole"]["counts"] == sorted(counted.values(), reverse=True)[:N_FLOWS]


def moves_of(pair, kind, block=1):
    """Return timestamp and code of every move between different blocks."""
    side = pair.grid.side
    across = -(-side // block)
    moves = []
    for begin, cells in paths(getattr(pair, kind)):
        for k, (here, there) in enumerate(pairwise(cells), 1):
            row, column = here // side // block, here % side // block
            up, right = there // side // block - row, there % side // block - column
            if (up, right) != (0, 0):
                code = (row * across + column) * 9 + (up + 1) * 3 + right + 1
                moves.append((begin + k, code))
    return moves


def test_curves_are_the_figures_of_every_timestamp(pair, content):
    curves = content.data["curves"]
    for name, errors in (
        ("density_error", density_errors(pair)),
        ("transition_error", transition_errors(pair)),
    ):
        known = [np.nan if value is None else value for value in curves[name]]
        assert known == pytest.approx(errors.tolist(), abs=1e-5, nan_ok=True)
    for kind in SIDES:
        present = Counter(
            begin + k for begin, cells in paths(getattr(pair, kind)) for k in range(len(cells))
        )
        assert curves[kind] == [present[t] for t in range(pair.n_timestamps)]


def test_reports_are_shown_where_the_receipt_tells_them():
    pair = make_pair(first_t=10)
    rounds = {"t": [10, 12, 99], "n_reports": [7, 3, 5], "epsilon": [1.0, 0.5, 1.0]}
    curves = content_of(pair, receipt=RECEIPT | {"rounds": rounds}).data["curves"]
    assert curves["reports"] == [7, 0, 3] + [0] * 21
    assert curves["epsilon"] == [1.0, 0, 0.5] + [0] * 21


@pytest.mark.parametrize(
    "rounds",
    [None, [], "many", {}, {"t": [1]}, {"t": ["x"], "n_reports": [1]}, {"t": [1, 2], "epsilon": 3}],
    ids=str,
)
def test_reports_that_cannot_be_read_are_left_out(pair, rounds):
    curves = content_of(pair, receipt={"rounds": rounds}).data["curves"]
    assert "reports" not in curves


def test_hotspots_are_ranked_with_their_rank_on_the_other_side(pair, content):
    hotspots = content.data["hotspots"]
    ranked = {
        kind: sorted(
            Counter(cell for _, cells in paths(getattr(pair, kind)) for cell in cells).items(),
            key=lambda entry: (-entry[1], entry[0]),
        )
        for kind in SIDES
    }
    for kind, other in (SIDES, SIDES[::-1]):
        told = hotspots[kind]
        assert list(zip(told["cells"], told["counts"], strict=True)) == ranked[kind][:5]
        ranks = {cell: rank for rank, (cell, _) in enumerate(ranked[other], 1)}
        assert told["elsewhere"] == [ranks.get(cell, 0) for cell in told["cells"]]
    tops = [{cell for cell, _ in ranked[kind][:5]} for kind in SIDES]
    assert hotspots["shared"] == len(tops[0] & tops[1])


def test_patterns_have_their_counts_and_ranks_on_both_sides(pair, content):
    counted = {kind: count_patterns(pair, kind) for kind in SIDES}
    rows = content.data["patterns"]["rows"]
    for row in rows:
        for kind in SIDES:
            count = counted[kind][tuple(row["cells"])]
            rank = 1 + sum(n > count for n in counted[kind].values()) if count else None
            assert row[kind] == [rank, count]
    for length in (2, 3, 4, 5):
        most = max(n for cells, n in counted["real"].items() if len(cells) == length)
        assert most in [row["real"][1] for row in rows if len(row["cells"]) == length]


def test_the_patterns_both_lists_share_are_counted(pair, content):
    tops = [
        set(sorted(counted, key=lambda cells: (-counted[cells], len(cells), cells))[:20])
        for counted in (count_patterns(pair, kind) for kind in SIDES)
    ]
    assert content.data["patterns"]["shared"] == len(tops[0] & tops[1])
    assert content.data["patterns"]["listed"] == 20


def count_patterns(pair, kind):
    """Count sequences of 2 to 5 cells; only those of 2 may hold a stay."""
    counted = Counter()
    for _, cells in paths(getattr(pair, kind)):
        for length in (2, 3, 4, 5):
            for low in range(len(cells) - length + 1):
                pattern = tuple(cells[low : low + length])
                if length == 2 or all(a != b for a, b in pairwise(pattern)):
                    counted[pattern] += 1
    return counted


def test_trips_are_first_and_last_cells(pair, content):
    counted = {
        kind: Counter((cells[0], cells[-1]) for _, cells in paths(getattr(pair, kind)))
        for kind in SIDES
    }
    trips = content.data["trips"]
    assert trips["totals"] == [counted[kind].total() for kind in SIDES]
    for first, last, real, synthetic in [*trips["first"], *trips["scattered"]]:
        assert (real, synthetic) == tuple(counted[kind][first, last] for kind in SIDES)
    shown = [row[2] for row in trips["first"]]
    assert shown == sorted(counted["real"].values(), reverse=True)[: len(shown)]


@pytest.mark.parametrize("name", ["lengths", "durations"])
@pytest.mark.parametrize("shape", EDGES.values(), ids=EDGES)
def test_every_stream_is_in_one_bar(shape, name):
    pair = make_pair(**shape)
    bars = content_of(pair).data[name]
    assert sum(bars["real"]) == pair.real.n_streams
    assert sum(bars["synthetic"]) == pair.synthetic.n_streams
    assert len(bars["edges"]) == len(bars["real"]) + 1
    assert bars["edges"] == sorted(bars["edges"])


def test_durations_count_timestamps(pair, content):
    bars = content.data["durations"]
    lengths = [len(cells) for _, cells in paths(pair.real)]
    for low, high, n in zip(bars["edges"], bars["edges"][1:], bars["real"], strict=False):
        assert sum(low <= length < high for length in lengths) == n


@pytest.mark.parametrize("kind", SIDES)
def test_the_sample_follows_the_seed_and_holds_points_of_its_side_only(pair, content, kind):
    sample = content.data["sample"][kind]
    assert content_of(pair).data["sample"][kind] == sample
    assert content_of(pair, seed=4).data["sample"][kind] != sample
    data = getattr(pair, kind)
    places = np.rint(np.stack([data.x, data.y]) * 65535).astype(int)
    drawn = zip(unpack(sample["x"]).tolist(), unpack(sample["y"]).tolist(), strict=True)
    assert set(drawn) <= set(zip(*places.tolist(), strict=True))


def test_no_more_real_trajectories_are_in_the_page_than_it_shows_at_once():
    sample = content_of(make_pair(n=900, n_timestamps=400)).data["sample"]
    assert sample["real"]["n_streams"] == sample["real"]["n_still"] == N_STILL
    assert sample["synthetic"]["n_streams"] > N_STILL


def test_a_stream_of_the_sample_has_one_point_per_frame(pair):
    n_timestamps = 2500
    pair = make_pair(n=400, n_timestamps=n_timestamps, length=20)
    data = content_of(pair).data
    sample = data["sample"]["synthetic"]
    n_points = unpack(sample["n_points"])
    assert data["time"]["width"] == 3
    assert n_points.max() <= 20 // 3 + 2
    assert unpack(sample["x"]).size == n_points.sum()


@pytest.mark.parametrize("kind", SIDES)
def test_density_close_up_counts_the_points_of_small_squares(pair, content, kind):
    fine, data = content.data["fine"], getattr(pair, kind)
    squares = np.minimum(np.floor(np.stack([data.y, data.x]) * fine["side"]), fine["side"] - 1)
    counted = Counter(zip(*squares.astype(int).tolist(), strict=True))
    told = unpack(fine[kind], fine["side"], fine["side"])
    assert {place: n for place, n in np.ndenumerate(told) if n} == counted


def test_errors_close_up_are_density_errors_on_finer_grids():
    box, crowds = Box(0, 0, 1, 1), [walks(n=30, n_timestamps=24, length=9, seed=k) for k in (1, 2)]
    errors = content_of(make_pair()).data["fine"]["errors"]
    for side in (24, 48):
        assert errors[str(side)] == pytest.approx(density_error(*crowds, Grid(box, side)))


@pytest.mark.parametrize("n_timestamps", [1, 2, 999, 1000, 1001, 10_000])
@pytest.mark.parametrize("n_cells", [1, 36, 4096])
def test_frames_cover_all_timestamps_and_stay_few(n_timestamps, n_cells):
    timeline = Timeline.over(n_timestamps, n_cells=n_cells)
    assert timeline.sizes.sum() == n_timestamps
    assert timeline.sizes.size == timeline.n_frames <= 1000
    assert timeline.n_frames * n_cells <= max(500_000, n_cells)


def test_a_frame_averages_what_is_known():
    timeline = Timeline(5, 2)
    means = timeline.means(np.array([1.0, 3.0, np.nan, 4.0, np.nan]))
    assert means.tolist() == pytest.approx([2.0, 4.0, np.nan], nan_ok=True)


def test_the_clock_is_told_in_its_own_time_zone(pair):
    clock = content_of(pair, clock=CLOCK).data["time"]["clock"]
    begin = np.datetime64(int(clock["begin"]), "s")
    assert (str(begin), clock["period"], clock["zone"]) == ("2008-02-02T18:00:00", 600.0, "+0800")


def test_times_beyond_the_calendar_are_not_written(pair):
    clock = Clock("9999-12-31T00:00:00+00:00", 86_400.0)
    assert content_of(pair, clock=clock).data["time"]["clock"] is None


@pytest.mark.parametrize("shape", EDGES.values(), ids=EDGES)
def test_every_figure_is_plain(shape):
    def check(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and check(entry) for key, entry in value.items())
        if isinstance(value, list):
            return all(map(check, value))
        return value is None or isinstance(value, str | int) or np.isfinite(value)

    assert check(content_of(make_pair(**shape)).data)
