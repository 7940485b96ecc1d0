"""Liars in a running campaign: the operator is told, nobody else, and a restart changes nothing."""

import asyncio
import logging
from dataclasses import dataclass

import numpy as np
import pytest

from retrasyn.messages import MICRO, MOVING, Report
from retrasyn.oracles.oue import OUE
from retrasyn.service.admission.open_rounds import AcceptedReports
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import CampaignState
from retrasyn.service.closing import fold
from retrasyn.service.runtime import CampaignRuntime
from retrasyn.service.secrets import Secrets
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.service.store import RoundRow
from retrasyn.wire import encode_report
from support.crowd import Crowd, SetClock, finish, settings_in

N_DEVICES, GAP, ROUNDS = 480, 4, 6
TARGETS = slice(3, 13)
_log = "retrasyn.service.closing"


@dataclass
class Liars:
    """Devices that report in turn; some of them set ten bits, and pad the rest plausibly."""

    crowd: Crowd
    share: float
    random: np.random.Generator

    def frames(self, campaign, t):
        manifest = campaign.manifest
        people = self.crowd.people[t % GAP :: GAP]
        bits = self.random.random((len(people), manifest.n_states)) < OUE(manifest.epsilon).q
        n_liars = round(self.share * len(people))
        bits[:n_liars] &= self.random.random((n_liars, manifest.n_states)) < 0.85
        bits[:n_liars, TARGETS] = True
        packed = np.packbits(bits, axis=1, bitorder="little")
        for person, row in zip(people, packed, strict=True):
            report = Report(
                question=0,
                n_answers=manifest.n_states,
                t=t,
                epsilon=manifest.epsilon,
                manifest=campaign.id,
                device=person.device,
                bits=row.tobytes(),
            )
            yield encode_report(report, person.secret, oracle=manifest.oracle)


async def run(folder, share, *, breaks=()):
    """Run a campaign with liars, breaking off before the rounds in `breaks`; return the service."""
    settings = settings_in(folder, method="steered-length", fewest=50)
    service = Service(settings, SetClock())
    await service.start(runs=False)
    crowd = await Crowd.enrol(service, N_DEVICES, rounds=1)
    liars = Liars(crowd, share, np.random.default_rng(4))
    for t in range(ROUNDS):
        manifest = service.runtime.campaign.manifest
        service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
        if t in breaks:
            now = service.clock.time
            service.runtime.write_queue._thread.shutdown(wait=True)  # as a kill would
            service.runtime.store.close()
            service._secrets.close()
            service = Service(settings, SetClock(now))
            await service.start(runs=False)
        await service.scheduler.tick()
        frames = list(liars.frames(service.runtime.campaign, t))
        assert set(await service.runtime.write_queue.submit(frames)) == {"accepted"}
    await finish(service)
    await service.stop()
    return service


@pytest.fixture(scope="module")
def lied_to(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lied") / "service"
    return asyncio.run(run(folder, 0.12)), folder


def test_the_operator_is_told_what_only_rounds_taken_together_show(lied_to):
    status = lied_to[0].runtime.operator_status()
    names = {name for found in status["alarms"].values() for name in found}
    assert "transition/pooled spectrum" in names
    assert all("/pooled " in name for name in names)
    assert all(ROUNDS - GAP <= int(t) < ROUNDS for t in status["alarms"])
    assert status["counters"]["alarms"] >= len(status["alarms"])
    assert any(line.startswith("transition/1% of 480 as ") for line in status["not_tested"])


def test_releases_receipts_and_public_status_say_nothing_of_alarms(lied_to):
    service, folder = lied_to
    written = [path for path in folder.rglob("releases/**/*") if path.is_file()]
    assert len(written) == 3 * ROUNDS
    for path in written:
        assert b"alarm" not in path.read_bytes()
        assert b"pooled" not in path.read_bytes()
    public = repr(service.runtime.status())
    assert "alarm" not in public
    assert "not_tested" not in public


def test_an_honest_campaign_raises_no_alarm(tmp_path):
    service = asyncio.run(run(tmp_path / "service", 0.0))
    status = service.runtime.operator_status()
    assert (status["alarms"], status["counters"]["alarms"]) == ({}, 0)


def test_a_restart_gives_the_same_alarms_and_the_log_has_them(lied_to, tmp_path, caplog):
    caplog.set_level(logging.WARNING, _log)
    again = asyncio.run(run(tmp_path / "service", 0.12, breaks=range(1, ROUNDS)))
    first = lied_to[0].runtime
    assert again.runtime.operator_status()["alarms"] == first.operator_status()["alarms"]
    assert again.runtime.not_tested == first.not_tested
    assert len(again.runtime.state.evidence.pieces) == GAP - 1
    assert "transition/pooled spectrum" in caplog.text
    releases = [runtime.releases for runtime in (again.runtime, first)]
    for t in range(ROUNDS):
        assert len({each.path(t).read_bytes() for each in releases}) == 1


def test_alarms_of_the_last_gap_are_there_after_a_restart(lied_to):
    service, folder = lied_to
    alarms = service.runtime.alarms

    async def look():
        again = Service(settings_in(folder, method="steered-length", fewest=50), service.clock)
        await again.start(runs=False)
        await again.stop()
        return again.runtime

    runtime = asyncio.run(look())
    assert isinstance(runtime, CampaignRuntime)
    assert runtime.alarms == alarms


@pytest.mark.parametrize("part", [3, 20])
def test_reports_are_inspected_at_the_budget_of_their_round(part, tmp_path):
    """Where epsilon is divided, no round spends what the manifest names."""
    secrets = Secrets.open(tmp_path / "service")
    settings = Settings.load(None, {"method": "retrasyn-b", "epoch": "0"})
    campaign = Campaign.of(settings.campaign, secrets)
    manifest, n = campaign.manifest, 600
    row = RoundRow(t=0, epsilon=MICRO // part, portion=1 << 64, ends=0, envelope=b"")
    states = np.random.default_rng(1).integers(manifest.n_states, size=n).astype(np.int32)
    addresses = np.arange(n, dtype=np.uint64)

    def alarms(epsilon):
        bits = OUE(epsilon).perturb(states, addresses, key=5, n_answers=manifest.n_states)
        keys = np.arange(n)
        accepted = AcceptedReports(
            answers={0: (bits, keys)}, kinds=np.full(n, MOVING, np.uint8), keys=keys, marks=b""
        )
        round_, _, found = fold(row, accepted, CampaignState(campaign), n_enrolled=n, n_ever=n)
        assert set(found.evidence) == {(0, row.epsilon)}
        return round_.alarms

    assert alarms(row.epsilon) == ()
    assert "transition/weights" in alarms(manifest.epsilon)
    secrets.close()
