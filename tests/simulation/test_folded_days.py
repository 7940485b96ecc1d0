"""Folded days: nobody spends more than the receipt says, whoever counts."""

from collections import defaultdict

import numpy as np
import pytest

import retrasyn
from retrasyn import METHODS, Box, Grid, RunSettings, demo_city
from retrasyn.errors import SettingError
from retrasyn.privacy.receipt import FoldedDays, Lifetime
from retrasyn.receipts.verify import verify
from retrasyn.receipts.words import show
from retrasyn.simulation.run import SimulatedRun
from retrasyn.simulation.stream import Live
from support.folding import PER_DAY, with_clock

BOX = Box(0, 0, 10, 10)
FOLDABLE = ["steered", "steered-length", "steered-hidden", "retrasyn-p", "retrasyn-b", "lpa"]


@pytest.fixture(scope="module")
def real():
    return with_clock(demo_city(n_users=60, n_timestamps=60, seed=1))


def settings_for(method, fold, **options):
    options = {"window": 3, "seed": 0} | options
    return RunSettings.of(method, grid=Grid(BOX, 3), fold=fold, **options)


def heard(real, settings):
    """Run; return the receipt and every grant with its reporters' keys and persons."""
    run = SimulatedRun.of(real, settings)
    simulation, grants = run.simulation, []
    source = simulation._collect

    def collect(grant, lane):
        persons = simulation.population.persons_of(grant)
        back = grant.question.lookback
        grants.append((grant.t, grant.epsilon, back, grant.reporters.tolist(), persons.tolist()))
        return source(grant, lane)

    type(simulation)._collect = lambda _, grant, lane: collect(grant, lane)
    try:
        for _ in run.releases():
            pass
    finally:
        type(simulation)._collect = source.__func__
    return run.receipt(), grants


def worst(grants, which, window):
    """Return the most any key spent on any window of positions, by a plain loop over all."""
    spent = defaultdict(int)
    for t, epsilon, back, *columns in grants:
        for key in columns[which]:
            for first in range(-3 * PER_DAY, 2 * PER_DAY):
                touched = range(first, first + window)
                if any(position in touched for position in range(t - back, t + 1)):
                    spent[key, first] += epsilon
    return max(spent.values()) / 1e6


@pytest.mark.parametrize("fold", ["day", "person-day"])
@pytest.mark.parametrize("method", FOLDABLE)
def test_nobody_spends_more_than_the_receipt_says(method, fold, real):
    receipt, grants = heard(real, settings_for(method, fold))
    keys, persons = (worst(grants, which, window=3) for which in (0, 1))

    assert receipt.worst_window.declared.epsilon == pytest.approx(keys, abs=1e-6)
    assert receipt.worst_window.person_position.epsilon == pytest.approx(persons, abs=1e-6)
    assert keys <= 1.0
    if fold == "day":
        assert receipt.within_epsilon_per_person
        assert persons <= 1.0
    else:
        assert persons <= receipt.folded.most_days
    for t, *_, reporters, _ in grants:
        assert len(reporters) == len(set(reporters)), f"twice at {t}"


def test_a_person_day_receipt_says_that_the_person_is_not_protected(real):
    receipt, _ = heard(real, settings_for("steered", "person-day", seed="random"))

    assert receipt.headline.startswith("Private for a person's day, NOT for the person")
    assert receipt.guarantee.startswith("For one day of one person and any 3 consecutive")
    assert receipt.ledger == receipt.lifetime.per == "person-day"
    days = receipt.folded.most_days
    most = days * receipt.lifetime.epsilon
    assert (
        f"the most active has {days} days, which together cost at most epsilon {most:g}"
        in (receipt.not_protected[0])
    )
    assert not receipt.within_epsilon_per_person


def test_a_folded_receipt_says_what_a_position_is_and_what_midnight_does(real):
    receipt, _ = heard(real, settings_for("steered", "day", seed="random"))

    assert receipt.headline.endswith("over any 3 positions of the folded day")
    assert "of the folded day, whatever days they are from" in receipt.guarantee
    assert "across midnight" in receipt.not_protected[0]
    assert receipt.n_users == np.unique(real.user_of_stream).size


@pytest.mark.parametrize("fold", ["day", "person-day"])
def test_who_is_asked_what_and_when_does_not_depend_on_where_anybody_goes(fold, real):
    elsewhere = np.random.default_rng(5).permutation(real.n_points)
    moved = retrasyn.Trajectories(
        real.stream_ids,
        real.begins,
        real.starts,
        real.x[elsewhere],
        real.y[elsewhere],
        real.user_of_stream,
        clock=real.clock,
    )
    one, other = (heard(data, settings_for("steered", fold))[1] for data in (real, moved))
    assert one == other


def test_synthesize_folds_and_the_receipt_is_verified_from_the_input(real):
    synthetic, receipt = retrasyn.synthesize(
        real, box=BOX, grid=3, window=3, seed=0, fold="day", epsilon=2.0
    )

    assert synthetic.last_t < PER_DAY
    assert synthetic.clock == real.folded().clock
    assert synthetic.n_points == real.n_points
    assert [check for check in verify(receipt, real=real) if check.verdict != "ok"] == [
        check for check in verify(receipt) if check.name in ("data file", "points")
    ]


def test_folded_and_unfolded_releases_of_the_same_data_are_counted_together(real, tmp_path):
    asked = {"box": BOX, "grid": 3, "window": 3, "ledger_file": tmp_path / "spent.json"}
    retrasyn.synthesize(real, **asked)
    with pytest.warns(UserWarning, match="release 2 of this data"):
        receipt = retrasyn.synthesize(real, fold="day", **asked).receipt
    assert (receipt.composition.n_releases, receipt.composition.epsilon) == (2, 2.0)


def test_an_interrupted_folded_run_goes_on_with_the_same_bytes(real, tmp_path):
    def stop(done, _total):
        if done == 5:
            raise KeyboardInterrupt

    asked = {"box": BOX, "grid": 3, "window": 3, "seed": 0, "fold": "day"}
    whole = retrasyn.synthesize(real, **asked).synthetic
    with pytest.raises(KeyboardInterrupt):
        retrasyn.synthesize(real, checkpoint=tmp_path, progress=stop, **asked)
    again = retrasyn.synthesize(real, checkpoint=tmp_path, resume=True, **asked).synthetic
    assert np.array_equal(whole.x, again.x)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fold": "week"}, "neither day nor person-day"),
        ({"fold": "day", "ledger": "stream"}, "share the budget of a person"),
        ({"fold": "day", "faithful": True}, "share the budget of a person"),
        ({"fold": "day", "method": "steered-flags"}, "tells who starts and stops"),
        ({"fold": "day", "jump": "split"}, "would show the jump"),
    ],
)
def test_folds_that_no_sentence_could_describe_are_refused(options, says):
    method = options.pop("method", None)
    with pytest.raises(SettingError, match=says):
        RunSettings.of(method, grid=Grid(BOX, 3), **options)


def test_all_methods_but_flags_can_fold():
    foldable = {row.name for row in METHODS.values() if row.presence != "flags" and not row.speeds}
    assert set(FOLDABLE) <= foldable
    for name in foldable:
        settings_for(name, "day")


def test_what_is_not_private_names_no_sum_of_days(real):
    limits = FoldedDays("person-day", 3).limits(Lifetime("person-day", 12, 3, None))
    assert limits[0].endswith("the most active has 3 days, whose cost has no bound")
    receipt, _ = heard(real, settings_for("exact", "day", jump="clamp"))
    assert receipt.headline.startswith("NOT PRIVATE")


def test_a_running_stream_cannot_be_folded():
    with pytest.raises(SettingError, match="no days to fold"):
        Live.start(settings_for("steered", "day"))


def test_data_of_almost_nobody_over_very_long_is_refused_with_the_cure():
    columns = {"traj_id": [1, 2], "t": [0, 200_000], "x": [0.1, 0.2], "y": [0.1, 0.2]}
    sparse = retrasyn.Trajectories.from_columns(**columns)
    with pytest.raises(retrasyn.RetraSynError, match="199,999 of 200,001 timestamps are empty"):
        retrasyn.synthesize(sparse, box=(0, 0, 1, 1))


def test_the_page_of_a_receipt_says_how_many_days_the_most_active_person_has(real):
    receipt, _ = heard(real, settings_for("steered", "person-day"))
    page = " ".join(show(receipt).split())
    assert f"the most active person has {receipt.folded.most_days} days" in page
    assert "folded by person-day" in page
