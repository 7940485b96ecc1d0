"""Your own CSV, with clock times, to a private synthetic file, its receipt and a report.

Run it with `python examples/own_csv.py`: a CSV of taxis is invented, and everything is removed at
the end. `python examples/own_csv.py FOLDER` keeps it all; then open FOLDER/report.html.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import retrasyn
from retrasyn.receipts.files import receipt_place, write_with_receipt

BOX = retrasyn.Box(116.15, 39.75, 116.60, 40.10)  # public: chosen from a map, not from the data
GRID = retrasyn.Grid(BOX, side=6)


def invent_taxis(path: Path) -> None:
    """Write taxi_id, time, longitude, latitude: 300 taxis, a fix every 5 minutes, some lost."""
    random = np.random.default_rng(7)
    places = np.cumsum(random.normal(0, 0.006, (300, 144, 2)), axis=1)  # from the middle
    places = np.clip(np.add(places, (116.37, 39.92)), BOX[:2], BOX[2:])
    start = np.datetime64("2008-02-02T08:00:00")
    with path.open("w") as file:
        file.write("taxi_id,time,longitude,latitude\n")
        for taxi, fix in np.argwhere(random.binomial(1, 0.8, (300, 144))):
            x, y = places[taxi, fix]
            file.write(f"taxi {taxi},{start + 300 * fix},{x:.6f},{y:.6f}\n")


def main(folder: Path) -> None:
    """Go from a CSV file to a private Parquet file and a page that compares both."""
    invent_taxis(folder / "taxis.csv")
    real = retrasyn.convert(folder / "taxis.csv", every="10min", box=BOX)
    print(*real.notes)  # which column was taken for what
    result = retrasyn.synthesize(real, window=10, grid=GRID)
    synthetic, receipt = result
    out = folder / "synthetic.parquet"
    receipt = write_with_receipt(synthetic, receipt, out, receipt_place(out))
    result.report(folder / "report.html", title="Taxis")
    print(f"real       {real}\nsynthetic  {synthetic}\n{receipt.guarantee}")
    scores = result.evaluate()
    print(f"density error {scores.density_error:.3f}, {receipt.n_reports:,} reports in all")
    print("written:", ", ".join(sorted(path.name for path in folder.iterdir())))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        chosen = Path(sys.argv[1] if sys.argv[1:] else temporary)
        chosen.mkdir(parents=True, exist_ok=True)
        main(chosen)
