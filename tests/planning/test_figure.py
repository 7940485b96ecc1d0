"""The picture of a plan."""

import sys
import xml.etree.ElementTree as ET

import pytest

from retrasyn.errors import MissingExtra, OutputError
from retrasyn.planning.figure import check_figure, draw_figure
from retrasyn.planning.forecast import forecast


@pytest.fixture(scope="module")
def shown():
    return forecast(800, "uniform-b", n_timestamps=4)


def test_an_svg_says_what_every_line_is(shown, tmp_path):
    draw_figure(shown, tmp_path / "plan.svg")
    root = ET.parse(tmp_path / "plan.svg").getroot()  # noqa: S314 - our own file
    words = {"".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {
        "density error, expected",
        "density error, from at rest to rush hours",
        "transition error, expected",
        "transition error, from at rest to rush hours",
        "detail lost",
        f"recommended: K = {shown.recommended}",
        "side K of the grid",
        "divergence (nats)",
        "now",
        "uniform-b: 800 people at a time, epsilon 1, w = 20",
    } <= words


def test_the_same_plan_makes_the_same_picture(shown, tmp_path):
    for name in ("one.svg", "other.svg"):
        draw_figure(shown, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_a_png_is_one(shown, tmp_path):
    draw_figure(shown, tmp_path / "plan.PNG")
    assert (tmp_path / "plan.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["plan.pdf", "plan"])
def test_other_formats_are_refused(name, tmp_path):
    with pytest.raises(OutputError, match=r"use \.svg or \.png"):
        check_figure(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        check_figure(tmp_path / "nowhere" / "plan.svg")


def test_without_matplotlib_one_line_says_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install \"retrasyn\[report\]\""):
        check_figure(tmp_path / "plan.svg")
