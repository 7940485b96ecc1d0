"""A device over real HTTP, on a clock that jumps."""

import itertools

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.fixes import RecordedFixes, StandingStill
from retrasyn.client.loop import Loop
from retrasyn.client.rounds import RoundFollower
from retrasyn.device import MemoryStore, Reporter, SQLiteStore
from retrasyn.device.signatures import verify_ed25519
from retrasyn.errors import ConsentError, ServerError
from retrasyn.messages import ENTERING, MOVING, QUITTING, Ack
from retrasyn.wire import encode_ack
from retrasyn.wire.keys import CuratorKeys
from retrasyn.wire.statuses import STATUSES
from support.campaigns import EPOCH
from support.plain_curator import JumpingClock, PlainCurator, serving, small_campaign


@pytest.fixture
def clock():
    return JumpingClock(wall=EPOCH * 1000.0)


@pytest.fixture
def served(clock):
    with serving(PlainCurator(small_campaign(), now=lambda: clock.wall / 1000)) as curator:
        yield curator


OPEN: list[CuratorClient] = []


@pytest.fixture(autouse=True)
def _close_all():
    yield
    while OPEN:
        OPEN.pop().close()


def reach(curator):
    OPEN.append(CuratorClient(curator.url))
    return OPEN[-1]


def join(curator, clock, folder=None, fixes=None):
    """Enrol a device and return its loop; its ledger is on disk if there is a folder for it."""
    server = reach(curator)
    store = MemoryStore() if folder is None else SQLiteStore(folder / "ledger")
    (who,) = server.enrol([curator.token()], agreement=curator.pair[1], manifest=curator.id)
    reporter = Reporter(
        who.device, who.key, store, verify_ed25519, curator=CuratorKeys(curator.public)
    )
    manifest = reporter.pin(server.campaign(), clock.now())
    place = fixes or StandingStill((1.0, 1.0))
    return Loop(server, reporter, manifest, curator.id, place, clock)


def again(loop, folder):
    """Return the same device after a restart."""
    loop.reporter._cache.store.close()
    old = loop.reporter
    store = SQLiteStore(folder / "ledger")
    reporter = Reporter(old.device, old.key, store, verify_ed25519, curator=old.curator)
    return Loop(loop.server, reporter, loop.manifest, loop.id, loop.fixes, loop.clock)


def test_a_device_is_silent_in_quarantine_and_then_reports_once_per_gap(served, clock):
    told = list(join(served, clock).run(30))
    assert [one.words for one in told[:3]] == [
        f"quarantine (there was no ledger), rounds left: {left}" for left in (3, 2, 1)
    ]
    reports = sorted(t for t, _ in served.reports())
    assert [one.t for one in told if one.sent] == reports
    assert {b - a for a, b in itertools.pairwise(reports)} == {3}
    assert len(reports) in (9, 10)


def test_heartbeats_are_counted_while_the_owner_shares_and_say_no_more(served, clock):
    list(join(served, clock).run(6))
    assert sorted(t for t, _ in served.heartbeats()) == [0, 1, 2, 3, 4, 5]
    assert set(served.heartbeats().values()) == {MOVING}


def test_flags_say_who_starts_and_stops(served, clock):
    served.change(presence="flags", strata=("move", "enter", "quit"))
    list(join(served, clock).run(4))
    kinds = [kind for _, kind in sorted(served.heartbeats().items())]
    assert kinds == [ENTERING, MOVING, MOVING, MOVING, QUITTING]


def test_hidden_presence_sends_no_heartbeat(served, clock):
    served.change(presence="hidden", size_source="estimated")
    list(join(served, clock).run(9))
    assert not served.heartbeats()
    assert len(served.reports()) in (2, 3)


def test_with_hidden_presence_a_device_reports_on_after_its_owner_stopped_to_share(served, clock):
    served.change(presence="hidden", size_source="estimated")
    loop = join(served, clock, fixes=RecordedFixes([(1.0, 1.0)] * 4))
    told = list(loop.run(30))
    reports = sorted(t for t, _ in served.reports())
    assert len(told) == 31
    assert len(reports) in (9, 10)
    assert {b - a for a, b in itertools.pairwise(reports)} == {3}


@pytest.mark.parametrize("fault", ["busy", "deaf", "forgetful"])
def test_whatever_is_not_answered_is_sent_again_as_it_was_and_counts_once(served, clock, fault):
    loop = join(served, clock)
    served.faults = [fault] * 7
    told = list(loop.run(12))
    sent = [one for one in told if one.sent]
    assert sent
    assert len(served.reports()) == len(sent)
    assert len(served.heartbeats()) >= 11
    assert all(one.words in ("reported, accepted", "reported, duplicate") for one in sent)


def test_a_device_that_dies_between_two_steps_never_reports_twice(served, clock, tmp_path):
    loop, deaths = join(served, clock, tmp_path), [2, 5, 3, 7, 1, 4, 9, 2, 6, 3, 8, 5] * 2
    for n_waits in deaths:
        left = [n_waits]

        def die(_wall, left=left):
            left[0] -= 1
            return left[0] > 0

        clock.hook = die
        list(loop.run())
        clock.hook = lambda _wall: True
        loop = again(loop, tmp_path)
    frames = {}
    for frame in served.received:
        frames.setdefault((frame[1] >= 64, frame[4:8] if frame[1] < 64 else frame[2:6]), set()).add(
            frame
        )
    assert all(len(same) == 1 for (beat, _), same in frames.items() if not beat)
    assert len(served.reports()) == sum(not beat for beat, _ in frames)


def test_without_a_fix_the_report_is_null_and_comes_all_the_same(served, clock):
    served.change(oracle="grr", epsilon=40_000_000, lifetime_cap=10**12)
    list(join(served, clock, fixes=RecordedFixes([None] * 12)).run())
    bits = [frame[36:-16] for frame in served.reports().values()]
    assert bits
    assert {int.from_bytes(symbol, "little") for symbol in bits} == {served.manifest.n_states}


def test_a_place_is_told_through_the_noise_only(served, clock):
    served.change(oracle="grr", epsilon=40_000_000, lifetime_cap=10**12)
    list(join(served, clock, fixes=StandingStill((1.0, 1.0))).run(12))
    moves = (3 * served.manifest.side - 2) ** 2
    symbols = {int.from_bytes(f[36:-16], "little") for f in served.reports().values()}
    assert symbols <= {0, moves + 9}  # stays in the first cell; in the last round it may quit there


def test_drawn_rounds_are_answered_by_those_they_are_meant_for(served, clock):
    served.change(sampling="curator")
    served.meant = lambda _device: False
    told = list(join(served, clock).run(8))
    assert not served.reports()
    assert told[5].words == "not for this device"


def test_a_changed_campaign_ends_the_loop_until_the_owner_agrees(served, clock):
    loop = join(served, clock)
    running = loop.run()
    next(running)
    served.change(epsilon=2_000_000)
    with pytest.raises(ConsentError, match="retrasyn device accept"):
        list(running)
    assert not served.reports()


def test_a_device_the_curator_forgot_is_quarantined_and_told_to_enrol(served, clock):
    loop = join(served, clock)
    served.devices.clear()
    with pytest.raises(ServerError, match="enrol again"):
        list(loop.run(3))
    status = loop.reporter.status(clock.now())
    assert status.quarantine == "the curator does not know this device"
    assert status.rounds_left == 3


def forger(status, proof):
    """Return answers of somebody who does not have the device's key."""
    return lambda _frame: encode_ack(Ack(status=status, proof=proof))


@pytest.mark.parametrize("n_proof", [16, 64])
@pytest.mark.parametrize("status", STATUSES)
def test_a_forged_acknowledgement_changes_nothing(served, clock, status, n_proof):
    """Each is as good as a lost one: the same bytes are sent again until the curator answers."""
    loop = join(served, clock)
    list(loop.run(4))
    heard, memory = len(served.received), loop.reporter._cache.remember(clock.now())
    served.forge, lies = forger(status, bytes(n_proof)), []

    def stop_lying(_wall):
        lies.append(len(served.received))
        if len(lies) > 6:
            served.forge = None
        return True

    clock.hook = stop_lying
    words = {one.words for one in loop.run(5) if one.sent}
    assert words
    assert words <= {f"reported, {how}" for how in ("accepted", "duplicate", "nobody answered")}
    assert reports_of(served, heard) == reports_counted(served, heard), "each counted, and once"
    assert loop.reporter._cache.remember(clock.now()).quarantine == memory.quarantine


def reports_of(served, first=0):
    """Return the reports that were sent: all the different bytes of each round."""
    found = {}
    for frame in served.received[first:]:
        if frame[1] < 64:
            found.setdefault(frame[4:8], set()).add(frame)
    return found


def reports_counted(served, first=0):
    """Return the reports that count among those, in the same form."""
    rounds = reports_of(served, first)
    frames = served.reports().values()
    return {frame[4:8]: {frame} for frame in frames if frame[4:8] in rounds}


def test_a_forger_who_never_stops_gains_no_more_than_one_who_cuts_the_wire(served, clock, caplog):
    loop = join(served, clock)
    list(loop.run(3))
    served.forge = forger("accepted", bytes(16))
    heard = len(served.received)
    assert {one.words for one in loop.run(3) if one.sent} == {"reported, nobody answered"}
    assert "cannot prove to be the curator" in caplog.text
    assert reports_of(served, heard) == reports_counted(served, heard)
    assert len([frame for frame in served.received[heard:] if frame[1] < 64]) > 1  # tried again


def test_an_acknowledgement_is_of_no_use_for_another_frame(served, clock):
    """A recorded answer to one report does not settle the next one."""
    loop = join(served, clock)
    list(loop.run(4))
    kept = {}
    genuine = PlainCurator.ack
    served.ack = lambda frame, status: kept.setdefault(
        frame[1] < 64, genuine(served, frame, status)
    )
    told = list(loop.run(7))
    words = [one.words for one in told if one.sent]
    assert words[0] in ("reported, accepted", "reported, duplicate")
    assert set(words[1:]) == {"reported, nobody answered"}


def test_a_changed_campaign_that_the_curator_did_not_sign_ends_nothing(served, clock):
    loop = join(served, clock)
    running = loop.run(5)
    next(running)
    thief = PlainCurator(small_campaign(name="thief"), now=served.now)
    genuine, served.current = served.current, thief.current
    clock.hook = lambda _wall: setattr(served, "current", genuine) or True
    assert len(list(running)) >= 4


def test_a_device_follows_the_curators_new_key_and_keeps_it(served, clock):
    kept = []
    loop = join(served, clock)
    loop.keep = kept.append
    first, running = served.public, loop.run(12)
    for _ in range(4):
        next(running)
    until = int(clock.wall / 1000) + 1000
    served.rotate(until=until)
    list(running)
    assert kept == [CuratorKeys(served.public, first, until)]
    assert len(served.reports()) in (3, 4)


def test_a_device_never_follows_a_key_that_its_own_did_not_sign(served, clock, caplog):
    loop, kept = join(served, clock), []
    loop.keep = kept.append
    list(loop.run(4))
    counted, first = len(served.reports()), served.public
    served.rotate(until=2**40, signer=Ed25519PrivateKey.generate())
    told = list(loop.run(6))
    assert {one.words for one in told} == {"the round is not signed by the curator's key"}
    assert "not signed by the one before" in caplog.text
    assert (kept, loop.reporter.curator) == ([], CuratorKeys(first))
    assert len(served.reports()) == counted


def test_a_curator_ahead_of_our_clock_is_not_believed(served, clock, caplog):
    loop = join(served, clock)
    served.now = lambda: clock.wall / 1000 + 1000
    clock.end = clock.wall + 5_000
    assert list(loop.run()) == []
    assert "set the clock" in caplog.text


def test_no_log_holds_what_must_not_leave_a_device(served, clock, caplog):
    caplog.set_level("DEBUG")
    loop = join(served, clock, fixes=StandingStill((1.23456, 2.34567)))
    list(loop.run(9))
    loop.server.leave(loop.reporter.device, b"tag")
    for secret in ("1.23456", "2.34567", loop.reporter.device.hex(), loop.reporter.key.hex()):
        assert secret not in caplog.text


def test_rounds_before_the_epoch_are_waited_for(served, clock):
    clock.wall -= 25_000
    server = reach(served)
    opened = RoundFollower(server, served.manifest, served.id, clock, lambda *_: True).after(-1)
    assert opened is not None
    assert opened.t == 0
    assert clock.wall >= EPOCH * 1000
