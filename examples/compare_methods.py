"""Four ways to spend the same epsilon, on a small invented city.

Run it with `python examples/compare_methods.py`.
"""

import numpy as np

import retrasyn
from retrasyn import Box, Grid, Trajectories

GRID = Grid(Box(0, 0, 10, 10), side=6)
METHODS = ("steered", "retrasyn-p", "uniform-b", "random-p")


def shares(points: Trajectories) -> np.ndarray:
    """Return the share of all points that lies in each cell: [n_cells]."""
    counts = np.bincount(GRID.cells_of(points.x, points.y), minlength=GRID.n_cells)
    return counts / points.n_points


def main() -> None:
    """Print what each method spent and made."""
    real = retrasyn.demo_city(n_users=10_000, n_timestamps=120, seed=1)
    print(f"real: {real}\n")
    print("method        reports  worst window   points  streams  off by")
    for name in METHODS:
        synthetic, receipt = retrasyn.synthesize(real, name, grid=GRID)
        off = 0.5 * np.abs(shares(real) - shares(synthetic)).sum()
        print(
            f"{name:<12}{receipt.n_reports:>9,}{receipt.worst_window.declared.epsilon:>14g}"
            f"{synthetic.n_points:>9,}{synthetic.n_streams:>9,}{off:>8.2f}"
        )
    print(f"\nEach stays within epsilon {receipt.epsilon:g} over any {receipt.window} positions.")
    print("'off by' is the share of points that would have to change cells, over the whole day.")


if __name__ == "__main__":
    main()
