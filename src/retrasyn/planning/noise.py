"""How much is reported and how noisy it is: closed forms, no simulation (Sec. II-A, Eq. 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from retrasyn.messages import MICRO
from retrasyn.methods import Method
from retrasyn.oracles.oue import OUE
from retrasyn.space import StateSpace

ENROLLED = 2
"""People enrolled for each one who is active: assumed, and of use where presence is hidden."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What one timestamp brings, if a method spreads what it has evenly."""

    n_reports: float  # about states; where presence is hidden, those of the absent included
    epsilon: float  # of each
    state_error: float  # standard error of the share of one state

    def cell_error(self, states: StateSpace) -> float:
        """Return the standard error of the share of people in one cell, from one timestamp.

        Somebody is in a cell who stays, arrives or enters there: the sum of that many states.
        """
        n_states = states.n_moves / states.grid.n_cells + states.endpoints
        return self.state_error * math.sqrt(n_states)

    def worth(self, other: Noise) -> float:
        """Return how many times the users another noise needs to be as small as this one."""
        if math.isinf(other.state_error):
            return math.nan
        return (other.state_error / self.state_error) ** 2


def expected_noise(method: Method, *, n_users: float, epsilon: int, gap: int) -> Noise:
    """Return the reports of one timestamp, of `n_users` who are active; epsilon in micro-nats.

    >>> from retrasyn.methods import find_method
    >>> noise = expected_noise(find_method("steered"), n_users=2100, epsilon=1_000_000, gap=21)
    >>> round(noise.n_reports, 6), round(noise.state_error, 3)
    (90.0, 0.202)
    """
    enrolled = ENROLLED if method.presence == "hidden" else 1
    if method.division.splits_users:
        selection = getattr(method.division, "selection", None)
        elsewhere = sum(getattr(selection, name, 0.0) for name in ("age_share", "presence_share"))
        n_reports, each = enrolled * n_users * (1.0 - elsewhere) / gap, epsilon
    else:
        n_reports, each = float(enrolled * n_users), epsilon // gap
    # A share of the active is `enrolled` times the same share of all, and so is its error.
    variance = enrolled**2 * OUE(each).variance(1) / n_reports if each > 0 else math.inf
    return Noise(n_reports, each / MICRO, math.sqrt(variance))
