"""Receipts of files that hold a part: one timestamp of a campaign."""

import asyncio
import copy
import json
import shutil

import pytest

from retrasyn.receipts.files import open_receipt, read_receipt
from retrasyn.receipts.verify import verify
from retrasyn.service.service import Service
from support.command_line import run
from support.crowd import Crowd, SetClock, finish, play, settings_in


@pytest.fixture(scope="module", params=["steered", "uniform-b"])
def releases(request, tmp_path_factory):
    """Return the folder of a campaign's releases."""
    folder = tmp_path_factory.mktemp("campaign") / "service"

    async def campaign():
        service = Service(settings_in(folder, method=request.param), SetClock())
        await service.start(runs=False)
        crowd = await Crowd.enrol(service, 20, rounds=9, share=1.0)
        for person in crowd.people:
            person.walk.pop(7)  # at this timestamp nobody is there
        await play(service, crowd, 9)
        await finish(service)
        await service.stop()
        return service.runtime.releases.folder

    return asyncio.run(campaign())


def failed(receipt, data):
    return [check.name for check in verify(receipt, data=data) if check.verdict == "FAIL"]


def test_the_receipt_of_every_part_verifies_by_its_command(releases):
    for t in (0, 6, 7, 8):
        done = run("receipt", "verify", str(releases / f"{t:010d}.parquet.receipt.json"))
        assert done.code == 0, done.out + done.err


def test_rounds_are_those_that_share_a_window_with_the_part(releases):
    receipt = open_receipt(releases / "0000000008.parquet.receipt.json")
    assert receipt.first_t == 0
    assert receipt.holds.first_t == receipt.holds.last_t == 8
    assert min(receipt.rounds.t) > 8 - receipt.gap
    assert sum(receipt.rounds.n_reports) < receipt.n_reports
    assert receipt.n_points_out == 8 * 20
    assert receipt.holds.n_points == 20


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("holds", "n_points"), 19),
        (("holds", "n_streams"), 19),
        (("holds", "first_t"), 7),
        (("holds", "last_t"), 9),
        (("holds", "first_t"), 9),
        (("holds", "n_points"), 10**6),
        (("holds",), None),
        (("door",), "truth"),
        (("worst_window", "declared", "epsilon"), 3.0),
        (("rounds", "n_reports"), [10**6]),
        (("gap",), 9),
    ],
    ids=str,
)
def test_a_changed_part_is_caught(releases, path, value):
    data = releases / "0000000008.parquet"
    values = json.loads((releases / "0000000008.parquet.receipt.json").read_text())
    assert not failed(read_receipt(values, name="it"), data)
    other = copy.deepcopy(values)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    receipt = read_receipt(other, name="it")
    if path == ("holds", "first_t") and value == 7:
        assert not failed(receipt, data)  # the file has no points of 7, as it might
    else:
        assert failed(receipt, data)


def test_the_points_of_another_timestamp_do_not_pass(releases, tmp_path):
    shutil.copy(releases / "0000000005.parquet", tmp_path / "0000000008.parquet")
    receipt = open_receipt(releases / "0000000008.parquet.receipt.json")
    names = failed(receipt, tmp_path / "0000000008.parquet")
    assert names == ["data file", "points"]
