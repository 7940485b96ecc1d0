"""Results are kept exactly, one row at a time, and a cut-off row is no row."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import InputError
from retrasyn.experiments.cells import SECONDS, UTILITY, Cell, ResultFile, Results, Timing, Timings

CELL = Cell(data="tdrive", method="steered", epsilon=0.5, faithful=True, seed=2)


def store_in(folder):
    return ResultFile(folder / "cells.csv", Cell, UTILITY)


def test_there_is_nothing_before_anything_was_run(tmp_path):
    assert store_in(tmp_path).load() == {}


@given(figure=st.floats(allow_nan=False, allow_infinity=False), seed=st.integers(0, 10**6))
def test_a_figure_comes_back_exactly(tmp_path_factory, figure, seed):
    store = store_in(tmp_path_factory.mktemp("cells"))
    cell = dataclasses.replace(CELL, seed=seed)
    store.append(cell, {"density_error": figure})
    assert store.load() == {cell: {"density_error": figure}}


def test_what_was_not_measured_is_absent(tmp_path):
    store = store_in(tmp_path)
    store.append(CELL, {"query_error": 0.25})
    assert list(store.load()[CELL]) == ["query_error"]


def test_every_length_of_a_cut_off_file_loses_at_most_the_last_row(tmp_path):
    store = store_in(tmp_path)
    cells = [dataclasses.replace(CELL, seed=seed) for seed in range(3)]
    for cell in cells:
        store.append(cell, {"density_error": 1 / 3, "n_reports": cell.seed})
    whole = store.path.read_bytes()
    ends = [n for n in range(len(whole)) if whole[n : n + 1] == b"\n"]
    for n in range(len(whole) + 1):
        store.path.write_bytes(whole[:n])
        kept = store.load()
        assert list(kept) == cells[: max(sum(end < n for end in ends) - 1, 0)]
    store.path.write_bytes(whole[:-5])
    store.load()
    store.append(cells[2], {"density_error": 1 / 3, "n_reports": 2})
    assert store.path.read_bytes() == whole


def test_sorted_files_are_equal_whatever_the_order_was(tmp_path):
    cells = [dataclasses.replace(CELL, seed=seed, method=m) for seed in (1, 0) for m in "ba"]
    files = []
    for name, order in (("one", cells), ("two", cells[::-1])):
        store = store_in(tmp_path / name)
        for cell in order:
            store.append(cell, {"density_error": cell.seed})
        store.sort()
        files.append(store.path.read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "line", ["tdrive,steered", "tdrive,steered,x,20,6,20,1.0,False,0" + "," * len(UTILITY)]
)
def test_a_damaged_row_is_named(tmp_path, line):
    store = store_in(tmp_path)
    store.append(CELL, {})
    with store.path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match="line 3: not a row of results"):
        store.load()


def test_timings_are_kept_the_same_way(tmp_path):
    store = ResultFile(tmp_path / "deep" / "timings.csv", Timing, SECONDS)
    key = Timing(data="oldenburg", method="retrasyn-p", side=18, share=0.2)
    store.append(key, {"seconds_total": 1e-3})
    assert store.load() == {key: {"seconds_total": 1e-3}}
    assert Timings(store.load()).values("seconds_total", **dataclasses.asdict(key)) == [1e-3]


def test_values_come_by_seed_and_only_of_what_was_asked():
    rows = {
        dataclasses.replace(CELL, seed=seed, epsilon=epsilon): {"trip_error": seed + epsilon}
        for seed in (2, 0, 1)
        for epsilon in (0.5, 1.0)
    }
    results = Results(rows)
    asked = {"data": "tdrive", "method": "steered", "faithful": True}
    assert results.values("trip_error", **asked, epsilon=0.5) == [0.5, 1.5, 2.5]
    assert results.values("trip_error", **asked, window=10) == []
    assert results.values("length_error", **asked) == []
