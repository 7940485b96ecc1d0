"""Where positions come from, and what a manifest promises in words."""

import io

import pytest

from retrasyn.client.consent import promise
from retrasyn.client.fixes import Latest, hear_line, read_rows
from retrasyn.errors import InputError
from support.campaigns import manifest_of
from support.plain_curator import JumpingClock


def test_the_newest_fix_counts_whatever_order_they_come_in():
    latest = Latest()
    latest.hear((2.0, 2.0), 20_000)
    latest.hear((1.0, 1.0), 10_000)
    assert latest.at(21_000, period=60) == (2.0, 2.0)


def test_a_row_without_a_place_is_a_round_without_a_fix(tmp_path):
    (tmp_path / "rows.csv").write_text("name,x,y\na,1,2\nb,,\nc,3,4\n")
    rows = read_rows(tmp_path / "rows.csv")
    seen = []
    while rows.next_round():
        seen.append(rows.at(0, period=1))
    assert seen == [(1.0, 2.0), None, (3.0, 4.0)]


@pytest.mark.parametrize(
    ("text", "why"),
    [("a,b\n1,2\n", "columns x and y"), ("x,y\n1,z\n", "line 2"), ("x,y\n", "no rows")],
)
def test_a_file_that_has_no_positions_is_refused(tmp_path, text, why):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=why):
        read_rows(tmp_path / "rows.csv")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"x,y\n\xff\xfe,1\n")
    with pytest.raises(InputError, match="no CSV"):
        read_rows(tmp_path / "rows.csv")


@pytest.mark.parametrize("line", [b"{}\n", b"[1, 2]\n", b'{"x": "1", "y": 2}\n', b"\xff\n", b"\n"])
def test_a_line_that_is_no_position_is_said_to_be_none_without_repeating_it(line):
    latest = Latest()
    assert "is no position" in hear_line(io.BytesIO(line), latest, JumpingClock().now)
    assert latest.next_round()


def test_the_end_of_the_input_ends_sharing():
    latest = Latest()
    assert hear_line(io.BytesIO(b""), latest, JumpingClock().now) == ""
    assert not latest.next_round()


def test_a_promise_names_everything_an_owner_agrees_to():
    text = promise(manifest_of(window=20, period=60, epsilon=500_000, presence="count"))
    for words in (
        "any 20 consecutive positions is 0.5-differentially private",
        "x 0 to 6, y 0 to 6, cut into 3 x 3 cells",
        "a round every 1 minute; a window is 20 rounds, 20 minutes",
        "spends epsilon 1000 at most",
        "heartbeats are counted",
        "Never hidden: its network address",
        "silent for the first 21 rounds (21 minutes)",
    ):
        assert words in text
