"""Everything a plan says, on a stream too short to say it well."""

import json
import math
from itertools import pairwise

import pytest

from retrasyn.errors import SettingError
from retrasyn.planning.forecast import SIDES, SIMULATED, Change, Prospect, Row, _changed, forecast
from retrasyn.planning.trial import City, Trial, without_small_crowd
from retrasyn.simulation.city import demo_city

N_TIMESTAMPS = 12


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def shown(told):
    return forecast(
        40_000, n_timestamps=N_TIMESTAMPS, progress=lambda done, total: told.append((done, total))
    )


def test_every_grid_has_errors_between_those_of_both_cities(shown):
    assert tuple(row.side for row in shown.rows) == SIDES
    for row in shown.rows:
        for error in (row.density, row.transition):
            assert 0 < error.expected < math.log(2)
            assert error.expected == pytest.approx((error.at_rest + error.rush_hours) / 2)


def test_errors_of_grids_between_simulated_ones_lie_between_theirs(shown):
    for low, high in pairwise(SIMULATED):
        ends = sorted(shown.row(side).density.at_rest for side in (low, high))
        for side in SIDES:
            if low < side < high:
                assert ends[0] <= shown.row(side).density.at_rest <= ends[1]


def test_the_recommended_grid_has_the_least_sum_of_error_and_lost_detail(shown):
    best = shown.row(shown.recommended)
    assert all(best.total <= row.total for row in shown.rows)
    assert best.total == best.density.expected + best.lost_detail


def test_every_means_is_doubled_once_and_a_map_is_added(shown):
    means = [(change.n_users, change.epsilon, change.window) for change in shown.changes]
    assert means == [(80_000, 1.0, 20), (40_000, 2.0, 20), (40_000, 1.0, 40), (40_000, 1.0, 20)]
    assert [round(change.worth, 2) for change in shown.changes[:3]] == [2.0, 5.09, 0.51]
    assert [change.mapped for change in shown.changes] == [False, False, False, True]
    assert all(change.density.expected > 0 for change in shown.changes)


def test_a_change_multiplies_the_errors_of_each_city_as_in_the_simulation():
    best = Row(
        side=24,
        cell_share=24**-2,
        cell_error=0.1,
        density=Prospect.of([0.2, 0.4]),
        transition=Prospect.of([0.3, 0.5]),
    )
    before, after = [Trial(0.1, 0.2, 9.0)] * 2, [Trial(0.05, 0.1, 9.0), Trial(0.1, 0.3, 9.0)]
    change = Change(what="more", n_users=9, epsilon=1.0, window=20, worth=2.0)
    changed = _changed(change, best, before, after)
    assert changed.density == Prospect.of([0.1, 0.4])
    assert changed.transition.at_rest == pytest.approx(0.15)
    assert changed.transition.rush_hours == pytest.approx(0.75)


def test_progress_is_told_of_every_timestamp_to_the_last(shown, told):
    total = 2 * N_TIMESTAMPS * (len(SIMULATED) + 4)
    assert told == [(done, total) for done in range(1, total + 1)]


def test_the_simulation_is_smaller_than_the_plan_and_says_so(shown):
    assert shown.n_simulated < 8_000
    of_all_kinds = shown.noise.n_reports / 0.45  # the share of those who report their state
    assert shown.simulated_reports == pytest.approx(of_all_kinds, rel=0.3)


def test_the_same_plan_twice_is_the_same():
    one, other = (forecast(300, "retrasyn-p", n_timestamps=4) for _ in range(2))
    assert one == other


def test_a_plan_is_plain_json(shown):
    values = json.loads(json.dumps(shown.to_dict(), allow_nan=False))
    assert values["recommended"] == shown.recommended
    assert values["rows"][0]["density"]["expected"] == shown.rows[0].density.expected
    assert values["rows"][0]["total"] == shown.rows[0].total
    assert values["noise"]["n_reports"] == shown.noise.n_reports


def test_closed_forms_alone_predict_no_error():
    closed = forecast(1_000, simulates=False)
    assert closed.recommended is None
    assert all(row.density is None and math.isnan(row.total) for row in closed.rows)
    assert closed.to_dict()["rows"][0]["total"] is None
    assert closed.noise.n_reports == pytest.approx(450 / 21)


def test_what_cannot_be_doubled_is_left_out():
    names = [change.what for change in forecast(9, epsilon=21, simulates=False).changes]
    assert names == ["twice the users", "twice the window", "a map of the roads"]
    with_map = forecast(9, "steered-roads", simulates=False)
    assert "a map of the roads" not in [change.what for change in with_map.changes]


def test_what_is_unknown_is_none_in_json():
    closed = forecast(9, "uniform-b", epsilon=1e-5, simulates=False)
    assert closed.to_dict()["noise"]["state_error"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"n_users": 0}, "users=0 must be 1 to"),
        ({"n_users": 10**11}, "users=100000000000 must be 1 to"),
        ({"n_users": 5, "method": "exact"}, "exact is not private"),
        ({"n_users": 5, "method": "steerd"}, "did you mean steered"),
        ({"n_users": 5, "epsilon": -1.0}, "epsilon=-1"),
        ({"n_users": 5, "window": 0}, "window=0"),
        ({"n_users": 5, "seed": -1}, "seed=-1"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, says):
    with pytest.raises(SettingError, match=says):
        forecast(**arguments)


def test_the_error_of_a_small_simulation_is_taken_off_and_at_most_half_of_it():
    trips = demo_city(n_users=200, n_timestamps=10, seed=1)
    one, many = City("one", trips), City("many", trips, 1e9)
    own = 35 / (8 * one.n_active)
    assert without_small_crowd(0.5, 36, one) == 0.5
    assert without_small_crowd(0.5, 36, many) == pytest.approx(0.5 - own)
    assert without_small_crowd(own, 36, many) == pytest.approx(own / 2)
