"""Tables: ours beside the published, the best in bold, blanks where nothing was computed."""

import dataclasses
import re

import pytest

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.tables import TABLES, headline
from retrasyn.experiments.tables.costs import exponent, growth, power_law, speed_up, straight_line
from retrasyn.experiments.tables.markdown import Book
from retrasyn.experiments.tables.utility import GROUPS
from retrasyn.methods import METHODS
from retrasyn.metrics.suite import METRICS
from support import made_up

RESULTS, TIMINGS = made_up.results(), made_up.timings()
TDRIVE = made_up.DATASETS[:1]


def cells_of(text, title, table=0):
    """Return the cells of the row with that title in the table-th table that has one."""
    rows = [row for row in text.splitlines() if row.startswith(f"| {title} |")]
    return [cell.strip() for cell in rows[table].split("|")[2:-1]]


def flat(*, value, methods, seeds=(0,), **key):
    """Return results in which every metric of a method has one value."""
    return {
        Cell(data="tdrive", method=method, seed=seed, **key): {
            metric.key: value for metric in METRICS
        }
        for method in methods
        for seed in seeds
    }


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_whole_and_names_every_data_set(name):
    text = TABLES[name](RESULTS, TIMINGS, made_up.DATASETS)

    for block in re.split(r"\n\n", text):
        rows = [row for row in block.splitlines() if row.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1
    assert all(dataset.title in text for dataset in made_up.DATASETS)
    assert text.endswith("\n")
    assert "nan" not in text


@pytest.mark.parametrize("name", list(TABLES)[1:])
def test_captions_say_how_many_seeds_there_are(name):
    assert "3 seeds" in TABLES[name](RESULTS, TIMINGS, TDRIVE)
    assert "1 seed" in TABLES[name](made_up.results(1), made_up.timings(1), TDRIVE)
    assert "nothing computed yet" in TABLES[name](Results(), Timings(), TDRIVE)


@pytest.mark.parametrize("name", TABLES)
def test_no_data_set_is_an_empty_table(name):
    assert "T-Drive" not in TABLES[name](RESULTS, TIMINGS, ())


def test_table_1_puts_the_published_statistics_in_brackets():
    text = TABLES["table1"](RESULTS, TIMINGS, TDRIVE)

    assert "232,000 (232,640)" in text
    assert "13.60 (13.61)" in text


def test_table_3_shows_mean_spread_and_published():
    rows = flat(value=0.1, methods=["retrasyn-p"], seeds=[0])
    rows |= flat(value=0.2, methods=["retrasyn-p"], seeds=[1])

    text = TABLES["table3"](Results(rows), Timings(), TDRIVE)

    assert "**0.1500** ± 0.0707 (0.1338)" in text


def test_the_best_of_a_column_is_the_smallest_error_and_the_largest_score():
    rows = flat(value=0.1, methods=["steered"]) | flat(value=0.2, methods=["lbd"])

    text = headline(Results(rows), Timings(), TDRIVE)

    errors, scores = (0, 1, 3, 6, 7), (2, 4, 5, 8)
    steered, baseline = cells_of(text, "steered"), cells_of(text, "lbd")
    assert [k for k, cell in enumerate(steered) if "**" in cell] == list(errors)
    assert [k for k, cell in enumerate(baseline) if "**" in cell] == sorted(scores)


def test_the_best_of_three_allocations_is_picked_by_metric_and_is_never_bold():
    rows = flat(value=0.3, methods=["retrasyn-p"]) | flat(value=0.1, methods=["uniform-p"])
    rows |= flat(value=0.2, methods=["sample-p"])

    text = headline(Results(rows), Timings(), TDRIVE)

    best = cells_of(text, "best of three allocations, -p")
    assert best[0] == "0.100"  # an error
    assert best[2] == "0.300"  # a score
    assert cells_of(text, "uniform-p")[0] == "**0.100**"


def test_the_authors_reading_stands_apart_and_is_never_bold():
    rows = flat(value=0.3, methods=["retrasyn-p"])
    rows |= flat(value=0.1, methods=["retrasyn-p"], faithful=True)

    text = headline(Results(rows), Timings(), TDRIVE)

    assert cells_of(text, "retrasyn-p (authors' reading)")[0] == "0.100"
    assert cells_of(text, "retrasyn-p (Adaptive)")[0] == "**0.300**"
    assert cells_of(text, "— *retrasyn-p, the authors' program*")[0] == "*0.115*"
    assert cells_of(text, "— *retrasyn-p, published*")[0] == "*0.134*"


def test_rows_and_columns_without_anything_are_left_out_and_single_blanks_stay():
    rows = flat(value=0.1, methods=["steered", "lbd"])
    rows |= flat(value=0.1, methods=["steered"], epsilon=2.0)

    text = TABLES["table3"](Results(rows), Timings(), TDRIVE)

    assert "lpa-eq" not in text
    assert "ε = 0.5" not in text
    assert cells_of(text, "lbd", 1) == ["**0.1000** (0.6028)", "(0.6248)"]
    assert "10 of 40 figures not computed" in text


def test_every_row_of_table_3_is_a_method_we_have():
    for group in GROUPS.values():
        assert all(method in METHODS for line in group for method in line.methods)


def test_a_generated_data_set_says_so():
    text = TABLES["table4"](RESULTS, TIMINGS, made_up.DATASETS)

    assert text.count("Generated data, not those of the paper") == 1


def test_table_4_compares_the_ablations_with_the_published():
    text = TABLES["table4"](RESULTS, TIMINGS, TDRIVE)

    assert "(-0.591)" in cells_of(text, "Kendall tau (larger is better)")[2]


def test_table_5_says_how_many_times_faster():
    row = {"seconds_total": 0.001, "seconds_synthesis": 0.0002, "n_active": 3575.0}
    timings = Timings({Timing(data="tdrive", method="retrasyn-p"): row})

    text = TABLES["table5"](Results(), timings, TDRIVE)

    assert cells_of(text, "Total") == ["185.1", "1.00", "185"]
    assert cells_of(text, "Real-time synthesis") == ["182.8", "0.200", "914"]
    assert cells_of(text, "User-side computation") == ["1.3", "", ""]
    assert "3,575 active users" in text


def test_time_that_was_too_short_to_measure_has_no_speed_up():
    timings = Timings({Timing(data="tdrive", method="retrasyn-p"): {"seconds_model": 0.0}})

    assert speed_up(Book(timings), "seconds_model", "tdrive", "retrasyn-p") is None


def test_allocation_shows_who_is_never_asked_and_what_it_costs():
    text = TABLES["allocation"](RESULTS, TIMINGS, TDRIVE)

    assert cells_of(text, "retrasyn-p (Adaptive)")[3] == "40.0 %"
    assert cells_of(text, "random-p (Random)")[4]
    assert cells_of(text, "uniform-b (Uniform)")[4] == ""
    assert "Slowest less fastest" in text


def test_complexity_compares_bits_with_both_bounds():
    text = TABLES["complexity"](RESULTS, TIMINGS, TDRIVE)

    users = cells_of(text.replace("\\|", ""), "retrasyn-p")
    assert users == ["3,575", "324", "0.0500", "57,915", "1,158,300", "57,915", "1.000"]
    budget = cells_of(text.replace("\\|", ""), "retrasyn-b")
    assert budget[3] == budget[4] == "1,158,300"


def test_exponents_are_found_again():
    points = growth(Book(TIMINGS), "seconds_update", "tdrive", "retrasyn-p", "side")

    assert [x for x, _ in points] == [2, 6, 10, 14, 18]
    assert exponent(points).slope == pytest.approx(1.9)


def test_a_line_needs_two_points_and_a_power_law_positive_ones():
    assert straight_line([1, 1], [2, 3]) is None
    assert power_law([1, 2], [0, 3]) is None
    assert straight_line([0, 1, 2], [5, 5, 5]).explained == 1.0
    assert straight_line([0, 1, 2, 3], [0, 1, 0, 1]).explained == pytest.approx(0.2)


def test_scale_finds_that_time_grows_in_a_straight_line():
    text = TABLES["scale"](RESULTS, TIMINGS, TDRIVE)

    assert "20 %" in text
    assert float(cells_of(text, "retrasyn-p", 1)[1]) > 0.99


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("window", "| method | w = 10 | w = 20 | w = 30 | w = 40 | w = 50 |"),
        ("span", "| method | φ = 5 | φ = 10 | φ = 20 | φ = 50 | φ = 100 |"),
        ("grid", "| method | K = 2 | K = 6 | K = 10 | K = 14 | K = 18 |"),
    ],
)
def test_sweeps_have_a_column_for_every_value_that_was_run(name, heads):
    assert heads in TABLES[name](RESULTS, TIMINGS, TDRIVE)


def test_a_book_finds_what_varies_while_all_else_stands_still():
    cells = [Cell(data="tdrive", method="steered", side=side) for side in (6, 2)]
    cells.append(dataclasses.replace(cells[0], side=10, window=10))

    book = Book(Results({cell: {"bits": 1.0} for cell in cells}))

    assert book.steps("side", "tdrive") == [2, 6]
    assert book.steps("window", "tdrive") == [20]
    assert book.methods("tdrive") == ["steered"]
    assert book.methods("oldenburg") == []
