"""A fleet against a plain curator: who takes part, what is sent, and what is sent again."""

import sqlite3
import time

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.loop import heartbeat_of
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import LedgerError, ServerError, SettingError, WireError
from retrasyn.fleet.device_pool import Positions
from retrasyn.fleet.fleet import Fleet
from retrasyn.messages import ENTERING, MOVING, QUITTING
from retrasyn.wire.keys import CuratorKeys
from support.plain_curator import PlainCurator, serving, small_campaign

pytestmark = pytest.mark.system


@pytest.fixture
def served():
    campaign = small_campaign(period=1, window=1, epoch=int(time.time()))
    with serving(PlainCurator(campaign)) as curator:
        yield curator


def positions(n_timestamps=4):
    """Two users: one is always there, one has two streams with a gap between them."""
    rows = [(0, 0, t) for t in range(n_timestamps)] + [(1, 1, 0), (1, 2, n_timestamps - 1)]
    user, stream, t = np.array(rows).T
    place = np.full(len(rows), 1.0)
    return Positions.of(
        Trajectories.from_columns(traj_id=stream, t=t, x=place, y=place, user_id=user)
    )


OPEN: list[CuratorClient] = []


@pytest.fixture(autouse=True)
def _close_all():
    yield
    while OPEN:
        OPEN.pop().close()


def muster(served, folder, token="operator", **options):  # noqa: S107 - of the plain curator
    OPEN.append(CuratorClient(served.url))
    return Fleet.muster(OPEN[-1], positions(), folder, operator_token=token, **options)


def test_users_are_devices_and_the_file_begins_again_after_its_end():
    found = positions()
    assert (found.n_devices, found.n_timestamps) == (2, 4)
    assert [sorted(found.at(step)) for step in range(6)] == [[0, 1], [0], [0], [0, 1], [0, 1], [0]]


def test_only_the_first_users_take_part_where_fewer_are_wanted():
    real = Trajectories.from_columns(traj_id=[5, 6, 7], t=[0, 0, 0], x=[1.0] * 3, y=[2.0] * 3)
    found = Positions.of(real, 2)
    assert (found.n_devices, found.at(0)) == (2, {0: (1.0, 2.0), 1: (1.0, 2.0)})


def test_a_fleet_says_who_is_there_and_reports_within_epsilon(served, tmp_path):
    served.change(presence="flags", strata=("move", "enter", "quit"))
    fleet = muster(served, tmp_path)
    fleet.wait_for_quarantine(lambda _left: None)
    tally = fleet.run(4, lambda _done, _all: None)
    kinds = {}
    who = [one.device for one in fleet.pool.ledger.devices()]
    for (_t, device), kind in sorted(served.heartbeats().items()):
        kinds.setdefault(who.index(device), []).append(kind)
    if not tally.n_missed:
        assert kinds[0] == [ENTERING, MOVING, MOVING, MOVING, QUITTING]
        assert kinds[1] == [ENTERING, QUITTING, ENTERING, QUITTING]
    assert tally.n_reports == len(served.reports())
    assert fleet.recount().within
    fleet.close()


def test_frames_of_a_busy_server_are_sent_again_as_they_were(served, tmp_path):
    fleet = muster(served, tmp_path)
    frame = beat_of(fleet, t=3)
    served.faults = ["busy", "busy"]
    assert fleet._send([frame], until=int(time.time() * 1000) + 5000) == ["accepted"]
    assert served.received == [frame]
    served.faults = ["busy"] * 50
    late = int(time.time() * 1000) - 1
    assert fleet._send([frame], until=late) == ["busy"]
    fleet.close()


def test_what_a_forger_says_of_a_batch_is_no_answer(served, tmp_path):
    fleet, soon = muster(served, tmp_path), int(time.time() * 1000) + 300
    frame = beat_of(fleet, t=3)
    served.forge = lambda _frame: b"\3\0" + bytes(16)  # accepted
    assert fleet._send([frame], until=soon) == [""]
    assert served.received.count(frame) > 1, "it is sent again"
    served.forge = None
    assert fleet._send([frame], until=int(time.time() * 1000) + 5000) == ["duplicate"]
    fleet.close()


def test_a_fleet_follows_the_curators_new_key_and_remembers_it(served, tmp_path):
    fleet = muster(served, tmp_path)
    old = served.public
    served.current()
    served.rotate(until=0)
    fleet._follow(served.current())
    assert fleet.pool.ledger.curator == CuratorKeys(served.public, old, 0)
    assert {one.reporter.curator.key for one in fleet.pool.members} == {served.public}
    before = served.key
    served.rotate(until=0, signer=Ed25519PrivateKey.generate())
    fleet._follow(served.current())
    assert fleet.pool.ledger.curator.key == before.public_key().public_bytes_raw()
    fleet.close()
    with pytest.raises(WireError, match="not signed by the one before"):
        muster(served, tmp_path, token=None)


def test_a_fleet_of_an_earlier_version_is_refused(served, tmp_path):
    connection = sqlite3.connect(tmp_path / "fleet.sqlite")
    connection.execute("CREATE TABLE server (url TEXT NOT NULL)")
    connection.close()
    with pytest.raises(LedgerError, match="earlier version"):
        muster(served, tmp_path)


def beat_of(fleet, t):
    """Return a heartbeat of the first device."""
    reporter = fleet.pool.members[0].reporter
    beat = heartbeat_of(fleet.pool.manifest, fleet.pool.id, reporter, kind=MOVING, t=t)
    assert beat is not None
    return beat


def test_a_fleet_that_starts_again_goes_on_with_its_devices(served, tmp_path):
    muster(served, tmp_path).close()
    again = muster(served, tmp_path, token=None)
    assert len(served.devices) == 2
    assert again.pool.rounds_left() > 0
    again.close()


def test_without_the_operators_token_nobody_is_enrolled(served, tmp_path):
    with pytest.raises(SettingError, match="--operator-token"):
        muster(served, tmp_path, token=None)
    with pytest.raises(ServerError, match="operator's token"):
        muster(served, tmp_path / "other", token="wrong")  # noqa: S106 - the plain curator's
    assert not served.devices


def test_a_folder_of_another_servers_fleet_is_refused(served, tmp_path):
    fleet = muster(served, tmp_path)
    fleet.pool.ledger._connection.execute("UPDATE server SET url = 'http://elsewhere'")
    fleet.close()
    with pytest.raises(LedgerError, match="holds a fleet of http://elsewhere"):
        muster(served, tmp_path)


def test_drawn_rounds_are_answered_by_those_they_are_meant_for(served, tmp_path):
    served.change(sampling="curator")
    fleet = muster(served, tmp_path)
    chosen = fleet.pool.ledger.devices()[1].device
    served.meant = lambda device: device == chosen
    assert fleet._asked(0, [0, 1]) == [1]
    fleet.close()


def test_nothing_is_sent_where_the_ledger_cannot_be_written(served, tmp_path):
    fleet = muster(served, tmp_path)
    fleet.wait_for_quarantine(lambda _left: None)
    with fleet.pool.ledger._transaction() as write:
        full = "CREATE TRIGGER full BEFORE INSERT ON memory BEGIN SELECT RAISE(FAIL, 'x'); END"
        write.execute(full)
    with pytest.raises(LedgerError, match="nothing is sent"):
        fleet.run(4, lambda _done, _all: None)
    assert served.received == []
    fleet.close()
