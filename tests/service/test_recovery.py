"""Stopped or killed anywhere, the service goes on as if nothing had happened."""

import asyncio
import random
import shutil

import numpy as np
import pytest

from retrasyn.errors import StoreError
from retrasyn.messages import Report
from retrasyn.methods import METHODS as METHODS_BY_NAME
from retrasyn.service.admission.open_rounds import OpenRounds
from retrasyn.service.service import Service
from retrasyn.service.write_queue import Busy
from retrasyn.simulation.city import CITY_BOX
from retrasyn.wire import encode_report
from support.crowd import Crowd, SetClock, finish, play, settings_in
from support.enrolling import enrolled
from support.public_maps import settings_for

pytestmark = pytest.mark.system

ROUNDS = 9
METHODS = ["steered", "steered-roads", "steered-flags", "steered-hidden", "retrasyn-b"]


async def crash(service):
    """End a service as a kill would: nothing is saved, nothing is finished."""
    service.runtime.write_queue._thread.shutdown(wait=True)
    service.runtime.store.close()
    service._secrets.close()


async def start(folder, **changes):
    service = Service(settings_in(folder, **changes), SetClock())
    await service.start(runs=False)
    return service


def released(service_or_folder):
    """Return every file of the releases by name."""
    return {
        str(path.relative_to(service_or_folder)): path.read_bytes()
        for path in sorted(service_or_folder.rglob("releases/**/*"))
        if path.is_file()
    }


@pytest.fixture(scope="module", params=METHODS)
def unbroken(request, tmp_path_factory):
    """Run a campaign without a break; keep its beginning and all that was sent."""
    whole = tmp_path_factory.mktemp("whole") / "service"
    begun = whole.with_name("begun")
    # So few that sums wait in most rounds.
    changes = {"method": request.param, "replicates": 2, "fewest": 30}
    changes |= settings_for(request.param, CITY_BOX, whole.parent)

    async def run():
        service = await start(whole, **changes)
        crowd = await Crowd.enrol(service, 25, rounds=ROUNDS, seed=5)
        await service.stop()
        shutil.copytree(whole, begun)
        service = await start(whole, **changes)
        crowd.service = service
        await play(service, crowd, ROUNDS)
        await finish(service)
        await service.stop()
        return crowd.sent

    sent = asyncio.run(run())
    return begun, released(whole), sent, changes


async def replay(folder, sent, changes, *, breaks, mend=None):
    """Send the same frames again, breaking off in some rounds, before or after the reports."""
    service = await start(folder, **changes)
    manifest = service.runtime.campaign.manifest
    for t in range(ROUNDS):
        for part, half in enumerate((sent[t][::2], sent[t][1::2])):
            time = manifest.epoch + (t + 0.2 + part / 10) * manifest.period
            if (t, part) in breaks:
                await breaks[t, part](service)
                if mend is not None:
                    mend(folder)
                service = Service(settings_in(folder, **changes), SetClock(time))
                await service.start(runs=False)
            service.clock.time = time
            await service.scheduler.tick()
            assert set(await service.runtime.write_queue.submit(half)) <= {"accepted"}
            assert set(await service.runtime.write_queue.submit(half)) <= {"duplicate"}
    await finish(service)
    await service.stop()
    return service


async def stop(service):
    await service.stop()


@pytest.mark.parametrize("how", [stop, crash])
@pytest.mark.parametrize("rounds", [[0, 5], range(ROUNDS)], ids=str)
def test_the_same_releases_come_whenever_the_service_is_broken_off(unbroken, how, rounds, tmp_path):
    begun, files, sent, changes = unbroken
    shutil.copytree(begun, tmp_path / "service")
    breaks = {(t, t % 2): how for t in rounds}
    asyncio.run(replay(tmp_path / "service", sent, changes, breaks=breaks))
    assert released(tmp_path / "service") == files
    knows_errors = METHODS_BY_NAME[changes["method"]].mechanism.knows_errors
    assert len(files) == (4 if knows_errors else 3) * ROUNDS  # replicas are one of them


def no_snapshots(folder):
    for path in folder.rglob("snapshots/*/*.npz"):
        path.unlink()


def damaged_snapshots(folder):
    for path in folder.rglob("snapshots/*/*.npz"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def newest_damaged(folder):
    newest = max(folder.rglob("snapshots/*/*.npz"), default=None)
    if newest is not None:
        newest.write_bytes(newest.read_bytes()[:100])


def no_snapshots_and_no_releases(folder):
    no_snapshots(folder)
    for path in folder.rglob("releases/**/*"):
        if path.is_file():
            path.unlink()


def newest_replicas_lost(folder):
    """Leave a release whose replicas were not written yet, as the disk may after a power cut."""
    saved = max((int(path.stem) for path in folder.rglob("snapshots/*/*.npz")), default=-1)
    newest = max(folder.rglob("replicas/*.parquet"), default=None)
    if newest is not None and int(newest.stem) > saved:
        newest.unlink()


def newest_release_lost(folder):
    """Leave what a kill between the receipt and its release would."""
    saved = max((int(path.stem) for path in folder.rglob("snapshots/*/*.npz")), default=-1)
    newest = max(folder.rglob("releases/*/*.parquet"), default=None)
    if newest is not None and int(newest.stem) > saved:
        newest.unlink()


@pytest.mark.parametrize(
    "mend",
    [
        no_snapshots,
        damaged_snapshots,
        newest_damaged,
        no_snapshots_and_no_releases,
        newest_release_lost,
        newest_replicas_lost,
    ],
)
def test_lost_or_damaged_files_that_follow_from_others_are_made_again(unbroken, mend, tmp_path):
    begun, files, sent, changes = unbroken
    shutil.copytree(begun, tmp_path / "service")
    breaks = {(3, 1): crash, (7, 0): stop, (8, 1): crash}
    asyncio.run(replay(tmp_path / "service", sent, changes, breaks=breaks, mend=mend))
    assert released(tmp_path / "service") == files


@pytest.mark.long
@pytest.mark.parametrize("number", range(50))
def test_any_plan_of_breaks_and_losses_gives_the_same_releases(unbroken, number, tmp_path):
    begun, files, sent, changes = unbroken
    shutil.copytree(begun, tmp_path / "service")
    dice = random.Random(number)
    places = [(t, part) for t in range(ROUNDS) for part in (0, 1)]
    breaks = {place: dice.choice([stop, crash]) for place in places if dice.random() < 0.4}
    losses = [no_snapshots, damaged_snapshots, newest_damaged]
    losses += [newest_release_lost, newest_replicas_lost]

    def mend(folder):
        if dice.random() < 0.5:
            dice.choice(losses)(folder)

    asyncio.run(replay(tmp_path / "service", sent, changes, breaks=breaks, mend=mend))
    assert released(tmp_path / "service") == files


def test_a_snapshot_ahead_of_a_store_put_back_from_a_copy_is_passed_over(unbroken, tmp_path):
    begun, _, sent, changes = unbroken
    folder, copy = tmp_path / "service", tmp_path / "copy.sqlite"
    shutil.copytree(begun, folder)

    async def run():
        service = await start(folder, **changes)
        manifest = service.runtime.campaign.manifest
        for t in range(9):
            service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
            await service.scheduler.tick()
            await service.runtime.write_queue.submit(sent[t])
            if t == 3:
                await service.stop()
                shutil.copy(folder / "service.sqlite", copy)
                service = Service(settings_in(folder, **changes), service.clock)
                await service.start(runs=False)
        await service.stop()
        shutil.copy(copy, folder / "service.sqlite")
        service = Service(settings_in(folder, **changes), service.clock)
        await service.start(runs=False)
        assert service.runtime.state.last == 2  # round 3 was open when it was copied
        await service.scheduler.tick()
        assert service.runtime.state.last == 3
        await service.stop()

    asyncio.run(run())


def test_a_round_that_never_opened_is_stepped_over_the_same_way_again(unbroken, tmp_path):
    begun, _, sent, changes = unbroken
    gap = 4

    async def run(folder, *, breaks):
        shutil.copytree(begun, folder)
        service = await start(folder, **changes)
        manifest = service.runtime.campaign.manifest
        for t in (0, 1, 2, 2 + gap + 3, 2 + gap + 4):
            service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
            await service.scheduler.tick()
            await service.runtime.write_queue.submit(sent[t] if t < ROUNDS else [])
            if breaks:
                clock = service.clock
                await crash(service)
                no_snapshots(folder)
                service = Service(settings_in(folder, **changes), clock)
                await service.start(runs=False)
        await finish(service)
        await service.stop()
        return service

    service = asyncio.run(run(tmp_path / "one", breaks=False))
    asyncio.run(run(tmp_path / "other", breaks=True))
    assert released(tmp_path / "one") == released(tmp_path / "other")
    assert service.counters.rounds_missed == gap + 2
    written = [*range(3 + gap), 2 + gap + 3, 2 + gap + 4]
    if changes["method"] != "steered-hidden":  # whose estimate may be that nobody is there
        assert service.runtime.releases.timestamps == written
    assert set(service.runtime.releases.timestamps) <= set(written)


def test_nobody_reports_too_soon_after_a_restart(tmp_path):
    async def run():
        folder = tmp_path / "service"
        service = await start(folder, method="steered-length", window=5)
        (device,) = await enrolled(service.runtime, 1)
        statuses = []
        for t in range(13):
            manifest = service.runtime.campaign.manifest
            service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
            await service.scheduler.tick()
            frame = report_of(service, device, t)
            statuses += await service.runtime.write_queue.submit([frame])
            clock = service.clock
            await (crash if t % 2 else stop)(service)
            service = Service(settings_in(folder, method="steered-length", window=5), clock)
            await service.start(runs=False)
            statuses += await service.runtime.write_queue.submit([frame])
        await service.stop()
        return statuses

    statuses = asyncio.run(run())
    rest = ["too soon", "too soon"] * 5
    assert statuses == [*(["accepted", "duplicate", *rest] * 2), "accepted", "duplicate"]


def report_of(service, device, t):
    """Return a report of a device that keeps no ledger."""
    manifest = service.runtime.campaign.manifest
    report = Report(
        question=0,
        n_answers=manifest.n_states,
        t=t,
        epsilon=manifest.epsilon,
        manifest=service.runtime.campaign.id,
        device=device.device,
        bits=bytes(-(-manifest.n_states // 8)),
    )
    return encode_report(report, device.key, oracle="oue")


class Losing:
    """A store that does all it is told, and once for each of some words says that it did not."""

    def __init__(self, store, *words):
        self._store, self._words = store, set(words)

    def __getattr__(self, name):
        act = getattr(self._store, name)
        if name not in self._words:
            return act
        self._words.remove(name)

        def lose(*arguments, **options):
            act(*arguments, **options)
            raise StoreError("the answer was lost")

        return lose


async def submit_until_taken(service, frame):
    while True:
        try:
            return await service.runtime.write_queue.submit([frame])
        except Busy:
            await asyncio.sleep(0.01)


def test_who_reported_rests_though_the_store_forgot_the_report_before_its_fold_was_known(tmp_path):
    async def run():
        service = await start(tmp_path / "service", method="steered-length", window=5)
        runtime, manifest = service.runtime, service.runtime.campaign.manifest
        device, other = await enrolled(runtime, 2)
        service.clock.time = manifest.epoch + 0.2 * manifest.period
        await service.scheduler.tick()
        statuses = await runtime.write_queue.submit([report_of(service, device, 0)])
        runtime.store = runtime.write_queue.store = Losing(runtime.store, "fold", "append")
        service.clock.time += manifest.period
        await service.scheduler.open_due()
        with pytest.raises(StoreError):
            await service.scheduler.fold_due()
        statuses += await submit_until_taken(service, report_of(service, other, 1))
        await service.scheduler.fold_due()
        statuses += await runtime.write_queue.submit([report_of(service, device, 1)])
        await service.stop()
        return statuses

    assert asyncio.run(run()) == ["accepted", "duplicate", "too soon"]


def test_a_report_that_came_too_soon_is_left_out_of_the_sums_should_admission_let_it_pass(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(OpenRounds, "too_soon", lambda self, header, round_, keys: keys < 0)

    async def run():
        service = await start(tmp_path / "service", method="steered-length", window=5)
        runtime, manifest = service.runtime, service.runtime.campaign.manifest
        (device,) = await enrolled(runtime, 1)
        statuses = []
        for t in range(2):
            service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
            await service.scheduler.tick()
            statuses += await runtime.write_queue.submit([report_of(service, device, t)])
        service.clock.time += manifest.period
        await service.scheduler.tick()
        await service.stop()
        return statuses, service.counters

    statuses, counters = asyncio.run(run())
    assert statuses == ["accepted", "accepted"]
    assert (counters.reports_folded, counters.reports_dropped) == (1, 1)


def test_one_process_at_a_time_holds_a_folder(tmp_path):
    async def run():
        service = await start(tmp_path / "service")
        other = Service(settings_in(tmp_path / "service"), SetClock())
        with pytest.raises(Exception, match="held by another process"):
            await other.start(runs=False)
        await service.stop()
        await other.start(runs=False)
        await other.stop()

    asyncio.run(run())


def test_the_clockwork_runs_by_itself(tmp_path):
    async def run():
        service = Service(settings_in(tmp_path / "service"), SetClock())
        await service.start()
        crowd = await Crowd.enrol(service, 10, rounds=3)
        seen = []

        async def read():
            async for t, summary in service.runtime.feed.subscribe(-1):
                seen.append((t, summary["n_points"]))

        reader = asyncio.create_task(read())
        manifest = service.runtime.campaign.manifest
        for t in range(3):
            service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
            while service.runtime.calendar.newest != t:  # noqa: ASYNC110 - it is another task's
                await asyncio.sleep(0.002)
            await service.runtime.write_queue.submit(
                crowd.frames_at(service.runtime.current_round())
            )
        service.clock.time += manifest.period
        while service.runtime.releases.newest != 2:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.002)
        await service.stop()
        await reader
        return seen, service

    seen, service = asyncio.run(asyncio.wait_for(run(), 60))
    assert [t for t, _ in seen] == [0, 1, 2]
    assert all(np.isfinite(n) for _, n in seen)
    assert service.counters.failures == 0


def replicas_in(folder):
    """Return the files of replicas by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("replicas/*.parquet"))}


def test_replicas_may_be_left_out_and_wanted_again_and_are_what_they_would_have_been(
    unbroken, tmp_path
):
    begun, files, sent, changes = unbroken
    if not METHODS_BY_NAME[changes["method"]].mechanism.knows_errors:
        assert not any("/replicas/" in name for name in files)
        return
    folder = tmp_path / "service"
    shutil.copytree(begun, folder)
    whole = {name.rpartition("/")[2]: body for name, body in files.items() if "/replicas/" in name}

    clock = SetClock()

    async def run(first, last, n):
        service = Service(settings_in(folder, **(changes | {"replicates": n})), clock)
        await service.start(runs=False)
        manifest = service.runtime.campaign.manifest
        for t in range(first, last):
            service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
            await service.scheduler.tick()
            assert set(await service.runtime.write_queue.submit(sent[t])) == {"accepted"}
        if last == ROUNDS:
            await finish(service)
        await service.stop()

    asyncio.run(run(0, 4, 0))
    assert replicas_in(folder) == {}
    asyncio.run(run(4, 7, 2))
    assert replicas_in(folder) == {name: whole[name] for name in sorted(whole)[:6]}
    asyncio.run(run(7, ROUNDS, 1))
    last = replicas_in(folder)[max(whole)]
    assert last != whole[max(whole)], "the others keep two, this has one"
    assert {name: body for name, body in released(folder).items() if "/replicas/" not in name} == {
        name: body for name, body in files.items() if "/replicas/" not in name
    }
