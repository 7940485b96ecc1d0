"""The smallest keys of all shards, found from counts: the same as by sorting."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.engines.base import Workers
from retrasyn.space import Box, Grid
from retrasyn.synthesis import ranking
from retrasyn.synthesis.kernels import ENDED
from retrasyn.synthesis.ranking import choose_smallest, end_smallest
from retrasyn.synthesis.shard import Streams
from retrasyn.synthesis.synthesizer import Shard
from support.shards import dealt

GRID = Grid(Box(0, 0, 1, 1), 2)


def ranked(keys, groups, alive, n_shards):
    """Return shards whose streams have these keys and groups; the id of a stream is its place."""
    n = len(keys)
    streams = Streams(np.arange(n), np.zeros(n, np.uint16), np.zeros(n, np.int32), n)
    sharded = dealt(GRID, streams, n_shards=n_shards)
    sharded.shards.each(Shard.quit_nobody)
    for shard in sharded.shards.engine.workers:
        own = shard.streams.ids[: shard.streams.n]
        shard._keys = np.array(keys, float)[own].copy()
        shard._groups = np.array(groups, np.uint16)[own].copy()
        shard._kept[~np.array(alive, bool)[own]] = ENDED
    return sharded


def ended(sharded):
    found = [s.streams.ids[: s.streams.n][s._kept == ENDED] for s in sharded.shards.engine.workers]
    return set(np.concatenate(found).tolist())


rows = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 1e300), st.sampled_from([0.0, 1.0, 1.0 + 2**-52, 2.0, np.inf])),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=80,
)


@pytest.mark.parametrize("few", [0, 3, 1 << 15])
@given(rows, st.integers(1, 7), st.data())
def test_the_smallest_of_each_group_end_and_equal_keys_go_by_id(few, rows, n_shards, data):
    keys, groups, alive = ([row[k] for row in rows] for k in range(3))
    living = [[i for i, row in enumerate(rows) if row[1] == g and row[2]] for g in range(3)]
    sizes = np.array([len(group) for group in living])
    wanted = np.array([data.draw(st.integers(0, int(size))) for size in sizes])
    expected = {i for i, row in enumerate(rows) if not row[2]}
    for group, n in zip(living, wanted, strict=True):
        expected |= set(sorted(group, key=lambda i: (keys[i], i))[:n])
    sharded = ranked(keys, groups, alive, n_shards)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "FEW", few)
        end_smallest(sharded.shards, wanted, sizes)
    assert ended(sharded) == expected


def test_shards_list_few_candidates_of_many():
    random = np.random.default_rng(1)
    keys = random.exponential(size=200_000)
    sharded = ranked(keys, np.zeros(keys.size), np.ones(keys.size), 3)
    listed = []
    for shard in sharded.shards.engine.workers:
        whole = type(shard).list_ranked(shard, np.zeros(1, np.uint64), 63)
        assert whole[0].size > 60_000
    ask = sharded.shards.engine.each

    def each(question, *arguments):
        answers = ask(question, *arguments)
        if question == "list_ranked":
            listed.extend(answer[0].size for answer in answers)
        return answers

    choose_smallest(Workers(SimpleNamespace(each=each)), np.array([1000]), np.array([keys.size]))
    assert sum(listed) <= ranking.FEW
