"""Folded rounds give the releases that a simulation with the same reports gives."""

import dataclasses

import numpy as np
import pytest

from retrasyn import METHODS, Box, Curator, Grid, Roster
from retrasyn.messages import MICRO, Aggregate, Flags
from retrasyn.oracles.registry import n_answers, oracle_for
from retrasyn.privacy.division import UserDivision
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.accounting import receipt_of
from retrasyn.simulation.rounds import Answers, Folded, Recorded
from support.public_maps import map_for

GRID = Grid(Box(0, 0, 1, 1), 3)
ONE_ASK = [
    name
    for name, row in METHODS.items()
    if row.division.private and type(row.mechanism).__name__ != "ProbeThenPublish"
]
FLAGS = Flags(n_entering=4, ages_of_quitters=np.array([1, 3, 9]))


def simulated(curator, t, notes):
    """Step with invented reports and note down every grant and its sum."""
    keys = np.arange(60)
    roster = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(60, np.int64))

    def collect(grant, lane):
        n_states = n_answers(grant.question, curator.states)
        states = (grant.reporters * 7 % n_states).astype(np.int32)
        words = grant.reporters.astype(np.uint64)
        packed = oracle_for(grant).perturb(states, words, key=t, n_answers=n_states)
        aggregate = oracle_for(grant).aggregate(packed, n_answers=n_states)
        notes.append((grant, aggregate))
        return aggregate

    return curator.step(t, size=20 + t % 3, roster=roster, collect=collect, flags=FLAGS)


def folded(t, notes, curator):
    return Folded(
        t=t,
        epsilon=notes[0][0].epsilon if notes else 0,
        size=20 + t % 3,
        n_enrolled=60,
        answers={
            grant.question: Answers(aggregate=aggregate, keys=grant.reporters)
            for grant, aggregate in notes
        },
        flags=FLAGS if curator.method.presence == "flags" else None,
    )


@pytest.mark.parametrize("fewest", [1, 25])
@pytest.mark.parametrize("name", ONE_ASK)
def test_recorded_sums_give_the_releases_of_the_simulation(name, fewest):
    options = {"window": 4, "seed": 3, "fewest": fewest, **map_for(name, GRID.box)}
    settings = RunSettings.of(name, grid=GRID, **options)
    first, second = Curator(settings), Recorded(Curator(settings), n_users=60)
    n_reports = 0
    for t in range(12):
        notes = []
        ours = simulated(first, t, notes)
        theirs = second.step(folded(t, notes, first))
        for field in ("ids", "cells", "x", "y"):
            assert getattr(ours, field).tobytes() == getattr(theirs, field).tobytes()
        assert (ours.n_born, ours.n_ended) == (theirs.n_born, theirs.n_ended)
        assert (ours.n_reports, ours.epsilon_t) == (theirs.n_reports, theirs.epsilon_t)
        n_reports += theirs.n_reports
    assert n_reports == second.declared.n_reports > 0
    assert second.declared.worst == MICRO or not isinstance(first.method.division, UserDivision)
    assert second.personal.worst <= MICRO


def test_the_receipt_of_recorded_rounds_tells_what_was_counted():
    settings = RunSettings.of("steered", grid=GRID, window=4, seed=3)
    recorded, source = Recorded(Curator(settings), n_users=60), Curator(settings)
    for t in range(7):
        notes = []
        simulated(source, t, notes)
        recorded.step(folded(t, notes, source))
    receipt = receipt_of(recorded)
    assert receipt.n_points_in == receipt.n_points_out == sum(20 + t % 3 for t in range(7))
    assert (receipt.door, receipt.n_users, receipt.within_guarantee) == ("rounds", 60, True)
    assert receipt.n_reports == sum(receipt.rounds.n_reports)


def test_sums_must_say_whose_they_are():
    aggregate = Aggregate(counts=np.zeros(3, np.int64), n=2)
    with pytest.raises(ValueError, match="2 reports came from 1 keys"):
        Answers(aggregate=aggregate, keys=np.array([1]))


def test_a_view_does_not_begin_a_timestamp():
    curator = Curator(RunSettings.of("uniform-p", grid=GRID, window=4, seed=0))
    assert curator.view(9).first_t == 9
    assert dataclasses.asdict(curator.view(3))["t"] == 3
    assert curator.state.first_t is None
