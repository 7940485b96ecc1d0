"""Every release of the service is what the plain curator makes of the same reports."""

import asyncio
import dataclasses
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

from retrasyn.curator import Curator
from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write
from retrasyn.messages import ENTERING, QUITTING, Aggregate, Flags, Grant, Roster
from retrasyn.oracles.threshold import hash_range
from retrasyn.privacy.division import BudgetDivision, UserDivision
from retrasyn.privacy.ledger import RoundLedger
from retrasyn.receipts.files import open_receipt
from retrasyn.receipts.verify import verify
from retrasyn.service.service import Service
from retrasyn.simulation.city import CITY_BOX
from retrasyn.wire import decode_heartbeat, decode_report
from retrasyn.wire.frames import device_of, is_heartbeat, n_answers, question_of
from support.crowd import Crowd, SetClock, finish, play, settings_in
from support.public_maps import settings_for

pytestmark = pytest.mark.system

ROUNDS = 12
MANY_SPEEDS = {"campaign.settings.speed_share": 0.3, "campaign.settings.cell_share": 0.2}
CASES = {
    "steered": {"method": "steered"},
    "map": {"method": "steered-map", **MANY_SPEEDS},
    "roads": {"method": "steered-roads", **MANY_SPEEDS},
    "roads, few": {"method": "steered-roads", "fewest": 20, **MANY_SPEEDS},
    "flags": {"method": "steered-flags"},
    "hidden": {"method": "steered-hidden"},
    "length": {"method": "steered-length", "grid": 4},
    "slots": {"method": "random-p"},
    "own coin": {"method": "retrasyn-p"},
    "drawn": {"method": "retrasyn-p", "sampling": "curator", "window": 2},
    "once a window": {"method": "sample-p"},
    "moves only": {"method": "noeq-p"},
    "budget": {"method": "retrasyn-b"},
    "even budget": {"method": "uniform-b", "window": 2},
    "grr": {"method": "uniform-p", "oracle": "grr", "grid": 1},
    "olh": {"method": "steered-length", "oracle": "olh"},
    "transitions": {"method": "steered", "unit": "transition", "jump": None},
    "few": {"method": "steered", "fewest": 20},
    "few at many budgets": {"method": "retrasyn-b", "fewest": 70},
}


@dataclass(frozen=True)
class Reported:
    """A selection that draws those who reported."""

    who: dict  # (t, question): keys

    def draw(self, roster, available, *, ask, t, gap, seed):
        keys = np.array(sorted(self.who.get((t, ask.question), [])), np.int64)
        assert np.isin(keys, roster.keys[available]).all()
        return keys


class Paid(BudgetDivision):
    """A division of epsilon whose ledger grants what each round asked."""

    def __init__(self, asked, who):
        object.__setattr__(self, "asked", asked)
        object.__setattr__(self, "who", who)

    def open_ledger(self, *, epsilon, gap):
        return PaidLedger(epsilon=epsilon, gap=gap, asked=self.asked, who=self.who)


@dataclass
class PaidLedger(RoundLedger):
    """Charges what each round asked, for those who reported."""

    asked: dict = None  # t: micro-nats
    who: dict = None  # (t, question): keys

    def grant(self, ask, *, t, roster, seed):
        keys = np.array(sorted(self.who.get((t, ask.question), [])), np.int64)
        if self.asked[t]:
            self.charge(t, self.asked[t])
        return Grant(t=t, epsilon=self.asked[t], reporters=keys, question=ask.question)


def supports(bits, n, question, oracle, epsilon):
    """Return the answers that one report supports, in plain loops."""
    if question.binary:
        return [0] if bits[0] else []
    if oracle == "oue":
        return [i for i in range(n) if bits[i // 8] >> (i % 8) & 1]
    value = int.from_bytes(bits, "little")
    if oracle == "grr":
        return [value] if value < n else []
    seed, said, mask = value % 2**32, value >> 32, 2**64 - 1
    step = 0x9E3779B97F4A7C15

    def mixed(key, i):
        z = (key + i * step) & mask
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        return z ^ z >> 31

    g = hash_range(epsilon)
    hashes = [(mixed(mixed(step, seed), s) >> 32) * g >> 32 for s in range(n)]
    return [s for s in range(n) if hashes[s] == said]


class Naive:
    """Reads frames one by one, and steps a plain curator."""

    def __init__(self, service, crowd):
        campaign = service.runtime.campaign
        self.manifest, self.crowd = campaign.manifest, crowd
        self.keys = {p.device: service.runtime.devices.key_of(p.device) for p in crowd.people}
        self.secrets = {p.device: p.secret for p in crowd.people}
        self.who, self.sums = defaultdict(list), {}
        self.asked, self.kinds = {}, defaultdict(dict)
        self.entered = {}
        for t, frames in crowd.sent.items():
            self.asked[t] = service.runtime.calendar.row(t).epsilon
            for frame in frames:
                self.read(t, frame)
        run = campaign.run_settings
        division = (
            UserDivision(Reported(self.who))
            if run.method.division.splits_users
            else Paid(self.asked, self.who)
        )
        row = dataclasses.replace(run.method, division=division)
        self.curator = Curator(dataclasses.replace(run, method=row))

    def read(self, t, frame):
        if is_heartbeat(frame):
            device = frame[14:30]
            beat = decode_heartbeat(frame, self.secrets[device])
            self.kinds[t][self.keys[device]] = beat.kind
            return
        device = device_of(frame)
        report = decode_report(frame, self.secrets[device], oracle=self.manifest.oracle)
        question = question_of(report.question, self.manifest)
        n = n_answers(question, self.manifest)
        self.who[t, question].append(self.keys[device])
        total = self.sums.setdefault((t, question), [0] * n)
        for answer in supports(report.bits, n, question, self.manifest.oracle, report.epsilon):
            total[answer] += 1

    def flags_at(self, t):
        ages = []
        for key, kind in sorted(self.kinds[t].items()):
            if kind == QUITTING:
                ages.append(t - self.entered.pop(key))
            else:
                self.entered.setdefault(key, t)
        entering = sum(kind == ENTERING for kind in self.kinds[t].values())
        return Flags(n_entering=entering, ages_of_quitters=np.array(ages, np.int64))

    def release(self, t):
        keys = np.array(sorted(self.keys.values()), np.int64)
        roster = Roster(
            keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(keys.size, np.int64)
        )
        hidden = self.manifest.presence == "hidden"
        size = 0 if hidden else sum(kind != QUITTING for kind in self.kinds[t].values())
        flags = self.flags_at(t) if self.manifest.presence == "flags" else None

        def collect(grant, lane):
            counts = np.array(self.sums[t, grant.question], np.int64)
            return Aggregate(counts=counts, n=len(self.who[t, grant.question]))

        return self.curator.step(t, size=size, roster=roster, collect=collect, flags=flags)


async def played(folder, **changes):
    service = Service(settings_in(folder, **changes), SetClock())
    await service.start(runs=False)
    crowd = await Crowd.enrol(service, 40, rounds=ROUNDS, seed=3)
    statuses = await play(service, crowd, ROUNDS, shuffle=np.random.default_rng(1))
    await finish(service)
    return service, crowd, statuses


@pytest.mark.parametrize("case", CASES)
def test_every_release_equals_what_the_curator_makes_of_the_same_reports(case, tmp_path):
    changes = {name: value for name, value in CASES[case].items() if value is not None}
    changes |= settings_for(changes["method"], CITY_BOX, tmp_path)
    service, crowd, statuses = asyncio.run(played(tmp_path / "service", **changes))
    asyncio.run(stopped(service))
    naive = Naive(service, crowd)
    manifest = service.runtime.campaign.manifest
    assert set(statuses) == {"accepted"}
    assert sum(map(len, naive.who.values())) > 20
    told = sum(len(keys) for (_, asked), keys in naive.who.items() if asked.about == "faster")
    assert (told > 0) == ("faster" in manifest.strata)
    epoch = np.datetime64(manifest.epoch, "s").item().isoformat() + "+00:00"
    for t in range(ROUNDS):
        release = naive.release(t)
        points = Trajectories(
            release.ids,
            np.full(release.ids.size, t),
            np.arange(release.ids.size + 1),
            release.x,
            release.y,
            clock=Clock(epoch, float(manifest.period)),
        )
        write(points, tmp_path / "again.parquet")
        made, again = service.runtime.releases.path(t), tmp_path / "again.parquet"
        assert made.read_bytes() == again.read_bytes()
        summary = service.runtime.releases.summary(t)
        assert summary["n_reports"] == release.n_reports
        assert summary["cells"] == np.bincount(release.cells, minlength=manifest.side**2).tolist()
        receipt = open_receipt(made.with_name(made.name + ".receipt.json"))
        checks = verify(receipt, data=made)
        assert not [str(check) for check in checks if check.verdict == "FAIL"]
        assert receipt.within_guarantee
        assert receipt.within_epsilon_per_person or manifest.unit == "transition"
        assert receipt.door == "rounds"
        assert receipt.seed is None


async def stopped(service):
    await service.stop()
