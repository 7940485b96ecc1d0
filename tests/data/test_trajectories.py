"""Columns in, checked and sorted trajectories out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data import trajectories
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError
from support.streams import recordings

COLUMNS = {
    "traj_id": [3, 3, 3, 8, 8],
    "t": [0, 1, 2, 1, 2],
    "x": [0.1, 0.2, 0.3, 0.8, 0.9],
    "y": [0.1, 0.1, 0.2, 0.7, 0.7],
}


def columns_of(real):
    columns = {"traj_id": real.traj_id, "t": real.t, "x": real.x, "y": real.y}
    return columns if real.user_id is None else {**columns, "user_id": real.user_id}


def assert_same(one, other):
    for name in ("stream_ids", "begins", "starts", "x", "y", "user_of_stream"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def refuse(*words, **columns):
    """Check that columns are refused with a message that has all the words."""
    with pytest.raises(InputError) as caught:
        Trajectories.from_columns(**{**COLUMNS, **columns})
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{caught.value} does not name {missing}"


def test_columns_come_back_as_they_went_in():
    real = Trajectories.from_columns(**COLUMNS)

    assert {name: column.tolist() for name, column in columns_of(real).items()} == COLUMNS
    assert real.notes == ()
    assert (real.n_points, real.n_streams, real.first_t, real.last_t) == (5, 2, 0, 2)
    assert real.lengths.tolist() == [3, 2]
    assert repr(real) == "Trajectories(5 points, 2 streams, t 0..2)"


@given(real=recordings(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(real, seed):
    order = np.random.default_rng(seed).permutation(real.n_points)
    mixed = {name: column[order] for name, column in columns_of(real).items()}

    again = Trajectories.from_columns(**mixed)

    assert_same(real, again)
    was_sorted = np.array_equal(order, np.arange(real.n_points))
    assert len(again.notes) == (0 if was_sorted else 1)


@given(real=recordings(), n_rows=st.integers(1, 9))
def test_rows_looked_at_in_small_blocks_give_the_same(real, n_rows):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trajectories, "_BLOCK", n_rows)
        again = Trajectories.from_columns(**columns_of(real))

    assert_same(real, again)


@pytest.mark.parametrize("row", range(1, 12))
@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_a_fault_at_the_edge_of_a_block_is_seen(n_rows, row, monkeypatch):
    monkeypatch.setattr(trajectories, "_BLOCK", n_rows)
    t = np.arange(12)
    columns = {"traj_id": np.full(12, 4), "x": np.zeros(12), "y": np.zeros(12)}

    refuse(f"t={row - 1};", t=np.where(t >= row, t - 1, t), **columns)
    refuse(f"between t={row - 1} and t={row + 1} ", t=np.where(t >= row, t + 1, t), **columns)


@given(real=recordings(), n_rows=st.integers(1, 40))
def test_blocks_are_whole_streams_that_make_up_the_whole(real, n_rows):
    blocks = list(real.blocks(n_rows))

    for name, column in columns_of(real).items():
        assert np.array_equal(np.concatenate([columns_of(b)[name] for b in blocks]), column)
    assert sum(block.n_streams for block in blocks) == real.n_streams
    longest = int(real.lengths.max())
    assert all(block.n_points < n_rows + longest for block in blocks)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.uint32, np.uint64, np.float32])
def test_any_kind_of_whole_number_is_an_identifier_or_a_timestamp(kind):
    columns = {name: np.array(COLUMNS[name], kind) for name in ("traj_id", "t")}

    real = Trajectories.from_columns(**{**COLUMNS, **columns})

    assert_same(real, Trajectories.from_columns(**COLUMNS))


def test_the_largest_and_the_least_identifier_are_kept_exactly():
    ids = [-(2**63), 2**63 - 1]

    real = Trajectories.from_columns(traj_id=ids, t=[0, 0], x=[0, 1], y=[0, 1])

    assert real.traj_id.tolist() == ids


def test_text_identifiers_are_numbered_in_their_order_and_remembered():
    columns = {**COLUMNS, "traj_id": ["tram", "tram", "tram", "bus", "bus"]}

    real = Trajectories.from_columns(**columns, user_id=["Zoë"] * 3 + ["Ann"] * 2)

    assert [real.name("traj_id", number) for number in real.stream_ids] == ["bus", "tram"]
    assert [real.name("user_id", number) for number in real.user_of_stream] == ["Ann", "Zoë"]
    assert real.t.tolist() == [1, 2, 0, 1, 2]
    assert real.name("t", 7) == "7"


def test_users_are_kept_per_stream_and_given_per_point():
    real = Trajectories.from_columns(**COLUMNS, user_id=[70, 70, 70, 50, 50])

    assert real.user_of_stream.tolist() == [70, 50]
    assert real.user_id.tolist() == [70, 70, 70, 50, 50]


def test_without_users_there_are_none():
    real = Trajectories.from_columns(**COLUMNS)

    assert real.user_of_stream is None
    assert real.user_id is None


def test_a_user_may_quit_and_return_even_at_once():
    columns = {**COLUMNS, "t": [0, 1, 2, 3, 4]}

    real = Trajectories.from_columns(**columns, user_id=[1] * 5)

    assert real.user_of_stream.tolist() == [1, 1]


# What is refused


def test_two_points_of_a_stream_at_once_are_refused():
    refuse("traj_id 3", "t=1", "one row per (traj_id, t)", t=[0, 1, 1, 1, 2])


def test_two_points_of_a_stream_in_unsorted_rows_are_refused():
    refuse("traj_id 8", "t=2", "one row per (traj_id, t)", t=[2, 1, 0, 2, 2])


def test_two_points_of_a_user_at_once_are_refused():
    refuse("user_id 6", "t=1", "one row per (user_id, t)", user_id=[6] * 5)


def test_two_points_of_a_user_are_found_behind_a_longer_trip():
    columns = {
        "traj_id": [1, 1, 1, 1, 2, 3],
        "t": [0, 1, 2, 3, 1, 2],
        "x": [0.0] * 6,
        "y": [0.0] * 6,
    }
    refuse("user_id 6", "one row per (user_id, t)", **columns, user_id=[6, 6, 6, 6, 5, 6])


def test_a_stream_of_two_users_is_refused():
    refuse("traj_id 3", "t=2", "its own traj_id", user_id=[6, 6, 7, 8, 8])


def test_a_gap_is_refused_with_the_number_of_gaps():
    refuse(*("traj_id 3", "t=0", "t=4", "2 such gaps", "another traj_id"), t=[0, 4, 5, 1, 3])


@pytest.mark.parametrize("name", ["x", "y", "t", "traj_id", "user_id"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused_by_column_and_row(name, value):
    column = np.array({**COLUMNS, "user_id": COLUMNS["traj_id"]}[name], np.float64)
    column[3] = value

    refuse(f"column {name}", f"holds {value}", "row 4", "(1 such rows)", **{name: column})


@pytest.mark.parametrize("name", ["traj_id", "user_id"])
@pytest.mark.parametrize("nothing", [None, np.nan])
def test_an_identifier_that_is_missing_among_text_is_refused(name, nothing):
    column = np.array(["a", "a", "a", nothing, "b"], object)

    refuse(f"column {name}", "row 4", **{name: column})


@pytest.mark.parametrize("name", ["t", "traj_id", "user_id"])
def test_a_fraction_is_refused_where_whole_numbers_are_needed(name):
    column = np.array({**COLUMNS, "user_id": COLUMNS["traj_id"]}[name], np.float64)
    column[1] += 0.25

    refuse(f"column {name}", f"{column[1]}", "row 2", "whole numbers", **{name: column})


def test_an_identifier_too_large_to_count_is_refused_exactly_as_written():
    ids = np.array([2**64 - 1] * 3 + [1] * 2, np.uint64)

    refuse("column traj_id", str(2**64 - 1), "row 1", traj_id=ids)


@pytest.mark.parametrize("name", ["x", "y", "t"])
def test_words_are_refused_where_numbers_are_needed(name):
    refuse(f"column {name}", "north", "row 2", **{name: ["0", "north", "2", "1", "2"]})


@pytest.mark.parametrize("name", ["traj_id", "x", "y", "user_id"])
def test_columns_of_different_lengths_are_refused(name):
    refuse(f"column {name}", "(4,)", "(5,)", **{name: [1, 1, 1, 2]})


def test_a_table_of_tables_is_refused():
    refuse("column x", "(5, 2)", x=np.zeros((5, 2)))


def test_no_rows_are_refused():
    refuse("no rows", traj_id=[], t=[], x=[], y=[])


def test_clock_times_are_refused():
    refuse("10,000,001 steps", "0, 1, 2", t=[0, 1, 2, 9_999_999, 10_000_000])


def test_the_longest_span_is_accepted():
    real = Trajectories.from_columns(**{**COLUMNS, "t": [0, 1, 2, 9_999_998, 9_999_999]})

    assert real.last_t - real.first_t + 1 == trajectories.MAX_SPAN


def test_times_at_both_ends_of_the_integers_are_refused():
    refuse("steps", "0, 1, 2", t=[-(2**63), -(2**63) + 1, -(2**63) + 2, 2**63 - 2, 2**63 - 1])


def test_times_of_one_stream_at_both_ends_of_the_integers_are_refused():
    refuse("steps", "0, 1, 2", traj_id=[1] * 5, t=[-(2**63), 0, 1, 2, 2**63 - 1])
