"""What can be learnt with so many people at a time: how fine a grid, before anything is run.

Both limits follow from the noise that `expected_noise` predicts. Over one window everybody
reports once, so a cell's share is known from it with the variance of one timestamp over the gap.

- **finest**: the noise of a whole map, summed over its cells, is at most 1. That is the most the
  shares of any map add up to, squared; with more noise a window says less about the map than
  knowing nothing does, and a uniform map is closer.
- **clearest**: over all that the estimator remembers, the share of an average cell is known to
  about itself, so that such a cell can be told from an empty one.

In the built-in cities releases become closer than a uniform map a little before the first limit,
and the grid that `plan` finds best by simulation is about the second (docs/planning.md).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from retrasyn.mobility.estimator import FILTERS
from retrasyn.planning.closed_forms import FINEST, expected_noise
from retrasyn.space import Box, Grid, StateSpace

if TYPE_CHECKING:
    from retrasyn.run_settings import RunSettings

REMEMBERED = round(1.0 / (1.0 - FILTERS[0][0]))
"""Timestamps that a deviation lasts which the stillest filter of `steered` follows."""
Verdict = Literal["enough", "outlines", "too few"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What can be learnt at given settings; sides are None if no grid is coarse enough."""

    n_users: float  # active at a time, on average
    side: int
    reports: float  # about states and cells, over a window
    cell_error: float  # of a cell's share over what is remembered, in multiples of its mean share
    finest: int | None  # on finer grids a uniform map is closer
    clearest: int | None  # up to here single cells are told from empty ones

    @classmethod
    def of(cls, settings: RunSettings, n_users: float, n_timestamps: int | None = None) -> Outlook:
        """Predict for private settings and recorded data of that length, or a campaign.

        >>> from retrasyn import Box, Grid, RunSettings
        >>> settings = RunSettings.of(grid=Grid(Box(0, 0, 1, 1), 6))
        >>> outlook = Outlook.of(settings, n_users=336)
        >>> outlook.verdict, outlook.finest, outlook.clearest
        ('outlines', 6, 3)
        """
        gap, side = settings.gap, settings.grid.side
        noise = expected_noise(settings.method, n_users=n_users, epsilon=settings.budget, gap=gap)
        remembered = gap if settings.method.of_paper else REMEMBERED
        kept = min(remembered, n_timestamps or remembered)

        def variance(k: int) -> float:
            """Return the variance of a cell's share from one timestamp, on a grid of side k."""
            cells = Grid(Box(0, 0, 1, 1), k)
            return noise.cell_error(StateSpace(cells, endpoints=settings.method.endpoints)) ** 2

        finest = [k for k in range(2, max(FINEST, side) + 1) if k * k * variance(k) <= gap]
        clearest = [k for k in finest if k**4 * variance(k) <= kept]
        return cls(
            n_users=n_users,
            side=side,
            reports=gap * (noise.n_reports + noise.n_cell_reports),
            cell_error=side * side * math.sqrt(variance(side) / kept),
            finest=max(finest, default=None),
            clearest=max(clearest, default=None),
        )

    @property
    def verdict(self) -> Verdict:
        """Whether single cells can be learnt, only the large shape, or nothing."""
        if self.side > (self.finest or 0):
            return "too few"
        return "enough" if self.side <= (self.clearest or 0) else "outlines"

    @property
    def best(self) -> int | None:
        """The grid to choose: the clearest, but 3 x 3 if that is not too fine.

        The quarters of a city hold about as many people each, so 2 x 2 cells say next to nothing.
        """
        return self.finest and max(self.clearest or 0, min(self.finest, 3))

    @property
    def words(self) -> str:
        """What can be learnt, or what to try, in a sentence."""
        heard = f"{self.reports:,.2g}" if self.reports < 10 else f"{self.reports:,.0f}"  # noqa: PLR2004 - two digits
        cells = f"{self.side} x {self.side} cells"
        if self.finest is None:
            return (
                f"too few: {heard} reports in a window tell no map from a uniform one; try a "
                "longer --every, or --fold day (retrasyn suggest FILE says which)"
            )
        match self.verdict:
            case "too few":
                return (
                    f"too few for {cells}: with {heard} reports in a window a uniform map is as "
                    f"close; try --grid {self.best}, over a smaller box if its cells are too large"
                )
            case "outlines":
                finer = "" if self.clearest is None else f"; --grid {self.clearest} would tell them"
                return (
                    f"enough for where most people are: of {cells} each is known to "
                    f"+- {self.cell_error:.0%} of a mean share, by {heard} reports in a "
                    f"window{finer}"
                )
        return (
            f"enough for {cells}: {heard} reports in a window, and each cell known to "
            f"+- {self.cell_error:.0%} of a mean share"
        )

    @property
    def limits(self) -> str:
        """Up to which grids what can be learnt; there must be one."""
        beyond = f"beyond {self.finest} x {self.finest} cells a uniform map is as close"
        if self.clearest is None:
            return f"Single cells cannot be told on any grid, and {beyond}"
        return f"Single cells can be told up to {self.clearest} x {self.clearest}; {beyond}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON."""
        known = math.isfinite(self.cell_error)
        values = dataclasses.asdict(self) | {"cell_error": self.cell_error if known else None}
        return {"verdict": self.verdict, "says": self.words, **values}
