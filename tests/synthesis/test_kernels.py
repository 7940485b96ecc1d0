"""Alias tables, thresholds and compaction: exact where nothing is random."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from retrasyn.space import Box, Grid
from retrasyn.synthesis import kernels, shard
from retrasyn.synthesis.shard import MIN_SLICE, Streams, over_slices, slices
from retrasyn.synthesis.synthesizer import make_shard

weights = st.one_of(st.just(0.0), st.floats(1e-9, 1.0))


def probabilities(table, n_choices):
    """Read the distribution off packed alias rows: [n_rows, n_choices]."""
    n_rows, n_slots = table.shape
    out = np.zeros((n_rows, n_choices))
    for row in range(n_rows):
        for slot in table[row].tolist():
            first, second, threshold = slot & 0xFFFF, (slot >> 16) & 0xFFFF, slot >> 32
            out[row, second] += (1 - threshold / 2**32) / n_slots
            if threshold:
                out[row, first] += threshold / 2**32 / n_slots
    return out


@given(hnp.arrays(np.float64, (3, 9), elements=weights))
def test_an_alias_row_holds_its_weights(rows):
    choices = np.tile(np.arange(9, dtype=np.int32), (3, 1))
    fallback = np.full(3, 4, np.int32)
    found = probabilities(kernels.build_alias(rows, choices, fallback, 16), 9)
    total = rows.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, rows / np.where(total > 0, total, 1), np.eye(9)[4])
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert (found[(rows == 0) & (total > 0)] == 0).all()


@given(st.integers(1, 64), st.integers(0, 99))
def test_an_alias_row_over_all_cells_holds_its_weights(n_cells, seed):
    random = np.random.default_rng(seed)
    rows = random.random((1, n_cells)) * (random.random(n_cells) < 0.5)
    cells = np.arange(n_cells, dtype=np.int32)
    n_slots = 1 << (n_cells - 1).bit_length()
    found = probabilities(kernels.build_alias(rows, cells[None], cells[:1], n_slots), n_cells)
    expected = rows / rows.sum() if rows.sum() > 0 else np.eye(n_cells)[:1]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@given(
    hnp.arrays(np.int64, 5, elements=st.integers(0, 1000)),
    hnp.arrays(np.float64, 5, elements=st.floats(1e-8, 1.0)),
    st.floats(0.001, 0.999),
)
def test_floors_let_the_wanted_share_pass(counts, weight, share):
    if counts.sum() == 0:
        return
    floors = kernels.find_floors(counts, weight, share)
    passing = 1 - floors.astype(np.float64) / 2**64
    assert (passing * counts).sum() == pytest.approx(share * counts.sum(), rel=1e-6)


def test_floors_let_nobody_or_everybody_pass_at_the_ends():
    counts, weight = np.array([5, 5]), np.array([0.5, 0.5])
    assert kernels.find_floors(counts, weight, 1.0).tolist() == [0, 0]
    assert kernels.find_floors(counts, weight, 0.0).tolist() == [2**64 - 1] * 2


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.9, 1.0]), min_size=1, max_size=6),
    st.integers(1, 40),
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 9999),
)
def test_the_living_keep_their_order_and_their_columns(ending, each, n_threads, roads, seed):
    """However many end in which part of the streams, and however many threads remove them."""
    random = np.random.default_rng(seed)
    ended = np.concatenate([random.random(each) < share for share in ending])
    n = ended.size
    streams = Streams(np.arange(n) * 3, np.zeros(n, np.uint16), np.arange(n, dtype=np.int32), n)
    streams.follow_points()
    streams.x[:], streams.y[:] = np.arange(n) * 1.0, np.arange(n) * -1.0
    if roads:
        streams.follow_roads()
        streams.arc[:], streams.own[:] = np.arange(n), np.arange(n) / 7
    one = make_shard(0, 1, grid=Grid(Box(0, 0, 1, 1), 3), n_threads=n_threads)
    one.streams = streams
    with patch.object(shard, "MIN_SLICE", 8):
        one._fresh_marks()[:] = np.where(ended, kernels.ENDED, np.arange(n) % 7)
        one._remove_ended()
    expected = np.flatnonzero(~ended)
    columns = streams.columns()
    assert (columns["ids"] // 3).tolist() == expected.tolist()
    assert columns["entered"].tolist() == columns["x"].tolist() == expected.tolist()
    assert columns["cells"].tolist() == (expected % 7).tolist()
    assert (-columns["y"]).tolist() == expected.tolist()
    if roads:
        assert columns["arc"].tolist() == expected.tolist()
        assert columns["own"].tolist() == (expected / 7).tolist()


@given(st.integers(0, 10 * MIN_SLICE), st.integers(1, 9))
def test_slices_cover_everything_once(n, n_threads):
    parts = slices(n, n_threads)
    assert [i for part in parts for i in (part.start, part.stop)][1:-1] == [
        edge for part in parts[1:] for edge in (part.start, part.start)
    ]
    assert (parts[0].start, parts[-1].stop) == (0, n)
    assert len(parts) <= n_threads


def test_results_of_slices_come_back_in_order():
    sizes = over_slices(lambda part: part.stop - part.start, 3 * MIN_SLICE, 3)
    assert sizes == [MIN_SLICE] * 3
