"""Rounds on an injected clock: nothing waits, and nothing breaks them."""

import asyncio
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from retrasyn.device import Answer, Refusal
from retrasyn.device.signatures import verify_ed25519
from retrasyn.errors import CheckpointError, StoreError
from retrasyn.mobility.model import MobilityModel
from retrasyn.receipts.files import open_receipt
from retrasyn.receipts.verify import verify
from retrasyn.service.opening import EVERYBODY
from retrasyn.service.service import Service
from retrasyn.simulation.city import CITY_BOX
from retrasyn.wire import decode_round, round_hash
from retrasyn.wire.canonical import signed_part, unseal
from retrasyn.wire.frames import tag_of
from support.crowd import START, Crowd, SetClock, finish, play, settings_in
from support.enrolling import enrolled
from support.public_maps import settings_for

pytestmark = pytest.mark.system

METHODS = ["steered", "steered-flags", "steered-hidden", "retrasyn-p", "retrasyn-b", "noeq-p"]
METHODS += ["steered-map", "steered-roads"]
HOUR = 3600


async def start(folder, **changes):
    changes |= settings_for(changes.get("method", "steered"), CITY_BOX, folder.parent)
    service = Service(settings_in(folder, **changes), SetClock())
    await service.start(runs=False)
    return service


async def go_to(service, t):
    manifest = service.runtime.campaign.manifest
    service.clock.time = manifest.epoch + t * manifest.period
    await service.scheduler.tick()


def check_sound(service):
    """Look at everything that was released: no NaN, rows that sum to 1, receipts that verify."""
    curator = service.runtime.state.recorded.curator
    released = curator.state.memory.released
    model = MobilityModel.from_frequencies(released, curator.states)
    rows = model.move.sum(axis=1) + model.quit_hazard
    assert np.all((rows == 0) | (np.abs(rows - 1) < 1e-9))  # zero: nobody was ever seen there
    assert released is None or (np.isfinite(released).all() and released.min() >= 0)
    assert released is None or released.sum() == pytest.approx(1.0)
    x0, y0, x1, y1 = service.runtime.campaign.grid.box
    for t in service.runtime.releases.timestamps:
        points = service.runtime.releases.points_at(t)
        assert ((points.x >= x0) & (points.x <= x1)).all()
        assert ((points.y >= y0) & (points.y <= y1)).all()
        path = service.runtime.releases.path(t)
        checks = verify(open_receipt(path.with_name(path.name + ".receipt.json")), data=path)
        assert not [str(check) for check in checks if check.verdict == "FAIL"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grid", [1, 3])
def test_nobody_at_all_does_no_harm(method, grid, tmp_path):
    async def run():
        service = await start(tmp_path / "service", method=method, grid=grid)
        for t in range(6):
            await go_to(service, t + 0.3)
        await service.stop()
        return service

    service = asyncio.run(run())
    assert service.runtime.releases.timestamps == [0, 1, 2, 3, 4]
    assert all(s["n_points"] == 0 for s in service.runtime.releases.summaries(None, None, 9))
    assert not any(map(service.runtime.releases.n_points, range(5)))
    check_sound(service)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grid", [1, 2])
def test_all_quit_all_come_back_and_some_rounds_stay_empty(method, grid, tmp_path):
    async def run():
        service = await start(tmp_path / "service", method=method, grid=grid, window=2)
        crowd = await Crowd.enrol(service, 20, rounds=16, share=1.0)
        for person in crowd.people:
            for t in (5, 6, 7, 11):
                person.walk.pop(t, None)
        await play(service, crowd, 16)
        await finish(service)
        await service.stop()
        return service

    service = asyncio.run(run())
    sizes = [s["n_points"] for s in service.runtime.releases.summaries(None, None, 99)]
    assert len(sizes) == 16
    if service.runtime.campaign.manifest.presence != "hidden" and method != "noeq-p":
        assert [sizes[t] for t in (4, 5, 7, 8, 11, 12)] == [20, 0, 0, 20, 0, 20]
    check_sound(service)


@pytest.mark.parametrize("method", METHODS)
def test_present_people_without_a_single_report_do_no_harm(method, tmp_path):
    async def run():
        service = await start(tmp_path / "service", method=method)
        crowd = await Crowd.enrol(service, 10, rounds=6, share=1.0)
        manifest = service.runtime.campaign.manifest
        for t in range(6):
            await go_to(service, t + 0.2)
            frames = crowd.frames_at(service.runtime.current_round())
            await service.runtime.write_queue.submit([frame for frame in frames if frame[1] >= 64])
        await finish(service)
        await service.stop()
        return service, manifest

    service, manifest = asyncio.run(run())
    sizes = [s["n_points"] for s in service.runtime.releases.summaries(None, None, 99)]
    assert sizes == [0 if manifest.presence == "hidden" else 10] * 6
    check_sound(service)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_clock_that_jumps_an_hour_breaks_nothing(method, jump, tmp_path):
    async def run():
        service = await start(tmp_path / "service", method=method, period=60)
        crowd = await Crowd.enrol(service, 10, rounds=100)
        await play(service, crowd, 3)
        before = service.runtime.calendar.newest
        service.clock.time += jump
        await service.scheduler.tick()
        await service.runtime.write_queue.submit([b"", b"\x01" * 46, *crowd.sent[2]])
        after = service.runtime.calendar.newest
        service.clock.time -= jump
        await service.scheduler.tick()
        service.clock.time += HOUR + 60
        await service.scheduler.tick()
        last = service.runtime.calendar.newest
        await service.stop()
        return service, before, after, last

    service, before, after, last = asyncio.run(run())
    assert before == 2
    assert after == (2 if jump < 0 else 62)
    assert last == 63
    check_sound(service)


def test_rounds_are_signed_and_chained_and_devices_accept_them(tmp_path):
    async def run():
        service = await start(tmp_path / "service")
        texts = []
        for t in range(5):
            await go_to(service, t + 0.3)
            text, signature = unseal(service.runtime.current_round())
            key = service.runtime.campaign.manifest.key
            assert verify_ed25519(key, signed_part("round", text), signature)
            assert service.runtime.calendar.row(t).envelope == service.runtime.current_round()
            texts.append(text)
        await service.stop()
        return service, texts

    service, texts = asyncio.run(run())
    previous = round_hash(service.runtime.campaign.text)
    for t, text in enumerate(texts):
        asked = decode_round(text)
        assert (asked.t, asked.previous) == (t, previous)
        assert asked.open == service.runtime.campaign.manifest.epoch + 10 * t
        assert asked.close == asked.open + 10
        previous = round_hash(text)


def test_a_round_is_open_from_its_opening_to_its_close_and_counts_until_its_grace_is_over(tmp_path):
    async def run():
        service = await start(tmp_path / "service", period=20, close_after=10, grace=5)
        crowd = await Crowd.enrol(service, 8, rounds=9, share=1.0)
        assert service.runtime.current_round() is None
        assert (
            service.runtime.seconds_to_next_round()
            == service.runtime.campaign.manifest.epoch - START
        )
        await go_to(service, 0.1)
        one, two, three = np.array_split(
            np.array(crowd.frames_at(service.runtime.current_round()), "O"), 3
        )
        statuses = [await service.runtime.write_queue.submit(list(one))]
        await go_to(service, 0.6)
        assert service.runtime.current_round() is None
        statuses.append(await service.runtime.write_queue.submit(list(two)))
        assert not service.runtime.releases.timestamps
        await go_to(service, 0.75)
        statuses.append(await service.runtime.write_queue.submit(list(three)))
        assert service.runtime.releases.timestamps == [0]
        await service.stop()
        return [set(some) for some in statuses]

    assert asyncio.run(run()) == [{"accepted"}, {"accepted"}, {"late"}]


def test_what_a_round_asks_is_recorded_when_it_opens_and_stays_within_epsilon(tmp_path):
    async def run():
        service = await start(tmp_path / "service", method="retrasyn-b", window=4, grace=25)
        crowd = await Crowd.enrol(service, 10, rounds=15)
        await play(service, crowd, 15)
        waiting = len(service.runtime.calendar.waiting)
        asked = [service.runtime.calendar.row(t).epsilon for t in range(15)]
        await finish(service)
        rows = service.runtime.releases.summaries(0, 14, 99)
        await service.stop()
        return service, waiting, asked, rows

    service, waiting, asked, rows = asyncio.run(run())
    assert waiting == 4  # opened while three others were not folded yet
    for t in range(15):
        assert sum(asked[t : t + 5]) <= service.runtime.campaign.manifest.epsilon
    assert [round(row["epsilon"] * 1e6) for row in rows] == asked
    assert min(asked) > 0


def test_a_round_that_asks_nothing_says_so_and_nobody_reports(tmp_path):
    async def run():
        service = await start(tmp_path / "service", method="sample-p", window=2)
        crowd = await Crowd.enrol(service, 12, rounds=7, share=1.0)
        await play(service, crowd, 7)
        await finish(service)
        await service.stop()
        return service

    service = asyncio.run(run())
    rounds = [decode_round(unseal(service.runtime.calendar.row(t).envelope)[0]) for t in range(7)]
    assert [asked.portion for asked in rounds] == [EVERYBODY, 0, 0] * 2 + [EVERYBODY]
    counts = [row["n_reports"] for row in service.runtime.releases.summaries(None, None, 9)]
    assert counts == [12, 0, 0, 12, 0, 0, 12]


def test_drawn_devices_are_told_and_others_are_not_counted(tmp_path):
    async def run():
        service = await start(tmp_path / "service", method="uniform-p", sampling="curator")
        crowd = await Crowd.enrol(service, 20, rounds=9, share=1.0)
        ids = b"".join(person.device for person in crowd.people)
        meant = []
        for t in range(8):
            await go_to(service, t + 0.2)
            meant.append(service.runtime.asked(t, ids))
            await service.runtime.write_queue.submit(
                crowd.frames_at(service.runtime.current_round())
            )
        strangers = service.runtime.asked(7, bytes(32)), service.runtime.asked(99, ids)
        await finish(service)
        await service.stop()
        return service, meant, strangers

    service, meant, strangers = asyncio.run(run())
    assert strangers == (bytes(2), bytes(20))
    counts = [row["n_reports"] for row in service.runtime.releases.summaries(None, None, 9)]
    assert counts == [sum(row) for row in meant]
    assert counts[0] == 5  # one in a gap of four
    for place in range(20):
        rounds = [t for t in range(8) if meant[t][place]]
        assert all(b - a >= 4 for a, b in pairwise(rounds))


def test_no_raw_report_is_left_in_the_store_once_its_round_is_folded(tmp_path):
    async def run():
        service = await start(tmp_path / "service", grid=6, method="steered-length")
        # One in four has its slot now, by chance; that three or fewer of 120 do never happens.
        crowd = await Crowd.enrol(service, 120, rounds=3, share=1.0)
        await go_to(service, 0.2)
        frames = [f for f in crowd.frames_at(service.runtime.current_round()) if f[1] < 64]
        await service.runtime.write_queue.submit(frames)
        bits = [frame[36:-16] for frame in frames]
        before = kept_in(tmp_path / "service")
        await go_to(service, 1.2)
        after = kept_in(tmp_path / "service")
        await service.stop()
        return bits, before, after, kept_in(tmp_path / "service")

    bits, before, after, later = asyncio.run(run())
    assert len(bits) > 3
    assert all(b in before for b in bits)
    assert not any(b in after or b in later for b in bits)


def kept_in(folder):
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_store_that_fails_while_folding_is_tried_again_with_the_same_sums(tmp_path):
    async def run():
        service = await start(tmp_path / "service")
        crowd = await Crowd.enrol(service, 10, rounds=5)
        await play(service, crowd, 2)
        fold, seen = service.runtime.store.fold, []

        def fails(row, **options):
            seen.append(row)
            if len(seen) < 3:
                raise StoreError("no room")
            return fold(row, **options)

        closing = service.scheduler.closing
        service.runtime.store = Failing(service.runtime.store, fails)
        await enrolled(service.runtime, 3)
        for _ in range(3):
            await service.scheduler._works("fold", fold_at(closing, service))
        service.clock.time += 10
        for _ in range(3):
            await service.scheduler._works("fold", fold_at(closing, service))
        await service.stop()
        return service, seen

    service, seen = asyncio.run(run())
    assert seen[0] == seen[1] == seen[2]
    assert service.counters.failures == 2
    assert service.runtime.releases.timestamps == [0, 1]
    assert service.runtime.troubles == {}


def fold_at(closing, service):
    async def act(_):
        await closing.fold_due(service.clock.now())

    service.clock.sleep_until = at_once
    return act


async def at_once(_):
    return


class Failing:
    """A store whose fold is another."""

    def __init__(self, store, fold):
        self._store, self.fold = store, fold

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_trouble_makes_the_service_unready_and_is_told_to_the_operator(tmp_path):
    async def run():
        service = await start(tmp_path / "service")
        assert service.runtime.ready
        service.runtime.troubles["fold"] = "no room on /somewhere"
        told = service.runtime.status(), service.runtime.operator_status()
        service.runtime.troubles.clear()
        await service.stop()
        return service, told

    service, (public, private) = asyncio.run(run())
    assert not public["ready"]
    assert "somewhere" not in str(public)
    assert private["troubles"] == {"fold": "no room on /somewhere"}
    assert not service.runtime.ready
    assert service.runtime.reason == "the service is not running"


def test_devices_accept_the_services_manifest_and_rounds_and_refuse_a_changed_round(tmp_path):
    async def run():
        service = await start(tmp_path / "service", method="steered-length", window=1)
        crowd = await Crowd.enrol(service, 1, rounds=9, share=1.0)
        (person,) = crowd.people
        answers = []
        for t in range(4):
            await go_to(service, t + 0.2)
            envelope = service.runtime.current_round()
            now = crowd.instant(t + 0.2)
            person.tracker.observe(t, person.walk[t], boot=now.boot)
            forged = envelope.replace(b'"t":', b'"t":1', 1)
            refusal = person.reporter.answer(forged, now, person.tracker)
            assert isinstance(refusal, Refusal)
            assert refusal.rule == 1
            answers.append(person.reporter.answer(envelope, now, person.tracker))
        await service.stop()
        return answers

    answers = asyncio.run(run())
    assert sum(isinstance(answer, Answer) for answer in answers) == 2


def test_leaving_needs_the_devices_own_tag_and_revoking_only_its_name(tmp_path):
    async def run():
        service = await start(tmp_path / "service")
        one, two = await enrolled(service.runtime, 2)
        told = signed_part("leave", one.device)
        outcomes = [
            await service.runtime.devices.leave(one.device, bytes(16)),
            await service.runtime.devices.leave(one.device, tag_of(two.key, told)),
            await service.runtime.devices.leave(bytes(16), tag_of(one.key, told)),
            await service.runtime.devices.leave(one.device, tag_of(one.key, told)),
            await service.runtime.devices.leave(one.device, tag_of(one.key, told)),
            await service.runtime.devices.revoke(two.device),
            await service.runtime.devices.revoke(two.device),
        ]
        n = service.runtime.devices.n, service.runtime.devices.n_ever
        await service.stop()
        again = Service(service.settings, service.clock)
        await again.start(runs=False)
        kept = again.runtime.devices.n, again.runtime.devices.n_ever
        await again.stop()
        return outcomes, n, kept

    outcomes, n, kept = asyncio.run(run())
    assert [bool(outcome) for outcome in outcomes] == [False] * 3 + [True, False, True, False]
    assert n == kept == (0, 2)


def test_positions_that_are_none_far_away_or_no_numbers_do_no_harm(tmp_path):
    odd = [(np.nan, 1.0), (np.inf, -np.inf), (1e300, 5.0), (-7.0, 3.0), (10.0, 10.0), (0.0, 0.0)]

    async def run():
        service = await start(tmp_path / "service", method="steered-length", window=1)
        crowd = await Crowd.enrol(service, 12, rounds=8, share=1.0)
        for place, person in enumerate(crowd.people):
            for t in person.walk:
                person.walk[t] = odd[(place + t) % len(odd)]
        statuses = await play(service, crowd, 8)
        await finish(service)
        await service.stop()
        return service, statuses

    service, statuses = asyncio.run(run())
    assert set(statuses) == {"accepted"}
    assert [s["n_points"] for s in service.runtime.releases.summaries(None, None, 9)] == [12] * 8
    check_sound(service)


def test_a_stop_waits_for_the_step_of_the_curator(tmp_path):
    async def run():
        clock = SetClock()
        service = Service(settings_in(tmp_path / "service"), clock)
        await service.start()
        crowd = await Crowd.enrol(service, 10, rounds=3)
        manifest, runtime = service.runtime.campaign.manifest, service.runtime
        clock.time = manifest.epoch + 2.0
        while service.runtime.current_round() is None:  # noqa: ASYNC110 - it is another task's
            await asyncio.sleep(0.001)
        await service.runtime.write_queue.submit(crowd.frames_at(service.runtime.current_round()))
        step, begun = runtime.state.step, threading.Event()

        def slow(round_):
            begun.set()
            time.sleep(0.2)
            return step(round_)

        runtime.state = Slow(runtime.state, slow)
        clock.time += manifest.period
        await asyncio.to_thread(begun.wait, 20)
        await service.stop()
        return service

    service = asyncio.run(asyncio.wait_for(run(), 60))
    assert service.runtime.releases.timestamps == [0]
    assert service.counters.snapshots_saved == 1


class Slow:
    """A campaign state whose step is another."""

    def __init__(self, state, step):
        self._state, self.step = state, step

    def __getattr__(self, name):
        return getattr(self._state, name)


def test_a_step_that_fails_is_not_gone_on_from_and_a_restart_makes_it_good(tmp_path):
    def fails(_):
        raise ZeroDivisionError

    async def run():
        service = await start(tmp_path / "service")
        crowd = await Crowd.enrol(service, 10, rounds=9)
        await play(service, crowd, 3)
        service.runtime.state = Slow(service.runtime.state, fails)
        service.clock.time += 10
        with pytest.raises(ZeroDivisionError):
            await service.scheduler.fold_due()
        with pytest.raises(CheckpointError, match="restart the service"):
            await service.scheduler.fold_due()
        assert service.runtime.releases.timestamps == [0, 1]
        await service.stop()
        again = Service(service.settings, service.clock)
        await again.start(runs=False)
        await again.stop()
        return again

    service = asyncio.run(run())
    assert service.runtime.releases.timestamps == [0, 1, 2]
    check_sound(service)
