"""What `synthesize` returns: both parts, and what is usually done with them next."""

import copy
import dataclasses

import matplotlib.pyplot as plt
import pytest

import retrasyn
from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, OutputError
from retrasyn.simulation.city import city_roads
from retrasyn.simulation.result import Synthesis

SETTINGS = {"box": (0, 0, 10, 10), "grid": 4, "window": 5, "seed": 3}


@pytest.fixture(scope="module")
def city():
    return retrasyn.demo_city(n_users=150, n_timestamps=30, seed=1)


@pytest.fixture(scope="module")
def result(city):
    return retrasyn.synthesize(city, **SETTINGS)


def test_a_result_unpacks_as_a_pair_and_has_names(result):
    synthetic, receipt = result
    assert synthetic is result[0] is result.synthetic is result.trajectories
    assert receipt is result[1] is result.receipt
    assert result == (synthetic, receipt)


def test_it_is_evaluated_on_the_grid_of_its_run(city, result):
    wanted = retrasyn.evaluate(city, result.synthetic, 4, box=(0, 0, 10, 10))
    assert result.evaluate() == wanted
    assert result.evaluate(city) == wanted
    assert result.evaluate(seed=5, n_queries=7) == retrasyn.evaluate(
        city, result.synthetic, 4, box=(0, 0, 10, 10), seed=5, n_queries=7
    )


def test_other_real_data_may_be_given(result):
    other = retrasyn.demo_city(n_users=150, n_timestamps=30, seed=2)
    assert result.evaluate(other) == retrasyn.evaluate(other, result)


def test_the_report_shows_the_run_and_says_that_it_is_not_private(result, tmp_path):
    page = tmp_path / "report.html"
    result.report(page, title="A <small> city")
    text = page.read_text()
    assert "Not private: shows real data" in text
    assert "A &lt;small&gt; city" in text
    assert '"side":4' in text
    assert result.receipt.guarantee in text


def test_the_report_of_a_run_with_roads_draws_them(city, tmp_path):
    mapped = retrasyn.synthesize(city, roads=city_roads(), **SETTINGS)
    mapped.report(tmp_path / "with.html")
    retrasyn.synthesize(city, **SETTINGS).report(tmp_path / "without.html")
    assert '"streets":{' in (tmp_path / "with.html").read_text()
    assert '"streets":null' in (tmp_path / "without.html").read_text()


def test_the_report_compares_with_other_runs_at_the_same_budget_unless_told_not_to(
    result, tmp_path
):
    for name, one in (("own", result), ("copy", copy.copy(result))):
        one.report(tmp_path / f"{name}.html", real=result.real)
        assert "lpa: " in (tmp_path / f"{name}.html").read_text()
    result.report(tmp_path / "bare.html", with_runs=False)
    assert "lpa: " not in (tmp_path / "bare.html").read_text()


@pytest.mark.parametrize("by", ["day", "person-day"])
def test_days_that_were_folded_are_compared_with_folded_days(city, by, tmp_path):
    clock = Clock("2026-05-04T00:00:00+00:00", 7200.0)  # 30 timestamps are two days and a half
    recorded = dataclasses.replace(city, clock=clock)
    result = retrasyn.synthesize(recorded, fold=by, **SETTINGS)
    grid = retrasyn.Grid(retrasyn.Box(0, 0, 10, 10), 4)
    wanted = retrasyn.evaluate(recorded.folded(by), result.synthetic, grid)
    assert result.evaluate() == result.evaluate(recorded) == wanted
    assert retrasyn.evaluate(recorded, result) == wanted
    copy.copy(result).report(tmp_path / "report.html", real=recorded)
    assert "lpa: " in (tmp_path / "report.html").read_text()


def test_a_report_is_a_page(result, tmp_path):
    with pytest.raises(OutputError, match=r"use \.html"):
        result.report(tmp_path / "report.pdf")


def test_the_plot_is_over_the_grid_of_the_run(result):
    ax = result.plot(n_paths=3)
    try:
        assert ax.images[0].get_array().shape == (4, 4)
        assert ax.images[0].get_extent() == [0, 10, 0, 10]
        assert len(ax.collections[0].get_paths()) == 3
    finally:
        plt.close(ax.figure)


def test_a_copy_carries_neither_real_data_nor_seed(city, result):
    copied = copy.deepcopy(result)
    assert isinstance(copied, Synthesis)
    assert copied.receipt == result.receipt
    assert copied.real is None
    assert copied.settings is None
    assert vars(copied) == {"real": None, "settings": None, "replicas": ()}
    with pytest.raises(InputError, match="give it as real="):
        copied.evaluate()
    assert copied.evaluate(city) == result.evaluate()


def test_a_release_in_parts_has_no_points_and_says_where_they_are(city, tmp_path):
    parted = retrasyn.synthesize(city, parts=tmp_path / "parts.parquet", **SETTINGS)
    assert not parted.trajectories
    for act in (parted.evaluate, parted.plot, lambda: parted.report(tmp_path / "report.html")):
        with pytest.raises(InputError, match=r"no points.* in its folder"):
            act()
    written = retrasyn.read(tmp_path / "parts.parquet")
    scores = retrasyn.evaluate(city, written, receipt=parted.receipt)
    assert scores == retrasyn.synthesize(city, **SETTINGS).evaluate()


def test_it_is_shown_in_a_line_and_in_a_notebook_as_both_parts(result):
    synthetic, receipt = result
    assert repr(result) == f"Synthesis({synthetic!r}, {receipt!r})"
    assert result._repr_html_() == receipt._repr_html_() + synthetic._repr_html_()
