"""Closed-form parts of a forecast: noise (Eq. 3), lost detail, epsilon over a lifetime."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.messages import MICRO
from retrasyn.methods import Method
from retrasyn.oracles.oue import OUE
from retrasyn.simulation.city import CITY_BOX
from retrasyn.space import Grid, StateSpace

ENROLLED = 2
"""Assumed number of enrolled people per active one; matters only where presence is hidden."""


@dataclass(frozen=True, slots=True)
class ExpectedNoise:
    """Reports and noise to expect per timestamp if a method spreads its budget evenly."""

    n_reports: float  # about states; where presence is hidden, including those of absent people
    epsilon: float  # of each report
    state_error: float  # standard error of one state's share
    n_cell_reports: float = 0.0  # about cells, likewise
    direct_error: float = math.inf  # of one cell's share, from those who report their cell

    def cell_error(self, states: StateSpace) -> float:
        """Return the standard error of one cell's share of people, from a single timestamp.

        People in a cell are those who stay, arrive or enter there: the sum of that many states.
        Where some report their cell, both errors are weighed by their inverse variance.
        """
        n_states = states.n_moves / states.grid.n_cells + states.endpoints
        summed = self.state_error * math.sqrt(n_states)
        return math.inf if math.isinf(summed) else (summed**-2 + self.direct_error**-2) ** -0.5

    def worth(self, other: ExpectedNoise) -> float:
        """Return by what factor the other noise needs more users to be as small as this one."""
        if math.isinf(other.state_error):
            return math.nan
        return (other.state_error / self.state_error) ** 2


def expected_noise(method: Method, *, n_users: float, epsilon: int, gap: int) -> ExpectedNoise:
    """Return the noise of a timestamp with `n_users` active people; epsilon in micro-nats.

    >>> from retrasyn.methods import find_method
    >>> noise = expected_noise(find_method("steered"), n_users=2100, epsilon=1_000_000, gap=21)
    >>> round(noise.n_reports, 6), round(noise.state_error, 3)
    (45.0, 0.286)
    """
    enrolled = ENROLLED if method.presence == "hidden" else 1
    if method.division.splits_users:
        shares = method.division.other_shares
        reporting, cells = 1.0 - sum(shares), shares[-1] if method.cells else 0.0
        n_reports, each = enrolled * n_users * reporting / gap, epsilon
    else:
        reporting, cells = 1.0, 0.0
        n_reports, each = float(enrolled * n_users), epsilon // gap
    # A share of the active is `enrolled` times that of all enrolled, and so is its error.
    variance = enrolled**2 * OUE(each).variance(1) / n_reports if each > 0 else math.inf
    n_cells = n_reports * cells / reporting
    direct = variance * n_reports / n_cells if n_cells else math.inf
    return ExpectedNoise(
        n_reports=n_reports,
        epsilon=each / MICRO,
        state_error=math.sqrt(variance),
        n_cell_reports=n_cells,
        direct_error=math.sqrt(direct),
    )


SPANS = {"a day": 1, "a week": 7, "a month": 30}
_DAY = 86_400 * 1_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class Total:
    """The worst case for a person who is present all the time."""

    span: str
    n_timestamps: int
    n_windows: int  # windows one gap apart that the span touches, including partial ones
    epsilon: float


def totals(*, period: int, epsilon: float, gap: int) -> list[Total]:
    """Return the worst-case spend over each span; `period` is in microseconds.

    Any `gap` consecutive timestamps share one epsilon, so a span costs one for each gap it starts.

    >>> [total.epsilon for total in totals(period=600_000_000, epsilon=1.0, gap=21)]
    [7.0, 48.0, 206.0]
    """
    found = []
    for span, n_days in SPANS.items():
        n_timestamps = -(-n_days * _DAY // period)
        n_windows = -(-n_timestamps // gap)
        found.append(Total(span, n_timestamps, n_windows, n_windows * epsilon))
    return found


FINEST = 24
"""Side of the grid on which lost detail is measured."""

Map = npt.NDArray[np.float64]


def fine_map(trips: Trajectories) -> Map:
    """Return the share of points in every cell of the finest grid: [FINEST, FINEST]."""
    cells, _ = Grid(CITY_BOX, FINEST).locate(trips.x, trips.y)
    counts = np.bincount(cells, minlength=FINEST**2).reshape(FINEST, FINEST)
    shares: Map = counts / counts.sum()
    return shares


def lost_detail(fine: Map, side: int) -> float:
    """Return the divergence between a fine map and its version on a coarser grid.

    >>> flat = np.full((FINEST, FINEST), FINEST**-2)
    >>> round(lost_detail(flat, 4), 9)
    0.0
    """
    overlap = _overlap(side)  # [side, FINEST]
    spread = overlap / overlap.sum(axis=1, keepdims=True)
    shown = spread.T @ (overlap @ fine @ overlap.T) @ spread
    middle = (fine + shown) / 2
    return float(max((_excess(fine, middle) + _excess(shown, middle)) / 2, 0.0))


def _overlap(side: int) -> Map:
    """Return the share of each fine column that lies in each coarse one: [side, FINEST]."""
    coarse, fine = np.linspace(0, FINEST, side + 1), np.arange(FINEST + 1.0)
    ends = np.minimum(coarse[1:, None], fine[None, 1:])
    begins = np.maximum(coarse[:-1, None], fine[None, :-1])
    shares: Map = np.maximum(ends - begins, 0.0)
    return shares


def _excess(shares: Map, middle: Map) -> float:
    """Return the relative entropy of one map with respect to another."""
    some = shares > 0
    return float(np.sum(shares[some] * np.log(shares[some] / middle[some])))
