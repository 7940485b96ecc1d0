"""How sure is a release? Its standard errors, cell by cell, compared with the truth.

Only a simulation can compare: the truth is looked at here, never by the method. Run it with
`python examples/standard_errors.py`.
"""

import numpy as np

import retrasyn
from retrasyn import Box, Grid, Release

GRID = Grid(Box(0, 0, 10, 10), side=6)
SURE = 1.645  # standard errors to either side of a 90 % interval


def main() -> None:
    """Print the busiest cells of the last release, and how often the intervals were right."""
    real = retrasyn.demo_city(n_users=20_000, n_timestamps=60, seed=1)
    cells = GRID.cells_of(real.x, real.y)
    right: list[float] = []
    newest: list[Release] = []

    def true_shares(t: int) -> np.ndarray:
        """Return the share of people in each cell at t: [n_cells]."""
        counts = np.bincount(cells[real.t == t], minlength=GRID.n_cells)
        return counts / counts.sum()

    def look(release: Release) -> None:
        """Compare a release with the truth as soon as it is made."""
        known = release.uncertainty
        if known is not None:  # None until somebody has reported
            off = np.abs(known.cell_shares - true_shares(release.t))
            right.append(np.mean(off <= SURE * known.cell_errors))
            newest[:] = [release]

    _, receipt = retrasyn.synthesize(real, grid=GRID, on_release=look)
    (last,) = newest
    known, true = last.uncertainty, true_shares(last.t)
    assert known is not None  # noqa: S101 - only such releases are kept
    print(f"t = {last.t}, the five busiest cells\ncell   share   90 % interval   truth")
    for cell in np.argsort(-known.cell_shares)[:5]:
        share, error = known.cell_shares[cell], known.cell_errors[cell]
        low, high = max(share - SURE * error, 0), share + SURE * error
        print(f"{cell:4d} {share:7.1%}  {low:6.1%} to {high:5.1%} {true[cell]:7.1%}")
    print(f"\nThe intervals held the truth in {np.mean(right):.0%} of all cells and timestamps.")
    if receipt.standard_error is not None:
        print(f"Mean standard error: {receipt.standard_error.cell:.2%} of all points, per cell.")


if __name__ == "__main__":
    main()
