"""What a campaign is bound to, and an operator's mistakes."""

import asyncio
import json
import stat

import pytest

from retrasyn.device import Refusal
from retrasyn.errors import InputError, OutputError, RetraSynError, SettingError, StoreError
from retrasyn.methods import METHODS
from retrasyn.service.campaign_folder import choose
from retrasyn.service.secrets import Secrets
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.simulation.city import CITY_BOX
from retrasyn.wire import decode_manifest, decode_round
from retrasyn.wire.canonical import unseal
from support.crowd import START, Crowd, SetClock, play, settings_in
from support.public_maps import settings_for


async def start(folder, clock=None, *, new_campaign=False, **changes):
    settings = settings_in(folder, **changes)
    service = Service(settings, clock or SetClock(), new_campaign=new_campaign)
    await service.start(runs=False)
    return service


def ids_of(folder, *turns, new_campaign=True):
    """Start and stop a service with some settings after another; return the manifests' ids."""

    async def run():
        ids = []
        clock = SetClock()
        for changes in turns:
            service = await start(folder, clock, new_campaign=new_campaign, **changes)
            ids.append(service.runtime.campaign.id)
            await service.stop()
            clock.time += 100
        return ids

    return asyncio.run(run())


def test_unchanged_settings_mean_the_same_manifest(tmp_path):
    first, second = ids_of(tmp_path / "service", {}, {})
    assert first == second


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 2.0},
        {"window": 4},
        {"grid": 4},
        {"box": "0,0,1,1"},
        {"method": "steered-length"},
        {"campaign.settings.age_share": 0.3},
        {"unit": "transition"},
        {"period": 11},
        {"name": "another"},
        {"seed": 8},
        {"lifetime_cap": 5},
        {"prior": "centre:5,5,3"},
    ],
    ids=str,
)
def test_a_changed_setting_means_a_new_manifest(change, tmp_path):
    first, second = ids_of(tmp_path / "service", {}, change)
    assert first != second


@pytest.mark.parametrize(
    "change", [{"grace": 3}, {"close_after": 5}, {"port": 1}, {"snapshot_every": 9}], ids=str
)
def test_what_no_device_agreed_to_may_change_within_a_campaign(change, tmp_path):
    first, second = ids_of(tmp_path / "service", {}, change)
    assert first == second


def test_a_method_changed_behind_a_fixed_epoch_is_refused(tmp_path):
    epoch = {"epoch": int(START) + 50}
    with pytest.raises(SettingError, match="the manifest does not show it"):
        ids_of(tmp_path / "s", {"method": "retrasyn-p", **epoch}, {"method": "uniform-p", **epoch})


def test_devices_refuse_the_rounds_of_a_changed_campaign_and_old_releases_stay(tmp_path):
    folder = tmp_path / "service"

    async def run():
        service = await start(folder)
        crowd = await Crowd.enrol(service, 12, rounds=20, share=1.0)
        await play(service, crowd, 4)
        old, sent = service.runtime.campaign, service.runtime.write_queue
        assert sent.n_waiting == 0
        await service.stop()
        service = await start(folder, service.clock, new_campaign=True, epsilon=2.0)
        kept = sorted(path.name for path in (folder / "releases" / old.id.hex()).glob("*.parquet"))
        assert service.runtime.devices.n == 12
        assert not service.runtime.releases.timestamps
        service.clock.time = service.runtime.campaign.manifest.epoch + 1
        await service.scheduler.tick()
        envelope = service.runtime.current_round()
        instant = crowd.instant(5)
        answers = [p.reporter.answer(envelope, instant, p.tracker) for p in crowd.people]
        late = await service.runtime.write_queue.submit(crowd.sent[3])
        await service.stop()
        return old, service, kept, answers, set(late), envelope

    old, service, kept, answers, late, envelope = asyncio.run(run())
    assert kept == [f"{t:010d}.parquet" for t in range(4)]  # the open round was folded, too
    assert {(type(answer), answer.rule) for answer in answers} == {(Refusal, 1)}
    assert late == {"bad manifest"}
    assert decode_round(unseal(envelope)[0]).t == 0
    assert service.runtime.campaign.manifest.epoch > old.manifest.epoch
    assert decode_manifest(unseal(service.runtime.campaign.envelope)[0]).epsilon == 2_000_000


def test_secrets_are_for_their_owner_only_and_are_never_shown(tmp_path):
    folder = tmp_path / "service"

    async def run():
        service = Service(Settings.load(None, {"folder": str(folder)}), SetClock())
        await service.start(runs=False)
        told = json.dumps([service.runtime.status(), service.runtime.operator_status()])
        await service.stop()
        return service, told

    service, told = asyncio.run(run())
    for name in ("curator.key", "seed", "operator.token", "campaign.json", "service.sqlite"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    for name in ("curator.key", "seed", "operator.token"):
        assert (folder / name).read_text().strip() not in told
    assert service.operator_token == (folder / "operator.token").read_text().strip()
    assert "seed" not in told


@pytest.mark.parametrize(
    "method", [name for name in METHODS if not name.startswith(("l", "exact"))]
)
def test_every_method_that_asks_once_has_a_manifest(method, tmp_path):
    secrets = Secrets.open(tmp_path / "service")
    given = {"method": method} | settings_for(method, CITY_BOX, tmp_path)
    campaign = choose(Settings.load(None, given), secrets, START).campaign
    secrets.close()
    manifest, curator = campaign.manifest, campaign.make_curator()
    assert manifest.n_states == curator.states.n_states
    assert (manifest.gap, manifest.epsilon) == (curator.gap, curator.epsilon)
    assert manifest.oracle == curator.oracle
    slots = method.startswith("steered") or method == "random-p"
    assert manifest.sampling == ("phase" if slots else "self")
    assert tuple(curator.grid.box) == tuple(corner / 1e6 for corner in manifest.box)


MISTAKES = {
    "unknown method": ({"method": "stered"}, "unknown method 'stered'; did you mean steered"),
    "asks twice": ({"method": "lpd"}, "asks twice at a timestamp"),
    "not private": ({"method": "exact"}, "not private"),
    "bad box": ({"box": "1,0,0,1"}, "has no area"),
    "no box": ({"box": "1,2"}, "setting campaign.box"),
    "epsilon": ({"epsilon": "0"}, "greater than 0"),
    "high epsilon": ({"epsilon": "99"}, "at most 40"),
    "closes late": ({"close_after": "99", "period": "60"}, "longer than the period"),
    "slots": ({"sampling": "curator"}, "a slot of its own"),
    "nobody drawn": ({"sampling": "curator", "method": "uniform-b"}, "asks everybody"),
    "unknown": ({"windw": "3"}, "unknown setting 'windw'; did you mean window"),
    "of the method": ({"campaign.settings.alpha": "8"}, "steered has no setting 'alpha'"),
    "ledger": ({"campaign.settings.ledger": "stream"}, "one ledger"),
    "cap": ({"lifetime_cap": "0.5"}, "lifetime_cap must allow at least one report"),
    "name": ({"name": ""}, "name must be"),
    "postgres": ({"store": "postgresql://127.0.0.1:1/none"}, ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line(mistake, tmp_path):
    changes, words = MISTAKES[mistake]
    with pytest.raises(RetraSynError) as caught:
        asyncio.run(start(tmp_path / "service", **changes))
    assert words in str(caught.value)
    assert len(str(caught.value)) > 20
    assert "\n" not in str(caught.value)


def test_a_database_that_is_not_there_is_told_and_the_folder_is_free_again(tmp_path):
    with pytest.raises(StoreError, match=r"127\.0\.0\.1"):
        asyncio.run(start(tmp_path / "s", store="postgresql://nobody@127.0.0.1:1/none"))
    Secrets.open(tmp_path / "s").close()


def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be used"):
        asyncio.run(start(tmp_path / "file" / "service"))


@pytest.mark.parametrize(
    ("name", "content"), [("curator.key", "no key"), ("seed", "x"), ("campaign.json", "{")]
)
def test_a_damaged_file_is_told_by_its_name(name, content, tmp_path):
    folder = tmp_path / "service"
    ids_of(folder, {"seed": "random"})
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=name):
        asyncio.run(start(folder, seed="random"))


def test_an_operators_own_token_is_used_if_it_is_long_enough(tmp_path):
    path = tmp_path / "token"
    own = "0123456789abcdef"
    path.write_text(f"{own}\n")
    service = asyncio.run(started_and_stopped(tmp_path / "service", operator_token_file=path))
    assert service.operator_token == own
    path.write_text("short")
    with pytest.raises(InputError, match="fewer than 16"):
        asyncio.run(start(tmp_path / "service", operator_token_file=path))


async def started_and_stopped(folder, **changes):
    service = await start(folder, **changes)
    await service.stop()
    return service


def test_a_clock_set_back_before_the_last_round_is_refused_at_the_start(tmp_path):
    async def run():
        service = await start(tmp_path / "service")
        service.clock.time += 1000
        await service.scheduler.tick()
        await service.stop()
        await start(tmp_path / "service", SetClock(START))

    with pytest.raises(SettingError, match="set the clock"):
        asyncio.run(run())


def test_a_clock_far_ahead_is_refused_instead_of_stepping_for_ever(tmp_path):
    async def run():
        service = await start(tmp_path / "service", period=1)
        await play(service, await Crowd.enrol(service, 1, rounds=3), 3)
        service.clock.time += 10_000_000
        try:
            await service.scheduler.tick()
        finally:
            await service.stop()

    with pytest.raises(SettingError, match="set the clock"):
        asyncio.run(run())


def test_settings_come_from_a_file_and_single_changes_win(tmp_path):
    path = tmp_path / "curator.toml"
    path.write_text(
        '[campaign]\nwindow = 7\nbox = [0, 0, 2, 2]\nmethod = "retrasyn-p"\n'
        "[campaign.settings]\nalpha = 4\n[server]\nport = 9000\n"
    )
    settings = Settings.load(path, {"port": "9001", "campaign.settings.kappa": "3"})
    assert settings.campaign.window == 7
    assert settings.campaign.settings == {"alpha": 4, "kappa": "3"}
    assert settings.server.port == 9001
    assert settings.campaign.seconds_of_grace == 6
    path.write_text("[campaign]\nwindows = 7\n")
    with pytest.raises(SettingError, match=r"unknown setting 'campaign.windows'; did you mean"):
        Settings.load(path)
    path.write_text("campaign = 3\n")
    with pytest.raises(SettingError, match="campaign"):
        Settings.load(path, {"window": "3"})
    path.write_text("[campaign\n")
    with pytest.raises(InputError, match="is not TOML"):
        Settings.load(path)
    with pytest.raises(InputError, match="cannot be read"):
        Settings.load(tmp_path / "gone.toml")
