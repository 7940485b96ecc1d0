"""How far a fake report reaches, and the sum of a round without those that were caught."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.errors import InputError
from retrasyn.messages import Aggregate
from retrasyn.oracles.oue import OUE
from retrasyn.poisoning.alarms import Inspection


def influence_of_one(epsilon: int) -> float:
    """Return by how many users one fake report moves the estimate of a state; in micro-nats.

    An honest device in another state sets the bit with probability q. A fake sets it for certain,
    which counts (1 - q) / (1/2 - q) = 2 e^eps / (e^eps - 1) users more.

    >>> round(influence_of_one(1_000_000), 2)
    3.16
    """
    q = OUE(epsilon).q
    return (1 - q) / (0.5 - q)


def trimmed(
    packed: npt.NDArray[np.uint8], n_states: int, *, epsilon: int, inspection: Inspection
) -> Aggregate:
    """Add the reports of a round up, without the suspects of its inspection."""
    if len(packed) != inspection.n:
        raise InputError(
            f"the inspection saw {inspection.n} reports, these are {len(packed)}; "
            "give the reports that were inspected"
        )
    kept = np.delete(packed, inspection.suspects, axis=0)
    return OUE(epsilon).aggregate(kept, n_states=n_states)
