"""A synthetic city in MovingPandas and back: speeds, a filter, and the same points again.

Clock and coordinate system travel with the data, so that MovingPandas can speak of kilometres and
hours. Needs `pip install "retrasyn[geo]"`. Run it with
`python examples/movingpandas_round_trip.py`.
"""

import dataclasses

import numpy as np

import retrasyn
from retrasyn import Trajectories
from retrasyn.data.metadata import Clock

CLOCK = Clock("2026-05-04T06:00:00+02:00", period=300)
METRES = 1_000  # of one unit of the invented city
CORNER = (600_000, 5_800_000)  # where it is thought to lie, in UTM zone 32


def invent_city() -> Trajectories:
    """Return the city of the demo with a place on the earth and a clock."""
    city = retrasyn.demo_city(n_users=300, n_timestamps=60, seed=1)
    x, y = CORNER[0] + METRES * city.x, CORNER[1] + METRES * city.y
    return dataclasses.replace(city, x=x, y=y, clock=CLOCK, crs="EPSG:32632")


def main() -> None:
    """Go there and back, and say what MovingPandas found on the way."""
    real = invent_city()
    box = (*CORNER, CORNER[0] + 10 * METRES, CORNER[1] + 10 * METRES)
    synthetic, _ = retrasyn.synthesize(real, box=box)
    print(f"synthetic  {synthetic}, {synthetic.crs}")

    collection = synthetic.to_trajectory_collection()  # MovingPandas from here on
    collection.add_speed(units=("km", "h"))
    long = [line for line in collection if line.get_length(units="km") > 20]  # noqa: PLR2004
    print(f"           {len(collection)} lines of two points or more, {len(long)} beyond 20 km")
    speeds = collection.to_point_gdf()["speed"]
    print(f"           median speed {speeds.median():.1f} km/h")

    points = collection.to_point_gdf().reset_index()  # and back
    back = Trajectories.from_frame(points, clock=CLOCK)
    alone = int((synthetic.lengths == 1).sum())  # no lines, so they stay behind
    print(f"back       {back}, {back.crs}; {alone} streams of one point stayed behind")
    kept = np.repeat(synthetic.lengths > 1, synthetic.lengths)
    same = np.array_equal(back.x, synthetic.x[kept]) and np.array_equal(back.y, synthetic.y[kept])
    print("every other point is the same, to the last bit" if same else "points have changed")


if __name__ == "__main__":
    main()
