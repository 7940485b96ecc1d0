"""Synthetic streams dealt to shards in this process."""

from retrasyn.engines.base import LocalEngine
from retrasyn.synthesis.synthesizer import ShardedStreams


def dealt(grid, streams=None, *, n_shards=1, next_id=None, **settings):
    """Return shards that hold streams, or none."""
    sharded = ShardedStreams.open(grid, LocalEngine(n_shards), **settings)
    if streams is not None:
        columns = streams.columns()
        sharded.take(columns, streams.n if next_id is None else next_id)
    return sharded
