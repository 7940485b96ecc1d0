"""The cities that stand for the planner's own, and people of whom each stands for many."""

import numpy as np
import pytest

from retrasyn import METHODS, Grid, demo_city
from retrasyn.messages import Grant
from retrasyn.oracles.oue import OUE
from retrasyn.planning.trial import City, Crowd, built_in_cities, run_trial
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.city import CITY_BOX
from retrasyn.simulation.run import SimulatedRun
from support.public_maps import map_for

PRIVATE = [name for name, row in METHODS.items() if row.division.private]


@pytest.fixture(scope="module")
def city():
    return City("small", demo_city(n_users=300, n_timestamps=25, seed=1))


def simulate(city, method):
    grid = Grid(CITY_BOX, 3)
    settings = RunSettings.of(method, grid=grid, window=5, seed=4, **map_for(method, CITY_BOX))
    run = SimulatedRun.of(city.trips, settings)
    return run.simulation, list(run.recording.steps())


@pytest.mark.parametrize("method", PRIVATE)
def test_people_who_stand_for_themselves_are_simulated_as_by_synthesize(method, city):
    simulation, steps = simulate(city, method)
    other, _ = simulate(city, method)
    crowd = Crowd(other.curator, other.population, 1.0)
    for step in steps:
        ours, known = crowd.step(step), simulation.step(step)
        assert np.array_equal(ours.cells, known.cells)
        assert np.array_equal(ours.x, known.x)
    assert crowd.n_reports == simulation.curator.state.n_reports > 0


@pytest.mark.parametrize("method", PRIVATE)
def test_a_crowd_of_a_thousand_times_as_many_can_be_had_of_every_method(method, city):
    many = City("large", city.trips, 1_000.0)
    ticks = []
    grid = Grid(CITY_BOX, 3)
    settings = RunSettings.of(method, grid=grid, window=5, seed=1, **map_for(method, CITY_BOX))
    trial = run_trial(many, settings, tick=lambda: ticks.append(1))
    assert len(ticks) == 25
    assert 0 < trial.density_error < np.log(2)
    assert 0 < trial.transition_error < np.log(2)
    assert trial.n_reports > 10 * city.n_active


@pytest.mark.parametrize("weight", [1.0, 400.0])
def test_the_noise_of_a_sum_is_that_of_the_whole_crowd(weight, city):
    simulation, steps = simulate(city, "steered")
    crowd = Crowd(simulation.curator, simulation.population, weight)
    errors, n = [], 0
    for step in steps:
        simulation.population.observe(step)
        roster = simulation.population.roster()
        n_states = simulation.curator.states.n_states
        grant = Grant(t=step.t, epsilon=1_000_000, reporters=roster.keys[:20], n_answers=n_states)
        aggregate = crowd._collect(grant, roster, "test")
        n = aggregate.n
        found = OUE(grant.epsilon).estimate(aggregate).frequencies
        everybody = np.bincount(
            simulation.population.answers_to(
                Grant(t=step.t, epsilon=1_000_000, reporters=roster.keys)
            ),
            minlength=found.size,
        )
        errors.append(found - everybody / roster.keys.size)
    assert n == 20 * weight
    # 25 timestamps of 67 states; those that are held add a little to the variance at nought.
    assert np.mean(np.square(errors)) == pytest.approx(OUE(1_000_000).variance(n), rel=0.2)


@pytest.fixture(scope="module")
def cities():
    return built_in_cities(n_timestamps=60)


def test_about_five_thousand_people_are_on_their_way(cities):
    for city in cities:
        assert 2_000 < city.n_active < 8_000
        assert city.weight == 1


def test_one_city_breathes_and_the_other_does_not(cities):
    at_rest, busy = (np.bincount(city.trips.t, minlength=60)[30:] for city in cities)
    assert at_rest.max() < 1.2 * at_rest.min()
    assert busy.max() > 1.5 * busy.min()


def test_a_small_city_keeps_some_people_with_all_their_trips(cities):
    for city in cities:
        small = city.of_size(200)
        assert small.weight == 1
        assert small.n_active == pytest.approx(200, rel=0.25)
        kept = np.isin(city.drivers, small.drivers)
        assert np.array_equal(city.trips.stream_ids[kept], small.trips.stream_ids)
        assert city.trips.lengths[kept].sum() == small.trips.n_points


def test_the_smallest_city_has_somebody(cities):
    for city in cities:
        assert 1 <= np.unique(city.of_size(1).drivers).size <= 5


def test_a_large_city_has_the_same_people_who_stand_for_more(cities):
    for city in cities:
        large = city.of_size(1_000_000)
        assert large.trips is city.trips
        assert large.weight * large.n_active == pytest.approx(1_000_000)
