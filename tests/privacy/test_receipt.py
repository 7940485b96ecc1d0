"""The receipt's rounds: when anybody reported, how many did, and what each of them spent."""

import dataclasses
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrasyn
from retrasyn import METHODS, demo_city, synthesize
from retrasyn.privacy.receipt import DataFile, Holds
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.stream import Live
from retrasyn.space import Box, Grid
from support.public_maps import map_for
from support.streams import BOX, recordings

CITY = {"box": (0, 0, 10, 10), "window": 5, "seed": 3}
PRIVATE = [name for name, method in METHODS.items() if method.division.private]


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=80, n_timestamps=60, seed=1)


def stop_after(n_timestamps):
    """Return a progress function that interrupts the run."""

    def progress(done, _):
        if done == n_timestamps:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=10)
@given(real=recordings(max_users=30))
def test_rounds_are_in_order_and_add_up_to_all_reports(name, real):
    options = {"window": 4, "seed": 5} | map_for(name, BOX)
    _, receipt = synthesize(real, name, box=BOX, grid=3, **options)

    rounds = receipt.rounds
    assert len(rounds.t) == len(rounds.n_reports) == len(rounds.epsilon)
    assert sum(rounds.n_reports) == receipt.n_reports
    assert all(n > 0 for n in rounds.n_reports)
    assert all(one < other for one, other in pairwise(rounds.t))
    assert set(rounds.t) <= set(range(real.first_t, real.last_t + 1))


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=10)
@given(real=recordings(max_users=30), window=st.integers(1, 6))
def test_what_a_reporter_spends_in_the_rounds_of_a_window_stays_within_epsilon(name, real, window):
    options = {"window": window, "seed": 5} | map_for(name, BOX)
    _, receipt = synthesize(real, name, box=BOX, grid=3, **options)

    spent = dict(zip(receipt.rounds.t, receipt.rounds.epsilon, strict=True))
    if receipt.division == "population":
        assert set(spent.values()) <= {receipt.epsilon}
        return
    assert all(epsilon > 0 for epsilon in spent.values())
    for t in spent:
        # In micro-nats: as floats the parts of a whole budget may add up to a little more.
        within = [round(1e6 * spent.get(t + k, 0)) for k in range(receipt.gap)]
        assert sum(within) <= round(1e6 * receipt.epsilon)


@settings(max_examples=10)
@given(real=recordings(max_users=30))
def test_no_round_has_more_reports_than_devices_that_could_have_any(real):
    _, receipt = synthesize(real, "retrasyn-b", box=BOX, grid=3, window=4, seed=5)

    active = np.bincount(real.t, minlength=real.last_t + 2)
    for t, n_reports in zip(receipt.rounds.t, receipt.rounds.n_reports, strict=True):
        assert n_reports <= active[t] + (active[t - 1] if t else 0)  # who left reports it then


@pytest.mark.parametrize("name", ["retrasyn-p", "uniform-b"])
def test_a_live_run_tells_the_rounds_of_its_releases(name):
    live = Live.start(RunSettings.of(name, grid=Grid(Box(*BOX), 3), window=3, seed=5))
    releases = []
    for t in range(20):
        users = list(range(30 if t % 7 else 0))
        releases += live.step(t, users, [0.5] * len(users), [0.5] * len(users))

    rounds = live.receipt().rounds

    told = [(release.t, release.n_reports) for release in releases if release.n_reports]
    assert list(zip(rounds.t, rounds.n_reports, strict=True)) == told
    spent = [release.epsilon_t for release in releases if release.n_reports]
    assert list(rounds.epsilon) == spent


@pytest.mark.parametrize("name", ["retrasyn-p", "retrasyn-b"])
def test_rounds_survive_an_interruption(name, city, tmp_path):
    _, whole = synthesize(city, name, **CITY)
    with pytest.raises(KeyboardInterrupt):
        synthesize(city, name, **CITY, checkpoint=tmp_path / "kept", progress=stop_after(25))

    _, resumed = synthesize(city, name, **CITY, checkpoint=tmp_path / "kept", resume=True)

    assert resumed.rounds == whole.rounds
    assert any(t < 25 for t in resumed.rounds.t)
    assert any(t > 25 for t in resumed.rounds.t)


def test_rounds_are_columns_on_one_line_of_the_json(city):
    _, receipt = synthesize(city, "retrasyn-b", **CITY)

    text = receipt.to_json()

    (line,) = [line for line in text.splitlines() if '"rounds"' in line]
    columns = json.loads(line.partition(":")[2].strip().rstrip(","))
    assert list(columns) == ["t", "n_reports", "epsilon"]
    assert len(columns["t"]) == len(receipt.rounds.t) > 10
    assert json.loads(text) == json.loads(json.dumps(receipt.to_dict()))
    assert len(text.splitlines()) == text.count("\n") + 1 < 150


def test_a_receipt_of_a_part_says_what_its_file_holds_and_the_rest_stays(city):
    _, whole = synthesize(city, "retrasyn-b", **CITY)
    part, file = Holds(1, 2, 3, 4), DataFile("part.csv", 5, "6" * 64)

    tied = whole.holding(part).travelling_with(file)

    assert (whole.holds, whole.data_file) == (None, None)
    assert tied == dataclasses.replace(whole, holds=part, data_file=file)


def test_a_receipt_without_rounds_has_empty_columns():
    live = Live.start(RunSettings.of("uniform-b", grid=Grid(Box(*BOX), 3), window=3, seed=5))
    live.step(0, [], [], [])

    rounds = json.loads(live.receipt().to_json())["rounds"]

    assert rounds == {"t": [], "n_reports": [], "epsilon": []}


def test_only_the_latest_rounds_are_kept_and_all_reports_are_counted(city, tmp_path, monkeypatch):
    _, whole = synthesize(city, "uniform-b", **CITY)
    monkeypatch.setattr("retrasyn.curator.MAX_ROUNDS", 7)

    _, capped = synthesize(city, "uniform-b", **CITY)
    with pytest.raises(KeyboardInterrupt):
        synthesize(city, "uniform-b", **CITY, checkpoint=tmp_path / "kept", progress=stop_after(25))
    _, resumed = synthesize(city, "uniform-b", **CITY, checkpoint=tmp_path / "kept", resume=True)

    assert len(whole.rounds.t) > 7
    assert capped.rounds.t == whole.rounds.t[-7:]
    assert capped.rounds.n_reports == whole.rounds.n_reports[-7:]
    assert capped.rounds.epsilon == whole.rounds.epsilon[-7:]
    assert capped.n_reports == whole.n_reports
    assert resumed == capped


def test_a_hundred_thousand_rounds_are_the_most():
    assert retrasyn.curator.MAX_ROUNDS == 100_000
