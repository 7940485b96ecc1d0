"""A new oracle, portion, metric and file format: one row each, written outside the package."""

import asyncio
import dataclasses
import json
import random
import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

import retrasyn
from retrasyn.audit.exact import Disobedience
from retrasyn.audit.laws import UnaryLaw, law_of
from retrasyn.audit.oracle import audit_oracle
from retrasyn.data.discretise import discretise
from retrasyn.data.formats import FORMATS, Format, read_fixes
from retrasyn.data.formats.base import Rows
from retrasyn.data.formats.checking import check
from retrasyn.device import Answer, MemoryStore, Reporter, Tracker
from retrasyn.errors import RetraSynError, SettingError, WireError
from retrasyn.mechanisms.one_ask import OneAsk
from retrasyn.messages import Aggregate, Ask, Question, Report
from retrasyn.metrics.suite import METRICS, Metric
from retrasyn.mobility.model import select_significant
from retrasyn.oracles import kernels
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import ORACLES, OracleRow, choose_oracle, row_for
from retrasyn.oracles.single import n_whole_bytes
from retrasyn.oracles.threshold import lie_chance, noise_threshold
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import draw, system_bytes
from retrasyn.receipts.files import open_receipt
from retrasyn.receipts.verify import verify as verify_receipt
from retrasyn.service.service import Service
from retrasyn.simulation.city import CITY_BOX
from retrasyn.wire import decode_manifest, decode_report, encode_manifest, encode_report
from retrasyn.wire.frames import body_bytes, device_of, is_heartbeat
from support.campaigns import DEVICE, DEVICE_KEY, Campaign, manifest_of, verify
from support.command_line import run
from support.crowd import Crowd, SetClock, finish, play, settings_in
from support.feeding import fed

# An oracle: symmetric unary encoding, where every bit is flipped with the same probability. Two
# bits tell two states apart, so each may spend half of epsilon.


def report_symmetric(state, n_answers, *, epsilon, words=system_bytes):
    """Return one bit per answer, each flipped or not: what a device runs."""
    threshold, packed = noise_threshold(epsilon // 2), 0
    for bit, word in enumerate(struct.unpack(f"<{n_answers}Q", draw(words, 8 * n_answers))):
        packed |= ((bit == state) ^ (word < threshold)) << bit
    return packed.to_bytes(n_whole_bytes((1 << n_answers) - 1), "little")


SUE_ROW = OracleRow(
    name="sue",
    report=report_symmetric,
    largest=lambda epsilon, n_answers: (1 << n_answers) - 1,
    support=lambda epsilon, _: (1 - lie_chance(epsilon // 2, 1), lie_chance(epsilon // 2, 1)),
    implementation=f"{__name__}:SUE",
    law=f"{__name__}:SymmetricLaw",
)


@dataclass(frozen=True, slots=True)
class SUE(Oracle):
    """Symmetric unary encoding of many states at once."""

    row: ClassVar[OracleRow] = SUE_ROW

    @property
    def threshold(self):
        return noise_threshold(self.epsilon // 2)

    def perturb(self, states, addresses, *, key, n_answers):
        answers = np.arange(n_answers, dtype=np.uint64)
        words = [words_at(own, answers) for own in words_at(np.uint64(key), addresses)]
        flipped = np.array(words).reshape(-1, n_answers) < np.uint64(self.threshold)
        truth = states[:, None] == np.arange(n_answers)
        return np.packbits(flipped ^ truth, axis=1, bitorder="little")

    def aggregate(self, packed, *, n_answers):
        return Aggregate(counts=kernels.count_bits(packed, n_answers), n=len(packed))


class SymmetricLaw(UnaryLaw):
    """What the audit has to know of it."""

    def check(self, report, epsilon, n_answers):
        threshold = noise_threshold(epsilon // 2)
        for word, flipped in ((threshold - 1, 1), (threshold, 0)):
            words = fed([word] * n_answers)
            sent = int.from_bytes(report(1, n_answers, epsilon=epsilon, words=words), "little")
            if (sent >> 1 & 1, sent & 1) != (1 ^ flipped, flipped):
                raise Disobedience("a bit does not follow its word")


@pytest.fixture
def sue(monkeypatch):
    monkeypatch.setitem(ORACLES, "sue", SUE_ROW)


@pytest.fixture(scope="module")
def city():
    return retrasyn.demo_city(n_users=200, n_timestamps=15, seed=2)


@pytest.mark.usefixtures("sue")
@pytest.mark.parametrize("source", ["counts", "reports"])
def test_the_simulator_runs_the_oracle_and_states_it(source, city):
    settings = {"box": CITY_BOX, "grid": 4, "window": 5, "door": source, "seed": 0}
    synthetic, receipt = retrasyn.synthesize(city, "retrasyn-p", oracle="sue", **settings)
    assert receipt.oracle == "sue"
    assert receipt.noise.q == SUE(1_000_000).q
    assert receipt.within_guarantee
    assert not [check for check in verify_receipt(receipt) if check.verdict == "FAIL"]
    usual, _ = retrasyn.synthesize(city, "retrasyn-p", **settings)
    assert synthetic.x.tobytes() != usual.x.tobytes()


@pytest.mark.usefixtures("sue")
def test_one_report_and_many_are_the_same_bytes_and_estimates_are_unbiased():
    states, n = np.arange(-1, 40).astype(np.int32), 40
    many = SUE(1_000_000).perturb(states, states.astype(np.uint64), key=5, n_answers=n)
    for state, own, bits in zip(
        states.tolist(), words_at(np.uint64(5), states.astype(np.uint64)), many, strict=True
    ):
        words = fed(words_at(own, np.arange(n, dtype=np.uint64)).tolist())
        assert report_symmetric(state, n, epsilon=1_000_000, words=words) == bits.tobytes()
    verdict = audit_oracle("sue", reports=20_000, words=random.Random(5).randbytes)
    assert verdict.violations == ()


@pytest.mark.usefixtures("sue")
def test_a_device_reports_with_it_and_the_frame_travels():
    manifest = manifest_of(oracle="sue")
    text = encode_manifest(manifest)
    assert decode_manifest(text) == manifest
    campaign = Campaign(manifest)
    reporter = Reporter(DEVICE, DEVICE_KEY, MemoryStore(), verify)
    tracker = Tracker(manifest)
    reporter.pin(campaign.envelope, campaign.at(-5))
    tracker.observe(0, (1.0, 1.0), boot=campaign.at(0.1).boot)
    answer = reporter.answer(campaign.ask(0), campaign.at(0.2), tracker)
    assert isinstance(answer, Answer)
    report = decode_report(answer.frame, DEVICE_KEY, oracle="sue")
    assert encode_report(report, DEVICE_KEY, oracle="sue") == answer.frame
    assert len(report.bits) == SUE_ROW.n_bytes(manifest.epsilon, manifest.n_states)
    with pytest.raises(WireError, match="none an oracle makes"):
        encode_report(
            dataclasses.replace(report, bits=b"\xff" * len(report.bits)), DEVICE_KEY, oracle="sue"
        )


async def played(folder, rounds):
    service = Service(
        settings_in(folder, oracle="sue", method="steered-length", grid=4), SetClock()
    )
    await service.start(runs=False)
    crowd = await Crowd.enrol(service, 30, rounds=rounds, seed=3)
    statuses = await play(service, crowd, rounds)
    await finish(service)
    await service.stop()
    return service, crowd, statuses


@pytest.mark.usefixtures("sue")
def test_the_service_enrols_admits_adds_up_and_releases_with_it(tmp_path):
    rounds = 5
    service, crowd, statuses = asyncio.run(played(tmp_path, rounds))
    assert service.runtime.campaign.manifest.oracle == "sue"
    assert set(statuses) == {"accepted"}
    secrets = {person.device: person.secret for person in crowd.people}
    n_transitions = 0
    for t in range(rounds):
        frames = [frame for frame in crowd.sent[t] if not is_heartbeat(frame)]
        for frame in frames:
            report = decode_report(frame, secrets[device_of(frame)], oracle="sue")
            n_transitions += report.question == 0
        made = service.runtime.releases.path(t)
        assert service.runtime.releases.summary(t)["n_reports"] == len(frames)
        receipt = open_receipt(made.with_name(made.name + ".receipt.json"))
        assert receipt.oracle == "sue"
        assert not [c for c in verify_receipt(receipt, data=made) if c.verdict == "FAIL"]
    assert n_transitions > 5


READERS = {
    "choice": lambda: choose_oracle("rappor", 1_000_000, 4),
    "run": lambda: retrasyn.RunSettings.of(grid=retrasyn.Grid(CITY_BOX, 2), oracle="rappor"),
    "device": lambda: row_for(Question(), "rappor"),
    "manifest": lambda: encode_manifest(manifest_of(oracle="rappor")),
    "manifest's text": lambda: decode_manifest(
        encode_manifest(manifest_of(oracle="oue")).replace(b'"oue"', b'"rappor"')
    ),
    "frame": lambda: body_bytes(0, 4, 1_000_000, "rappor"),
    "report": lambda: encode_report(
        Report(
            question=0, n_answers=4, t=0, epsilon=1, manifest=bytes(8), device=DEVICE, bits=b"\0"
        ),
        DEVICE_KEY,
        oracle="rappor",
    ),
    "settings": lambda: settings_in("nowhere", oracle="rappor"),
    "audit": lambda: audit_oracle("rappor"),
}


@pytest.mark.parametrize("reader", READERS)
def test_an_unknown_oracle_is_refused_wherever_a_name_is_read(reader):
    with pytest.raises(RetraSynError, match=r"oue.*grr.*olh"):
        READERS[reader]()


@pytest.mark.parametrize("command", ["synthesize real.csv", "stream real.csv", "audit"])
def test_the_command_line_knows_the_rows_and_no_other(command):
    outcome = run(*command.split(), "--oracle", "rappor")
    assert outcome.code == 2
    assert "oue" in outcome.err


def test_an_oracle_without_a_law_cannot_be_audited(monkeypatch):
    monkeypatch.setitem(ORACLES, "sue", dataclasses.replace(SUE_ROW, law=""))
    with pytest.raises(SettingError, match="no law to be audited by"):
        law_of("sue")


# A portion, and the method it makes.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenth:
    """A tenth of what remains, always."""

    def ask(self, view):
        return Ask(share=0.1)


def test_a_portion_is_part_of_a_method_that_is_one_row(monkeypatch, city):
    row = dataclasses.replace(
        retrasyn.METHODS["uniform-p"],
        name="tenth-p",
        summary="a tenth of the available users each time",
        mechanism=OneAsk(Tenth(), select_significant),
    )
    monkeypatch.setitem(retrasyn.METHODS, "tenth-p", row)
    synthetic, receipt = retrasyn.synthesize(city, "tenth-p", window=5, box=CITY_BOX, seed=0)
    assert synthetic.n_points > 0
    assert receipt.method == "tenth-p"
    assert receipt.worst_window.declared.epsilon <= 1


# A metric.


def mean_shift(pair, settings):
    """Return how far the centre of all points moved, in units of the coordinates."""
    centres = [np.array([side.x.mean(), side.y.mean()]) for side in (pair.real, pair.synthetic)]
    return float(np.linalg.norm(centres[0] - centres[1]))


@pytest.fixture
def shift():
    row = Metric("mean_shift", "Mean shift", "smaller", "How far the centre moved.", mean_shift)
    METRICS.append(row)
    yield
    METRICS.remove(row)


@pytest.mark.usefixtures("shift")
def test_a_metric_is_one_row(city, tmp_path):
    moved = dataclasses.replace(city, x=np.minimum(city.x + 0.5, CITY_BOX[2]))
    scores = retrasyn.evaluate(city, moved, grid=4, box=CITY_BOX)
    assert 0.3 < scores["mean_shift"] <= 0.5
    assert scores["density_error"] == scores.density_error > 0
    assert scores.to_dict()["mean_shift"] == scores["mean_shift"]
    paths = [tmp_path / name for name in ("real.parquet", "moved.parquet")]
    for trajectories, path in zip((city, moved), paths, strict=True):
        retrasyn.write(trajectories, path)
    outcome = run("evaluate", *map(str, paths), "--box", ",".join(map(str, CITY_BOX)))
    assert "Mean shift" in outcome.out
    outcome = run("evaluate", *map(str, paths), "--json")
    assert "mean_shift" in json.loads(outcome.out)


# A file format.


def read_spaced(path, options):
    """Yield the positions of lines such as `ann 3 0.5 0.25`."""
    user, t, x, y = zip(*(line.split() for line in path.read_text().splitlines()), strict=True)
    columns = {"user": pa.array(user), "time": pa.array([int(one) for one in t])}
    places = {"x": pa.array(map(float, x)), "y": pa.array(map(float, y))}
    yield check(Rows(path=path, **columns, **places, steps=True), options)


def test_a_file_format_is_one_row(monkeypatch, tmp_path):
    row = Format("spaced", "words between spaces", read_spaced, suffixes=(".spaced",))
    monkeypatch.setitem(FORMATS, "spaced", row)
    path = tmp_path / "walk.spaced"
    path.write_text("ann 0 0.5 0.25\nann 1 0.75 0.25\nbob 1 0 0\n")
    for kind in ("spaced", "auto"):
        found, _ = discretise(read_fixes(path, kind))
        assert found.n_points == 3
    outcome = run("convert", str(path), "--out", str(tmp_path / "walk.csv"))
    assert outcome.code == 0
    assert (tmp_path / "walk.csv").exists()
