"""Random small recordings for hypothesis, with every awkward thing a stream can do."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from retrasyn.data.trajectories import Trajectories

BOX = (0.0, 0.0, 1.0, 1.0)


@st.composite
def recordings(draw: st.DrawFn, *, max_users: int = 12, max_t: int = 14) -> Trajectories:
    """Users who come, jump, go and return; timestamps with nobody; trips that touch."""
    seed = draw(st.integers(0, 2**32 - 1))
    n_users = draw(st.integers(1, max_users))
    n_timestamps = draw(st.integers(1, max_t))
    present = draw(st.floats(0.2, 1.0))
    roaming = draw(st.floats(0.0, 1.0))
    touching = draw(st.floats(0.0, 1.0))
    random = np.random.default_rng(seed)
    rows: list[tuple[int, int, float, float, int]] = []
    stream = 0
    for user in range(n_users):
        x, y = random.random(2)
        last = None
        for t in range(n_timestamps):
            if random.random() > present:
                continue
            if last != t - 1 or random.random() < touching * 0.3:
                stream += 1
            if random.random() < roaming:
                x, y = random.random(2)
            else:
                x, y = np.clip(np.array([x, y]) + random.normal(0, 0.05, 2), 0, 1)
            rows.append((stream, t, x, y, user))
            last = t
    if not rows:
        rows.append((0, 0, 0.5, 0.5, 0))
    traj_id, t, x, y, user_id = (np.array(column) for column in zip(*rows, strict=True))
    users = user_id if draw(st.booleans()) else None
    return Trajectories.from_columns(traj_id=traj_id, t=t, x=x, y=y, user_id=users)


def sizes(points: Trajectories, first_t: int, last_t: int) -> list[int]:
    """Count points per timestamp."""
    return np.bincount(points.t - first_t, minlength=last_t - first_t + 1).tolist()
