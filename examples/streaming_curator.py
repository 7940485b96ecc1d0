"""A curator driven by hand: you say who is there, it says who reports, you bring the reports.

Two thousand walkers drift to the upper right over a grid of 4 x 4 cells. The curator never sees
where they are; it gets sums of perturbed bit vectors. Run it with
`python examples/streaming_curator.py`.
"""

import secrets

import numpy as np
import numpy.typing as npt

from retrasyn import Box, Curator, Grid, Roster, RunSettings
from retrasyn.messages import Aggregate, Grant
from retrasyn.oracles import OUE

N = 2_000
GRID = Grid(Box(0, 0, 4, 4), side=4)


def main() -> None:
    """Run ten timestamps and print what the curator did."""
    random = np.random.default_rng()
    curator = Curator(RunSettings.of("retrasyn-p", grid=GRID, window=5))
    keys = np.arange(N)  # ledger keys: small whole numbers, one per person
    roster = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(N, np.int64))
    places = random.uniform(0, 2, (N, 2))  # everybody begins in the lower left quarter
    cells = GRID.cells_of(*places.T)
    states = curator.states.enters(cells)  # [N], what each device knows about itself

    def collect(grant: Grant, lane: str) -> Aggregate:
        """Let the devices the grant names perturb their states, and add their bits up."""
        del lane
        oracle = OUE(grant.epsilon)
        reports: npt.NDArray[np.uint8] = oracle.perturb(
            states[grant.reporters],
            grant.reporters.astype(np.uint64),
            key=secrets.randbits(64),
            n_answers=curator.states.n_states,
        )
        return oracle.aggregate(reports, n_answers=curator.states.n_states)

    for t in range(10):
        release = curator.step(t, size=N, roster=roster, collect=collect)
        print(
            f"t={t}  {release.n_reports:4d} reports at epsilon {release.epsilon_t:g}, "
            f"{release.ids.size} points; mean x {places[:, 0].mean():.2f} real, "
            f"{release.x.mean():.2f} synthetic"
        )
        before = cells
        places = np.clip(places + random.normal(0.2, 0.2, places.shape).clip(-1, 1), 0, 4)
        cells = GRID.cells_of(*places.T)
        states = curator.states.moves(before, cells)


if __name__ == "__main__":
    main()
