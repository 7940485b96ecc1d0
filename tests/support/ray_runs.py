"""Runs on a Ray cluster of two nodes, for `test_ray`: prints what came out as one line of JSON.

Only to be started in a network of its own (`namespaces`).
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import RayActorError

from retrasyn.data.reading_files import read
from retrasyn.engines.base import LocalEngine, Workers
from retrasyn.engines.ray import RayEngine, RayTasks
from retrasyn.errors import CheckpointError
from retrasyn.oracles.oue import OUE
from retrasyn.service.aggregation import Sums, add_up
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.simulation.run import synthesize
from support.adder import Adder
from support.public_maps import map_for

OBJECTS = 200 << 20
COLUMNS = ("stream_ids", "begins", "starts", "x", "y")


def kill(actor):
    """End an actor, and wait until it is gone: on a busy machine it answers on for a while."""
    ray.kill(actor)
    with contextlib.suppress(RayActorError):
        while True:
            ray.get(actor.usage.remote())


def digest_of(trajectories):
    """Return a digest of all columns."""
    parts = (getattr(trajectories, name).tobytes() for name in COLUMNS)
    return hashlib.sha256(b"".join(parts)).hexdigest()


class Nodes:
    """Two machines, of which the second can be killed and replaced."""

    def __init__(self):
        head = {"num_cpus": 1, "object_store_memory": OBJECTS, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.second = None
        self.mend()

    def mend(self):
        if self.second is None:
            self.second = self.cluster.add_node(num_cpus=1, object_store_memory=OBJECTS)
            self.cluster.wait_for_nodes()

    def kill(self):
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def engine(self, n_workers, folder=None):
        return RayEngine.start(address=self.cluster.address, n_workers=n_workers, folder=folder)


def run(real, method, engine, **options):
    """Return the digest of a run and its replicas, or of the parts that it wrote."""
    options = {"box": CITY_BOX, "seed": 0} | options
    options |= map_for(method, options["box"])
    with contextlib.closing(engine):
        made = synthesize(real, method, engine=engine, **options)
    if options.get("parts"):
        return digest_of(read(options["parts"]))
    return " ".join(map(digest_of, (made.synthetic, *made.replicas)))


def equal_bytes(nodes, real, methods, shards, **options):
    """Run methods here and on the cluster; return the digests."""
    return {
        method: {
            "local": run(real, method, LocalEngine(), **options),
            **{str(n): run(real, method, nodes.engine(n), **options) for n in shards},
        }
        for method in methods
    }


def killed(nodes, real, n_workers=3, **options):
    """Run while the second machine is killed half way; its workers end up on the first."""
    engine = nodes.engine(n_workers)
    n_alive = []

    def progress(done, of):
        if done == of // 2:
            n_alive.append(len({one["node"] for one in engine.usage()}))
            nodes.kill()

    found = run(real, "steered", engine, progress=progress, **options)
    options.pop("parts", None)
    expected = run(real, "steered", LocalEngine(), **options)
    nodes.mend()
    return {
        "same": found == expected,
        "n_machines": n_alive,
        "n_revived": engine.n_revived,
    }


def parts(nodes, real, folder):
    """Let shards write their own parts while a machine is killed; compare with one file."""
    place = folder / "parts.parquet"
    place.mkdir()
    found = killed(nodes, real, n_workers=2, parts=place)
    return {**found, "n_files": len(list(place.iterdir()))}


def lost(nodes):
    """Lose a worker and what it saved; return what is said."""
    with contextlib.closing(nodes.engine(2)) as engine:
        adders = Workers.open(engine, Adder)
        for number in range(4):
            adders.each(Adder.add, number)
            for seat in engine._seats:
                seat.trim(ray.get(seat.actor.save.remote()))
        shutil.rmtree(engine._own)
        kill(engine._seats[1].actor)
        try:
            adders.each(Adder.add, 1)
        except CheckpointError as error:
            return str(error)
    return "went on from nothing"


def failing(nodes):
    """Return how an error inside a worker shows."""
    with contextlib.closing(nodes.engine(1)) as engine:
        adders = Workers.open(engine, Adder)
        try:
            adders.each(Adder.fail)
        except ValueError as error:
            return str(error)
    return "no error"


def sums(nodes, n_reports):
    """Add reports up with four workers, one of which is lost, and batches that come twice."""
    oracle, n_states = OUE(1_000_000), 328
    random = np.random.default_rng(3)
    packed = np.concatenate(
        [
            oracle.perturb(
                random.integers(0, n_states, min(250_000, n_reports - first)).astype(np.int32),
                np.arange(first, min(first + 250_000, n_reports)).astype(np.uint64),
                key=5,
                n_answers=n_states,
            )
            for first in range(0, n_reports, 250_000)
        ]
    )
    expected = oracle.aggregate(packed, n_answers=n_states)
    named = ("oue", 1_000_000, n_states)
    with contextlib.closing(nodes.engine(4)) as engine:
        workers = Workers.open(engine, Sums.open)
        half = add_up(workers, packed[: len(packed) // 2], t=3, code=1, oracle=named)
        kill(engine._seats[2].actor)
        workers.spread(Sums.add, [(4, 1, 0, named, packed[:10])])  # another timestamp
        whole = add_up(workers, packed, t=4, code=2, oracle=named)
        again = add_up(workers, packed, t=4, code=2, oracle=named)
        n_revived = engine.n_revived
    return {
        "same": bool(np.array_equal(whole.counts, expected.counts)) and whole.n == expected.n,
        "again": bool(np.array_equal(again.counts, expected.counts)) and again.n == expected.n,
        "half": half.n,
        "n": whole.n,
        "n_revived": n_revived,
    }


def service(nodes, folder):
    """Run a campaign here, then again on the cluster with a crash in between."""
    from service import test_recovery as recovery
    from support.crowd import Crowd, finish, play

    whole, begun, other = (folder / name for name in ("whole", "begun", "other"))
    on_ray = {"engine": "ray", "address": nodes.cluster.address, "shards": 2}

    async def here():
        started = await recovery.start(whole)
        crowd = await Crowd.enrol(started, 25, rounds=recovery.ROUNDS, seed=5)
        await started.stop()
        shutil.copytree(whole, begun)
        started = await recovery.start(whole)
        crowd.service = started
        await play(started, crowd, recovery.ROUNDS)
        await finish(started)
        await started.stop()
        return crowd.sent

    sent = asyncio.run(here())
    shutil.copytree(begun, other)
    breaks = {(6, 1): recovery.crash}
    asyncio.run(recovery.replay(other, sent, on_ray, breaks=breaks))
    return {
        "same": recovery.released(whole) == recovery.released(other),
        "n_files": len(recovery.released(other)),
    }


def main(what):
    nodes = Nodes()
    city = demo_city(n_users=400, n_timestamps=60, seed=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if what == "quick":
            found = {
                "bytes": equal_bytes(nodes, city, ("steered",), (1, 4), replicates=2)
                | equal_bytes(nodes, city, ("retrasyn-p", "steered-map", "steered-roads"), (2,)),
                "parts": parts(nodes, city, folder),
                "lost": lost(nodes),
                "failing": failing(nodes),
                "sums": sums(nodes, 300_000),
                "service": service(nodes, folder),
                "tasks": RayTasks(None).submit(os.path.basename, "a/b").result(),
            }
        elif what == "sums":
            found = {"sums": sums(nodes, 5_000_000)}
        else:
            real, options = read(what), {"box": (116.15, 39.75, 116.60, 40.10)}
            found = {
                "bytes": equal_bytes(nodes, real, ("steered", "retrasyn-p"), (1, 2, 4), **options),
                "killed": killed(nodes, real, **options),
            }
    ray.shutdown()
    nodes.cluster.shutdown()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
