"""Somebody else's synthetic data, in a form of its own, measured beside ours.

Another program wrote `uid,datetime,lat,lng` with clock times, and begins later than the real data.
It is read, cut into the same steps and numbered alike; then the same ten figures apply. A file
without a receipt promises nothing: how private it is, no figure says. Run it with
`python examples/foreign_data.py`.
"""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np

import retrasyn
from retrasyn import Trajectories
from retrasyn.data.discretise import discretise
from retrasyn.data.formats import read_fixes
from retrasyn.data.metadata import Clock
from retrasyn.metrics import METRICS

GRID = retrasyn.Grid(retrasyn.Box(0, 0, 10, 10), side=6)
CLOCK = Clock("2026-05-04T06:00:00+00:00", period=300)  # of the real data


def write_theirs(real: Trajectories, path: Path) -> None:
    """Stand in for the other program: every real place blurred by itself, from step 3 on."""
    late, blur = real.t > 2, np.random.default_rng(3).laplace(0, 0.7, (2, real.n_points))  # noqa: PLR2004
    x, y = np.clip(np.stack([real.x, real.y]) + blur, 0, 10)[:, late]
    times = np.datetime64(CLOCK.epoch[:19], "s") + (300 * real.t[late] + 120).astype("m8[s]")
    rows = zip(real.traj_id[late], np.datetime_as_string(times), y, x, strict=True)
    lines = ["uid,datetime,lat,lng", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def read_theirs(path: Path) -> Trajectories:
    """Read it, and number its steps as the real data's clock does."""
    theirs, _ = discretise(read_fixes(path), every=CLOCK.period)
    assert theirs.clock is not None  # noqa: S101 - steps of a length have a clock
    shift = round((theirs.clock.time_of(0) - CLOCK.time_of(0)).total_seconds() / CLOCK.period)
    print(f"their step 0 is step {shift} of the real data")
    return dataclasses.replace(theirs, begins=theirs.begins + shift, clock=CLOCK)


def main() -> None:
    """Print ten figures for their data and for ours."""
    real = dataclasses.replace(retrasyn.demo_city(n_users=12_000, seed=1), clock=CLOCK)
    with tempfile.TemporaryDirectory() as folder:
        write_theirs(real, Path(folder) / "theirs.csv")
        theirs = read_theirs(Path(folder) / "theirs.csv")
    ours, _ = retrasyn.synthesize(real, grid=GRID)
    columns = [retrasyn.evaluate(real, data, GRID).to_dict() for data in (theirs, ours)]
    print(f"\n{'':<18}{'theirs':>8}{'ours':>8}  better")
    for metric in METRICS:
        figures = "".join(f"{column[metric.key]:>8.3f}" for column in columns)
        print(f"{metric.title:<18}{figures}  {metric.better}")


if __name__ == "__main__":
    main()
