"""What a notebook shows of trajectories: facts and a small picture, no script, all text escaped."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from retrasyn import demo_city
from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.space import Box, Grid

COLUMNS = {"traj_id": [1, 1, 2], "t": [3, 4, 4], "x": [0.5, 1.5, 3.5], "y": [0.5, 0.5, 1.0]}


def tree_of(data):
    """Parse what is shown; that it can be parsed shows that it is well formed."""
    return ET.fromstring(data._repr_html_())  # noqa: S314 - our own


def facts_of(data):
    """Return the rows of the table."""
    return {row[0].text: row[1].text for row in tree_of(data).iter("tr")}


def test_the_facts_are_those_of_the_data():
    data = Trajectories.from_columns(
        **COLUMNS,
        user_id=[7, 7, 8],
        clock=Clock("2026-05-04T06:00:00+00:00", 600.0),
        crs="EPSG:3857",
    )
    assert facts_of(data) == {
        "points": "3",
        "streams": "2",
        "users": "2",
        "timestamps": "3 to 4",
        "time": "2026-05-04 06:30:00 to 2026-05-04 06:50:00 UTC, 0:10:00 each",
        "x": "0.5 to 3.5",
        "y": "0.5 to 1",
        "coordinate system": "EPSG:3857",
    }


def test_what_is_not_known_is_left_out_or_said():
    facts = facts_of(Trajectories.from_columns(**COLUMNS))
    assert facts["coordinate system"] == "not known"
    assert not {"users", "time", "note"} & facts.keys()


def test_what_was_mended_is_noted():
    data = Trajectories.from_columns(**{name: column[::-1] for name, column in COLUMNS.items()})
    assert "they have been sorted" in facts_of(data)["note"]


def test_the_picture_has_a_square_for_every_cell_with_points():
    data = demo_city(n_users=200, n_timestamps=20, seed=1)
    tree = tree_of(data)
    svg = "{http://www.w3.org/2000/svg}"
    (picture,) = tree.iter(f"{svg}svg")
    drawn = "".join(path.get("d") for path in picture.iter(f"{svg}path"))
    cells = Grid(Box.around(data.x, data.y), 24).cells_of(data.x, data.y)
    assert drawn.count("M") == np.unique(cells).size
    row, column = divmod(int(cells[0]), 24)
    assert f"M{column} {23 - row}h1v1h-1z" in drawn
    assert picture.get("viewBox") == "0 0 24 24"


@pytest.mark.parametrize("shape", [(1e6, 1e-3), (1e-3, 1e6), (0.0, 0.0)], ids=str)
def test_a_picture_of_any_shape_can_be_seen(shape):
    data = Trajectories.from_columns(
        traj_id=[1, 1], t=[0, 1], x=[0, shape[0]], y=[0, shape[1]], crs="EPSG:3857"
    )
    (picture,) = tree_of(data).iter("{http://www.w3.org/2000/svg}svg")
    assert all(1 <= int(picture.get(side)) <= 220 for side in ("width", "height"))


def test_text_of_a_file_is_text_and_there_is_no_script():
    data = Trajectories.from_columns(**COLUMNS, crs="<script>alert(1)</script>&")
    page = data._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in page
    assert "<script" not in page


def test_a_clock_beyond_the_calendar_does_not_keep_the_rest_from_being_shown():
    data = Trajectories.from_columns(**COLUMNS, clock=Clock("2026-05-04T06:00:00+00:00", 1e12))
    facts = facts_of(data)
    assert "outside the years 1..9999" in facts["time"]
    assert facts["points"] == "3"


def test_nothing_is_shown_as_nothing():
    nobody = np.empty(0, np.int64)
    empty = Trajectories(nobody, nobody, np.zeros(1, np.int64), np.empty(0), np.empty(0))
    assert facts_of(empty) == {"points": "0", "streams": "0", "coordinate system": "not known"}
    assert repr(empty) == "Trajectories(no points)"
    assert len(empty) == 0
