"""`retrasyn stream`: one line in, one release out, at once."""

import itertools
import json
import select
import signal
import subprocess

import numpy as np
import pytest

from retrasyn import METHODS
from support.command_line import (
    COMMAND,
    PATIENCE,
    assert_one_line,
    contents,
    environment,
    read_table,
    run,
    run_command,
    write_table,
)
from support.public_maps import flags_for

BOX = ("--box", "0,0,1,1")


def line(t, traj_id, x, y, **more):
    return json.dumps({"t": t, "traj_id": traj_id, "x": x, "y": y, **more}) + "\n"


GOOD = line(0, [1, 2], [0.1, 0.2], [0.3, 0.4])


def releases_of(outcome):
    return [json.loads(text) for text in outcome.out.splitlines()]


@pytest.fixture(params=["whole numbers", "text"])
def commuters(request):
    """Twenty users with two trips each, an empty stretch between; walks and jumps."""
    random = np.random.default_rng(4)
    columns = {"traj_id": [], "user_id": [], "t": [], "x": [], "y": []}
    for user, trip in itertools.product(range(20), range(2)):
        first = 20 * trip + int(random.integers(0, 6))
        length = int(random.integers(1, 12))
        x, y = np.clip(random.random(2) + np.cumsum(random.normal(0, 0.1, (length, 2)), 0), 0, 1).T
        columns["traj_id"] += [100 * user + trip] * length
        columns["user_id"] += [user + 7] * length
        columns["t"] += range(first, first + length)
        columns["x"] += x.tolist()
        columns["y"] += y.tolist()
    if request.param == "text":
        columns["traj_id"] = [f"trip {number:05d}" for number in columns["traj_id"]]
        columns["user_id"] = [f"Zoë {number:05d}" for number in columns["user_id"]]
    return columns


def as_lines(columns):
    """Write one line per timestamp that has anybody."""
    rows_of = {}
    for row, t in enumerate(columns["t"]):
        rows_of.setdefault(t, []).append(row)
    names = [name for name in columns if name != "t"]
    return "".join(
        json.dumps({"t": t, **{name: [columns[name][row] for row in rows_of[t]] for name in names}})
        + "\n"
        for t in sorted(rows_of)
    )


def points_of(table):
    """Return what is at every (t, traj_id)."""
    rows = zip(*(table[name].tolist() for name in ("t", "traj_id", "x", "y")), strict=True)
    return {(t, traj_id): (x, y) for t, traj_id, x, y in rows}


def released_points(releases):
    return {
        (release["t"], traj_id): (x, y)
        for release in releases
        for traj_id, x, y in zip(release["traj_id"], release["x"], release["y"], strict=True)
    }


# Where presence is hidden, a stream enrols people as they come, a recording all at once.
@pytest.mark.parametrize("method", [name for name in METHODS if name != "steered-hidden"])
def test_a_stream_releases_what_synthesize_writes(method, commuters, tmp_path):
    source = write_table(tmp_path / "in.parquet", commuters)
    flags = [*BOX, "--method", method, "--window", 4, "--seed", 3]
    flags += flags_for(method, (0, 0, 1, 1), tmp_path)
    out, receipt = tmp_path / "out.parquet", tmp_path / "receipt.json"

    recorded = run("synthesize", source, "-o", out, *flags, "--no-ledger")
    live = run("stream", *flags, "--receipt", receipt, stdin=as_lines(commuters))

    assert (recorded.code, live.code) == (0, 0)
    assert released_points(releases_of(live)) == points_of(read_table(out))
    told, written = (
        json.loads(path.read_text())
        for path in (receipt, out.with_name("out.parquet.receipt.json"))
    )
    assert told.pop("data_file")["n_bytes"] == len(live.out)
    assert written.pop("data_file")["n_bytes"] == out.stat().st_size
    assert told == written


@pytest.mark.parametrize(
    "flags",
    [
        ("--ledger", "stream"),
        ("--unit", "transition"),
        ("--jump", "clamp"),
        ("--method", "retrasyn-b", "--length-scale", "12"),
        ("--method", "retrasyn-p", "--set", "alpha=2"),
        ("--set", "steers=false"),
        ("--grid", "3", "--epsilon", "4"),
        ("--faithful", "--length-scale", "12"),
    ],
    ids=" ".join,
)
def test_a_stream_understands_the_settings_of_synthesize(flags, commuters, tmp_path):
    source, out = write_table(tmp_path / "in.csv", commuters), tmp_path / "out.csv"

    flags = (*BOX, "--window", 4, "--seed", 0, *flags)
    run("synthesize", source, "-o", out, *flags)
    live = run("stream", *flags, stdin=as_lines(commuters))

    assert released_points(releases_of(live)) == points_of(read_table(out))


def test_a_stream_adds_the_standard_error_of_every_cell_on_request(commuters):
    plain = releases_of(run("stream", *BOX, "--grid", 3, stdin=as_lines(commuters)))
    told = releases_of(run("stream", *BOX, "--grid", 3, "--errors", stdin=as_lines(commuters)))

    assert "cell_error" not in plain[-1]
    assert [len(told[-1][name]) for name in ("cell_share", "cell_error")] == [9, 9]
    assert sum(told[-1]["cell_share"]) == pytest.approx(1.0)
    assert min(told[-1]["cell_error"]) > 0


def test_a_stream_adds_a_line_for_every_replica_on_request(commuters):
    flags = (*BOX, "--grid", 3, "--seed", 0)
    plain = releases_of(run("stream", *flags, stdin=as_lines(commuters)))
    lines = releases_of(run("stream", *flags, "--replicates", 2, stdin=as_lines(commuters)))

    assert [line.get("replica") for line in lines] == [None, 1, 2] * len(plain)
    assert [line["x"] for line in lines[::3]] == [line["x"] for line in plain]
    for number in (1, 2):
        own = lines[number::3]
        assert [line["t"] for line in own] == [line["t"] for line in plain]
        assert [line["n_points"] for line in own] == [line["n_points"] for line in plain]
        assert [line["x"] for line in own] != [line["x"] for line in plain]


def test_a_stream_reads_a_file_as_it_reads_standard_input(commuters, tmp_path):
    source = tmp_path / "positions.jsonl"
    source.write_text(as_lines(commuters))

    named = run("stream", source, *BOX, "--seed", 0, "--no-ledger")
    piped = run("stream", *BOX, "--seed", 0, stdin=source.read_text())

    assert named.code == 0
    assert named.out == piped.out
    assert named.out != ""


@pytest.mark.system
def test_a_stream_reads_a_pipe_by_its_name():
    outcome = run_command("stream", "/dev/stdin", *BOX, stdin=GOOD)

    assert (outcome.code, outcome.err) == (0, "")
    assert [release["n_points"] for release in releases_of(outcome)] == [2]


def test_a_release_says_what_happened_at_its_timestamp():
    text = GOOD + line(1, [1], [0.1], [0.3]) + line(2, [], [], [])

    releases = releases_of(run("stream", *BOX, "--method", "uniform-b", stdin=text))

    assert [release["t"] for release in releases] == [0, 1, 2]
    assert [release["n_points"] for release in releases] == [2, 1, 0]
    assert [len(release["traj_id"]) for release in releases] == [2, 1, 0]
    assert releases[0]["n_born"] == 2
    assert releases[2]["n_ended"] == 1
    assert releases[0]["n_reports"] == 2
    assert releases[0]["epsilon_t"] == pytest.approx(1 / 21, abs=1e-6)


def test_timestamps_left_out_are_released_empty():
    text = line(5, [1], [0.1], [0.1]) + line(9, [1], [0.2], [0.2])

    releases = releases_of(run("stream", *BOX, stdin=text))

    assert [(release["t"], release["n_points"]) for release in releases] == [
        *((5, 1), (6, 0), (7, 0), (8, 0), (9, 1))
    ]


def test_blank_lines_and_further_keys_are_passed_over():
    text = "\n" + line(0, [1], [0.1], [0.1], speed=[3.5], note="hello") + "  \n"

    outcome = run("stream", *BOX, stdin=text)

    assert outcome.code == 0
    assert [release["t"] for release in releases_of(outcome)] == [0]


def test_no_lines_give_no_releases_and_an_empty_receipt(tmp_path):
    receipt = tmp_path / "receipt.json"

    outcome = run("stream", *BOX, "--receipt", receipt, stdin="")

    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert json.loads(receipt.read_text())["timestamps"] == 0


def test_random_seeds_differ_and_stay_out_of_the_receipt(tmp_path):
    receipt = tmp_path / "receipt.json"
    flags = [*BOX, "--seed", "random", "--receipt", receipt]

    one, two = (run("stream", *flags, stdin=GOOD) for _ in range(2))

    assert one.out != two.out
    assert json.loads(receipt.read_text())["seed"] is None


def test_points_outside_the_box_can_be_dropped_and_the_receipt_says_so(tmp_path):
    receipt = tmp_path / "receipt.json"
    text = line(0, [1, 2], [0.5, 1.5], [0.5, 0.5])

    outcome = run("stream", *BOX, "--outside", "drop", "--receipt", receipt, stdin=text)

    assert [release["n_points"] for release in releases_of(outcome)] == [1]
    stated = json.loads(receipt.read_text())
    assert "depends on the box" in stated["presence"]
    assert stated["n_points_dropped"] == 1


# Lines that are refused

BAD_LINES = {
    "not JSON": ("nonsense\n", ("not JSON",)),
    "half a line": ('{"t": 1, "traj_id": [1', ("not JSON",)),
    "a list": ("[1, 2]\n", ('"traj_id"',)),
    "a number": ("7\n", ('"traj_id"',)),
    "too deep to read": ("[" * 100_000 + "\n", ("not JSON",)),
    "no t": ('{"traj_id": [1], "x": [0.1], "y": [0.1]}\n', ('"t"',)),
    "no traj_id": ('{"t": 1, "x": [0.1], "y": [0.1]}\n', ('"traj_id"',)),
    "no x": ('{"t": 1, "traj_id": [1], "y": [0.1]}\n', ('"x"',)),
    "no y": ('{"t": 1, "traj_id": [1], "x": [0.1]}\n', ('"y"',)),
    "NaN": (line(1, [1], [float("nan")], [0.1]), ("x", "finite")),
    "infinity": (line(1, [1], [0.1], [float("inf")]), ("y", "finite")),
    "a number beyond floats": (line(1, [1], [10**400], [0.1]), ("x", "finite")),
    "null": (line(1, [1], [None], [0.1]), ("x", "numbers")),
    "a truth for a number": (line(1, [1], [True], [0.1]), ("x", "numbers")),
    "a number instead of a list": (line(1, [1], 0.1, [0.1]), ("x", "list")),
    "a fraction for an id": (line(1, [1.5], [0.1], [0.1]), ("traj_id", "whole numbers or text")),
    "an id beyond counting": (line(1, [10**30], [0.1], [0.1]), ("traj_id", "beyond 64 bits")),
    "text that is no text": (line(1, ["\ud800"], [0.1], [0.1]), ("traj_id",)),
    "a word for t": (line("noon", [1], [0.1], [0.1]), ("t='noon'", "whole number")),
    "half a timestamp": (line(0.5, [1], [0.1], [0.1]), ("t=0.5", "whole number")),
    "a truth for t": (line(True, [1], [0.1], [0.1]), ("t=True", "whole number")),
    "lists of different lengths": (
        line(1, [1, 2], [0.1], [0.1, 0.2]),
        ("x has 1", "traj_id has 2"),
    ),
    "two points of a stream": (
        line(1, [4, 4], [0.1, 0.2], [0.1, 0.2]),
        ("entries 1 and 2 of traj_id", "two points", "t=1"),
    ),
    "two points of a user": (
        line(1, [4, 5], [0.1, 0.2], [0.1, 0.2], user_id=["Ann", "Ann"]),
        ("entries 1 and 2 of user_id", "two points", "t=1"),
    ),
    "the same t again": (line(0, [1], [0.1], [0.1]), ("t=0 follows t=0", "ascend")),
    "an earlier t": (line(-3, [1], [0.1], [0.1]), ("t=-3 follows t=0", "ascend")),
    "a clock time": (line(1_700_000_000, [1], [0.1], [0.1]), ("t=1700000000", "at most 100,000")),
    "a point outside the box": (line(1, [1], [1.5], [0.1]), ("1 of 1 points", "--outside drop")),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_refused_by_its_number(case):
    bad, names = BAD_LINES[case]
    first = line(0, [9], [0.5], [0.5], user_id=["Zoë"]) if "user_id" in bad else GOOD

    outcome = run("stream", *BOX, stdin=f"{first}\n{bad}")

    assert_one_line(outcome, "standard input, line 3: ", *names)
    assert [release["t"] for release in releases_of(outcome)] == [0]


CONTRADICTIONS = {
    "users only later": (
        line(0, [1], [0.1], [0.1]) + line(1, [1], [0.1], [0.1], user_id=["Ann"]),
        ("user_id", "every timestamp or at none"),
    ),
    "users only at first": (
        line(0, [1], [0.1], [0.1], user_id=["Ann"]) + line(1, [1], [0.1], [0.1]),
        ("user_id", "every timestamp or at none"),
    ),
    "a stream that changes hands": (
        line(0, [1], [0.1], [0.1], user_id=["Ann"]) + line(1, [1], [0.1], [0.1], user_id=["Ben"]),
        ("entry 1", "traj_id", "user_id"),
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_line_that_contradicts_an_earlier_one_is_refused(case):
    text, names = CONTRADICTIONS[case]

    outcome = run("stream", *BOX, stdin=text)

    assert_one_line(outcome, "standard input, line 2: ", *names)


@pytest.mark.parametrize("t", [2**40, -(2**40), 10**30])
def test_a_first_timestamp_too_large_to_count_is_refused(t):
    outcome = run("stream", *BOX, stdin=line(t, [1], [0.1], [0.1]))

    assert_one_line(outcome, "line 1: ", f"t={t}")


def test_a_bad_line_of_a_file_is_refused_by_the_name_of_the_file(tmp_path):
    source = tmp_path / "positions.jsonl"
    source.write_text(GOOD + "nonsense\n")

    assert_one_line(run("stream", source, *BOX), f"{source}, line 2: ", "not JSON")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    source = tmp_path / "positions.jsonl"
    source.write_bytes(b"\xff\xfe\n")

    assert_one_line(run("stream", source, *BOX), str(source), "UTF-8")


def test_a_missing_file_is_refused(tmp_path):
    source = tmp_path / "missing.jsonl"

    assert_one_line(run("stream", source, *BOX), str(source), "does not exist")


def test_a_file_with_too_long_a_name_is_refused(tmp_path):
    source = tmp_path / ("i" * 300 + ".jsonl")

    assert_one_line(run("stream", source, *BOX), str(source))


def test_a_folder_as_input_is_refused(tmp_path):
    assert_one_line(run("stream", tmp_path, *BOX), f"{tmp_path} is a folder")


def test_what_was_released_before_a_bad_line_has_its_receipt(tmp_path):
    receipt = tmp_path / "receipt.json"

    outcome = run("stream", *BOX, "--receipt", receipt, stdin=GOOD + "nonsense\n")

    assert outcome.code == 2
    assert json.loads(receipt.read_text())["n_points_out"] == 2


# Settings that are refused

BAD_SETTINGS = {
    "no box": ((), ("--box", "stream --help")),
    "box without area": (("--box", "0,0,0,1"), ("0,0,0,1", "no area")),
    "box malformed": (("--box", "0,0"), ("'0,0'", "x0,y0,x1,y1")),
    "epsilon zero": ((*BOX, "--epsilon", 0), ("epsilon=0 ", "above 0")),
    "window zero": ((*BOX, "--window", 0), ("window=0 ", "at least 1")),
    "grid too fine": ((*BOX, "--grid", 65), ("65", "1..64")),
    "method unknown": ((*BOX, "--method", "uniform"), ("'uniform'", "did you mean uniform-")),
    "setting unknown": ((*BOX, "--set", "beta=1"), ("'beta'", "age_share")),
    "seed a word": ((*BOX, "--seed", "luck"), ("'luck'", "random")),
    "length scale from the data": (
        (*BOX, "--method", "retrasyn-p", "--length-scale", "data"),
        ("'data'", "--faithful"),
    ),
    "faithful without a length": ((*BOX, "--faithful"), ("'data'", "--length-scale")),
    "flag unknown": ((*BOX, "--resume"), ("--resume", "stream --help")),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_a_bad_setting_is_refused_before_any_release(case, tmp_path):
    flags, names = BAD_SETTINGS[case]
    receipt = tmp_path / "receipt.json"

    outcome = run("stream", *flags, "--receipt", receipt, stdin=GOOD)

    assert_one_line(outcome, *names)
    assert outcome.out == ""
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "place", ["missing/receipt.json", "file/receipt.json", "folder", "/proc/r"]
)
def test_a_receipt_that_cannot_be_written_is_refused_before_any_release(place, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    before = contents(tmp_path)

    outcome = run("stream", *BOX, "--receipt", tmp_path / place, stdin=GOOD)

    assert_one_line(outcome, str((tmp_path / place).parent))
    assert outcome.out == ""
    assert contents(tmp_path) == before


# A real process, spoken to line by line


@pytest.fixture
def process(tmp_path):
    """The command, waiting for lines."""
    with subprocess.Popen(
        [COMMAND, "stream", *BOX, "--receipt", str(tmp_path / "receipt.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        yield process
        process.kill()


def say(process, text):
    process.stdin.write(text.encode())
    process.stdin.flush()


def hear(process):
    """Return the next release, waiting for it but not for ever."""
    assert select.select([process.stdout], [], [], PATIENCE)[0], "no release came"
    return json.loads(process.stdout.readline())


@pytest.mark.system
def test_every_release_is_out_before_the_next_line_is_in(process, tmp_path):
    for t in range(4):
        say(process, line(t, [1, 2], [0.1, 0.2], [0.3, 0.4]))
        release = hear(process)
        assert (release["t"], release["n_points"]) == (t, 2)
    process.stdin.close()

    assert process.wait(PATIENCE) == 0
    assert json.loads((tmp_path / "receipt.json").read_text())["timestamps"] == 4
    assert process.stderr.read() == b""


@pytest.mark.system
def test_ctrl_c_ends_a_stream_with_130_and_its_receipt(process, tmp_path):
    say(process, GOOD)
    hear(process)

    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE) == 130
    assert json.loads((tmp_path / "receipt.json").read_text())["n_points_out"] == 2
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.system
def test_a_reader_who_leaves_ends_a_stream_without_a_traceback(process):
    say(process, GOOD)
    hear(process)

    process.stdout.close()
    say(process, line(1, [1], [0.1], [0.1]))

    assert process.wait(PATIENCE) == 1
    assert process.stderr.read() == b""


@pytest.mark.system
def test_standard_input_in_another_encoding_is_refused():
    outcome = subprocess.run(
        [COMMAND, "stream", *BOX],
        input=b'{"t": 0, "traj_id": ["Zo\xeb"], "x": [0.1], "y": [0.1]}\n',
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**environment(), "PYTHONIOENCODING": "utf-8:strict"},
    )

    assert outcome.returncode == 2
    assert outcome.stderr.startswith(b"error: standard input")
    assert outcome.stderr.count(b"\n") == 1
