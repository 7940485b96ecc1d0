"""A metric of your own: when is each place at its busiest, in the real and in the private city?

A metric is a function of a `Pair`: both data sets on one grid and one timeline. Half of the real
streams against the other half show how much of a figure is chance. Run it with
`python examples/custom_metric.py`.
"""

import numpy as np
import numpy.typing as npt

import retrasyn
from retrasyn import Trajectories
from retrasyn.metrics import Pair
from retrasyn.metrics.density import cell_counts

GRID = retrasyn.Grid(retrasyn.Box(0, 0, 10, 10), side=6)
SPAN = 10  # timestamps that a peak is smoothed over


def peaks(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the middle of each cell's busiest span: [n_timestamps, n_cells] to [n_cells]."""
    sums = np.cumsum(np.vstack([np.zeros(counts.shape[1]), counts]), axis=0)
    return np.argmax(sums[SPAN:] - sums[:-SPAN], axis=0) + SPAN // 2


def peak_shift(real: Trajectories, synthetic: Trajectories) -> float:
    """Return by how many timestamps peaks are off, each cell by its share of the real points."""
    pair = Pair.of(real, synthetic, GRID)
    true = cell_counts(pair.real, pair.n_timestamps, GRID.n_cells)
    made = cell_counts(pair.synthetic, pair.n_timestamps, GRID.n_cells)
    return float(np.average(np.abs(peaks(true) - peaks(made)), weights=true.sum(axis=0)))


def halves(data: Trajectories) -> list[Trajectories]:
    """Cut a data set into the streams with an even and with an odd number."""
    columns = {"traj_id": data.traj_id, "t": data.t, "x": data.x, "y": data.y}
    odd = np.repeat(np.arange(data.n_streams) % 2, data.lengths)
    kept = [{name: column[odd == k] for name, column in columns.items()} for k in (0, 1)]
    return [Trajectories.from_columns(**part) for part in kept]


def main() -> None:
    """Print the figure for chance alone, for two private methods, and for no idea of time."""
    real = retrasyn.demo_city(n_users=40_000, n_timestamps=120, seed=1)
    print(f"half against half {peak_shift(*halves(real)):6.1f} timestamps off")
    for method in ("steered", "retrasyn-p"):
        synthetic, _ = retrasyn.synthesize(real, method, grid=GRID)
        print(f"{method:<17} {peak_shift(real, synthetic):6.1f} timestamps off")
    guesses = np.random.default_rng(1).integers(0, 120, (2, 100_000))
    print(f"{'guessing':<17} {np.abs(guesses[0] - guesses[1]).mean():6.1f} timestamps off")


if __name__ == "__main__":
    main()
