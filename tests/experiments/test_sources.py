"""Where data sets come from, and that made ones say so."""

import numpy as np
import pytest

import retrasyn
from retrasyn.data.writing_files import write
from retrasyn.errors import SettingError
from retrasyn.experiments.sources import DataSet, find_sources, share_of_users
from retrasyn.simulation.city import demo_city

ALL = ("tdrive", "oldenburg", "sanjoaquin")


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=300, n_timestamps=40, seed=2)


def find(folder, names=ALL, files=None, networks=None, *, quick=False):
    return find_sources(
        names, files=files or {}, networks=networks or {}, folder=folder, quick=quick
    )


def test_a_given_file_is_read_and_the_others_are_stood_in_for(tmp_path, city):
    file = tmp_path / "taxis.parquet"
    write(city, file)
    network = tmp_path / "SJ.cnode"
    network.write_text("0 0 0\n")
    given, made, on_network = find(
        tmp_path, files={"tdrive": file}, networks={"sanjoaquin": network}
    )
    assert (given.title, given.generated) == ("T-Drive", False)
    assert made.title == "Oldenburg (built-in city)"
    assert on_network.title == "San Joaquin (generated)"
    assert made.generated
    assert on_network.generated


def test_another_network_is_another_file(tmp_path):
    network = tmp_path / "SJ.cnode"
    files = set()
    for text in ("0 0 0\n", "0 0 1\n"):
        network.write_text(text)
        (source,) = find(tmp_path, ("sanjoaquin",), networks={"sanjoaquin": network})
        files.add(source.file)
    assert len(files) == 2


def test_quick_without_data_is_one_small_city_that_is_made_once(tmp_path):
    (source,) = find(tmp_path, quick=True)
    assert source.title == "Built-in city"
    source.make()
    made = source.file.stat().st_mtime_ns
    source.make()
    assert source.file.stat().st_mtime_ns == made
    counted = DataSet.of(source, source.read())
    assert counted.generated
    assert counted.statistics["timestamps"] <= 120
    assert counted.statistics["mean_length"] == (
        counted.statistics["points"] / counted.statistics["streams"]
    )


def test_quick_with_data_uses_only_what_was_given(tmp_path, city):
    file = tmp_path / "taxis.parquet"
    write(city, file)
    assert [source.name for source in find(tmp_path, files={"tdrive": file}, quick=True)] == [
        "tdrive"
    ]


@pytest.mark.parametrize(
    ("files", "networks", "message"),
    [
        ({"paris": "x.csv"}, {}, "unknown data set 'paris'"),
        ({"tdrive": "missing.csv"}, {}, "there is no such file"),
        ({}, {"tdrive": "TG.cnode"}, "was recorded, not generated"),
        ({}, {"sanjoaquin": "missing.cnode"}, "cannot be read"),
    ],
)
def test_wrong_sources_are_refused(tmp_path, files, networks, message):
    with pytest.raises(SettingError, match=message):
        find(
            tmp_path,
            files={name: tmp_path / file for name, file in files.items()},
            networks={name: tmp_path / file for name, file in networks.items()},
        )


def test_shares_are_of_whole_persons_and_nested(city):
    before: set[int] = set()
    for share in (0.2, 0.4, 0.6, 0.8):
        part = share_of_users(city, share)
        users = set(part.user_of_stream.tolist())
        assert before < users
        of_them = np.isin(city.user_of_stream, list(users))
        assert part.stream_ids.tolist() == city.stream_ids[of_them].tolist()
        assert part.n_points == city.lengths[of_them].sum()
        assert abs(len(users) / np.unique(city.user_of_stream).size - share) < 0.1
        before = users


def test_a_share_keeps_every_point_in_its_place(city):
    part = share_of_users(city, 0.5)
    whole = dict(zip(zip(city.traj_id, city.t, strict=True), city.x, strict=True))
    rows = zip(part.traj_id, part.t, part.x, strict=True)
    assert all(whole[stream, t] == x for stream, t, x in rows)


def test_streams_without_users_are_shared_by_stream(city):
    anonymous = retrasyn.Trajectories(city.stream_ids, city.begins, city.starts, city.x, city.y)
    part = share_of_users(anonymous, 0.3)
    assert part.user_of_stream is None
    assert 0.2 < part.n_streams / city.n_streams < 0.4
