"""``retrasyn compare``: several synthetic files against one real file."""

import json

import pytest

from retrasyn.metrics.suite import METRICS
from support.command_line import TWO_STREAMS, assert_refused, run, write_table

UNIT_BOX = ("--box", "0,0,1,1")
BOLD = "\x1b[1m"


@pytest.fixture
def colourful(monkeypatch):
    """A terminal that shows bold, wide enough for any name."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "250"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def near(tmp_path):
    """Two streams, one of them a little off."""
    columns = {**TWO_STREAMS, "x": [0.1, 0.2, 0.3, 0.6, 0.6]}
    return write_table(tmp_path / "near.csv", columns)


@pytest.fixture
def far(tmp_path):
    """A single stream in the wrong corner."""
    columns = {"traj_id": [5, 5], "t": [0, 1], "x": [0.95, 0.95], "y": [0.05, 0.05]}
    return write_table(tmp_path / "far.csv", columns)


def streams(*n_points):
    """Return streams that stand still for some timestamps each."""
    return {
        "traj_id": [number for number, n in enumerate(n_points) for _ in range(n)],
        "t": [t for n in n_points for t in range(n)],
        "x": [0.5] * sum(n_points),
        "y": [0.5] * sum(n_points),
    }


def columns_of(out):
    """Return the header and the cells of every row, as they were printed."""
    lines = [line.strip("│").split("│") for line in out.splitlines() if line.startswith("│")]
    header, *rows = lines
    return [cell.strip() for cell in header[1:-1]], {first.strip(): cells for first, *cells in rows}


def compared(real, *files):
    outcome = run("compare", real, *files)
    assert outcome.code == 0, outcome.err
    return columns_of(outcome.out)


def bold(cells):
    return [BOLD in cell for cell in cells]


def test_every_file_has_a_column_and_every_metric_a_row(small, near, far):
    names, rows = compared(small, small, near, far, *UNIT_BOX)

    assert names == ["small", "near", "far"]
    assert list(rows) == [metric.title for metric in METRICS]
    assert {len(cells) for cells in rows.values()} == {4}


def test_the_figures_are_those_of_evaluate(small, near, far):
    flags = (*UNIT_BOX, "--grid", 3, "--span", 2, "--seed", 4, "--queries", 20)
    more = ("--top-cells", 2, "--top-patterns", 3)

    together = run("compare", small, near, far, "--json", *flags, *more)

    alone = {
        path.stem: json.loads(run("evaluate", small, path, "--json", *flags, *more).out)
        for path in (near, far)
    }
    assert json.loads(together.out) == alone


def test_the_best_of_each_row_is_bold_and_nothing_else(colourful, small, far):
    _, rows = compared(small, far, small, *UNIT_BOX)

    for metric in METRICS:
        worse, better, reading = rows[metric.title]
        assert (BOLD in worse, BOLD in better, BOLD in reading) == (False, True, False), metric


def test_equals_are_all_bold(colourful, small, far, tmp_path):
    twin = write_table(tmp_path / "twin.csv", TWO_STREAMS)

    _, rows = compared(small, small, far, twin, *UNIT_BOX)

    assert bold(rows["Density error"][:-1]) == [True, False, True]
    assert bold(rows["Hotspot NDCG"][:-1]) == [True, False, True]


def test_half_and_twice_as_many_streams_are_equally_far_from_one(colourful, tmp_path):
    real = write_table(tmp_path / "real.csv", streams(2, 2))
    files = [
        write_table(tmp_path / f"{name}.csv", streams(*n_points))
        for name, n_points in {"half": [2], "twice": [2] * 4, "thrice": [2] * 6}.items()
    ]

    _, rows = compared(real, *files, *UNIT_BOX)

    assert bold(rows["Stream ratio"][:-1]) == [True, True, False]


def test_a_single_file_has_no_best(colourful, small, near):
    _, rows = compared(small, near, *UNIT_BOX)

    assert not any(any(bold(cells)) for cells in rows.values())


def test_what_cannot_be_compared_is_a_dash_that_is_never_bold(colourful, tmp_path):
    real = write_table(tmp_path / "real.csv", streams(1, 1, 1))
    few = write_table(tmp_path / "few.csv", streams(1))
    many = write_table(tmp_path / "many.csv", streams(1, 1, 1, 1))

    _, rows = compared(real, few, many, *UNIT_BOX)

    assert [cell.strip() for cell in rows["Transition error"][:-1]] == ["-", "-"]
    assert not any(bold(rows["Transition error"]))


def test_of_a_dash_and_a_figure_the_figure_is_the_best(colourful, tmp_path):
    still = {"traj_id": [0, 1], "t": [0, 1], "x": [0.5, 0.5], "y": [0.5, 0.5]}
    real = write_table(tmp_path / "real.csv", still)
    moving = write_table(tmp_path / "moving.csv", {**still, "traj_id": [0, 0]})

    _, rows = compared(real, real, moving, *UNIT_BOX)

    dash, figure, _ = rows["Transition error"]
    assert dash.strip() == "-"
    assert "0.6931" in figure
    assert bold([dash, figure]) == [False, True]


def test_without_a_terminal_nothing_is_bold(small, near, far, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    assert "\x1b" not in run("compare", small, near, far, *UNIT_BOX).out


def test_files_of_one_name_in_different_folders_are_told_apart(small, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    files = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        files.append(write_table(tmp_path / folder / "out.csv", TWO_STREAMS))

    names, _ = compared(small, *files, *UNIT_BOX)
    found = json.loads(run("compare", small, *files, "--json").out)

    assert names == list(found) == [str(path) for path in files]


def test_a_file_named_twice_has_two_columns(small, near, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")

    names, _ = compared(small, near, near, *UNIT_BOX)

    assert names == [f"1: {near}", f"2: {near}"]


@pytest.mark.parametrize("width", ["40", "80"])
def test_many_files_with_long_names_lose_neither_names_nor_figures(
    width, small, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", width)
    names = [f"a_rather_long_name_{number:02d}" for number in range(12)]
    files = [write_table(tmp_path / f"{name}.csv", TWO_STREAMS) for name in names]

    out = run("compare", small, *files, *UNIT_BOX).out

    lines = [line.strip("│").split("│") for line in out.splitlines() if line.startswith("│")]
    n_head = len(lines) - len(METRICS)
    head = zip(*lines[:n_head], strict=True)
    header = ["".join(cell.strip() for cell in column) for column in head]
    assert header == ["metric", *names, "better"]
    assert lines[n_head][0].strip() == "Density error"
    assert [cell.strip() for cell in lines[n_head][1:]] == ["0.0000"] * 12 + ["smaller"]


def test_markup_in_a_name_is_only_a_name(small, tmp_path):
    odd = write_table(tmp_path / "[red]odd.csv", TWO_STREAMS)

    assert compared(small, odd, *UNIT_BOX)[0] == ["[red]odd"]


def test_a_warning_names_its_file(small, near, tmp_path):
    columns = {**TWO_STREAMS, "x": [0.1, 0.2, 0.9, 0.8, 0.9]}
    jumping = write_table(tmp_path / "jumping.csv", columns)

    outcome = run("compare", small, near, jumping, *UNIT_BOX)

    assert outcome.err == (
        "warning: jumping: synthetic: streams split at 1 jump beyond a neighbour\n"
    )


# The box


def receipt(path, box):
    path.with_name(f"{path.name}.receipt.json").write_text(json.dumps({"box": box}))


def test_all_files_share_the_box_of_the_first_receipt(small, near, far):
    receipt(far, [0, 0, 2, 2])

    shared = run("compare", small, near, far, "--json")

    assert shared.err == ""
    asked = run("compare", small, near, far, "--json", "--box", "0,0,2,2")
    assert shared.out == asked.out


def test_receipts_that_name_different_boxes_are_warned_about(small, near, far):
    receipt(near, [0, 0, 2, 2])
    receipt(far, [0, 0, 3, 3])

    outcome = run("compare", small, near, far, "--json")

    assert outcome.err == "warning: receipts name different boxes; 0,0,2,2 serves for all\n"
    chosen = run("compare", small, near, far, "--json", "--box", "0,0,2,2")
    assert (chosen.out, chosen.err) == (outcome.out, "")


# What is refused


def test_one_bad_file_is_refused_before_any_is_read(small, near, tmp_path, monkeypatch):
    def read(path):
        raise AssertionError(path)

    monkeypatch.setattr("retrasyn.data.reading_files.read", read)

    assert_refused(
        tmp_path, ["compare", small, near, tmp_path / "missing.csv"], "missing.csv", "not exist"
    )


def test_one_file_without_a_common_timestamp_is_refused(small, near, tmp_path):
    columns = {**TWO_STREAMS, "t": [t + 10 for t in TWO_STREAMS["t"]]}
    later = write_table(tmp_path / "later.csv", columns)

    assert_refused(tmp_path, ["compare", small, near, later], "no timestamp")


def test_it_takes_a_real_file_and_another(small, tmp_path):
    assert_refused(tmp_path, ["compare", small], "SYN", "compare --help")
