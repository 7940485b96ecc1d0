"""Linked reports add up: after how many of them a usual place is known, and who says so."""

import asyncio
import dataclasses
import json
import math
import random

import pytest

import naive
from retrasyn.client.consent import promise, usual_place_of
from retrasyn.device import Answer, MemoryStore, Reporter, Tracker
from retrasyn.device.tracker import Numbering
from retrasyn.errors import SettingError
from retrasyn.messages import MICRO
from retrasyn.oracles.registry import ORACLES
from retrasyn.oracles.single import SEED_BYTES, hash_answer
from retrasyn.oracles.threshold import hash_range
from retrasyn.planning.forecast import forecast
from retrasyn.privacy.receipt import left_open
from retrasyn.privacy.usual_place import (
    LONGEST,
    NIGHT,
    UsualPlace,
    chance_named,
    duration,
    fewest_naming,
    telling,
)
from retrasyn.receipts import checks
from retrasyn.receipts.files import read_receipt
from retrasyn.receipts.verify import verify as verify_receipt
from retrasyn.receipts.words import show
from retrasyn.service.campaign import lifetime_cap_of, manifest_of, run_settings_of
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.simulation.accounting import usual_place_of as usual_place_of_run
from retrasyn.wire import decode_report
from support import made_receipts
from support.campaigns import KEY, Campaign, verify
from support.command_line import run
from support.crowd import Crowd, SetClock, finish, play, settings_in

STRONGEST = {
    "private": True,
    "presence": "count",
    "unit": "position",
    "ledger": "user",
    "jump": "split",
    "seeded": False,
    "counted": True,
    "has_users": True,
    "box_inferred": False,
    "length_from_data": False,
    "enrols_on_sight": False,
    "clipped": False,
}
"""A run without weaknesses of its own."""
OUE_AT_1 = ORACLES["oue"].support(MICRO, 328)


def in_error(n_right, n, chance, deviations=4):
    """Whether a count lies within so many standard deviations of what was predicted."""
    return abs(n_right - n * chance) <= deviations * math.sqrt(n * chance * (1 - chance))


@pytest.mark.parametrize("support", [OUE_AT_1, (0.9, 0.01), (0.05, 0.04), (1.0, 1e-20)])
@pytest.mark.parametrize(("n_reports", "n_places"), [(0, 4), (1, 36), (3, 2), (22, 9), (40, 36)])
def test_the_chance_is_that_of_the_plain_loops(support, n_reports, n_places):
    plain = naive.chance_named(n_reports, *support, n_places)
    assert chance_named(n_reports, support, n_places) == pytest.approx(plain, rel=1e-9)


def test_the_chance_grows_with_every_report_from_a_blind_guess_to_certainty():
    chances = [chance_named(n, OUE_AT_1, 36) for n in range(200)]
    assert chances == sorted(chances)
    assert chances[0] == pytest.approx(1 / 36)
    assert chances[-1] > 0.9999


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("epsilon", "side"), [(MICRO // 2, 6), (MICRO, 3), (2 * MICRO, 12)])
def test_the_fewest_reports_are_the_first_that_tell_more_often_than_not(oracle, epsilon, side):
    n_states = (3 * side - 2) ** 2 + 2 * side**2
    support = ORACLES[oracle].support(epsilon, n_states)
    fewest = fewest_naming(support, side**2)
    assert fewest < LONGEST
    assert (
        chance_named(fewest - 1, support, side**2) < 0.5 <= chance_named(fewest, support, side**2)
    )


def test_what_takes_longer_than_can_be_looked_at_is_said_to_take_so_long():
    assert fewest_naming(ORACLES["oue"].support(1000, 328), 36) == LONGEST


def supported(oracle, bits, epsilon, answers):
    """Return which answers a report supports."""
    if oracle == "olh":
        seed = int.from_bytes(bits[:SEED_BYTES], "little")
        value = int.from_bytes(bits[SEED_BYTES:], "little")
        return [hash_answer(seed, answer, hash_range(epsilon)) == value for answer in answers]
    number = int.from_bytes(bits, "little")
    return [number == answer if oracle == "grr" else number >> answer & 1 for answer in answers]


def guess(sums, dice):
    """Return a place with the most support."""
    return dice.choice([place for place, n in enumerate(sums) if n == max(sums)])


@pytest.mark.parametrize("oracle", ORACLES)
def test_an_attack_on_real_reports_is_right_as_often_as_predicted(oracle):
    side, epsilon, n_devices, dice = 3, 2 * MICRO, 200, random.Random(18)
    states = Numbering(side, endpoints=True)
    n_states, stays = states.enter(0) + 2 * side**2, [states.move(c, c) for c in range(side**2)]
    row = ORACLES[oracle]
    support = row.support(epsilon, n_states)
    n_reports = fewest_naming(support, side**2)
    n_right = 0
    for _ in range(n_devices):
        home = dice.randrange(side**2)
        sums = [0] * side**2
        for _ in range(n_reports):
            bits = row.report(stays[home], n_states, epsilon=epsilon, words=dice.randbytes)
            sums = [
                n + on for n, on in zip(sums, supported(oracle, bits, epsilon, stays), strict=True)
            ]
        n_right += guess(sums, dice) == home
    assert in_error(n_right, n_devices, chance_named(n_reports, support, side**2))


def manifest_for(**changes):
    settings = Settings.load(None, {name: str(value) for name, value in changes.items()}).campaign
    return manifest_of(settings, run_settings_of(settings), key=KEY, epoch=1_700_000_000)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"grid": 2},
        {"grid": 16, "epsilon": 0.5},
        {"oracle": "grr", "grid": 3},
        {"oracle": "olh", "epsilon": 2},
        {"method": "steered-flags", "oracle": "grr", "grid": 3},
        {"method": "retrasyn-b", "unit": "transition"},
        {"method": "noeq-p"},
    ],
    ids=str,
)
def test_the_default_cap_keeps_the_guess_below_one_half(changes):
    manifest = manifest_for(**changes)
    place = usual_place_of(manifest)
    n_reports = manifest.lifetime_cap // manifest.epsilon
    asked = manifest.n_states if manifest.presence != "flags" else (3 * manifest.side - 2) ** 2
    if "cell" in manifest.strata:  # fewer answers tell sooner
        asked = manifest.side**2
    support = ORACLES[manifest.oracle].support(manifest.epsilon, asked)
    assert chance_named(n_reports, support, manifest.side**2) < 0.5
    assert chance_named(n_reports + 1, support, manifest.side**2) >= 0.5
    assert place.reports == n_reports + 1
    assert "before that" in promise(manifest)


def test_at_the_default_settings_a_night_is_enough_and_devices_stop_before():
    manifest = manifest_for()
    assert manifest.lifetime_cap == 18 * MICRO
    assert usual_place_of(manifest) == UsualPlace(
        reports=19, timestamps=19 * 21, period=60, nights=1, lifetime_cap=18.0
    )
    said = promise(manifest)
    assert "your usual place is known after about 1 night (19 reports, 6.65 hours" in said
    assert "it stops after about 6.3 hours of sharing, before that." in said


def test_a_larger_cap_is_allowed_and_said():
    said = promise(manifest_for(lifetime_cap=1000))
    assert "your usual place is known after about 1 night" in said
    assert (
        "spends epsilon 1000 at most: it stops after about 14.6 days of sharing, too late" in said
    )


def test_where_one_report_tells_a_cap_has_to_be_set():
    with pytest.raises(SettingError, match="epsilon=8 on 6 x 6 cells: one report tells a place"):
        manifest_for(epsilon=8)
    said = promise(manifest_for(epsilon=8, lifetime_cap=8))
    assert "known after about 1 night (1 report, 21 minutes at one place)" in said
    assert (
        "No lifetime_cap hides it"
        in run("plan", "--users", 9, "--epsilon", 8, "--no-simulation").out
    )


def test_a_single_cell_leaves_no_place_to_tell():
    manifest = manifest_for(grid=1)
    assert usual_place_of(manifest) is None
    assert manifest.lifetime_cap == 1000 * manifest.epsilon
    assert "usual place" not in promise(manifest)
    assert "up to k times" in left_open(**STRONGEST, usual_place=None)[-2]


@pytest.mark.parametrize("period", [1, 60, 600])
def test_consent_plan_and_receipt_name_the_same_nights(period):
    settings = Settings.load(None, {"period": str(period)}).campaign
    manifest = manifest_for(period=period)
    words = usual_place_of(manifest).words
    nights = math.ceil(19 * 21 * period / NIGHT)
    assert words.startswith(f"about {nights} night{'s' if nights > 1 else ''} (19 reports, ")
    assert f"known after {words}." in promise(manifest)
    planned = forecast(100, epsilon=1.0, window=20, period=period * MICRO, simulates=False)
    assert planned.row(6).usual_place.words == words
    told = run("plan", "--users", 100, "--period", f"{period}s", "--no-simulation")
    assert f"With K = 6 a usual place is known after\n{words}." in told.out
    rows = json.loads(
        run("plan", "--users", 100, "--period", f"{period}s", "--no-simulation", "--json").out
    )["rows"]
    assert [row["usual_place"]["nights"] for row in rows if row["side"] == 6] == [nights]
    place = usual_place_of_run(
        run_settings_of(settings), period=period, lifetime_cap=manifest.lifetime_cap / MICRO
    )
    line = left_open(**STRONGEST, usual_place=place)[-2]
    expected = f"linked reports tell a usual place after {words}; devices stop at epsilon 18"
    assert line == f"long-run repetition: {expected}"


@pytest.mark.parametrize("cap", [None, 40.0])
def test_the_receipt_of_a_release_says_it(cap, tmp_path):
    async def release():
        settings = settings_in(tmp_path / "service")
        campaign = settings.campaign.model_copy(update={"lifetime_cap": cap})
        service = Service(settings.model_copy(update={"campaign": campaign}), SetClock())
        await service.start(runs=False)
        crowd = await Crowd.enrol(service, 4, rounds=1)
        await play(service, crowd, 1)
        await finish(service)
        await service.stop()
        return service.runtime

    runtime = asyncio.run(release())
    receipt = read_receipt(json.loads(runtime.releases.receipt(0)), name="it")
    assert receipt.usual_place == usual_place_of(runtime.campaign.manifest)
    assert receipt.usual_place.lifetime_cap == (cap or (receipt.usual_place.reports - 1) * 1.0)
    assert receipt.usual_place.statement in " ".join(show(receipt).split())
    assert not [check for check in verify_receipt(receipt) if check.verdict == "FAIL"]
    for other in ({"nights": 9}, {"reports": 30}, {"period": 3600.0}):
        place = dataclasses.replace(receipt.usual_place, **other)
        forged = dataclasses.replace(receipt, usual_place=place)
        assert checks.check_usual_place(forged).verdict == "FAIL"


def test_a_simulated_receipt_counts_timestamps():
    receipt = made_receipts.receipt("steered")
    assert receipt.usual_place == UsualPlace(
        reports=9, timestamps=45, period=None, nights=None, lifetime_cap=None
    )
    assert "a usual place after 9 reports (45 timestamps at one place)" in " ".join(
        show(receipt).split()
    )
    assert made_receipts.receipt("exact").usual_place is None


def test_a_duration_has_one_unit():
    assert [duration(n) for n in (0.5, 59, 7200, 86_400 * 2000)] == [
        *("0.5 seconds", "59 seconds", "2 hours", "2,000 days"),
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (2, "2 seconds"),
        (60, "1 minute"),
        (3600, "1 hour"),
        (7200, "2 hours"),
        (86_400, "1 day"),
        (999 * 86_400, "999 days"),
        (1000 * 86_400, "1,000 days"),
        (1000 * 86_400 + 43_200, "1,000 days"),
    ],
)
def test_a_duration_is_said_in_its_largest_unit(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize("period", [None, 60])
def test_without_nights_a_stay_is_counted_in_timestamps(period):
    place = UsualPlace(reports=1, timestamps=21, period=period, nights=None, lifetime_cap=None)
    assert place.words == "1 report (21 timestamps at one place)"
    assert place.statement == f"linked reports tell a usual place after {place.words}"


def test_two_places_are_a_secret_already():
    assert UsualPlace.of([(0.5, 0.25)], n_places=2, gap=1) is not None
    assert UsualPlace.of([(0.5, 0.25)], n_places=1, gap=1) is None


def test_transitions_moves_and_cells_tell_a_place_and_nothing_else_that_is_asked():
    assert telling(("move", "enter", "quit", "cell")) == ["move", "cell"]
    assert telling(("transition", "older")) == telling(("transition", "present")) == ["transition"]


def test_the_role_that_tells_the_place_first_counts():
    worse, better = (0.2, 0.02), (0.2, 0.1)
    both = UsualPlace.of([better, worse], n_places=36, gap=21)
    assert both == UsualPlace.of([worse], n_places=36, gap=21)
    assert both.reports < UsualPlace.of([better], n_places=36, gap=21).reports
    few, many = (ORACLES["grr"].support(2 * MICRO, n) for n in (36, 328))
    assert fewest_naming(few, 36) < fewest_naming(many, 36), "fewer answers tell sooner"
    cells = manifest_for(oracle="grr", epsilon=2)
    assert usual_place_of(cells).reports == fewest_naming(few, 36)


def test_a_cap_that_is_set_is_taken_as_it_is():
    settings = Settings.load(None, {"lifetime_cap": "2.5"}).campaign
    assert lifetime_cap_of(settings, run_settings_of(settings)) == 2_500_000


STATE, CELL = 0, 5  # codes of questions


def nights_at_home(manifest, n_devices, n_nights, dice):
    """Yield after every night what each device's reports of its state or cell sum to."""
    campaign, states = Campaign(manifest), Numbering(manifest.side, endpoints=True)
    stays = [states.move(cell, cell) for cell in range(manifest.side**2)]
    x0, y0, x1, y1 = (corner / MICRO for corner in manifest.box)
    devices = []
    for n in range(n_devices):
        reporter = Reporter(n.to_bytes(16, "big"), bytes(32), MemoryStore(), verify)
        reporter.pin(campaign.envelope, campaign.at(-1000))
        home = dice.randrange(manifest.side**2)
        row, column = divmod(home, manifest.side)
        fix = (
            x0 + (column + 0.5) / manifest.side * (x1 - x0),
            y0 + (row + 0.5) / manifest.side * (y1 - y0),
        )
        devices.append((reporter, Tracker(manifest), fix, home, [0] * manifest.side**2, []))
    per_day, per_night = 86_400 // manifest.period, NIGHT // manifest.period
    for night in range(n_nights):
        for t in range(night * per_day, night * per_day + per_night):
            envelope, now = campaign.ask(t), campaign.at(t)
            for n, (reporter, tracker, fix, _, sums, asked) in enumerate(devices):
                tracker.observe(t, fix, boot=now.boot)
                answer = reporter.answer(envelope, now, tracker)
                if not isinstance(answer, Answer):
                    continue
                report = decode_report(answer.frame, bytes(32), oracle=manifest.oracle)
                asked.append(report.question)
                if report.question in (STATE, CELL):
                    bits = int.from_bytes(report.bits, "little")
                    homes = stays if report.question == STATE else range(manifest.side**2)
                    devices[n][4][:] = [
                        count + (bits >> home & 1) for count, home in zip(sums, homes, strict=True)
                    ]
        yield [
            (home, list(sums), len(asked))
            for *_, home, sums, asked in devices
            if asked and asked[0] in (STATE, CELL)
        ]


@pytest.mark.long
@pytest.mark.parametrize("capped", [False, True])
def test_b2_devices_at_home_are_told_as_predicted_and_by_default_no_more_than_half(
    capped, record_property
):
    """200 devices and more, real reporters, the default campaign; a tenth tells ages only."""
    dice, n_nights = random.Random(2), 5
    manifest = manifest_for() if capped else manifest_for(lifetime_cap=1000)
    seen = nights_at_home(manifest, 260, n_nights, dice)
    for night, found in enumerate(seen, 1):
        told = found[:200]
        assert len(told) == 200
        n_right = sum(guess(sums, dice) == home for home, sums, _ in told)
        per_device = sum(n for *_, n in told) / len(told)
        chance = chance_named(round(per_device), OUE_AT_1, manifest.side**2)
        record_property(
            f"night {night}", f"{n_right} of 200, {per_device:.1f} reports, {chance:.3f}"
        )
        assert in_error(n_right, 200, chance)
        if capped:
            assert max(n for *_, n in told) <= 18
            assert chance < 0.5
