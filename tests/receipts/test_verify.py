"""A changed receipt is caught, or says of which fields that is beyond it."""

import copy
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrasyn
from retrasyn.errors import InputError
from retrasyn.privacy.receipt import Receipt, WorstWindow
from retrasyn.receipts.files import (
    describe,
    load,
    open_receipt,
    read_receipt,
    receipt_place,
    write_with_receipt,
)
from retrasyn.receipts.verify import find_release, verify
from support.made_receipts import RUNS, city, receipt, run


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Return where every run was written, by name."""
    folder = tmp_path_factory.mktemp("released")
    for name in RUNS:
        out = folder / f"{name}.csv"
        write_with_receipt(run(name).synthetic, receipt(name), out, receipt_place(out))
    return folder


def paths_of(values, *above):
    """List every place a value stands in, of lists the first and the last entry."""
    entries = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in entries:
        if isinstance(values, list) and key not in (0, len(values) - 1):
            continue
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from paths_of(value, *above, key)


def changed(values, path, value):
    other = copy.deepcopy(values)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return other


def told(values, folder, name, *, rerun=False):
    """Return the verdicts on a changed receipt, or none if it is not even read."""
    try:
        opened = read_receipt(values, name="it")
    except InputError:
        return None
    return verify(opened, data=folder / f"{name}.csv", real=city() if rerun else None)


def failed(checks):
    return checks is None or any(check.verdict == "FAIL" for check in checks)


def admitted(checks, path):
    """Whether a check says that this field cannot be recomputed."""
    return any(path[0] in check.fields for check in checks if check.verdict == "unknown")


def alterations(value):
    """Suggest other values of the same kind, and of another."""
    match value:
        case bool():
            kinds = [st.just(not value)]
        case int():
            kinds = [st.integers(-5, 10**6), st.sampled_from([value + 1, value - 1])]
        case float():
            kinds = [st.floats(-1, 50), st.sampled_from([value * 2, value / 2, value + 1e-6])]
        case str():
            kinds = [st.text(max_size=8), st.just(value + " "), st.just("position")]
        case None:
            kinds = [st.integers(0, 9), st.just({"epsilon": 1.0})]
        case list():
            kinds = [st.just(value[:-1]), st.just([*value, *value[:1]])] if value else []
        case _:
            kinds = [st.none()]
    return st.one_of(*kinds, st.just("other"), st.none()).filter(lambda other: other != value)


@settings(max_examples=400)
@given(chance=st.data(), name=st.sampled_from(sorted(RUNS)))
def test_a_changed_field_is_caught_or_listed_as_beyond_recomputing(chance, name, released):
    values = load(receipt_place(released / f"{name}.csv"))
    path = chance.draw(st.sampled_from(sorted(paths_of(values), key=str)))
    now = values
    for key in path:
        now = now[key]
    other = changed(values, path, chance.draw(alterations(now)))

    checks = told(other, released, name)

    assert failed(checks) or admitted(checks, path), path


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(
    "path",
    [
        *[("unit",), ("window",), ("gap",), ("epsilon",), ("division",), ("n_reports",)],
        *[("method",), ("summary",), ("private",), ("guarantee",), ("presence",), ("ledger",)],
        *[("noise",), ("oracle",), ("lifetime", "epsilon"), ("lifetime", "windows")],
        *[("lifetime", "timestamps"), ("lifetime", "per"), ("timestamps",), ("not_protected",)],
        *[("within_guarantee",), ("within_epsilon_per_person",), ("jump",), ("n_points_out",)],
        *[("worst_window", "declared", "timestamps"), ("worst_window", "declared", "unit")],
        *[("worst_window", "person_position", "timestamps"), ("n_streams_out",)],
        *[("data_file", "sha256"), ("data_file", "n_bytes"), ("data_file", "name")],
        *[("first_t",), ("last_t",), ("format_version",), ("box_inferred_from_data",)],
        *[("length_scale_from_data",), ("rounds", "n_reports"), ("not_protected", 0)],
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_what_every_receipt_must_say_cannot_be_changed_unseen(path, name, released):
    """Without the input: these follow from the rest of the receipt and the released file."""
    values = load(receipt_place(released / f"{name}.csv"))
    now = values
    for key in path:
        now = now[key]
    match now:
        case bool():
            other = not now
        case int() | float():
            other = now + 1
        case str():
            other = {"position": "transition", "user": "stream"}.get(now, now + "x")
        case list() | tuple():
            other = now[:-1]
        case _:
            other = {"threshold": "0x1", "q": 0.5} if now is None else None

    checks = told(changed(values, path, other), released, name)

    assert other != now
    # Another oracle may exist elsewhere; and a method without privacy has nothing to recompute.
    beyond = path == ("oracle",) or name == "exact"
    assert failed(checks) or (beyond and admitted(checks, path))


@pytest.mark.parametrize("name", [name for name in RUNS if receipt(name).seed is not None])
@pytest.mark.parametrize(
    "field",
    ["seed", "grid", "box", "n_users", "n_points_in", "standard_error", "door", "rounds"],
)
def test_with_the_input_what_was_beyond_recomputing_is_caught_too(field, name, released):
    values = load(receipt_place(released / f"{name}.csv"))
    other = {
        "seed": 7,
        "grid": 2,
        "box": [0, 0, 11, 10],
        "n_users": values["n_users"] + 1,
        "n_points_in": (values["n_points_in"] or 0) + 1,
        "standard_error": {"cell": 0.1, "flow": 0.1},
        "door": "reports",
        "rounds": None,
    }[field]
    if field == "rounds":
        other = copy.deepcopy(values["rounds"])
        other["n_reports"][0] += 1
        other["n_reports"][-1] -= 1

    assert failed(told(values | {field: other}, released, name, rerun=True))


@pytest.mark.parametrize("name", RUNS)
def test_an_untouched_receipt_holds(name, released):
    path = receipt_place(released / f"{name}.csv")
    opened = open_receipt(path)

    checks = verify(opened, data=find_release(path), real=city())

    assert not failed(checks), [str(check) for check in checks]
    open_ends = [check.name for check in checks if check.verdict == "unknown"]
    counted = ["composition"] if name == "counted twice" else []
    assert open_ends == counted + (["run"] if opened.seed is None else [])
    assert opened.data_file == describe(released / f"{name}.csv")
    assert dataclasses.replace(opened, data_file=None) == receipt(name)


@pytest.mark.parametrize("name", RUNS)
def test_without_the_file_it_says_what_it_needs(name):
    checks = {check.name: check for check in verify(receipt(name))}
    for part in ("data file", "points"):
        assert checks[part].verdict == "unknown"
        assert "needs the released file" in checks[part].detail


def test_a_release_changed_by_one_byte_is_caught(released, tmp_path):
    lines = (released / "steered.csv").read_text()
    digit = "1" if lines[-3] != "1" else "2"
    other = tmp_path / "steered.csv"
    other.write_text(lines[:-3] + digit + lines[-2:])
    checks = verify(open_receipt(receipt_place(released / "steered.csv")), data=other)
    assert [check.name for check in checks if check.verdict == "FAIL"] == ["data file"]


def test_points_that_were_moved_out_taken_away_or_put_elsewhere_in_time_are_caught(tmp_path):
    told, points = receipt("steered"), run("steered").synthetic
    out = tmp_path / "out.csv"
    bound = write_with_receipt(points, told, out, receipt_place(out))
    for fault, word in (
        ({"box": (0.0, 0.0, 5.0, 5.0)}, "outside the box"),
        ({"n_streams_out": 1}, "are there"),
        ({"first_t": 3}, "before the first timestamp"),
    ):
        checks = verify(dataclasses.replace(bound, **fault), data=out)
        (points_check,) = [check for check in checks if check.name == "points"]
        assert points_check.verdict == "FAIL"
        assert word in points_check.detail


def test_a_file_that_is_no_table_leaves_its_points_open(tmp_path):
    other = tmp_path / "out.jsonl"
    other.write_text("{}\n")
    checks = {check.name: check for check in verify(receipt("budget"), data=other)}
    assert checks["points"].verdict == "unknown"
    assert checks["data file"].verdict == "FAIL"  # bound to no file at all


def test_a_table_that_cannot_be_read_is_caught_unless_nothing_was_released(tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("traj_id,t,x,y\n")
    full, empty = (
        receipt("budget"),
        dataclasses.replace(receipt("budget"), n_points_out=0, n_streams_out=0),
    )
    for stated, verdict in ((full, "FAIL"), (empty, "ok")):
        (check,) = [check for check in verify(stated, data=out) if check.name == "points"]
        assert check.verdict == verdict


def test_a_receipt_lies_beside_its_release(released, tmp_path):
    assert find_release(receipt_place(released / "budget.csv")) == released / "budget.csv"
    assert find_release(released / "budget.csv") is None
    assert find_release(receipt_place(tmp_path / "gone.csv")) is None


def test_another_version_is_named_and_not_judged():
    checks = verify(dataclasses.replace(receipt("budget"), retrasyn_version="9.9"))
    assert checks[0].verdict == "unknown"
    assert "'9.9'" in checks[0].detail


def test_an_overspent_window_is_caught_in_the_rounds():
    told = receipt("budget")
    rounds = dataclasses.replace(told.rounds, epsilon=(1.0, *told.rounds.epsilon[1:]))
    checks = {check.name: check for check in verify(dataclasses.replace(told, rounds=rounds))}
    assert "in a row spent" in checks["rounds"].detail


def test_a_promise_that_was_broken_is_a_failure_even_if_it_is_admitted():
    told = receipt("transition")
    worst = dataclasses.replace(
        told.worst_window, declared=WorstWindow("transition", "user", 4, 2.0)
    )
    admitted_receipt = dataclasses.replace(told, worst_window=worst, within_guarantee=False)
    checks = {check.name: check for check in verify(admitted_receipt)}
    assert "more was spent than was promised" in checks["verdicts"].detail


def test_a_hidden_stream_cannot_be_run_again_from_a_file(released):
    opened = open_receipt(receipt_place(released / "hidden.csv"))
    streamed = opened.travelling_with(dataclasses.replace(opened.data_file, name="standard output"))
    (check,) = [c for c in verify(streamed, real=city()) if c.name == "run"]
    assert check.verdict == "unknown"
    assert "on sight" in check.detail


def test_an_input_that_does_not_fit_is_a_failed_run(released):
    elsewhere = retrasyn.Trajectories.from_columns(traj_id=[1], t=[0], x=[99.0], y=[99.0])
    (check,) = [c for c in verify(receipt("budget"), real=elsewhere) if c.name == "run"]
    assert check.verdict == "FAIL"
    assert "cannot be run again" in check.detail


def test_points_dropped_and_a_box_from_the_data_are_run_again_alike():
    real = city()
    for options in ({"box": (0, 0, 6, 6), "outside": "drop"}, {"box": None}):
        with (
            pytest.warns(retrasyn.simulation.run.BoxInferredWarning)
            if not options["box"]
            else (_nothing())
        ):
            _, told = retrasyn.synthesize(real, "uniform-b", grid=3, window=4, seed=0, **options)
        assert not failed(verify(told, real=real))


def _nothing():
    import contextlib

    return contextlib.nullcontext()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", '"text"', "{}", "nonsense", '{"format_version": NaN}', "[" * 100_000, "\xff"],
)
def test_what_is_no_receipt_is_refused(text, tmp_path):
    path = tmp_path / "x.receipt.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"is not a receipt|has the receipt format"):
        open_receipt(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        open_receipt(tmp_path / "gone")


@pytest.mark.parametrize("version", [0, 1, 2, 3.0, True, "3", None])
def test_another_format_is_refused(version):
    values = json.loads(receipt("budget").to_json()) | {"format_version": version}
    with pytest.raises(InputError, match="receipt format"):
        read_receipt(values, name="it")


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Receipt)])
def test_a_receipt_without_a_field_is_refused(name):
    values = json.loads(receipt("budget").to_json())
    del values[name]
    with pytest.raises(InputError):
        read_receipt(values, name="it")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("extra",), 1, "extra is no field"),
        (("worst_window",), 3, "worst_window is no table"),
        (("worst_window", "declared", "per"), 3, "worst_window.declared.per is '3'"),
        (("box",), [1, 2, 3], "box"),
        (("rounds", "t"), [1, "x"], "rounds.t"),
        (("epsilon",), True, "no number"),
        (("window",), 2.5, "no whole number"),
        (("private",), "yes", "no truth value"),
        (("seed",), "text", "no such value"),
        (("reading",), [], "no such value"),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused_by_its_name(path, value, words):
    values = changed(json.loads(receipt("budget").to_json()), path, value)
    with pytest.raises(InputError, match="is not a receipt") as refusal:
        read_receipt(values, name="it")
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "changes", "check", "words"),
    [
        ("budget", {"first_t": 9, "last_t": 3, "timestamps": -5}, "lifetime", "comes before"),
        ("budget", {"gap": 0}, "lifetime", "gap is 0"),
        ("budget", {"window": 0, "gap": 1}, "gap", "below 1"),
        ("budget", {"unit": "place"}, "gap", "neither position nor transition"),
        ("budget", {"epsilon": 50.0}, "noise", "at most 40"),
        ("exact", {"oracle": "oue"}, "noise", "no oracle and no noise"),
        ("budget", {"n_points_dropped": 10**9}, "counts", "more points were dropped"),
        ("budget", {"n_streams_out": 10**9}, "counts", "more synthetic streams"),
        ("budget", {"n_users": -1}, "counts", "below 0"),
        ("budget", {"n_points_in": None}, "counts", "presence is not hidden"),
        ("steered", {"n_users": 3}, "counts", "users may send"),
        ("budget", {"settings": {"gain": 8.0}}, "reading", "has the settings"),
        ("streams", {"length_scale": 13.0}, "reading", "length_scale is 13.0"),
        ("faithful", {"length_scale": "released"}, "reading", "length_scale is 'released'"),
        ("steered", {"faithful": True}, "reading", "not a method of the paper"),
        ("faithful", {"faithful": False}, "reading", "goes with faithful only"),
        ("budget", {"reading": {"unit": "place"}}, "reading", "the reading is none"),
        ("budget", {"reading": {"nonsense": 1}}, "reading", "the reading is none"),
        ("budget", {"method": "magic"}, "method", "there is no method"),
        ("exact", {"door": "counts"}, "method", "knows truth"),
        ("budget", {"not_protected": ()}, "not protected", "does not say"),
    ],
    ids=str,
)
def test_what_cannot_be_is_named(name, changes, check, words):
    checks = {one.name: one for one in verify(dataclasses.replace(receipt(name), **changes))}
    assert checks[check].verdict == "FAIL"
    assert words in checks[check].detail


def test_more_weaknesses_than_a_run_has_are_too_many():
    told = receipt("budget")
    checks = verify(dataclasses.replace(told, not_protected=(*told.not_protected, "the moon")))
    (check,) = [one for one in checks if one.name == "not protected"]
    assert "says more" in check.detail


def test_another_oracle_has_another_law():
    checks = verify(dataclasses.replace(receipt("budget"), oracle="grr"))
    (check,) = [one for one in checks if one.name == "noise"]
    assert check.verdict == "FAIL"
    assert "as oracle, grid and epsilon demand" in check.detail


@pytest.mark.parametrize("change", [{"oracle": "oracular"}, {"grid": 0}, {"method": "guess"}])
def test_the_law_of_what_does_not_exist_is_refused(change):
    checks = verify(dataclasses.replace(receipt("budget"), **change))
    (check,) = [one for one in checks if one.name == "noise"]
    assert check.verdict == "FAIL"


@pytest.mark.parametrize("huge", [10**400, -(10**400), 10**60, 1e308, -1e59, 5e-324], ids=str)
@pytest.mark.parametrize("name", ["budget", "steered", "exact"])
def test_no_number_is_too_large_to_be_judged(name, huge, released):
    values = load(receipt_place(released / f"{name}.csv"))
    for path in paths_of(values):
        now = values
        for key in path:
            now = now[key]
        if type(now) in (int, float):
            checks = told(changed(values, path, huge), released, name)
            assert failed(checks) or admitted(checks, path), path
