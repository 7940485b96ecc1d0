"""LDP-IDS against the plain loop: what is asked, when it is published, what is remembered."""

import dataclasses
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn import METHODS, Curator, RunSettings, synthesize
from retrasyn.data.trajectories import Trajectories
from retrasyn.interpretation import SAFE
from retrasyn.mechanisms.base import View, drive
from retrasyn.mechanisms.probe_publish import (
    Absorption,
    Distribution,
    ProbeThenPublish,
    Publication,
    PublicationMemory,
    dissimilarity,
    publication_error,
)
from retrasyn.messages import MICRO, Aggregate, Estimate, Roster
from retrasyn.oracles import OUE
from retrasyn.privacy.selection import n_users_of
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.space import Box, Grid, StateSpace

GRID = Grid(Box(0, 0, 1, 1), 2)
STATES = StateSpace(GRID)
PLAIN = ["lbd", "lba", "lpd", "lpa"]
ROWS = [name for name, row in METHODS.items() if isinstance(row.mechanism, ProbeThenPublish)]
NAIVE = {
    "lbd": ("distribution", "budget"),
    "lba": ("absorption", "budget"),
    "lpd": ("distribution", "users"),
    "lpa": ("absorption", "users"),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything a dialogue depends on besides who is there."""

    name: str
    window: int
    unit: str
    epsilon: int
    first_t: int

    @property
    def reading(self):
        return SAFE.answer(unit=self.unit)

    @property
    def gap(self):
        return self.reading.gap(self.window)

    @property
    def divides(self):
        return NAIVE[self.name][1]

    def view(self, t, memory, n_users):
        return View(
            t=t,
            first_t=self.first_t,
            window=self.window,
            gap=self.gap,
            reading=self.reading,
            memory=memory,
            n_enrolled=n_users,
            epsilon=self.epsilon,
            splits_users=METHODS[self.name].division.splits_users,
        )

    def bought(self, share, n_users):
        """Return micro-nats and users that a share of the package's buys."""
        if self.divides == "users":
            return self.epsilon, n_users_of(share, n_users)
        return int(share * self.epsilon), n_users


@dataclasses.dataclass
class Crowd:
    """Answers alike whoever asks: a truth that leaps at times, noise, and sometimes silence."""

    seed: int
    silence: float = 0.0
    noise: float = 1.0

    def frequencies(self, t, lane, spread):
        """Return one noisy vector; None where nobody answers."""
        random = np.random.default_rng([self.seed, abs(t), t < 0, lane == "probe"])
        if random.random() < self.silence:
            return None
        truths = np.random.default_rng(self.seed).dirichlet(np.full(STATES.n_states, 0.3), size=8)
        truth = truths[random.integers(8) if random.random() < 0.2 else 0]
        return truth + random.normal(0, self.noise * spread, STATES.n_states)


def spread_of(setting, n_users):
    """Return a typical error of a probe, the same for both sides."""
    epsilon, n = setting.epsilon / MICRO, max(n_users, 1)
    if setting.divides == "users":
        return (naive.oue_variance(epsilon, 1) * 2 * setting.gap / n) ** 0.5
    return naive.oue_variance(epsilon / (2 * setting.gap), n) ** 0.5


def our_turn(setting, memory, t, n_users, crowd):
    """Return the asks, what they bought, and the outcome."""
    asks, bought = [], []

    def answer(ask):
        asks.append(ask)
        spend, n = setting.bought(ask.share, n_users)
        if spend == 0 or n == 0:
            return None
        bought.append((ask.lane, spend, n))
        found = crowd.frequencies(t, ask.lane, spread_of(setting, n_users))
        if found is None:
            return None
        return Estimate(frequencies=found, variance=OUE(spend).variance(n), n=n)

    mechanism = METHODS[setting.name].mechanism
    outcome = drive(mechanism.dialogue(setting.view(t, memory, n_users)), answer)
    for field in dataclasses.fields(memory):
        setattr(memory, field.name, getattr(outcome.memory, field.name))
    return asks, bought, outcome


def their_turn(setting, memory, t, n_users, crowd):
    """Return the plain loop's memory, the shares it asked for, and what they bought."""
    bought = []

    def collect(lane, spend, n):
        bought.append((lane, spend, n))
        found = crowd.frequencies(t, lane, spread_of(setting, n_users))
        return ([], 0) if found is None else (found.tolist(), n)

    schedule, divides = NAIVE[setting.name]
    memory, shares = naive.probe_then_publish(
        memory,
        t,
        n_users,
        first_t=setting.first_t,
        epsilon=setting.epsilon,
        gap=setting.gap,
        schedule=schedule,
        divides=divides,
        collect=collect,
    )
    return memory, shares, bought


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=50)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 3, 41, 400, 5000]), min_size=1, max_size=70),
    constant=st.booleans(),
    window=st.integers(1, 20),
    unit=st.sampled_from(["position", "transition"]),
    epsilon=st.sampled_from([1, 300_000, MICRO, 4 * MICRO]),
    first_t=st.integers(-5, 5),
    seed=st.integers(0, 999),
    silence=st.sampled_from([0.0, 0.2]),
    noise=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_a_long_dialogue_is_that_of_the_plain_loop(
    name, sizes, constant, window, unit, epsilon, first_t, seed, silence, noise
):
    setting = Settings(name, window, unit, epsilon, first_t)
    crowd = Crowd(seed, silence, noise)
    memory = METHODS[name].mechanism.open_memory(STATES, setting.gap, ["transition"])
    reference = naive.NaivePublications(released=None, shares={})
    for t, size in enumerate(sizes, first_t):
        n_users = sizes[0] if constant else size
        asks, ours, outcome = our_turn(setting, memory, t, n_users, crowd)
        reference, shares, theirs = their_turn(setting, reference, t, n_users, crowd)
        assert [ask.share for ask in asks] == pytest.approx([float(share) for share in shares])
        assert [ask.lane for ask in asks] == ["probe", "publish"][: len(asks)]
        assert {ask.of for ask in asks} == {"everybody"}
        assert [(lane, n) for lane, _, n in ours] == [(lane, n) for lane, _, n in theirs]
        for (_, spend, _), (_, exact, _) in zip(ours, theirs, strict=True):
            assert spend == pytest.approx(exact, abs=1)  # a float may fall short of a whole number
        if reference.released is None:
            assert outcome.released is None
        else:
            assert outcome.released == pytest.approx(np.array(reference.released))


@pytest.mark.parametrize("name", PLAIN)
def test_the_dialogues_compared_both_publish_and_wait(name):
    setting = Settings(name, 5, "position", MICRO, 0)
    memory = METHODS[name].mechanism.open_memory(STATES, setting.gap, ["transition"])
    turns = [our_turn(setting, memory, t, 5000, Crowd(1)) for t in range(200)]
    published = [len(asks) == 2 for asks, _, _ in turns]
    assert published[0]
    assert 10 < sum(published) < 150


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=15)
@given(
    n_users=st.integers(1, 150),
    window=st.integers(1, 12),
    unit=st.sampled_from(["position", "transition"]),
    seed=st.integers(0, 999),
)
def test_a_steady_population_is_always_granted_what_was_asked(name, n_users, window, unit, seed):
    setting = Settings(name, window, unit, MICRO, 0)
    ledger = METHODS[name].division.open_ledger(epsilon=MICRO, gap=setting.gap)
    memory = METHODS[name].mechanism.open_memory(STATES, setting.gap, ["transition"])
    spent = defaultdict(list)
    for t in range(4 * setting.gap):
        asks, _, _ = our_turn(setting, memory, t, n_users, Crowd(seed))
        for ask in asks:
            grant = ledger.grant(ask, t=t, roster=roster(n_users), seed=seed)
            spend, n = setting.bought(ask.share, n_users)
            assert grant.reporters.size == (n if spend else 0)
            assert grant.epsilon == (spend if n else 0)
            for key in grant.reporters.tolist():
                spent[key].append((t, grant.epsilon))
    for reports in spent.values():
        assert naive.worst_window(reports, setting.gap) <= MICRO


def roster(n):
    keys = np.arange(n)
    addresses = keys.astype(np.uint64) * np.uint64(0x9E3779B9)
    return Roster(keys=keys, addresses=addresses, slots=np.zeros(n, np.int64))


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 999),
    window=st.integers(1, 9),
    unit=st.sampled_from(["position", "transition"]),
    silence=st.sampled_from([0.0, 0.3]),
)
def test_whoever_comes_and_goes_never_spends_more_than_epsilon(name, seed, window, unit, silence):
    random = np.random.default_rng(seed)
    reading = SAFE.answer(unit=unit)
    curator = Curator(
        dataclasses.replace(
            RunSettings.of(name, grid=GRID, window=window, seed=seed), interpretation=reading
        )
    )
    reports = defaultdict(list)

    def collect(grant, lane):
        for key in grant.reporters.tolist():
            reports[key].append((grant.t, grant.epsilon))
        n = 0 if random.random() < silence else grant.reporters.size
        return Aggregate(counts=random.integers(0, n + 1, STATES.n_states), n=n)

    everybody = roster(120)
    for t in range(50):
        here = random.random(120) < random.choice([0.0, 0.1, 0.9])
        now = Roster(
            keys=everybody.keys[here],
            addresses=everybody.addresses[here],
            slots=everybody.slots[here],
        )
        curator.step(t, size=int(here.sum()), roster=now, collect=collect)
    assert reports
    for mine in reports.values():
        assert naive.worst_window(mine, curator.gap) <= MICRO


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=500, n_timestamps=50, seed=4)


@pytest.mark.parametrize("ledger", ["user", "stream"])
@pytest.mark.parametrize("unit", ["position", "transition"])
@pytest.mark.parametrize("name", PLAIN)
def test_worst_windows_on_the_receipt_stay_within_epsilon(name, unit, ledger, city):
    _, receipt = synthesize(city, name, box=CITY_BOX, window=8, unit=unit, ledger=ledger, seed=0)
    assert receipt.within_guarantee
    assert 0 < receipt.worst_window.declared.epsilon <= 1.0
    if (unit, ledger) == ("position", "user"):
        assert receipt.worst_window.person_position.epsilon <= 1.0


def published_at(setting, sizes, crowd):
    """Return the timestamps of publications, with nothing remembered at first."""
    memory = METHODS[setting.name].mechanism.open_memory(STATES, setting.gap, ["transition"])
    turns = {
        t: our_turn(setting, memory, t, size, crowd)
        for t, size in enumerate(sizes, setting.first_t)
    }
    return [t for t, (_, _, outcome) in turns.items() if outcome.fresh]


@pytest.mark.parametrize("name", PLAIN)
def test_the_first_publication_is_made_whatever_the_probe_says(name):
    setting = Settings(name, 20, "position", MICRO, 3)
    assert published_at(setting, [1000], Crowd(0, noise=0.0)) == [3]


@pytest.mark.parametrize("name", PLAIN)
def test_empty_timestamps_ask_nobody_and_publish_nothing(name):
    setting = Settings(name, 4, "position", MICRO, 0)
    assert published_at(setting, [0, 0, 0, 1000], Crowd(0)) == [3]
    assert published_at(setting, [0] * 30, Crowd(0)) == []


def test_an_empty_beginning_is_absorbed():
    setting = Settings("lba", 9, "position", MICRO, 0)
    memory = PublicationMemory(gap=setting.gap)
    for t, size in enumerate([0, 0, 0, 1000]):
        our_turn(setting, memory, t, size, Crowd(0))
    assert [(one.t, one.share) for one in memory.past] == [(3, pytest.approx(4 / 20))]


@pytest.mark.parametrize("name", PLAIN)
def test_a_publication_without_an_estimate_still_counts(name):
    setting = Settings(name, 9, "position", MICRO, 0)
    memory = PublicationMemory(gap=setting.gap)
    _, bought, outcome = our_turn(setting, memory, 0, 1000, Crowd(0, silence=1.0))
    assert [lane for lane, _, _ in bought] == ["probe", "publish"]
    assert not outcome.fresh
    assert outcome.released is None
    assert len(memory.past) == 1
    view = setting.view(1, memory, 1000)
    part = 1 / (2 * setting.gap)
    left = METHODS[name].mechanism.schedule.share(1, 0, setting.gap, memory.past)
    assert left == pytest.approx({"distribution": 0.125, "absorption": part}[NAIVE[name][0]])
    assert np.isfinite(publication_error(view, left))


@pytest.mark.parametrize("name", ["lpd", "lpa"])
def test_too_few_users_for_a_share_are_never_asked(name):
    setting = Settings(name, 20, "position", MICRO, 0)
    memory = PublicationMemory(gap=setting.gap)
    for t in range(60):
        _, bought, outcome = our_turn(setting, memory, t, 1, Crowd(0))
        assert bought == []
        assert outcome.released is None
    assert not memory.past


@pytest.mark.parametrize("name", ["lbd", "lba"])
def test_one_user_is_enough_where_epsilon_is_divided(name):
    setting = Settings(name, 20, "position", MICRO, 0)
    assert published_at(setting, [1] * 5, Crowd(0))[0] == 0


@pytest.mark.parametrize("name", PLAIN)
def test_a_window_of_one_transition_begins_afresh_every_time(name):
    setting = Settings(name, 1, "transition", MICRO, 0)
    assert setting.gap == 1
    memory = PublicationMemory(gap=1)
    crowd = Crowd(0, noise=0.0)
    for t in range(5):
        asks, _, _ = our_turn(setting, memory, t, 10_000, crowd)
        assert asks[0].share == 0.5
        if len(asks) == 2:
            assert asks[1].share == {"distribution": 0.25, "absorption": 0.5}[NAIVE[name][0]]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("window", [1, 500])
def test_one_person_and_any_window_make_a_stream(name, window):
    t = np.array([0, 1, 2, 9, 10])
    alone = Trajectories.from_columns(
        traj_id=np.array([0, 0, 0, 1, 1]),
        t=t,
        x=np.array([0.1, 0.4, 0.9, 0.5, 0.5]),
        y=np.full(5, 0.5),
        user_id=np.zeros(5, np.int64),
    )
    synthetic, receipt = synthesize(alone, name, box=(0, 0, 1, 1), grid=3, window=window, seed=0)
    assert synthetic.n_points > 0
    assert receipt.worst_window.person_position.epsilon <= 1.0


@given(
    st.lists(st.floats(-0.5, 1.5), min_size=24, max_size=24),
    st.integers(0, 99),
    st.integers(1, 1000),
    st.sampled_from([10_000, MICRO, 3 * MICRO]),
)
def test_dissimilarity_is_that_of_the_plain_loop(frequencies, seed, n, epsilon):
    previous = np.random.default_rng(seed).dirichlet(np.ones(24))
    probe = Estimate(frequencies=np.array(frequencies), variance=OUE(epsilon).variance(n), n=n)
    theirs = naive.dissimilarity(frequencies, previous.tolist(), epsilon / MICRO, n)
    assert dissimilarity(previous, probe) == pytest.approx(theirs, abs=1e-9, rel=1e-6)


@given(st.integers(0, 500), st.integers(1, 40), st.integers(1, 40))
def test_publication_errors_are_those_of_the_plain_loop(n_users, n_parts, gap):
    share = Fraction(min(n_parts, gap), 2 * gap)
    for name in ("lba", "lpa"):
        setting = Settings(name, gap, "transition", MICRO, 0)
        spend, n = naive.what_a_share_buys(share, MICRO, n_users, setting.divides)
        ours = publication_error(setting.view(0, PublicationMemory(), n_users), float(share))
        assert ours == pytest.approx(naive.oue_variance(spend / MICRO, n), rel=1e-4)


def test_the_last_publication_is_never_forgotten_and_older_ones_are():
    memory = PublicationMemory(gap=3)
    setting = Settings("lba", 3, "transition", MICRO, 0)
    for t in range(3):
        our_turn(setting, memory, t, 1_000_000, Crowd(t, noise=0.0))
    assert len(memory.past) == 3
    last = memory.past[-1]
    for t in range(3, 30):
        our_turn(setting, memory, t, 0, Crowd(0))
    assert list(memory.past) == [last]
    assert Absorption().share(30, 0, 3, memory.past) == 0.5


@given(
    st.dictionaries(st.integers(0, 10**12), st.floats(1e-12, 0.5), max_size=6),
    st.integers(1, 1000),
)
def test_memory_survives_the_way_to_arrays_and_back(past, gap):
    memory = PublicationMemory(gap=gap)
    memory.past.extend(Publication(t, share) for t, share in sorted(past.items()))
    if past:
        memory.released = np.random.default_rng(len(past)).dirichlet(np.ones(5))
        memory.history.append(memory.released)
        memory.significant.append(1.0)
        memory.n_collections, memory.last_t = 7, 3
    again = ProbeThenPublish(Distribution()).open_memory(STATES, gap, ["transition"])
    again.load_arrays(memory.to_arrays())
    assert again.past == memory.past
    assert all(isinstance(one.t, int) for one in again.past)
    assert again.gap == gap
    mine, other = memory.to_arrays(), again.to_arrays()
    assert mine.keys() == other.keys()
    assert all(mine[name].tobytes() == other[name].tobytes() for name in mine)


@pytest.mark.parametrize("name", PLAIN)
def test_a_curator_handed_over_at_any_moment_goes_on_alike(name):
    def curator():
        return Curator(RunSettings.of(name, grid=GRID, window=3, seed=5))

    def collect(grant, lane):
        counts = np.random.default_rng([grant.t, lane == "probe"]).integers(
            0, grant.reporters.size + 1, STATES.n_states
        )
        return Aggregate(counts=counts, n=grant.reporters.size)

    steady, handed = curator(), curator()
    for t in range(40):
        releases = [
            one.step(t, size=60, roster=roster(60), collect=collect) for one in (steady, handed)
        ]
        assert releases[0].cells.tobytes() == releases[1].cells.tobytes()
        assert releases[0].n_reports == releases[1].n_reports
        arrays = {key: array.copy() for key, array in handed.state.to_arrays().items()}
        handed = curator()
        handed.state.load_arrays(arrays)


@pytest.mark.parametrize("name", [name for name in ROWS if name.endswith("-steered")])
def test_walking_points_stay_in_their_cells(name, city):
    grid = Grid(CITY_BOX, 6)
    releases = []
    synthesize(city, name, box=CITY_BOX, window=8, on_release=releases.append, seed=0)
    assert sum(release.n_reports for release in releases) > 0
    for release in releases:
        assert np.array_equal(grid.cells_of(release.x, release.y), release.cells)
