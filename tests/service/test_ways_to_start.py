"""Thirty ways and more to start, stop, restore and restart a campaign: what the screen says is so.

Each way begins with the same folder: a campaign of two devices that have reported for some rounds.
It ends with what the screen said and what the devices saw, and the table says what both must be.
"""

import asyncio
import copy
import functools
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from operator import mul
from unittest import mock

import pytest

from retrasyn.device import MemoryStore, Tracker
from retrasyn.device.memory import MemoryCache
from retrasyn.errors import Busy, RetraSynError
from retrasyn.service import campaign
from retrasyn.service.campaign_folder import FILE, CampaignFile
from retrasyn.service.service import Service
from retrasyn.service.settings import CampaignSettings, Settings, config_text
from support import postgres
from support.crowd import Crowd, SetClock, play

GIVEN = {"period": "10", "grace": "0", "window": "3", "grid": "3", "snapshot_every": "4"}
GIVEN["lifetime_cap"] = "1000"  # nobody stops before the end
"""What the first start was given; the seed is the folder's own."""
ROUNDS = 9
GO_ON, ASKED, WAIT, UNKNOWN, BUSY, NOBODY = (
    "their reports are accepted",
    "they do not report until their owners agree",
    "they are silent for the longer of both windows",
    "the curator does not know them",
    "they are told to send again later",
    "nobody answers",
)


@dataclass
class World:
    """A folder, a clock, devices, and the service if one runs."""

    folder: object
    clock: SetClock
    crowd: Crowd | None = None
    service: Service | None = None
    said: list[str] = field(default_factory=list)
    waiting: list[bytes] = field(default_factory=list)  # frames of a round, not sent yet

    async def start(self, *, config=None, new_campaign=False, **given):
        """Start as `retrasyn serve` does, and note what it says."""
        texts = {name: str(value) for name, value in given.items()}
        try:
            settings = Settings.load(config, {"folder": str(self.folder), **texts})
            service = Service(settings, self.clock, new_campaign=new_campaign)
            await service.start(runs=False)
        except RetraSynError as error:
            self.said.append(f"refused: {error}")
            return
        self.said.append(service.beginning)
        self.service = service
        if self.crowd is not None:
            self.crowd.service = service

    async def stop(self):
        service, self.service = self.service, None
        await service.stop()

    async def kill(self):
        """End the service as kill -9 would: nothing is saved, nothing is finished."""
        service, self.service = self.service, None
        service.runtime.write_queue._thread.shutdown(wait=True)
        service.runtime.store.close()
        service._secrets.close()

    async def go(self, rounds, *, again=False):
        """Let rounds go by in which the devices take part, or again in the one that is open."""
        calendar = self.service.runtime.calendar
        is_open = calendar.current(self.clock.time) is not None
        first = calendar.coming(self.clock.time) + (is_open and not again)
        return await play(self.service, self.crowd, rounds, first=first)

    async def half_a_round(self):
        """Open a round and send the first of its frames; the others wait."""
        campaign = self.service.runtime.campaign
        t = self.service.runtime.calendar.coming(self.clock.time)
        self.clock.time = campaign.opening_of(t) + 2
        await self.service.scheduler.tick()
        first, *self.waiting = self.crowd.frames_at(self.service.runtime.current_round())
        assert await self.service.runtime.write_queue.submit([first]) == ["accepted"]

    def accept(self):
        """Let the owners agree to the campaign as it is now."""
        campaign = self.service.runtime.campaign
        for person in self.crowd.people:
            person.reporter.pin(campaign.envelope, self.now())
            person.tracker = Tracker(campaign.manifest)

    async def seen(self):
        """Return what the devices see in the rounds to come."""
        if self.service is None:
            return NOBODY
        campaign = self.service.runtime.campaign
        agreed = {person.reporter._cache.store.load().pinned for person in self.crowd.people}
        if agreed != {campaign.text}:
            return ASKED
        left = [person.reporter.status(self.now()).rounds_left for person in self.crowd.people]
        calendar, before = self.service.runtime.calendar, self.n_reports()
        coming, again = calendar.coming(self.clock.time), calendar.current(self.clock.time)
        told = re.search(r"round (\d+) (comes next|is open)", self.said[-1])
        assert told is None or self.waiting or int(told[1]) == coming, "the round it said"
        try:
            if self.waiting:
                frames, self.waiting = self.waiting, []
                statuses = await self.service.runtime.write_queue.submit(frames)
            else:  # everybody's slot comes once, unless there is a quarantine
                rounds = campaign.manifest.gap + (again is not None)
                rounds = min(left) - 1 if min(left) else rounds
                statuses = await self.go(rounds, again=True)
        except Busy:
            assert self.service.runtime.reason == "reports cannot be written"
            return BUSY
        if set(statuses) == {"unauthenticated"}:
            return UNKNOWN
        assert set(statuses) <= {"accepted", "duplicate"}
        assert self.n_reports() - before == (0 if min(left) else len(self.crowd.people))
        return WAIT if min(left) else GO_ON

    def now(self):
        manifest = self.service.runtime.campaign.manifest
        return self.crowd.instant((self.clock.time - manifest.epoch) / manifest.period)

    def n_reports(self):
        """Return how many reports of this campaign's epsilon were made, of all campaigns."""
        spent = sum(person.reporter.status(self.now()).spent for person in self.crowd.people)
        return spent // self.service.runtime.campaign.manifest.epsilon


def settle(people):
    """Let everybody stand still for ever, and have a slot of their own."""
    for number, person in enumerate(people):
        person.reporter.words = functools.partial(mul, bytes([128 + number]))
        place = next(iter(person.walk.values()))
        person.walk = dict.fromkeys(range(10_000), place)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Run a campaign for some rounds; return its folder, its devices and the time."""
    world = World(tmp_path_factory.mktemp("begun") / "service", SetClock())

    async def run():
        await world.start(**GIVEN)
        world.crowd = await Crowd.enrol(world.service, 2, rounds=ROUNDS, share=1.0)
        settle(world.crowd.people)
        await world.go(ROUNDS)
        await world.stop()

    asyncio.run(run())
    return world


@pytest.fixture
def world(begun, tmp_path):
    """Return a world of its own that begins where the campaign stopped."""
    shutil.copytree(begun.folder, tmp_path / "service")
    crowd = Crowd(begun.crowd.service)
    for person in begun.crowd.people:
        reporter = copy.copy(person.reporter)
        reporter._cache = MemoryCache(MemoryStore(person.reporter._cache.store.load()))
        tracker = Tracker(begun.crowd.service.runtime.campaign.manifest)
        crowd.people.append(replace(person, reporter=reporter, tracker=tracker))
    return World(tmp_path / "service", SetClock(begun.clock.time + 20), crowd)


WAYS: dict[str, tuple[Callable, str, str]] = {}
"""Name, what is done, what the screen says at last (a pattern), what the devices see."""
GOES_ON = r"^It goes on where it was: round 10 comes next, after 8\.$"


def way(screen, devices):
    def add(act):
        WAYS[act.__name__] = (act, screen, devices)
        return act

    return add


@way(GOES_ON, GO_ON)
async def the_same_settings_again(world):
    await world.start(**GIVEN)


@way(GOES_ON, GO_ON)
async def no_settings_at_all(world):
    await world.start()


@way(GOES_ON, GO_ON)
async def some_of_the_settings(world):
    await world.start(window=3, name="retrasyn")


@way(GOES_ON, GO_ON)
async def other_settings_of_the_server(world):
    await world.start(port=9, snapshot_every=9, travellers=1)


@way(GOES_ON, GO_ON)
async def another_grace_and_closing(world):
    await world.start(grace=2, close_after=8)
    kept = CampaignFile.read(world.folder).latest.settings
    assert (kept.grace, kept.close_after) == (2, 8)


@way(GOES_ON, GO_ON)
async def a_grace_that_was_kept(world):
    await world.start(grace=2)
    await world.stop()
    await world.start()
    assert world.service.runtime.campaign.settings.grace == 2


@way(
    r"^refused: folder \S+ holds campaign 'retrasyn' of 2023-11-14 22:13:30 UTC, and other "
    r"settings are given: epsilon is 1.0 there and 2.0 now\. Leave them out "
    r".*--new-campaign begins another, to which the owner of every device has to agree$",
    NOBODY,
)
async def another_epsilon(world):
    await world.start(epsilon=2)


@way(r"^refused: .*: box is 0,0,10,10 there and 0,0,1,1 now; window is 3 there and 4 now\.", NOBODY)
async def another_box_and_window(world):
    await world.start(box="0,0,1,1", window=4)


@way(GOES_ON, GO_ON)
async def refused_and_then_without_settings(world):
    await world.start(epsilon=2)
    await world.start()


@way(r"^refused: .*: prior is not set there and centre:5,5,3 now\.", NOBODY)
async def a_public_map_in_place_of_none(world):
    await world.start(prior="centre:5,5,3")


@way(r"^A new campaign in place", ASKED)
async def a_new_campaign_with_a_public_map(world):
    await world.start(prior="centre:5,5,3", new_campaign=True)


@way(r"^It goes on where it was: round \d+ comes next, after \d+\.$", GO_ON)
async def a_campaign_with_a_public_map_goes_on_without_settings(world):
    await world.start(prior="centre:5,5,3", new_campaign=True)
    world.accept()
    await world.go(9)
    await world.stop()
    world.clock.time += 20
    await world.start()
    assert world.service.runtime.campaign.run_settings.method.name == "steered-map"


@way(r"^refused: .*: settings\.age_share is not set there and 0\.3 now\.", NOBODY)
async def a_setting_of_the_method(world):
    await world.start(**{"campaign.settings.age_share": 0.3})


@way(r"^refused: (?!.*4711).*seed is another\.", NOBODY)
async def a_seed_in_place_of_the_kept_one(world):
    await world.start(seed=4711)


@way(GOES_ON, GO_ON)
async def a_configuration_with_the_same_settings(world):
    path = world.folder.with_name("curator.toml")
    path.write_text("[campaign]\nwindow = 3\nperiod = 10\n[server]\nport = 1\n")
    await world.start(config=path)


@way(r"^refused: .*: window is 3 there and 5 now\.", NOBODY)
async def a_configuration_that_was_edited(world):
    path = world.folder.with_name("curator.toml")
    path.write_text("[campaign]\nwindow = 5\n")
    await world.start(config=path)


@way(r"^refused: .*: grid is 3 there and 6 now; window is 3 there and 20 now; period is 10", NOBODY)
async def the_printed_configuration(world):
    path = world.folder.with_name("curator.toml")
    path.write_text(config_text())
    await world.start(config=path)


@way(GOES_ON, GO_ON)
async def a_configuration_of_the_server_only(world):
    path = world.folder.with_name("curator.toml")
    path.write_text("[limits]\nburst = 7\n[server]\nport = 0\n")
    await world.start(config=path)


@way(
    r"^A new campaign in place of the one before: round 0 comes next; 2 enrolled devices stay "
    r"silent until their owners agree to it\.$",
    ASKED,
)
async def a_new_campaign(world):
    await world.start(epsilon=2, new_campaign=True)
    assert world.service.runtime.campaign.settings.window == 3, "what is not given stays"


@way(r"^It goes on where it was: round 0 comes next\.$", ASKED)
async def a_new_campaign_and_then_no_settings(world):
    await world.start(epsilon=2, new_campaign=True)
    await world.stop()
    await world.start()


@way(r"^A new campaign in place", WAIT)
async def a_new_campaign_whose_owners_agree(world):
    await world.start(epsilon=2, new_campaign=True)
    world.accept()


@way(r"^It goes on where it was: round 4 comes next, after 3\.$", GO_ON)
async def a_new_campaign_after_its_quarantine(world):
    await world.start(epsilon=2, new_campaign=True)
    world.accept()
    await world.go(4)
    await world.stop()
    world.clock.time += 10
    await world.start()


@way(
    r"^--new-campaign changed nothing, since no setting differs\. It goes on where it was: round 1",
    GO_ON,
)
async def a_new_campaign_though_nothing_differs(world):
    before = (world.folder / FILE).read_text()
    await world.start(**GIVEN, new_campaign=True)
    assert (world.folder / FILE).read_text() == before


@way(
    r"^It returns to the campaign of 2023-11-14 22:13:30 UTC: round 22 comes next, after 8; of 2 "
    r"enrolled devices, those that agreed to it last go on, others ask their owners\.$",
    GO_ON,
)
async def a_return(world):
    await world.start(epsilon=2, new_campaign=True)
    await world.stop()
    world.clock.time += 120
    await world.start(epsilon=1, new_campaign=True)


@way(r"^refused: .*: epsilon is 2.0 there and 1.0 now.* returns to the campaign of 2023", NOBODY)
async def a_return_that_was_not_asked_for(world):
    await world.start(epsilon=2, new_campaign=True)
    await world.stop()
    await world.start(**GIVEN, epsilon=1)


@way(r"^It returns to the campaign of", ASKED)
async def a_return_behind_the_back_of_those_who_agreed_to_the_later_one(world):
    await world.start(epsilon=2, new_campaign=True)
    world.accept()
    await world.go(9)
    await world.stop()
    await world.start(epsilon=1, new_campaign=True)


@way(r"^It returns to the campaign of", WAIT)
async def a_return_to_which_the_owners_agree_again(world):
    await world.start(epsilon=2, window=9, new_campaign=True)
    world.accept()
    await world.go(21)
    await world.stop()
    await world.start(epsilon=1, window=3, new_campaign=True)
    world.accept()
    left = {p.reporter.status(world.now()).rounds_left for p in world.crowd.people}
    assert left == {10}, "the longer of both windows, and one"


@way(r"^It goes on where it was: round \d+ comes next, after \d+\.$", GO_ON)
async def a_return_and_then_no_settings(world):
    await world.start(epsilon=2, new_campaign=True)
    await world.stop()
    await world.start(epsilon=1, new_campaign=True)
    await world.go(2)
    await world.stop()
    world.clock.time += 30
    await world.start()


@way(r"^It returns to the campaign of .*: round 11 comes next, after 10;", GO_ON)
async def there_and_back_within_one_round(world):
    await world.start()
    await world.go(1)
    assert world.service.runtime.current_round() is not None
    await world.stop()
    await world.start(name="other", new_campaign=True)
    await world.stop()
    await world.start(name="retrasyn", new_campaign=True)
    assert world.service.runtime.current_round() is None, "what was folded is not asked again"


@way(r"^It goes on where it was: round 14 comes next, after 12\.$", GO_ON)
async def a_kill(world):
    await world.start()
    await world.go(3)
    await world.kill()
    world.clock.time += 20
    await world.start()


@way(r"^It goes on where it was: round 12 is open\.$", GO_ON)
async def a_kill_within_a_round(world):
    await world.start()
    await world.go(3)
    await world.kill()
    await world.start()


@way(r"^A new campaign, the first in this folder: round 0 comes next\.$", ASKED)
async def a_kill_in_the_first_start(world):
    """Nobody has seen that campaign, so it is begun again, with the settings it was given."""
    shutil.rmtree(world.folder)
    await world.start(**GIVEN)
    file = CampaignFile.read(world.folder)
    await world.kill()
    file.write(world.folder, begun=False)
    (world.folder / "service.sqlite").unlink()
    world.clock.time += 100
    await world.start()
    assert world.service.runtime.campaign.manifest.window == 3


@way(r"^It goes on where it was: round 10 comes next, after 8\.$", GO_ON)
async def a_kill_while_a_new_campaign_begins(world):
    """The old one has ended and the database knows the new one, but the folder does not."""
    service = Service(
        Settings.load(None, {"folder": str(world.folder), "epsilon": "2"}),
        world.clock,
        new_campaign=True,
    )
    stop = mock.patch.object(CampaignFile, "write", side_effect=KeyboardInterrupt)
    with stop, pytest.raises(KeyboardInterrupt):
        await service.start(runs=False)
    await world.start()


@way(GOES_ON, GO_ON)
async def a_moved_folder(world):
    world.folder = world.folder.rename(world.folder.with_name("moved"))
    await world.start()


@way(GOES_ON, GO_ON)
async def a_copied_folder(world):
    world.folder = shutil.copytree(world.folder, world.folder.with_name("copied"))
    await world.start()


def back_up(world, place):
    """Copy the database while the service runs, and then the rest, as the documents say."""
    place.mkdir()
    source = sqlite3.connect(world.folder / "service.sqlite")
    target = sqlite3.connect(place / "service.sqlite")
    with closing(source), closing(target):
        source.backup(target)
    ignored = shutil.ignore_patterns("service.sqlite*", ".*")
    shutil.copytree(world.folder, place, ignore=ignored, dirs_exist_ok=True)


@way(r"^It goes on where it was: round 14 comes next, after 11\.$", GO_ON)
async def a_back_up_made_while_it_ran(world):
    await world.start()
    await world.go(2)
    back_up(world, world.folder.with_name("copy"))
    await world.go(1)
    await world.stop()
    world.folder = world.folder.with_name("copy")
    world.clock.time += 20
    await world.start()


@way(
    r"^It goes on where it was: round 20 comes next, after 11\. The database is an older copy: it "
    r"ends at round 10, and releases go up to 17\. Reports since then are gone; these releases",
    GO_ON,
)
async def a_database_older_than_releases_and_snapshots(world):
    await world.start()
    await world.go(2)
    back_up(world, world.folder.with_name("copy"))
    await world.go(7)
    await world.stop()
    shutil.copy(world.folder.with_name("copy") / "service.sqlite", world.folder)
    before = {path: path.read_bytes() for path in world.folder.rglob("releases/*/*.parquet")}
    world.clock.time += 20
    await world.start()
    assert before == {path: path.read_bytes() for path in before}


@way(r"^It goes on where it was", UNKNOWN)
async def a_back_up_from_before_the_devices_enrolled(world):
    shutil.rmtree(world.folder)
    await world.start(**GIVEN)
    back_up(world, world.folder.with_name("copy"))
    world.crowd = await Crowd.enrol(world.service, 2, rounds=9, share=1.0)
    settle(world.crowd.people)
    await world.stop()
    world.folder = world.folder.with_name("copy")
    await world.start()


def lose(world, name):
    path = world.folder / name
    path.rename(world.folder.with_name(name))


@way(r"^refused: folder \S+ holds campaign .*, and curator.key is missing; put it back", NOBODY)
async def a_missing_key(world):
    lose(world, "curator.key")
    await world.start()
    assert not (world.folder / "curator.key").exists()


@way(r"^A new campaign in place", ASKED)
async def a_missing_key_and_a_new_campaign(world):
    lose(world, "curator.key")
    await world.start(new_campaign=True)


@way(r"^refused: .*, and seed is missing; put it back", NOBODY)
async def a_missing_seed(world):
    lose(world, "seed")
    await world.start()


@way(r"^refused: \S+service.sqlite is missing; put it back from a copy", NOBODY)
async def a_missing_database(world):
    lose(world, "service.sqlite")
    await world.start()
    assert not (world.folder / "service.sqlite").exists()


@way(r"^A new campaign in place of the one before: round 0 comes next; 0 enrolled", UNKNOWN)
async def a_missing_database_and_a_new_campaign(world):
    lose(world, "service.sqlite")
    await world.start(new_campaign=True)
    world.accept()


@way(r"^refused: .*its database \(sqlite\) does not know it: it is another, or an older", NOBODY)
async def the_database_of_another_campaign(world):
    other = World(world.folder.with_name("other"), SetClock())
    await other.start(**GIVEN)
    await other.stop()
    shutil.copy(other.folder / "service.sqlite", world.folder)
    await world.start()


@way(r"^refused: \S+campaign.json is missing, and the database knows a campaign; put it", NOBODY)
async def missing_settings(world):
    lose(world, FILE)
    await world.start(**GIVEN)


@way(r"^A new campaign in place of the one before: round 0 comes next; 2 enrolled", ASKED)
async def missing_settings_and_a_new_campaign(world):
    lose(world, FILE)
    await world.start(**GIVEN, new_campaign=True)


@way(r"^refused: \S+campaign.json is missing, and releases is there; put it back", NOBODY)
async def missing_settings_and_database(world):
    lose(world, FILE)
    lose(world, "service.sqlite")
    await world.start()


@way(r"^refused: \S+campaign.json is damaged, or was written by a newer", NOBODY)
async def damaged_settings(world):
    (world.folder / FILE).write_text((world.folder / FILE).read_text()[:-40])
    await world.start()


OF_WIRE_2 = (
    r"^refused: folder \S+ holds campaign 'retrasyn' of .*, of wire version 2, and this RetraSyn "
    r"speaks version 3; --new-campaign begins another, to which the owner of every device has to "
    r"agree$"
)


@way(OF_WIRE_2, NOBODY)
async def settings_in_the_first_layout(world):
    (kept,) = json.loads((world.folder / FILE).read_text())["campaigns"]
    (world.folder / FILE).write_text(json.dumps(kept["settings"]))
    await world.start()


def of_wire_2(world):
    held = json.loads((world.folder / FILE).read_text())
    del held["campaigns"][0]["wire"]
    held["campaigns"][0]["manifest"] = "0123456789abcdef"
    (world.folder / FILE).write_text(json.dumps(held))


@way(OF_WIRE_2, NOBODY)
async def a_campaign_of_the_wire_version_before(world):
    of_wire_2(world)
    await world.start()


@way(
    r"^A new campaign in place of the one before: round 0 comes next; 2 enrolled devices stay",
    ASKED,
)
async def a_new_campaign_after_one_of_the_wire_version_before(world):
    of_wire_2(world)
    await world.start(new_campaign=True)


@way(r"^refused: .*RetraSyn \S+ makes manifest \w+ of it.* where RetraSyn 0.0.9 made", NOBODY)
async def a_program_that_makes_another_manifest(world):
    held = json.loads((world.folder / FILE).read_text())
    held["campaigns"][0] |= {"manifest": "0123456789abcdef", "made_by": "0.0.9"}
    (world.folder / FILE).write_text(json.dumps(held))
    await world.start()


@way(r"^refused: folder \S+ cannot be used", NOBODY)
async def a_folder_that_cannot_be_written(world):
    (world.folder / "lock").unlink()
    (world.folder / "lock").mkdir()  # opening it for writing fails, for root as well
    await world.start()


@way(r"^refused: folder \S+ is held by another process; stop it, or name another", GO_ON)
async def a_second_process(world):
    await world.start()
    await world.start()


@way(r"^refused: the clock is \d+ s before the opening of round 8.*set the clock", NOBODY)
async def a_clock_set_back(world):
    world.clock.time -= 60
    await world.start()


async def swapped_while_running(world, swap):
    await world.start()
    await world.half_a_round()
    swap(world.folder / "service.sqlite")


@way(GOES_ON, BUSY)
async def a_database_deleted_under_the_service(world):
    await swapped_while_running(world, os.remove)


@way(r"^refused: \S+service.sqlite is missing", NOBODY)
async def a_database_deleted_under_the_service_and_a_restart(world):
    await swapped_while_running(world, os.remove)
    assert await world.seen() == BUSY
    await world.kill()
    await world.start()


def older_copy(path):
    place = path.with_name("copy.sqlite")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(place)) as target:
        source.backup(target)
    return place


@way(GOES_ON, BUSY)
async def a_database_replaced_by_its_own_copy(world):
    await swapped_while_running(world, lambda path: older_copy(path).rename(path))


@way(GOES_ON, BUSY)
async def a_database_overwritten_by_its_own_copy(world):
    await swapped_while_running(world, lambda path: shutil.copyfile(older_copy(path), path))


@way(GOES_ON, GO_ON)
async def a_database_moved_away_and_put_back(world):
    path = world.folder / "service.sqlite"
    await swapped_while_running(world, lambda path: path.rename(path.with_name("away")))
    waiting = list(world.waiting)
    assert await world.seen() == BUSY
    path.with_name("away").rename(path)
    await world.service.runtime.write_queue.settle()
    assert set(await world.service.runtime.write_queue.submit(waiting)) == {"accepted"}


@pytest.mark.system
def test_a_folder_knows_its_postgres_database_and_takes_no_other(tmp_path):
    server, world = postgres.server(), World(tmp_path / "service", SetClock())
    own, empty = server.database(), server.database()
    secret = own.replace("&user=", "&password=hush&user=")

    async def run():
        await world.start(**GIVEN, store=secret)
        world.crowd = await Crowd.enrol(world.service, 2, rounds=ROUNDS, share=1.0)
        settle(world.crowd.people)
        await world.go(ROUNDS)
        await world.stop()
        await world.start()
        seen = [await world.seen()]
        await world.stop()
        for store in ("sqlite", empty):
            await world.start(store=store)
            seen.append(await world.seen())
        await world.start(epsilon=2, new_campaign=True)
        seen.append(await world.seen())
        await world.stop()
        await world.start(epsilon=1, new_campaign=True)
        seen.append(await world.seen())
        await world.stop()
        return seen

    assert asyncio.run(run()) == [GO_ON, NOBODY, NOBODY, ASKED, GO_ON]
    patterns = ("A new", "It goes on", r".*sqlite is missing", r".*does not know it", "A new")
    for pattern, said in zip((*patterns, "It returns"), world.said, strict=True):
        assert re.match(pattern, said), world.said
    assert "hush" not in (world.folder / FILE).read_text()


def test_there_are_thirty_ways_and_more():
    assert len(WAYS) >= 30


@pytest.mark.parametrize("name", WAYS)
def test_the_devices_see_what_the_screen_says(name, world):
    act, screen, devices = WAYS[name]

    async def run():
        await act(world)
        seen = await world.seen()
        if world.service is not None:
            await world.kill()
        return seen

    seen = asyncio.run(run())
    assert re.search(screen, world.said[-1]), world.said
    assert seen == devices


def test_what_a_version_found_where_nothing_was_set_is_kept(tmp_path, monkeypatch):
    world, caps, honest = World(tmp_path / "service", SetClock()), [], campaign.lifetime_cap_of

    def turn(**given):
        async def run():
            await world.start(**given)
            caps.append(world.service.runtime.campaign.manifest.lifetime_cap)
            await world.stop()

        asyncio.run(run())

    def otherwise(settings, run):
        return honest(settings, run) + (settings.lifetime_cap is None)

    turn(period=10, window=3, grid=3)
    monkeypatch.setattr(campaign, "lifetime_cap_of", otherwise)
    turn()
    turn(epsilon=2, new_campaign=True)
    turn(epsilon=1, new_campaign=True)
    turn(lifetime_cap=caps[0] / 10**6)
    assert [cap % 10 for cap in caps] == [0, 0, 1, 0, 0], "found anew for a new campaign only"
    beginnings = ["A new campaign", "It goes on", "A new campaign", "It returns", "It goes on"]
    assert all(map(str.startswith, world.said, beginnings)), world.said


def test_a_folder_of_an_older_version_keeps_its_values_when_defaults_change(world, monkeypatch):
    for name, value in {"epsilon": 3.0, "retention": 7, "oracle": "grr"}.items():
        monkeypatch.setattr(CampaignSettings.model_fields[name], "default", value)
    CampaignSettings.model_rebuild(force=True)
    try:
        assert CampaignSettings().epsilon == 3.0

        async def run():
            await world.start()
            seen = await world.seen()
            await world.stop()
            return seen

        assert asyncio.run(run()) == GO_ON
    finally:
        monkeypatch.undo()
        CampaignSettings.model_rebuild(force=True)
        assert CampaignSettings().epsilon == 1.0
    assert re.search(GOES_ON, world.said[-1])
