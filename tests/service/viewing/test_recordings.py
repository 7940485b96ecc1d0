"""Recorded and simulated timestamps to look at, against plain counting."""

import json

import numpy as np
import pytest

from retrasyn import demo_city, synthesize
from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError
from retrasyn.service.viewing.recordings import InMemory
from retrasyn.simulation.city import CITY_BOX
from retrasyn.space import Box, Grid
from support.recording import streams_of

GRID = Grid(CITY_BOX, 4)


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=200, n_timestamps=30, seed=4)


@pytest.fixture(scope="module")
def made(city):
    return synthesize(city, grid=GRID, window=5, seed=4)


def test_every_timestamp_holds_the_points_of_the_file(city):
    shown = InMemory.of_recording(city, GRID)

    assert shown.timestamps == list(range(city.first_t, city.last_t + 1))
    for t in shown.timestamps:
        rows = city.t == t
        points = shown.points_at(t)
        assert np.array_equal(points.ids, np.sort(city.traj_id[rows]))
        order = np.argsort(city.traj_id[rows])
        assert np.array_equal(points.x, city.x[rows][order])
        assert np.array_equal(shown.places_at(t)[1], city.y[rows][order])
        cells = np.bincount(GRID.cells_of(points.x, points.y), minlength=GRID.n_cells)
        assert shown.summary(t)["cells"] == cells.tolist()


def test_births_and_ends_are_those_of_the_streams(city):
    shown = InMemory.of_recording(city, GRID)

    for t in shown.timestamps:
        summary = shown.summary(t)
        here, before = (set(city.traj_id[city.t == then].tolist()) for then in (t, t - 1))
        assert summary["n_born"] == len(here - before)
        assert summary["n_ended"] == len(before - here)
        assert summary["n_points"] == len(here)


def test_a_timestamp_at_which_nobody_was_is_there_and_empty():
    pause = Trajectories.from_columns(traj_id=[1, 2], t=[3, 6], x=[0.1, 0.9], y=[0.1, 0.9])

    shown = InMemory.of_recording(pause, Grid(Box(0, 0, 1, 1), 2))

    assert shown.timestamps == [3, 4, 5, 6]
    assert shown.summary(5)["cells"] == [0, 0, 0, 0]
    assert shown.points_at(4).ids.size == shown.n_points(5) == 0
    assert [shown.summary(t)["n_ended"] for t in shown.timestamps] == [0, 1, 0, 0]


@pytest.mark.parametrize("t", [-1, 30, 1000])
def test_what_is_not_there_is_none(city, t):
    shown = InMemory.of_recording(city, GRID)

    assert shown.summary(t) is shown.points_at(t) is shown.places_at(t) is shown.receipt(t) is None


def test_points_of_a_range_are_the_streams_of_the_file(city):
    found = streams_of(InMemory.of_recording(city, GRID), 5, 9)

    rows = (city.t >= 5) & (city.t <= 9)
    for column in ("traj_id", "t", "x", "y"):
        assert np.array_equal(getattr(found, column), getattr(city, column)[rows])


def test_reports_and_what_they_spent_come_from_the_receipt(made):
    synthetic, receipt = made

    shown = InMemory.of_recording(synthetic, GRID, receipt)

    rounds = receipt.rounds
    by_t = dict(zip(rounds.t, zip(rounds.n_reports, rounds.epsilon, strict=True), strict=True))
    for t in shown.timestamps:
        summary = shown.summary(t)
        assert (summary["n_reports"], summary["epsilon"]) == by_t.get(t, (0, 0.0))
    assert json.loads(shown.receipt()) == json.loads(receipt.to_json())


def test_summaries_are_those_of_single_timestamps_without_cells(made):
    shown = InMemory.of_recording(made.synthetic, GRID, made.receipt)

    listed = shown.summaries(3, 12, 5)

    assert [summary["t"] for summary in listed] == [8, 9, 10, 11, 12]
    assert [{**summary, "cells": None} for summary in listed] == [
        {**shown.summary(t), "cells": None} for t in range(8, 13)
    ]


def test_times_are_told_where_the_clock_is_known():
    clock = Clock("2026-01-01T00:00:00+00:00", 600.0)
    walk = Trajectories.from_columns(traj_id=[1, 1], t=[0, 1], x=[0, 1], y=[0, 1], clock=clock)
    grid = Grid(Box(0, 0, 1, 1), 2)

    assert InMemory.of_recording(walk, grid).summary(1)["time"] == "2026-01-01T00:10:00+00:00"
    unknown = Trajectories.from_columns(traj_id=[1, 1], t=[0, 1], x=[0, 1], y=[0, 1])
    assert InMemory.of_recording(unknown, grid).summary(1)["time"] == ""


def test_time_before_0_is_refused():
    early = Trajectories.from_columns(traj_id=[1], t=[-2], x=[0], y=[0])

    with pytest.raises(InputError, match="t=-2; number its timestamps from 0"):
        InMemory.of_recording(early, Grid(Box(0, 0, 1, 1), 2))
