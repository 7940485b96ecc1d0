"""Standard errors of every release as a table: one row per timestamp and cell or flow."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from retrasyn.data.frames import TIME, time_texts
from retrasyn.data.metadata import instants
from retrasyn.data.writing_files import check_place
from retrasyn.errors import OutputError
from retrasyn.files import replacing

if TYPE_CHECKING:
    from retrasyn.data.metadata import Clock
    from retrasyn.messages import Release
    from retrasyn.space import Grid

_SUFFIXES = (".parquet", ".csv")
_SCHEMA = pa.schema(
    [
        ("t", pa.int64()),
        ("cell", pa.int32()),
        ("to", pa.int32()),
        ("share", pa.float64()),
        ("standard_error", pa.float64()),
    ]
)


def check_errors_file(path: str | os.PathLike[str]) -> Path:
    """Reject a path or format to which standard errors cannot be written."""
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise OutputError(f"standard errors {path} must end in {' or '.join(_SUFFIXES)}")
    check_place(path)
    return path


@dataclass(slots=True)
class UncertaintyTable:
    """Collects standard errors timestamp by timestamp.

    Rows with `to` are flows from `cell` to a neighbour, as shares of all moves; rows without are
    cells, as shares of all points.
    """

    grid: Grid
    _batches: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, release: Release) -> None:
        """Add the standard errors of one release, if it has any."""
        known = release.uncertainty
        if known is None:
            return
        near = self.grid.neighbour_table >= 0
        origins, _ = np.nonzero(near)
        cells = np.arange(self.grid.n_cells)
        n_rows = cells.size + origins.size
        to = np.concatenate([np.zeros(cells.size, np.int32), self.grid.neighbour_table[near]])
        self._batches.append(
            pa.RecordBatch.from_pydict(
                {
                    "t": np.full(n_rows, release.t, np.int64),
                    "cell": np.concatenate([cells, origins]).astype(np.int32),
                    "to": pa.array(to, mask=np.arange(n_rows) < cells.size),
                    "share": np.concatenate([known.cell_shares, known.flow_shares[near]]),
                    "standard_error": np.concatenate([known.cell_errors, known.flow_errors[near]]),
                },
                schema=_SCHEMA,
            )
        )

    def write(self, path: Path, clock: Clock | None = None) -> None:
        """Write all rows, with their times where the clock is known.

        The table is empty for methods without standard errors.
        """
        table = pa.Table.from_batches(self._batches, _SCHEMA)
        as_text = path.suffix.lower() == ".csv"
        if clock is not None:
            t = table["t"].to_numpy()
            times = time_texts(clock, t) if as_text else pa.array(instants(clock, t), TIME)
            table = table.add_column(1, "time", times)
        with replacing(path) as temporary:
            if as_text:
                pa.csv.write_csv(table, temporary)
            else:
                pq.write_table(table, temporary)
