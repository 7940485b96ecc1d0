"""A simulation on show: the releases of `synthesize`, in their time, with a receipt for each."""

import asyncio
import json
import time

import numpy as np
import pytest

from retrasyn import RunSettings, demo_city, synthesize
from retrasyn.privacy.receipt import GUESSABLE
from retrasyn.service.viewing.recordings import LiveSimulation
from retrasyn.service.web.models import CampaignStatus
from retrasyn.simulation.city import CITY_BOX
from retrasyn.simulation.run import SimulatedRun
from retrasyn.space import Grid
from support.recording import streams_of

GRID = Grid(CITY_BOX, 4)


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=200, n_timestamps=25, seed=5)


def simulated(city):
    return SimulatedRun.of(city, RunSettings.of(grid=GRID, window=5, seed=5))


def test_what_unfolds_is_what_synthesize_makes_at_once(city):
    synthetic, receipt = synthesize(city, grid=GRID, window=5, seed=5)
    live = LiveSimulation(simulated(city), 0, "city")

    asyncio.run(live.run())

    shown = streams_of(live.source)
    for column in ("traj_id", "t", "x", "y"):
        assert np.array_equal(getattr(shown, column), getattr(synthetic, column))
    assert live.simulated.receipt() == receipt
    assert live.source.receipt() == receipt.to_json()


def test_the_receipt_of_a_timestamp_speaks_of_what_was_made_until_then(city):
    live = LiveSimulation(simulated(city), 0, "city")

    asyncio.run(live.run())

    for t in live.source.timestamps:
        receipt = json.loads(live.source.receipt(t))
        assert receipt["last_t"] == t
        assert receipt["n_points_in"] == np.count_nonzero(city.t <= t)
        assert receipt["n_points_out"] == streams_of(live.source, None, t).n_points


def test_before_the_first_release_the_status_already_promises(city):
    live = LiveSimulation(simulated(city), 0.5, "city")

    status = CampaignStatus.model_validate(live.status())

    assert status.guarantee.startswith(GUESSABLE)  # as its seed is a number
    assert "For one person and any 5 consecutive positions" in status.guarantee
    assert status.newest_release is status.oldest_release is None
    assert (status.n_reports, status.period, status.grid) == (0, 1, 4)
    assert status.manifest != LiveSimulation(simulated(city), 0, "city").status()["manifest"]


def test_releases_are_told_to_readers_at_the_pace_that_was_asked_for(city):
    live = LiveSimulation(simulated(city), 0.1, "city")

    async def listen():
        making = asyncio.ensure_future(live.run())
        heard = []
        async for t, summary in live.feed.subscribe():
            heard.append((t, summary["n_points"], time.monotonic()))
            if len(heard) == 5:
                making.cancel()
                return heard
        return []

    heard = asyncio.run(listen())

    assert [t for t, _, _ in heard] == [0, 1, 2, 3, 4]
    assert [n for _, n, _ in heard] == [live.source.summary(t)["n_points"] for t in range(5)]
    assert heard[-1][2] - heard[0][2] >= 0.35
