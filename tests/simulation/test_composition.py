"""Releases of the same data add up: counted before they leave, said, and refused over a budget."""

import dataclasses
import json
import multiprocessing
import shutil
import warnings

import numpy as np
import pytest

import retrasyn
from retrasyn.errors import BudgetExceeded, InputError, OutputError, RetraSynError, SettingError
from retrasyn.receipts.files import open_receipt, receipt_place
from retrasyn.receipts.verify import verify
from retrasyn.run_settings import RunSettings
from retrasyn.simulation import composition
from retrasyn.simulation.composition import CountedRun, ReleaseCount, ReleasedBeforeWarning
from retrasyn.space import Box, Grid
from support.command_line import assert_one_line, assert_refused, run

BOX = ("--box", "0,0,10,10")
GRID = Grid(Box(0, 0, 10, 10), 3)
LINE = '{"t": 0, "traj_id": [1], "x": [0.1], "y": [0.1]}\n'


@pytest.fixture(scope="module")
def city():
    return retrasyn.demo_city(n_users=20, n_timestamps=25, seed=1)


@pytest.fixture
def data(city, tmp_path):
    retrasyn.write(city, tmp_path / "trips.parquet")
    return tmp_path / "trips.parquet"


def release(source, out, *flags, code=0):
    """Publish once, and return the receipt."""
    outcome = run("synthesize", source, "-o", out, *BOX, "--grid", 3, *flags)
    assert outcome.code == code, outcome.err
    return open_receipt(receipt_place(out)), outcome


def lines_of(place):
    return json.loads(place.read_text())["releases"]


def made(city, place, **options):
    """Release once from Python; what was released before is no surprise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleasedBeforeWarning)
        return retrasyn.synthesize(city, grid=GRID, ledger_file=place, **options).receipt


def test_a_second_release_of_the_same_people_is_counted_and_said(data, tmp_path):
    first, alone = release(data, tmp_path / "one.csv")
    second, again = release(data, tmp_path / "two.csv", "--epsilon", 2, "--window", 5)

    assert (first.composition.n_releases, first.composition.epsilon) == (1, 1.0)
    assert first.headline == "Private: epsilon 1 over any 20 positions"
    assert alone.err == ""
    assert dataclasses.astuple(second.composition) == (2, 3.0, 5, 0)
    assert second.headline.endswith("release 2 of this data: epsilon 3 in total")
    assert "release 2 of this data: epsilon 3 in total" in again.err  # before anything is computed
    assert "release 2 of this data: epsilon 3 in total" in again.out
    assert not [check for check in verify(second) if check.verdict == "FAIL"]
    assert (data.parent / "trips.parquet.spent.json").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*"))  # neither a lock nor half a file is left


def test_the_same_people_are_found_under_another_name_format_and_order(data, city, tmp_path):
    place = tmp_path / "count.json"
    other = tmp_path / "copy.csv"
    rows = np.random.default_rng(3).permutation(city.n_points)
    columns = {name: getattr(city, name)[rows] for name in ("traj_id", "t", "x", "y", "user_id")}
    retrasyn.write(retrasyn.Trajectories.from_columns(**columns), other)
    release(data, tmp_path / "one.csv", "--ledger-file", place)
    second, _ = release(other, tmp_path / "two.csv", "--ledger-file", place)
    assert second.composition.n_releases == 2
    assert not (tmp_path / "copy.csv.spent.json").exists()

    link = tmp_path / "elsewhere.parquet"
    link.symlink_to(data)
    release(data, tmp_path / "three.csv")
    fourth, _ = release(link, tmp_path / "four.csv")  # a link leads to the count beside its file
    assert fourth.composition.n_releases == 2


def test_other_data_counts_for_itself_and_is_named(data, tmp_path):
    release(data, tmp_path / "one.csv")
    retrasyn.write(retrasyn.demo_city(n_users=20, n_timestamps=26, seed=1), data)
    receipt, outcome = release(data, tmp_path / "two.csv")
    assert receipt.composition.n_releases == 1
    assert "1 of other data: whoever is in both has spent on both" in outcome.err


def test_an_equal_run_gives_equal_points_and_costs_nothing_more(city, tmp_path):
    place = tmp_path / "count.json"
    one, again = made(city, place, seed=4), made(city, place, seed=4)
    assert one == again
    assert again.composition == composition.Composition(1, 1.0, 20, 1)
    assert made(city, place, seed=4, window=5).composition.n_releases == 2
    assert made(city, place).composition.n_releases == 3
    assert made(city, place).composition == composition.Composition(4, 4.0, 5, 2)


def test_a_random_seed_is_not_in_the_count(city, tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.randbits", lambda _: 271828182845904523536028747135)
    made(city, tmp_path / "count.json")
    assert "2718281828" not in (tmp_path / "count.json").read_text()
    assert lines_of(tmp_path / "count.json")[0]["guessable"] is False


def test_a_budget_refuses_before_anything_is_computed_and_before_it_is_exceeded(data, tmp_path):
    release(data, tmp_path / "one.csv", "--budget", 2)
    release(data, tmp_path / "two.csv", "--budget", 2)
    flags = ("-o", tmp_path / "three.csv", *BOX, "--budget", 2.999999)
    names = ("release 3 of this data", "epsilon to 3", "--budget 2.999999", ".spent.json")
    assert_refused(tmp_path, ["synthesize", data, *flags], *names)
    release(data, tmp_path / "three.csv", "--budget", 3)


@pytest.mark.parametrize("budget", ["nan", "inf", "-1", "0"])
def test_a_budget_that_is_none_is_refused(budget, data, tmp_path):
    flags = ("-o", tmp_path / "one.csv", *BOX, f"--budget={budget}")
    assert_refused(tmp_path, ["synthesize", data, *flags], "budget", budget.lstrip("-"))


def test_a_release_without_privacy_leaves_no_bound(city, tmp_path):
    place = tmp_path / "count.json"
    assert made(city, place, method="exact").composition.epsilon is None
    after = made(city, place)
    assert after.composition == composition.Composition(2, None, 20, 1)
    assert after.headline.endswith(
        "release 2 of this data: no bound in total, 1 of them unprotected"
    )
    assert not [check for check in verify(after) if check.verdict == "FAIL"]
    with pytest.raises(BudgetExceeded, match="no bound"):
        made(city, place, budget=100)


def test_what_a_person_really_spent_is_counted(city, tmp_path):
    receipt = made(city, tmp_path / "count.json", method="uniform-p", unit="transition", window=3)
    spent = receipt.worst_window.person_position.epsilon
    assert spent > 1
    assert receipt.composition.epsilon == spent
    with pytest.raises(BudgetExceeded):  # known only when it is over, and before anything leaves
        made(
            city, tmp_path / "other.json", method="uniform-p", unit="transition", window=3, budget=1
        )
    assert not (tmp_path / "other.json").exists()


def stopping(done, _):
    if done == 10:
        raise KeyboardInterrupt


def test_a_run_that_was_stopped_costs_nothing_and_one_that_goes_on_costs_once(city, tmp_path):
    place, kept = tmp_path / "count.json", tmp_path / "kept"
    for options in ({}, {"checkpoint": kept}):
        with pytest.raises(KeyboardInterrupt):
            made(city, place, progress=stopping, **options)
    assert not place.exists()
    for _ in range(2):  # the second time because its output could not be written, say
        receipt = made(city, place, checkpoint=kept, resume=True)
        assert receipt.composition.n_releases == 1


def test_a_release_that_is_handed_out_is_counted_before(city, tmp_path):
    place = tmp_path / "count.json"
    seen = []
    with pytest.raises(KeyboardInterrupt):
        made(city, place, progress=stopping, on_release=lambda _: seen.append(len(lines_of(place))))
    assert seen == [1] * 10


def test_a_run_that_dies_while_it_writes_is_counted(data, tmp_path, monkeypatch):
    def die(*_, **__):
        assert lines_of(tmp_path / "trips.parquet.spent.json")  # there before the first point is
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("retrasyn.receipts.files.write", die)
    assert run("synthesize", data, "-o", tmp_path / "one.csv", *BOX).code == 2
    monkeypatch.undo()
    receipt, _ = release(data, tmp_path / "one.csv")
    assert receipt.composition.n_releases == 2


def test_a_run_that_is_not_counted_says_so(data, city, tmp_path):
    receipt, outcome = release(data, tmp_path / "one.csv", "--no-ledger")
    assert receipt.composition is None
    assert any("not counted" in line for line in receipt.not_protected)
    assert "not counted" in outcome.out
    assert not (tmp_path / "trips.parquet.spent.json").exists()
    assert retrasyn.synthesize(city, grid=GRID).receipt.composition is None
    with pytest.raises(SettingError, match="ledger_file"):
        retrasyn.synthesize(city, grid=GRID, budget=2)


def test_flags_that_contradict_each_other_are_refused(data, tmp_path):
    for flags in (("--ledger-file", tmp_path / "x"), ("--budget", 2)):
        arguments = ["synthesize", data, "-o", tmp_path / "o.csv", *BOX, "--no-ledger", *flags]
        assert_refused(tmp_path, arguments, flags[0], "--no-ledger")
        assert_one_line(run("stream", *BOX, *flags), flags[0], "INPUT file")
    out = tmp_path / "o.csv"
    for place in (data, out, receipt_place(out)):
        arguments = ["synthesize", data, "-o", out, *BOX, "--ledger-file", place]
        assert_refused(tmp_path, arguments, str(place))


def test_a_stream_of_a_recorded_file_is_counted_and_standard_input_is_not(tmp_path):
    source, told = tmp_path / "lines.jsonl", tmp_path / "receipt.json"
    source.write_text(LINE)
    for n in (1, 2):
        outcome = run("stream", source, *BOX, "--receipt", told, "--budget", 2)
        assert outcome.code == 0
        assert json.loads(outcome.out)["receipt"]["composition"]["n_releases"] == n
        assert open_receipt(told).composition.epsilon == n
    assert_one_line(run("stream", source, *BOX, "--budget", 2), "release 3")
    assert json.loads(run("stream", *BOX, stdin=LINE).out)["receipt"]["composition"] is None


def test_a_stream_that_releases_nothing_costs_nothing(tmp_path):
    source, told = tmp_path / "lines.jsonl", tmp_path / "receipt.json"
    source.write_text("nonsense\n")
    assert run("stream", source, *BOX, "--receipt", told).code == 2
    assert not (tmp_path / "lines.jsonl.spent.json").exists()


def test_a_stream_counts_more_when_somebody_spends_more(tmp_path):
    """Per person and position, `--unit transition` spends a second epsilon as it goes."""
    source = tmp_path / "lines.jsonl"
    source.write_text("".join(LINE.replace('"t": 0', f'"t": {t}') for t in range(4)))
    flags = ("--method", "uniform-p", "--unit", "transition", "--window", 1)
    outcome = run("stream", source, *BOX, *flags)
    totals = [
        json.loads(line)["receipt"]["composition"]["epsilon"]
        for line in outcome.out.split("\n")[:-1]
    ]
    assert totals == [1.0, 2.0, 2.0, 2.0]
    assert [line["epsilon"] for line in lines_of(tmp_path / "lines.jsonl.spent.json")] == [
        2_000_000
    ]


DAMAGE = {
    "empty": lambda _: "",
    "cut short": lambda text: text[:-20],
    "no object": lambda _: "[]",
    "another format": lambda text: text.replace('"format_version": 1', '"format_version": 2'),
    "no list": lambda _: '{"format_version": 1, "releases": {}}',
    "a line without its data": lambda text: text.replace('"data"', '"date"'),
    "a negative epsilon": lambda text: text.replace("1000000", "-1000000"),
    "not a number": lambda text: text.replace("1000000", "NaN"),
    "a window of text": lambda text: text.replace('"window": 20', '"window": "20"'),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_count_is_refused(case, data, tmp_path):
    release(data, tmp_path / "one.csv")
    place = tmp_path / "trips.parquet.spent.json"
    text = place.read_text()
    place.write_text(DAMAGE[case](text))
    assert place.read_text() != text
    arguments = ["synthesize", data, "-o", tmp_path / "two.csv", *BOX]
    assert_refused(tmp_path, arguments, str(place), "damaged", "--ledger-file")


def test_where_releases_cannot_be_counted_there_is_none(data, city, tmp_path):
    out = tmp_path / "one.csv"
    place = tmp_path / "no" / "count.json"
    arguments = ["synthesize", data, "-o", out, *BOX, "--ledger-file", place]
    assert_refused(tmp_path, arguments, str(place), "cannot be written", "--ledger-file")
    (tmp_path / "count.json").mkdir()
    with pytest.raises(RetraSynError, match=r"count\.json"):
        made(city, tmp_path / "count.json")
    with pytest.raises(OutputError, match="`ledger_file`"):
        made(city, "/proc/count.json")


def charge(place, seed):
    """Count one run, in a process of its own."""
    warnings.simplefilter("ignore", ReleasedBeforeWarning)
    settings = RunSettings.of(grid=GRID, seed=seed)
    ReleaseCount.open(place, settings, "data").cover(1)


@pytest.mark.system
def test_runs_at_the_same_time_are_all_counted(tmp_path):
    place = tmp_path / "count.json"
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(charge, [(place, seed) for seed in range(40)])
    assert len({line["run"] for line in lines_of(place)}) == 40
    assert list(tmp_path.iterdir()) == [place]


def test_who_waited_for_a_lock_that_is_gone_takes_the_next(tmp_path, monkeypatch):
    place, waits = tmp_path / "count.json", []
    lock = tmp_path / ".count.json.lock"

    def wait(*_):
        waits.append(lock.exists())
        if len(waits) < 3:  # whoever held it has removed it; the second time somebody made another
            lock.unlink()
            if len(waits) == 2:
                lock.touch()

    monkeypatch.setattr(composition.fcntl, "flock", wait)
    charge(place, 1)
    assert waits == [True, True, True]
    assert len(lines_of(place)) == 1
    assert not lock.exists()


def test_a_budget_that_another_run_has_used_meanwhile_holds(tmp_path):
    place, settings = tmp_path / "count.json", [RunSettings.of(grid=GRID) for _ in range(2)]
    counts = [ReleaseCount.open(place, one, "data", budget=1) for one in settings]
    counts[0].cover(1)
    with pytest.raises(BudgetExceeded, match="release 2"):
        counts[1].cover(1)
    assert len(lines_of(place)) == 1


def test_a_run_is_known_by_all_that_makes_its_points():
    base = {"grid": GRID, "seed": 1}
    changes = [{}, {"seed": 2}, {"epsilon": 2}, {"window": 3}, {"method": "retrasyn-p"}]
    changes += [{"grid": Grid(Box(0, 0, 9, 10), 3)}, {"outside": "drop"}, {"oracle": "olh"}]
    runs = [CountedRun.of(RunSettings.of(**base | change), "data").run for change in changes]
    runs.append(CountedRun.of(RunSettings.of(**base), "other").run)
    assert len(set(runs)) == len(runs) == 9
    assert CountedRun.of(RunSettings.of(**base), "data").run == runs[0]


def test_a_count_is_put_back_with_the_data(data, tmp_path):
    release(data, tmp_path / "one.csv")
    (tmp_path / "moved").mkdir()
    for path in tmp_path.glob("trips.parquet*"):
        shutil.move(path, tmp_path / "moved")
    receipt, _ = release(tmp_path / "moved" / data.name, tmp_path / "two.csv")
    assert receipt.composition.n_releases == 2


def test_a_count_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "count.json").write_text("{}")

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", forbidden)
    with pytest.raises(InputError, match="cannot be read"):
        charge(tmp_path / "count.json", 1)
