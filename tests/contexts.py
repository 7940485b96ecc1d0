"""What a lifecycle is given, with little said."""

import numpy as np

from retrasyn.interpretation import SAFE
from retrasyn.synthesis.lifecycle import SynthesisContext


def context_of(
    model, memory, *, grid, size, reading=SAFE, length_scale=None, cell_counts=None, **known
):
    return SynthesisContext(
        model=model,
        memory=memory,
        grid=grid,
        interpretation=reading,
        length_scale=memory.released_length if length_scale is None else length_scale,
        size=size,
        cell_counts=np.zeros(grid.n_cells, np.int64) if cell_counts is None else cell_counts,
        **known,
    )
