"""A campaign with a public map: what devices agree to, and that the map stays as it was."""

import asyncio
import hashlib
import json
import shutil

import pytest

from retrasyn.client.consent import promise
from retrasyn.device import Refusal
from retrasyn.errors import InputError, SettingError, WireError
from retrasyn.messages import SPEEDS
from retrasyn.service.campaign_folder import over_roads
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.simulation.city import CITY_BOX
from support.crowd import Crowd, SetClock, play, settings_in
from support.public_maps import settings_for

pytestmark = pytest.mark.system


async def started(folder, clock=None, *, new_campaign=False, **changes):
    settings = settings_in(folder, **changes)
    service = Service(settings, clock or SetClock(), new_campaign=new_campaign)
    await service.start(runs=False)
    return service


def campaign_of(folder, **changes):
    """Start and stop a service; return its campaign."""

    async def run():
        service = await started(folder, **changes)
        await service.stop()
        return service.runtime.campaign

    return asyncio.run(run())


@pytest.fixture
def streets(tmp_path):
    return settings_for("steered-roads", CITY_BOX, tmp_path)


def wider(path):
    """Change a file of streets, so that it is still one."""
    found = json.loads(path.read_text())
    found["features"] = found["features"][:-1]
    path.write_text(json.dumps(found))


def test_the_manifest_names_the_files_of_the_map_and_what_is_asked(tmp_path, streets):
    campaign = campaign_of(tmp_path / "service", **streets)
    manifest = campaign.manifest
    digest = hashlib.sha256((tmp_path / "streets.geojson").read_bytes()).digest()
    assert manifest.public_map == digest
    assert manifest.speeds == SPEEDS
    assert manifest.strata == ("transition", "older", "faster", "cell")
    assert manifest.other_shares == (100_000, 50_000, 450_000)
    assert campaign.run_settings.method.name == "steered-roads"


def test_without_roads_the_map_is_a_prior(tmp_path):
    campaign = campaign_of(tmp_path / "service", prior="centre:5,5,3")
    assert campaign.run_settings.method.name == "steered-map"
    assert campaign.manifest.public_map == hashlib.sha256(b"centre:5,5,3").digest()
    assert campaign.manifest.speeds == SPEEDS
    plain = campaign_of(tmp_path / "other").manifest
    assert (plain.public_map, plain.speeds) == (b"", ())


def test_owners_are_told_of_the_map_and_of_speeds_before_they_agree(tmp_path):
    said = promise(campaign_of(tmp_path / "service", prior="centre:5,5,3").manifest)
    assert "whether it moved farther than one of some distances since the round before" in said
    assert (
        "by some devices only whether they moved farther than 0.02, 0.03, 0.05, 0.08, 0.13, 0.2,"
        in said
    )
    assert f"public map, which nobody's reports made: {_digest(b'centre:5,5,3')}" in said
    plain = promise(campaign_of(tmp_path / "other").manifest)
    assert "public map" not in plain
    assert "moved farther" not in plain
    assert "only cells are ever looked at" in plain


def _digest(text):
    return hashlib.sha256(text).hexdigest()


def test_a_method_that_needs_a_map_is_refused_without_one_and_others_with_one(tmp_path):
    for method in ("steered-map", "steered-roads"):
        with pytest.raises(SettingError, match=f"{method} needs a public map"):
            campaign_of(tmp_path / method, method=method)
    with pytest.raises(SettingError, match="retrasyn-p uses no public map"):
        campaign_of(tmp_path / "p", method="retrasyn-p", prior="centre:5,5,3")


def test_a_start_with_the_same_map_goes_on_wherever_it_is_given_from(
    tmp_path, streets, monkeypatch
):
    first = campaign_of(tmp_path / "service", **streets)
    monkeypatch.chdir(tmp_path)
    assert campaign_of("service", roads="streets.geojson").id == first.id
    monkeypatch.chdir("/")
    assert campaign_of(tmp_path / "service").id == first.id


def test_a_start_with_another_map_is_refused(tmp_path, streets):
    folder = tmp_path / "service"
    campaign_of(folder, **streets)
    shutil.copy(tmp_path / "streets.geojson", tmp_path / "other.geojson")
    with pytest.raises(SettingError, match=r"roads is \S+streets.geojson there and \S+other"):
        campaign_of(folder, roads=str(tmp_path / "other.geojson"))
    with pytest.raises(SettingError, match="prior is not set there and class now"):
        campaign_of(folder, prior="class")
    wider(tmp_path / "streets.geojson")
    with pytest.raises(
        InputError,
        match=r"public map \(\S+streets\.geojson\) has changed: sha256 \w{64} there and \w",
    ):
        campaign_of(folder)
    (tmp_path / "streets.geojson").unlink()
    with pytest.raises(InputError, match=r"its public map cannot be opened: .*streets\.geojson"):
        campaign_of(folder)


def test_devices_refuse_the_rounds_of_a_campaign_with_a_changed_map_and_agree_to_a_new_one(
    tmp_path, streets
):
    folder = tmp_path / "service"

    async def run():
        service = await started(folder, **streets)
        crowd = await Crowd.enrol(service, 3, rounds=8, share=1.0)
        await play(service, crowd, 3)
        old = service.runtime.campaign
        await service.stop()
        wider(tmp_path / "streets.geojson")
        service = await started(folder, service.clock, new_campaign=True)
        new = service.runtime.campaign
        service.clock.time = new.manifest.epoch + 1
        await service.scheduler.tick()
        envelope, now = service.runtime.current_round(), crowd.instant(5)
        refused = [one.reporter.answer(envelope, now, one.tracker) for one in crowd.people]
        for one in crowd.people:
            one.reporter.pin(new.envelope, now)
        await service.stop()
        return old, new, refused

    old, new, refused = asyncio.run(run())
    assert old.manifest.public_map != new.manifest.public_map
    assert old.manifest.epoch != new.manifest.epoch
    assert {(type(answer), answer.rule) for answer in refused} == {(Refusal, 1)}


def test_devices_refuse_a_manifest_whose_map_changed_behind_a_fixed_epoch(tmp_path, streets):
    folder = tmp_path / "service"

    async def run():
        service = await started(folder, epoch=1_700_000_050, **streets)
        crowd = await Crowd.enrol(service, 2, rounds=8, share=1.0)
        await service.stop()
        wider(tmp_path / "streets.geojson")
        service = await started(folder, new_campaign=True, epoch=1_700_000_050)
        await service.stop()
        return service.runtime.campaign, crowd

    campaign, crowd = asyncio.run(run())
    for one in crowd.people:
        with pytest.raises(WireError, match="another public map than the pinned one"):
            one.reporter.pin(campaign.envelope, crowd.instant(5))


def test_without_a_box_a_first_campaign_has_that_of_its_roads(tmp_path):
    roads = settings_for("steered-roads", (2, 3, 4.0000001, 7), tmp_path)["roads"]
    given = {"folder": str(tmp_path / "service"), "roads": roads}
    assert over_roads(Settings.load(None, given)).campaign.box == (2, 3, 4.000001, 7)
    boxed = Settings.load(None, given | {"box": "2,3,4,7"})
    assert over_roads(boxed) is boxed
    del given["roads"]
    mapless = Settings.load(None, given)
    assert over_roads(mapless) is mapless


def test_receipts_of_a_campaign_name_its_map_and_the_share_of_speeds(tmp_path, streets):
    async def run():
        service = await started(tmp_path / "service", **streets)
        crowd = await Crowd.enrol(service, 5, rounds=4, share=1.0)
        await play(service, crowd, 3)
        await service.stop()
        return service

    service = asyncio.run(run())
    (path, *_) = sorted((tmp_path / "service").rglob("*.receipt.json"))
    receipt = json.loads(path.read_text())
    known = service.runtime.campaign.run_settings.public_map
    assert receipt["public_map"]["sha256"] == known.sha256
    assert receipt["public_map"]["public"] is True
    assert receipt["settings"]["speed_share"] == 0.05
