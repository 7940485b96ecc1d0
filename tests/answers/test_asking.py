"""A release, its replicas and its receipt are asked together."""

import numpy as np
import pytest

import retrasyn
from retrasyn import Box, Grid, Trajectories, ask
from retrasyn.answers.asking import INQUIRIES, answer, breakdown, streams_of
from retrasyn.answers.intervals import Intervals
from retrasyn.answers.zones import GridZones
from retrasyn.data.metadata import Metadata
from retrasyn.data.replica_files import replica_folder
from retrasyn.errors import InputError, SettingError
from support.asked import CLOCK, by_key, wanderers

BOX = Box(0, 0, 10, 10)
SEEDS = range(2, 8)
ZONES = {"zones": "grid:3", "box": BOX}


def replicas():
    return [wanderers(seed=seed, clock=CLOCK) for seed in SEEDS]


def asked(what, data, others, **options):
    zones = GridZones.of(Grid(BOX, 3))
    span = range(data.first_t, data.last_t + 1)
    by = breakdown(INQUIRIES[what], span, Metadata(data.clock), zones=zones, **options)
    return answer(INQUIRIES[what], data, iter(others), by)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release of a city in a file, with its receipt and four replicas."""
    city = retrasyn.demo_city(n_users=150, n_timestamps=30, seed=1)
    runs = [
        retrasyn.synthesize(city, window=5, grid=4, box=(0, 0, 10, 10), seed=seed)
        for seed in range(1, 6)
    ]
    path = tmp_path_factory.mktemp("release") / "synthetic.parquet"
    replica_folder(path).mkdir()
    retrasyn.write(runs[0].synthetic, path)
    path.with_name("synthetic.parquet.receipt.json").write_text(runs[0].receipt.to_json())
    for number, run in enumerate(runs[1:], 1):
        retrasyn.write(run.synthetic, replica_folder(path) / f"{number:04}.parquet")
    return path, runs


@pytest.mark.parametrize(
    ("what", "columns"),
    [
        ("counts", ["t", "zone"]),
        ("od", ["t", "origin", "destination"]),
        ("flows", ["t", "origin", "destination"]),
        ("trips", ["t", "zone", "measure", "statistic"]),
    ],
)
def test_errors_come_from_the_same_question_to_every_replica(what, columns):
    data = wanderers(n=60, clock=CLOCK)

    found = asked(what, data, replicas(), by="day")

    alone = [by_key(asked(what, each, [], by="day"), *columns) for each in [data, *replicas()]]
    keys = list(zip(*(found[name].tolist() for name in columns), strict=True))
    absent = [np.nan if key[-1] == "mean" or key[-1][:3] == "dec" else 0 for key in keys]
    values = [[one.get(key, none) for key, none in zip(keys, absent, strict=True)] for one in alone]
    expected = Intervals.of(values[0], values[1:])
    assert keys == list(alone[0])
    assert np.array_equal(found["value"], values[0])
    assert np.array_equal(found["standard_error"], expected.standard_error, equal_nan=True)
    assert np.array_equal(found["low"], expected.low, equal_nan=True)
    assert np.array_equal(found["high"], expected.high, equal_nan=True)
    unknown = np.isnan(values[1:]).any(axis=0)
    assert np.array_equal(found["unclear"], expected.unclear | unknown)
    assert found.n_replicas == len(SEEDS)


def test_a_statistic_that_a_replica_does_not_have_is_unclear_and_its_error_empty():
    data = Trajectories.from_columns(traj_id=[1, 1], t=[0, 1], x=[1, 2], y=[1, 1])
    other = Trajectories.from_columns(traj_id=[1, 1], t=[0, 1], x=[9, 9], y=[9, 8])

    found = asked("trips", data, [other, data]).to_frame().to_pylist()

    mean = next(row for row in found if row["statistic"] == "mean")
    number = next(row for row in found if row["statistic"] == "trips")
    assert (mean["standard_error"], mean["low"], mean["unclear"]) == (None, None, True)
    assert number["standard_error"] is not None


def test_ranks_of_hotspots_come_from_the_replicas():
    data = wanderers(clock=CLOCK)

    found = asked("hotspots", data, replicas(), top=2)

    ranks = {zone: [] for zone in found["zone"].tolist()}
    for other in replicas():
        counts = by_key(asked("counts", other, []), "zone")
        order = sorted(counts, key=lambda zone: (-counts[zone], zone))
        for zone, seen in ranks.items():
            seen.append(order.index((zone,)) + 1)
    for zone, low, high, in_top in zip(
        *(found[name].tolist() for name in ("zone", "rank_low", "rank_high", "in_top")), strict=True
    ):
        assert (low, high) == (min(ranks[zone]), max(ranks[zone]))  # of six, nine of ten are all
        assert in_top == pytest.approx(sum(rank <= 2 for rank in ranks[zone]) / len(SEEDS))


def test_a_file_is_asked_with_its_replicas_on_the_grid_of_its_receipt(release):
    path, runs = release

    found = ask(path, "counts")

    assert (found.n_replicas, found.private) == (4, True)
    assert found["zone"].tolist() == [str(cell) for cell in range(16)]
    again = asked_on(runs, Grid(Box(0, 0, 10, 10), 4))
    for name in ("value", "standard_error", "low", "high"):
        assert np.array_equal(found[name], again[name])


@pytest.mark.parametrize("method", ["steered", "retrasyn-p"])
def test_replicas_of_a_method_that_knows_no_errors_make_nothing_clear(tmp_path, method):
    city = retrasyn.demo_city(n_users=2_000, n_timestamps=12, seed=1)
    result = retrasyn.synthesize(
        city, method, window=4, grid=2, box=(0, 0, 10, 10), seed=1, replicates=3
    )
    path = tmp_path / "release.parquet"
    retrasyn.write(result.trajectories, path)
    (tmp_path / "release.parquet.receipt.json").write_text(result.receipt.to_json())
    replica_folder(path).mkdir()
    for number, replica in enumerate(result.replicas, 1):
        retrasyn.write(replica, replica_folder(path) / f"{number:04d}.parquet")
    for source in (result, path):
        found = ask(source, "counts")
        assert found.n_replicas == 3
        assert found["unclear"].all() == (method == "retrasyn-p")


def asked_on(runs, grid):
    span = range(30)
    by = breakdown(INQUIRIES["counts"], span, Metadata(), zones=GridZones.of(grid))
    return answer(INQUIRIES["counts"], runs[0].synthetic, [run[0] for run in runs[1:]], by)


def test_the_result_of_synthesize_is_asked_like_its_file(release):
    path, runs = release
    runs[0].replicas = [run.synthetic for run in runs[1:]]

    frame = runs[0].od(zones="grid:2")

    assert frame.equals(ask(path, "od", zones="grid:2").to_pandas())
    assert frame["standard_error"].gt(0).any()
    assert runs[0].counts().equals(ask(path, "counts").to_pandas())


def test_trajectories_alone_have_no_errors(release):
    _, runs = release

    found = runs[0].synthetic.ask("od", zones=runs[0].grid)

    assert (found.n_replicas, found.private, found["standard_error"]) == (0, False, None)
    assert found.to_pandas()["unclear"].isna().all()
    assert runs[0].synthetic.od(zones=runs[0].grid)["value"].sum() == found["value"].sum()
    assert len(runs[0].synthetic.counts(zones="grid:2")) == 4


def test_a_file_without_a_receipt_is_asked_on_a_grid_around_it(tmp_path):
    path = tmp_path / "real.csv"
    retrasyn.write(wanderers(), path)

    found = ask(path, "hotspots", top=99)

    assert (len(found), found.private) == (36, False)


def test_a_receipt_that_is_none_is_refused(tmp_path):
    path = tmp_path / "real.csv"
    retrasyn.write(wanderers(), path)
    path.with_name("real.csv.receipt.json").write_text("[]")

    with pytest.raises(InputError, match=r"receipt .* cannot be read .*; move it away"):
        ask(path, "counts")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "speed"}, "'speed' cannot be asked; choose from counts, od, flows, hotspots"),
        ({"what": "hotspots", "top": 0}, "`top` 0 is not a number of hotspots"),
    ],
)
def test_wrong_questions_are_refused(options, message):
    with pytest.raises(SettingError, match=message):
        ask(wanderers(), **options)


def test_releases_are_put_together_as_streams():
    data = wanderers()
    rows = {t: np.flatnonzero(data.t == t) for t in range(data.first_t, data.last_t + 1)}

    whole = streams_of(
        ((t, data.traj_id[at], data.x[at], data.y[at]) for t, at in rows.items()),
        Metadata(CLOCK, "EPSG:4326"),
    )

    assert np.array_equal(whole.begins, data.begins)
    assert np.array_equal(whole.starts, data.starts)
    assert np.array_equal(whole.x, data.x)
    assert (whole.clock, whole.crs) == (CLOCK, "EPSG:4326")


def test_streams_end_where_a_release_is_missing():
    place = np.zeros(1)
    ids = np.array([7])

    found = streams_of([(t, ids, place, place) for t in (0, 1, 3)], Metadata())

    assert (found.begins.tolist(), found.lengths.tolist()) == ([0, 3], [2, 1])


@pytest.mark.parametrize("what", INQUIRIES)
@pytest.mark.parametrize("side", [2, 64])
def test_where_nobody_is_nothing_is_counted(what, side):
    none = np.empty(0)
    nobody = streams_of([(3, none.astype(np.int64), none, none)], Metadata(CLOCK))
    by = breakdown(
        INQUIRIES[what], range(3, 4), Metadata(CLOCK), zones=GridZones.of(Grid(BOX, side))
    )

    found = answer(INQUIRIES[what], nobody, [nobody], by)

    assert not found["value"].any()
    assert len(found) == {"counts": side**2, "profile": side**2, "hotspots": min(10, side**2)}.get(
        what, 0
    )


def test_a_release_in_parts_is_asked_in_its_folder(tmp_path):
    real = retrasyn.demo_city(n_users=50, n_timestamps=10, seed=1)
    (tmp_path / "parts.parquet").mkdir()
    result = retrasyn.synthesize(
        real, window=3, grid=2, box=(0, 0, 10, 10), seed=1, parts=tmp_path / "parts.parquet"
    )

    with pytest.raises(InputError, match="no points to ask; those of a release in parts"):
        result.counts()

    assert ask(tmp_path / "parts.parquet", "counts", zones=result.grid)["value"].sum() > 0


def test_asking_of_a_range_with_what_is_around_it_is_asking_of_everything():
    data = wanderers()
    whole = ask(data, "od", start=10, end=15, **ZONES)
    later = (data.t >= 9) & (data.t <= data.last_t)
    part = Trajectories.from_columns(
        traj_id=data.traj_id[later], t=data.t[later], x=data.x[later], y=data.y[later]
    )

    found = ask(part, "od", start=10, end=15, **ZONES)

    assert found.to_frame().equals(whole.to_frame())
