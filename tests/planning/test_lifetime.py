"""What privacy adds up to."""

import pytest

from retrasyn.planning.closed_forms import totals

MINUTE = 60_000_000


def test_a_day_of_ten_minutes_touches_seven_gaps():
    day, week, month = totals(period=10 * MINUTE, epsilon=1.0, gap=21)
    assert (day.n_timestamps, day.n_windows, day.epsilon) == (144, 7, 7.0)
    assert (week.n_windows, month.n_windows) == (48, 206)


def test_a_report_costs_epsilon_however_rare_timestamps_are():
    day, _, month = totals(period=3 * 86_400_000_000, epsilon=0.5, gap=21)
    assert day.epsilon == month.epsilon == 0.5
    assert month.n_timestamps == 10


@pytest.mark.parametrize("gap", [2, 21, 1000])
def test_nobody_can_report_more_often_than_counted(gap):
    for total in totals(period=7 * MINUTE, epsilon=1.0, gap=gap):
        reports = range(0, total.n_timestamps, gap)  # as often as a rest of one gap allows
        assert len(reports) == total.n_windows
