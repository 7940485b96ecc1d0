"""Your own positions with clock times: bin them, split them at gaps, synthesise them.

Run without arguments: a small CSV of taxis is invented first, in a folder that is then removed.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet

import retrasyn

PERIOD = 600  # seconds between two collections
BOX = (116.15, 39.75, 116.60, 40.10)  # public: chosen from a map, not from the data


def invent_taxis(path: Path) -> None:
    """Write taxi, seconds, longitude, latitude: 300 taxis, a fix every five minutes, some lost."""
    random = np.random.default_rng(7)
    places = np.cumsum(random.normal(0, 0.006, (300, 144, 2)), axis=1)  # from the middle
    places = np.clip(np.add(places, (116.37, 39.92)), BOX[:2], BOX[2:])
    taxi, fix = np.nonzero(random.binomial(1, 0.8, (300, 144)))
    columns = [taxi, fix * 300, places[taxi, fix, 0], places[taxi, fix, 1]]
    names = ["taxi", "seconds", "longitude", "latitude"]
    pyarrow.csv.write_csv(pyarrow.table(columns, names=names), path)


def to_trajectories(path: Path) -> retrasyn.Trajectories:
    """Keep one position per taxi and period; begin a new stream after every gap."""
    table = pyarrow.csv.read_csv(path)
    taxi, seconds, x, y = (table.column(k).to_numpy() for k in range(4))
    t = seconds // PERIOD
    order = np.lexsort((seconds, taxi))
    taxi, t, x, y = taxi[order], t[order], x[order], y[order]
    last = np.append((taxi[1:] != taxi[:-1]) | (t[1:] != t[:-1]), True)  # of its period
    taxi, t, x, y = taxi[last], t[last], x[last], y[last]
    begins = np.append(True, (taxi[1:] != taxi[:-1]) | (t[1:] != t[:-1] + 1))
    return retrasyn.Trajectories.from_columns(
        traj_id=np.cumsum(begins), t=t, x=x, y=y, user_id=taxi
    )


def main() -> None:
    """Go from a CSV file to a private Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        invent_taxis(Path(folder) / "taxis.csv")
        real = to_trajectories(Path(folder) / "taxis.csv")
        synthetic, receipt = retrasyn.synthesize(real, window=10, box=BOX, seed="random")
        retrasyn.write(synthetic, Path(folder) / "synthetic.parquet")
        print(f"real       {real}\nsynthetic  {retrasyn.read(Path(folder) / 'synthetic.parquet')}")
    print(f"{receipt.n_reports} reports of {receipt.n_users} taxis. {receipt.guarantee}")


if __name__ == "__main__":
    main()
