"""A fleet of real devices against a real service: every release is made again from its frames."""

import datetime as dt
import json
import re
import struct

import numpy as np
import pytest

from retrasyn import Box, Grid, write
from retrasyn.curator import Curator
from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.messages import Aggregate, Question
from retrasyn.run_settings import RunSettings
from retrasyn.service.campaign import public_map_of
from retrasyn.service.settings import CampaignSettings
from retrasyn.simulation.rounds import Answers, Folded, Recorded
from retrasyn.wire.canonical import unseal
from retrasyn.wire.texts import decode_manifest
from support.live_service import run, service
from support.public_maps import settings_for

pytestmark = pytest.mark.system

SEED = 7
SHARES = {"speed_share": "0.3", "cell_share": "0.2"}
HEAD = struct.Struct("<BBHII8s16s")


def write_walks(path, *, n, n_timestamps):
    """Write streams that walk about the built-in city's box; some begin later and end earlier."""
    rng = np.random.default_rng(3)
    rows = {"traj_id": [], "t": [], "x": [], "y": []}
    for stream in range(n):
        first = int(rng.integers(0, 3))
        last = int(rng.integers(n_timestamps - 2, n_timestamps + 1))
        steps = rng.normal(0, 0.7, (last - first, 2))
        places = np.clip(rng.uniform(1, 9, 2) + steps.cumsum(axis=0), 0, 10)
        rows["traj_id"] += [stream] * len(places)
        rows["t"] += range(first, last)
        rows["x"] += places[:, 0].tolist()
        rows["y"] += places[:, 1].tolist()
    write(Trajectories.from_columns(**rows), path)


def fold_plainly(line, manifest, numbers):
    """Add the counted frames of a round up, without the service's code."""
    t, size, answers = line["t"], 0, {}
    for text, status in zip(line["frames"], line["statuses"], strict=True):
        if status != "accepted":
            continue
        frame = bytes.fromhex(text)
        if frame[1] >= 64:
            size += 1
            continue
        _, code, n_states, at, _, _, device = HEAD.unpack_from(frame)
        assert at == t
        value = int.from_bytes(frame[HEAD.size : -16], "little")
        bits = [value >> place & 1 for place in range(n_states)]
        question = Question(about="cell") if code == 5 else Question()
        if 16 <= code < 32:
            question = Question(about="older", threshold=manifest.ages[code - 16])
        if code >= 32:
            question = Question(about="faster", threshold=manifest.speeds[code - 32])
        answers.setdefault(question, []).append((numbers[device], bits))
    folded = {}
    for question, rows in answers.items():
        rows.sort()
        sums = np.sum([bits for _, bits in rows], axis=0)
        keys = np.array([key for key, _ in rows])
        folded[question] = Answers(aggregate=Aggregate(counts=sums, n=len(rows)), keys=keys)
    return t, size, folded


def never_opened(live):
    """Return the rounds that a busy machine did not open in time, as the service's log has them."""
    log = (live.folder.parent / f"{live.folder.name}.log").read_text()
    found = re.findall(r"rounds never opened first=(\d+) n=(\d+)", log)
    return {t for first, n in found for t in range(int(first), int(first) + int(n))}


def check_releases(live, lines, numbers, *, window, folder, given):
    """Make every release again from the frames alone and compare the files; return how many."""
    from retrasyn.client.curator_client import CuratorClient

    with CuratorClient(live.url) as server:
        manifest = decode_manifest(unseal(server.campaign())[0])
    rounds = {line["t"]: fold_plainly(line, manifest, numbers) for line in lines}
    live.release(max(rounds))
    grid, fewest = Grid(Box(0, 0, 10, 10), 6), CampaignSettings().fewest
    options = {"window": window, "seed": SEED, "fewest": fewest}
    options |= {"public_map": public_map_of(CampaignSettings(**given))}
    options |= {"settings": SHARES if given else {}}
    curator = Curator(RunSettings.of(grid=grid, **options))
    recorded, clock = (
        Recorded(curator),
        Clock(
            dt.datetime.fromtimestamp(manifest.epoch, dt.UTC).isoformat(), float(manifest.period)
        ),
    )
    missed = never_opened(live)
    first = min(int(path.stem) for path in live.releases.glob("*.parquet"))
    n_reports, size, last = 0, 0, first
    for t in range(first, max(rounds) + 1):
        answers = {}
        if t not in missed:
            _, size, answers = rounds.get(t, (t, 0, {}))
            last = t
        elif t - last > manifest.gap:
            size = 0
        release = recorded.step(
            Folded(
                t=t,
                epsilon=0 if t in missed else manifest.epsilon,
                size=size,
                n_enrolled=len(numbers),
                answers=answers,
            )
        )
        n_reports += release.n_reports
        n = release.ids.size
        path = live.releases / f"{t:010d}.parquet"
        if t in missed and not path.exists():
            assert n == 0
            continue
        points = Trajectories(
            stream_ids=release.ids,
            begins=np.full(n, t, np.int64),
            starts=np.arange(n + 1),
            x=release.x,
            y=release.y,
            clock=clock,
        )
        write(points, folder / "again.parquet")
        assert (folder / "again.parquet").read_bytes() == path.read_bytes(), t
    return n_reports


def drive(tmp_path, *, n, n_rounds, window, period, timeout, grace=0, given=None):
    """Run a service and a fleet; check ledgers and releases; return what it said, and rounds."""
    given = given or {}
    write_walks(tmp_path / "walks.parquet", n=n, n_timestamps=n_rounds)
    settings = {"period": period, "window": window, "grace": grace} | given
    if given:
        settings |= {f"campaign.settings.{name}": share for name, share in SHARES.items()}
    with service(tmp_path / "service", seed=SEED, **settings) as live:
        done = run(
            "fleet",
            tmp_path / "walks.parquet",
            *("--server", live.url, "--operator-token", live.operator_token),
            *("--folder", tmp_path / "fleet", "--record", tmp_path / "frames.jsonl"),
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        with (tmp_path / "frames.jsonl").open() as file:
            lines = [json.loads(line) for line in file]
        from retrasyn.fleet.ledger import FleetLedger

        ledger = FleetLedger(tmp_path / "fleet" / "fleet.sqlite")
        numbers = {who.device: number for number, who in enumerate(ledger.devices())}
        ledger.close()
        n_reports = check_releases(
            live, lines, numbers, window=window, folder=tmp_path, given=given
        )
    statuses = [status for line in lines for status in line["statuses"]]
    reports = sum(
        bytes.fromhex(frame)[1] < 64 and status == "accepted"
        for line in lines
        for frame, status in zip(line["frames"], line["statuses"], strict=True)
    )
    assert n_reports == reports > n // 2
    assert set(statuses) <= {"accepted", "late"}
    assert statuses.count("accepted") > 0.9 * len(statuses)
    assert "at most 1 in any window of any device, within epsilon=1" in done.stdout
    return done.stdout, len(lines)


def test_every_release_is_made_again_byte_for_byte_from_the_frames_of_a_small_fleet(tmp_path):
    said, n_rounds = drive(tmp_path, n=200, n_rounds=6, window=1, period=1, timeout=60)
    assert n_rounds >= 5  # a busy machine may miss one
    assert said.splitlines()[0].startswith("200 devices are silent for ")


@pytest.mark.parametrize("method", ["steered-map", "steered-roads"])
def test_a_fleet_tells_how_far_it_moved_and_is_released_byte_for_byte(method, tmp_path):
    given = settings_for(method, (0, 0, 10, 10), tmp_path)
    drive(tmp_path, n=200, n_rounds=6, window=1, period=2, timeout=90, given=given)
    with (tmp_path / "frames.jsonl").open() as file:
        codes = [bytes.fromhex(frame)[1] for line in file for frame in json.loads(line)["frames"]]
    assert {32, 33, 34, 35} <= set(codes)


@pytest.mark.long
def test_five_thousand_devices_over_sixty_rounds_are_released_byte_for_byte(tmp_path):
    _said, n_rounds = drive(tmp_path, n=5000, n_rounds=64, window=5, period=3, grace=2, timeout=400)
    assert n_rounds >= 60  # a busy machine may miss some
