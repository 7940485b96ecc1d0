"""Real and synthetic density side by side over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.errors import MissingExtra

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space import Grid


def cell_counts(points: Trajectories, grid: Grid) -> npt.NDArray[np.int64]:
    """Count points per timestamp and cell: [n_timestamps, n_cells]."""
    n_timestamps = points.last_t - points.first_t + 1
    index = (points.t - points.first_t) * grid.n_cells + grid.cells_of(points.x, points.y)
    counts = np.bincount(index, minlength=n_timestamps * grid.n_cells)
    return counts.reshape(n_timestamps, grid.n_cells)


def busy_moments(sizes: npt.NDArray[np.int64], n: int) -> list[int]:
    """Choose n timestamps spread evenly over the time in which a quarter of the peak is present."""
    busy = np.flatnonzero(sizes * 4 >= sizes.max())
    picks = np.linspace(0, busy.size - 1, n).round().astype(int)
    return [int(busy[pick]) for pick in picks]


def load_pyplot() -> Any:
    """Return matplotlib's drawing module, or say what to type to have it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only pictures need it

        mpl.use("Agg")
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise MissingExtra('matplotlib is not installed: pip install "retrasyn[report]"') from None
    return plt


def draw_density(
    real: Trajectories, synthetic: Trajectories, grid: Grid, path: Path, *, title: str
) -> None:
    """Write a picture: a column per moment, real above synthetic, active users below."""
    plt = load_pyplot()
    counts = {"real": cell_counts(real, grid), "synthetic": cell_counts(synthetic, grid)}
    sizes = counts["real"].sum(axis=1)
    moments = busy_moments(sizes, 5)
    figure = plt.figure(figsize=(12, 7.2), layout="constrained")
    axes = figure.subplot_mosaic(
        [[f"real {t}" for t in moments], [f"synthetic {t}" for t in moments], ["users"] * 5],
        height_ratios=[1, 1, 0.7],
    )
    extent = (grid.box.x0, grid.box.x1, grid.box.y0, grid.box.y1)
    for t in moments:
        shares = {kind: count[t] / max(count[t].sum(), 1) for kind, count in counts.items()}
        highest = max(float(share.max()) for share in shares.values())
        for kind, share in shares.items():
            axis = axes[f"{kind} {t}"]
            axis.imshow(
                share.reshape(grid.side, grid.side),
                origin="lower",
                extent=extent,
                cmap="viridis",
                vmin=0,
                vmax=highest,
                aspect="auto",
            )
            axis.set_xticks([])
            axis.set_yticks([])
            if kind == "real":
                axis.set_title(f"t = {t + real.first_t}", fontsize=10)
            if t == moments[0]:
                axis.set_ylabel(kind, fontsize=11)
    axis = axes["users"]
    times = np.arange(sizes.size) + real.first_t
    axis.plot(times, sizes, color="#0072B2", linewidth=3, alpha=0.5, label="real")
    axis.plot(
        times,
        counts["synthetic"].sum(axis=1),
        color="#D55E00",
        linestyle="--",
        label="synthetic",
    )
    axis.set_xlabel("timestamp")
    axis.set_ylabel("active users")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=110)
    plt.close(figure)
