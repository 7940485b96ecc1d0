"""All synthetic streams, wherever their shards are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.engines.base import Engine, LocalEngine, total
from retrasyn.synthesis.shard import make_shard
from retrasyn.synthesis.streams import Columns, Streams, merged

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Grid
    from retrasyn.synthesis.shard_base import MakeSink


@dataclass(slots=True)
class ShardedStreams:
    """Streams dealt to the shards of an engine, with what is known of them all."""

    engine: Engine
    n: int = 0
    next_id: int = 0
    _counts: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    @classmethod
    def open(
        cls,
        grid: Grid,
        engine: Engine | None = None,
        *,
        continuous: bool = False,
        n_threads: int | None = None,
        make_sink: MakeSink | None = None,
    ) -> ShardedStreams:
        """Open shards without streams."""
        engine = LocalEngine() if engine is None else engine
        engine.open(
            partial(
                make_shard,
                grid=grid,
                continuous=continuous,
                n_threads=engine.n_threads if n_threads is None else n_threads,
                make_sink=make_sink,
            )
        )
        return cls(engine)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many streams there are per cell: [n_cells]."""
        if self._counts is None:
            self._counts = total(self.engine.each("count_cells"))
        return self._counts

    def changed(self, *, n: int, n_born: int) -> None:
        """Note how many streams there are now, and how many of them have just begun."""
        self.n, self._counts = n, None
        self.next_id += n_born

    def columns(self) -> Columns:
        """Return ids, cells and entering timestamps, and points where they are followed."""
        return merged(self.engine.each("to_arrays"))

    def take(self, columns: Columns, next_id: int) -> None:
        """Hold these streams and no others."""
        self.engine.each("take", columns)
        self.n, self.next_id, self._counts = columns["ids"].size, next_id, None

    def flush(self) -> None:
        """Let shards that write their own points keep none back."""
        self.engine.each("flush")

    def living(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
        """Return ids, cells and entering timestamps of all streams."""
        return Streams.of(self.columns()).living()
