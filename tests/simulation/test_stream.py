"""Fed one timestamp at a time, a simulation gives what the recorded run gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrasyn import METHODS, synthesize
from retrasyn.errors import InputError
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.stream import Live
from retrasyn.space import Box, Grid
from support.public_maps import map_for, public_map
from support.streams import BOX, recordings


def play(live, real):
    """Feed a recording step by step; return all releases."""
    t, traj_id, user_id = real.t, real.traj_id, real.user_id
    releases = []
    for now in np.unique(t).tolist():
        rows = t == now
        users = None if user_id is None else user_id[rows].tolist()
        releases += live.step(
            now, traj_id[rows].tolist(), real.x[rows].tolist(), real.y[rows].tolist(), users
        )
    return releases


# Where presence is hidden, a recorded run has everybody enrolled from the start, a live one
# everybody it has met.
@pytest.mark.parametrize("name", [n for n, row in METHODS.items() if row.presence != "hidden"])
@settings(max_examples=15)
@given(real=recordings(max_users=30), ledger=st.sampled_from(["user", "stream"]))
def test_live_and_recorded_runs_agree_to_the_last_byte(name, real, ledger):
    keywords = {"ledger": ledger, "window": 4, "seed": 5} | map_for(name, BOX)
    recorded, receipt = synthesize(real, name, box=BOX, grid=3, settings={}, **keywords)
    live = Live.start(RunSettings.of(name, grid=Grid(Box(*BOX), 3), **keywords))
    releases = play(live, real)
    assert [release.t for release in releases] == list(range(real.first_t, real.last_t + 1))
    t = recorded.t
    for release in releases:
        rows = t == release.t
        assert release.ids.tolist() == recorded.traj_id[rows].tolist()
        assert release.x.tobytes() == recorded.x[rows].tobytes()
        assert release.y.tobytes() == recorded.y[rows].tobytes()
    ours = live.receipt()
    assert (ours.n_reports, ours.worst_window) == (receipt.n_reports, receipt.worst_window)


def start(**keywords):
    return Live.start(RunSettings.of("uniform-b", grid=Grid(Box(*BOX), 2), window=3, **keywords))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ((0, ["a"], [0.1, 0.2], [0.1]), "x has 2 entries"),
        ((0, ["a", "a"], [0.1, 0.2], [0.1, 0.2]), "entries 1 and 2 of traj_id"),
        ((0, ["a", "b"], [0.1, 0.2], [0.1, 0.2], ["u", "u"]), "entries 1 and 2 of user_id"),
        ((0, ["a"], [float("nan")], [0.1]), "finite"),
        ((0, ["a"], [1.5], [0.1]), "1 of 1 points lie outside"),
    ],
)
def test_a_bad_timestamp_is_refused(line, message):
    with pytest.raises(InputError, match=message):
        start().step(*line)


def test_time_does_not_go_back():
    live = start()
    live.step(3, ["a"], [0.1], [0.1])
    with pytest.raises(InputError, match="must ascend"):
        live.step(3, ["a"], [0.1], [0.1])


def test_users_are_named_always_or_never():
    live = start()
    live.step(0, ["a"], [0.1], [0.1])
    with pytest.raises(InputError, match="every timestamp or at none"):
        live.step(1, ["a"], [0.1], [0.1], ["u"])


def test_a_stream_keeps_its_user():
    live = start()
    live.step(0, ["a"], [0.1], [0.1], ["u"])
    with pytest.raises(InputError, match="changes its user_id"):
        live.step(1, ["a"], [0.1], [0.1], ["v"])


def test_points_outside_are_dropped_on_request_and_marked():
    live = start(outside="drop")
    (release,) = live.step(0, ["a", "b"], [0.5, 1.5], [0.5, 0.5])
    assert release.ids.size == 1
    assert "depends on the box" in live.receipt().presence


def test_a_stream_that_returns_charges_the_same_key():
    live = start()
    for t in (0, 5, 6):
        live.step(t, ["a"], [0.1], [0.1])
    assert live.receipt().n_users == 1
    assert live.receipt().worst_window.person_position.epsilon <= 1.0


def test_a_live_run_that_hides_presence_says_that_enrolment_shows():
    grid = Grid(Box(*BOX), 3)
    hidden, counted = (
        Live.start(RunSettings.of(name, grid=grid, window=4, seed=5))
        for name in ("steered-hidden", "steered")
    )
    assert any("first seen" in item for item in hidden.receipt().not_protected)
    assert "presence included" in hidden.receipt().guarantee
    assert not any("first seen" in item for item in counted.receipt().not_protected)
    assert "same presence" in counted.receipt().guarantee


def test_how_far_a_stream_moved_is_known_from_the_timestamp_before_alone():
    grid = Grid(Box(0, 0, 1, 1), 2)
    settings = RunSettings.of(grid=grid, public_map=public_map(grid.box), outside="drop")
    live = Live.start(settings)
    moved = live.simulation.population
    sensed = []
    for t, points in [
        (0, {"a": (0.0, 0.0), "b": (0.5, 0.5)}),
        (1, {"b": (0.5, 0.75), "a": (0.3, 0.4), "c": (0.1, 0.1)}),
        (3, {"a": (0.3, 0.5), "b": (0.5, 0.5)}),
        (4, {"a": (9.0, 9.0), "b": (0.5, 0.5)}),
        (5, {"a": (0.5, 0.5), "b": (0.75, 0.5)}),
    ]:
        xs, ys = zip(*points.values(), strict=True)
        live.step(t, list(points), list(xs), list(ys))
        sensed.append(dict(zip("abc", moved._key_moved.tolist(), strict=False)))
    assert sensed == [
        {"a": -1, "b": -1},
        {"a": 0.5, "b": 0.25, "c": -1},
        {"a": -1, "b": -1, "c": -1},
        {"a": -1, "b": 0, "c": -1},
        {"a": -1, "b": 0.25, "c": -1},
    ]
