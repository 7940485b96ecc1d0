"""The generator: objects on roads, no faster than allowed, from start to destination."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.data.moving_objects.demand import Demand, uniforms
from retrasyn.data.moving_objects.generate import generate
from retrasyn.data.moving_objects.objects import TOP_SPEEDS
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import SettingError
from retrasyn.metrics.divergence import jsd
from retrasyn.roads.network import RoadNetwork
from support.road_networks import distance_to_roads, road_networks


@pytest.fixture(scope="module")
def city():
    return city_network(300)


def steps_of(made):
    """Return the distance between consecutive points, and the stream each belongs to."""
    same = np.diff(made.traj_id) == 0
    return np.hypot(np.diff(made.x), np.diff(made.y))[same], made.traj_id[1:][same]


def top_speeds(made, network, *, speed, seed):
    kind = (uniforms(seed, "class", made.stream_ids) * len(TOP_SPEEDS)).astype(int)
    return speed * network.extent * np.array(TOP_SPEEDS)[kind]


@settings(max_examples=40)
@given(
    road_networks(),
    st.integers(0, 20),
    st.integers(1, 5),
    st.integers(1, 25),
    st.floats(0.001, 0.5),
    st.sampled_from([None, 10]),
    st.sampled_from([None, 0, 5]),
    st.integers(0, 2**70),
)
def test_points_lie_on_roads_and_no_step_exceeds_the_top_speed(
    network, n_objects, n_new, n_steps, speed, rhythm, reroute, seed
):
    if reroute is not None:
        reroute = min(reroute, n_steps - 1)
    n_objects += 1

    made = generate(
        network,
        n_objects=n_objects,
        n_new=n_new,
        n_steps=n_steps,
        speed=speed,
        rhythm=rhythm,
        reroute=reroute,
        seed=seed,
    )

    distance, stream = steps_of(made)
    rounding = 1e-9 * network.extent
    assert (distance <= top_speeds(made, network, speed=speed, seed=seed)[stream] + rounding).all()
    assert (distance_to_roads(network, made.x, made.y) <= rounding).all()
    nodes = {*zip(network.x.tolist(), network.y.tolist(), strict=True)}
    first, last = made.starts[:-1], made.starts[1:] - 1
    arrived = made.begins + made.lengths < n_steps
    assert {*zip(made.x[first].tolist(), made.y[first].tolist(), strict=True)} <= nodes
    assert {*zip(made.x[last][arrived], made.y[last][arrived], strict=True)} <= nodes
    assert (made.lengths >= 1).all()
    assert made.last_t < n_steps
    Trajectories.from_columns(traj_id=made.traj_id, t=made.t, x=made.x, y=made.y)


def test_objects_are_numbered_by_birth_and_all_of_them_appear(city):
    made = generate(city, n_objects=40, n_new=3, n_steps=21, seed=1)

    assert made.stream_ids.tolist() == list(range(100))
    assert np.bincount(made.begins).tolist() == [40] + [3] * 20


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(city):
    first, again, other = (
        generate(city, n_objects=50, n_new=5, n_steps=30, rhythm=20, reroute=15, seed=seed)
        for seed in (4, 4, 5)
    )

    assert first.x.tobytes() == again.x.tobytes()
    assert first.y.tobytes() == again.y.tobytes()
    assert first.starts.tobytes() == again.starts.tobytes()
    assert first.x.tobytes() != other.x.tobytes()


def test_more_traffic_makes_longer_streams(city):
    few = generate(city, n_objects=20, n_new=0, n_steps=400, seed=1)
    many = generate(city, n_objects=20_000, n_new=0, n_steps=400, seed=1)

    assert many.lengths.mean() > 1.5 * few.lengths.mean()


def test_twice_the_speed_gives_shorter_streams(city):
    slow, quick = (
        generate(city, n_objects=500, n_new=0, n_steps=900, speed=speed, seed=1)
        for speed in (0.01, 0.02)
    )

    assert quick.lengths.mean() == pytest.approx(slow.lengths.mean() / 2, rel=0.15)


def test_nothing_changes_before_the_reroute_and_all_head_elsewhere_after_it(city):
    options = {"n_objects": 300, "n_new": 20, "n_steps": 200, "seed": 3}
    plain = generate(city, **options)
    turned = generate(city, **options, reroute=30)

    for t in (0, 10, 29):
        for axis in ("x", "y"):
            before, after = (getattr(made, axis)[made.t == t] for made in (plain, turned))
            assert before.tobytes() == after.tobytes()
    place = np.diff(Demand.over(city, seed=3).maps[3], prepend=0.0)
    centre = (place * city.x).sum(), (place * city.y).sum()
    running = (turned.begins < 30) & (turned.begins + turned.lengths > 30)
    new = turned.begins >= 30
    for group in (running, new):
        ends = turned.starts[1:][group & (turned.begins + turned.lengths < 200)] - 1
        assert ends.size > 100
        off = np.hypot(turned.x[ends] - centre[0], turned.y[ends] - centre[1])
        assert off.mean() < 0.12 * city.extent


def density(made, network, first, last):
    """Count the points of the steps first to last in six by six cells."""
    low, high = (np.array([end(network.x), end(network.y)]) for end in (np.min, np.max))
    now = (first <= made.t) & (made.t <= last)
    points = np.stack([made.x[now], made.y[now]], axis=1)
    column, row = np.minimum(6 * (points - low) / (high - low), 5).astype(int).T
    return np.bincount(6 * row + column, minlength=36)


def shift(made, network, t):
    """Return how far density moves from the 30 steps before t to steps 30 to 60 after it."""
    return jsd(density(made, network, t - 30, t - 1), density(made, network, t + 30, t + 60))


def street_grid():
    """Return 20 by 20 crossings whose lengths give them classes, as a file does."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(20), np.arange(20)))
    node = np.arange(400)
    tail = np.concatenate([node[x < 19], node[y < 19]])
    head = np.concatenate([node[x < 19] + 1, node[y < 19] + 20])
    return RoadNetwork.from_edges(x=x, y=y, tail=tail, head=head, length=1 + tail % 7 / 10)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("network", [city_network(1_000), street_grid()], ids=["city", "grid"])
def test_a_reroute_moves_the_density_much_farther_than_chance(network, seed):
    options = {"n_objects": 1_000, "n_new": 40, "n_steps": 151, "seed": seed}

    plain, turned = (
        shift(generate(network, **options, reroute=reroute), network, 90) for reroute in (None, 90)
    )

    assert turned > 2.5 * plain


def test_a_reroute_outweighs_the_tides_of_a_day(city):
    options = {"n_objects": 500, "n_new": 60, "n_steps": 151, "rhythm": 120, "seed": 1}

    plain, turned = (
        shift(generate(city, **options, reroute=reroute), city, 90) for reroute in (None, 90)
    )

    assert turned > 1.5 * plain


def test_a_day_has_its_tides(city):
    made = generate(city, n_objects=0, n_new=40, n_steps=240, rhythm=240, seed=1)

    births = np.bincount(made.begins, minlength=240)
    assert births[70:90].sum() > 3 * births[:20].sum()
    assert births[165:185].sum() > 3 * births[110:130].sum()


def test_progress_ends_with_all_steps_and_may_stop_the_run(city):
    calls = []

    generate(
        city,
        n_objects=5,
        n_new=0,
        n_steps=9,
        progress=lambda done, total: calls.append((done, total)),
    )

    assert calls == sorted(calls)
    assert calls[0] == (0, 9)
    assert calls[-1] == (9, 9)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(city, n_objects=5, n_new=0, n_steps=9, progress=stop)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n_objects": -1}, "objects=-1"),
        ({"n_new": -2}, "new=-2"),
        ({"n_objects": 0, "n_new": 0}, "0 streams"),
        ({"n_objects": 0, "n_steps": 1}, "0 streams"),
        ({"n_objects": 10**12}, "1,000,000,2"),
        ({"n_steps": 0}, "steps=0"),
        ({"n_steps": 10**9}, "steps=1000000000"),
        ({"speed": 0.0}, "speed=0.0"),
        ({"speed": float("nan")}, "speed=nan"),
        ({"speed": 1.5}, "speed=1.5"),
        ({"rhythm": 1}, "rhythm=1"),
        ({"reroute": -1}, "reroute=-1"),
        ({"reroute": 501}, "reroute=501"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_an_impossible_setting_is_refused(options, named, city):
    with pytest.raises(SettingError, match=named):
        generate(city, **options)


_A_MILLION = """
import resource
import numpy as np
from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.data.moving_objects.demand import uniforms
from retrasyn.data.moving_objects.generate import generate
from retrasyn.data.moving_objects.objects import TOP_SPEEDS

city = city_network()
made = generate(city, n_objects=1_000_000 - 199 * 500, n_new=500, n_steps=200, seed=1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
kind = (uniforms(1, "class", made.stream_ids) * len(TOP_SPEEDS)).astype(int)
top = 0.02 * city.extent * np.array(TOP_SPEEDS)[kind]
excess = 0.0
for block in made.blocks(1 << 22):
    same = np.diff(block.traj_id) == 0
    distance = np.hypot(np.diff(block.x), np.diff(block.y))[same]
    excess = max(excess, (distance / top[block.traj_id[1:][same]]).max())
print(made.n_streams, peak, excess)
"""


@pytest.mark.long
def test_a_million_objects_fit_into_three_gibibytes_and_keep_to_their_speed():
    ended = subprocess.run(
        [sys.executable, "-c", _A_MILLION], capture_output=True, text=True, check=True
    )

    n_streams, peak, excess = ended.stdout.split()
    assert int(n_streams) == 1_000_000
    assert float(peak) <= 3.0
    assert float(excess) <= 1 + 1e-9


@pytest.mark.long
def test_every_point_of_a_large_city_lies_on_a_road():
    network = city_network()

    made = generate(network, n_objects=20_000, n_new=100, n_steps=200, seed=2)

    rows = np.random.default_rng(0).integers(0, made.n_points, 50_000)
    off = distance_to_roads(network, made.x[rows], made.y[rows])
    assert off.max() <= 1e-9 * network.extent
