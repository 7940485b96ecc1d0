"""Plots: every study has its panels, a whole legend, and files that are equal when redone."""

import builtins
import dataclasses
import xml.etree.ElementTree as ET

import pytest

from retrasyn.errors import MissingExtra, OutputError
from retrasyn.experiments.cells import Results, Timings
from retrasyn.experiments.figures import FIGURES, save, style
from retrasyn.experiments.figures.style import slim
from retrasyn.experiments.tables import TABLES
from retrasyn.experiments.tables.utility import MAIN
from support import made_up

pytestmark = pytest.mark.system

RESULTS, TIMINGS = made_up.results(), made_up.timings()
LARGEST = 160_000  # bytes of an SVG


def names_in(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def titles_in(figure):
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    return [text for pair in labels for text in pair if text]


@pytest.fixture(scope="module")
def figures():
    return {name: draw(RESULTS, TIMINGS, made_up.DATASETS) for name, draw in FIGURES.items()}


def test_every_study_but_the_list_of_data_has_a_plot():
    assert set(TABLES) - set(FIGURES) == {"table1"}


@pytest.mark.parametrize("name", FIGURES)
def test_a_plot_is_small_xml_with_text_and_no_date(name, figures, tmp_path):
    svg, png = save(figures[name], tmp_path / name)

    root = ET.fromstring(svg.read_text("utf-8"))  # noqa: S314 - our own file
    assert root.tag.endswith("svg")
    assert "T-Drive" in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert svg.stat().st_size < LARGEST
    assert "dc:date" not in svg.read_text("utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["allocation", "grid", "scale"])
def test_a_plot_redone_is_the_same_file(name, figures, tmp_path):
    once = save(figures[name], tmp_path / "once")

    again = save(FIGURES[name](RESULTS, TIMINGS, made_up.DATASETS), tmp_path / "again")

    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]


@pytest.mark.parametrize("name", FIGURES)
def test_every_measured_axis_says_which_way_is_better(name, figures):
    for axes in figures[name].axes:
        labels = f"{axes.get_xlabel()} {axes.get_ylabel()}"
        assert "is better" in labels


@pytest.mark.parametrize("name", ["table3", "window", "span"])
def test_curves_name_every_main_method(name, figures):
    assert set(names_in(figures[name])) - {"retrasyn-p, published"} == set(MAIN)


def test_table_3_shows_the_published_line_beside_ours(figures):
    assert names_in(figures["table3"])[-1] == "retrasyn-p, published"
    assert len(figures["table3"].axes) == 8 * 2


def test_bars_tell_time_and_lines_error_in_the_plot_of_the_grid(figures):
    names = names_in(figures["grid"])

    assert {"steered, time", "steered, error", "retrasyn-p, time"} <= set(names)


@pytest.mark.parametrize("name", FIGURES)
def test_legends_stay_inside_the_picture(name, figures):
    figure = figures[name]
    figure.draw_without_rendering()

    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1


def test_main_methods_differ_in_colour_in_marker_and_in_hatch():
    looks = [style.LOOKS[name] for name in MAIN]

    for part in ("colour", "marker", "hatch"):
        assert len({getattr(look, part) for look in looks}) == len(looks)


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_computed_is_drawn_as_such(name, tmp_path):
    figure = FIGURES[name](Results(), Timings(), made_up.DATASETS)

    svg, _ = save(figure, tmp_path / name)

    assert "not computed yet" in svg.read_text("utf-8")
    assert "nothing computed yet" in svg.read_text("utf-8")


@pytest.mark.parametrize("name", FIGURES)
def test_one_seed_of_one_data_set_is_enough(name):
    results, timings = made_up.results(1, ("tdrive",)), made_up.timings(1, ("tdrive",))
    few = Results({key: row for key, row in results.rows.items() if key.method != "lba"})

    figure = FIGURES[name](few, timings, made_up.DATASETS[:1])

    assert "1 seed" in figure.get_supxlabel()
    assert "lba" not in names_in(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_no_data_set_is_no_panel(name):
    assert FIGURES[name](RESULTS, TIMINGS, ()).axes == []


def test_data_nobody_published_has_no_published_line():
    city = dataclasses.replace(made_up.DATASETS[0], name="city", title="Built-in city")
    rows = {
        dataclasses.replace(key, data="city"): row
        for key, row in RESULTS.rows.items()
        if key.data == "tdrive"
    }

    figure = FIGURES["table3"](Results(rows), TIMINGS, [city])

    assert set(names_in(figure)) == set(MAIN)


def test_without_matplotlib_the_message_says_what_to_type(monkeypatch):
    load = builtins.__import__

    def refuse(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)

    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[report\]"'):
        FIGURES["scale"](RESULTS, TIMINGS, made_up.DATASETS)


def test_a_place_that_cannot_be_written_is_refused(figures, tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        save(figures["scale"], tmp_path / "nowhere" / "scale")


def test_slimming_keeps_names_that_are_referred_to():
    svg = '<svg ><g id="a"><path id="mark" d="M 0 0"/></g><use xlink:href="#mark"/></svg>'

    assert 'id="mark"' in slim(svg)
    assert 'id="a"' not in slim(svg)


def test_slimming_leaves_turned_text_turned():
    text = '<text transform="rotate(-90 12.3456 7.0)">x</text>'

    assert slim(text) == '<text transform="rotate(-90 12.35 7)">x</text>'
