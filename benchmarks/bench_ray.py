"""A cluster against this process: the same population, timestamp by timestamp.

Ray listens on every address it finds, so the cluster runs in a network namespace that has a
loopback and nothing else; where none can be made, there is no figure. ``python bench_ray.py STREAMS
[METHOD]`` prints one run in more detail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from retrasyn import Box, Curator, Grid, Roster, RunSettings
from retrasyn.engines.base import LocalEngine
from retrasyn.messages import Aggregate, Grant
from retrasyn.oracles.registry import n_answers, oracle_for
from workloads import Line

SIDE, STEPS, WARM_UP = 18, 20, 3
N_KEYS, N_WORKERS = 4_000, 2
MORE, ROUND_TRIPS = 1.25, 0.05  # what a cluster may cost: a quarter more, and 50 ms a timestamp
LOOPBACK = 'ip link set lo up && exec "$@"'


class Nowhere:
    """A sink that looks at points and keeps none: what is timed is the synthesis."""

    empty = True

    def write(self, t: int, points: dict[str, Any]) -> None:
        """Look at the points."""
        del t
        self.last = points["x"][-1:]

    def flush(self) -> None:
        """Keep nothing."""


def nowhere(index: int, n_shards: int) -> Nowhere:
    del index, n_shards
    return Nowhere()


def steps_of(engine: Any, n: int, method: str) -> list[float]:
    """Return the seconds of every timestamp: births and a surplus of 1 % in turn."""
    curator = Curator(
        RunSettings.of(method, grid=Grid(Box(0, 0, 1, 1), SIDE), seed=1),
        engine=engine,
        make_sink=nowhere,
    )
    keys = np.arange(N_KEYS)
    roster = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(N_KEYS, np.int64))
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.full(curator.states.n_states, 0.3))

    def collect(grant: Grant, lane: str) -> Aggregate:
        del lane
        n_states = n_answers(grant.question, curator.states)
        n = grant.reporters.size
        some = shares[:n_states] / shares[:n_states].sum()
        true = generator.multinomial(n, some) if n_states > 1 else np.array([n // 2])
        return oracle_for(grant).draw_counts(true, n, generator=generator)

    seconds = []
    for t in range(WARM_UP + STEPS):
        size = n + (n // 200 if t % 2 else -n // 200)
        begin = time.perf_counter()
        curator.step(t, size=size, roster=roster, collect=collect)
        seconds.append(time.perf_counter() - begin)
    return seconds[WARM_UP:]


def on_cluster(n: int, method: str) -> dict[str, Any]:
    """Step on two nodes of one worker each; only in a network of its own."""
    import ray  # noqa: PLC0415 - only where it may be started
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only where it may be started

    from retrasyn.engines.ray import RayEngine  # noqa: PLC0415

    node = {"num_cpus": 1, "object_store_memory": 200 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.add_node(**node)
    cluster.wait_for_nodes()
    engine = RayEngine.start(address=cluster.address, n_workers=N_WORKERS)
    seconds = steps_of(engine, n, method)
    usage = [one["bytes"] for one in engine.usage()]
    engine.close()
    ray.shutdown()
    cluster.shutdown()
    return {"seconds": seconds, "bytes": usage}


def measure(n: int, method: str) -> dict[str, Any] | None:
    """Return seconds here and on a cluster; None where no namespace can be made."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return None
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    inside = ["unshare", "--net", *as_root, "sh", "-c", LOOPBACK, "sh"]
    script = [sys.executable, str(Path(__file__)), "--inside", str(n), method]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    here = steps_of(LocalEngine(), n, method)
    ended = subprocess.run(
        [*inside, *script], capture_output=True, text=True, check=False, env=environment
    )
    if ended.returncode:
        sys.exit(ended.stderr[-2000:])
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return {"here": here, **found}


def lines() -> Iterator[Line]:
    """A million streams on two workers, against what they may cost."""
    for method in ("retrasyn-p", "steered"):
        found = measure(1_000_000, method)
        if found is None:
            return
        here, there = np.mean(found["here"]), np.mean(found["seconds"])
        yield Line(
            f"{method}, 1,000,000 streams at K = {SIDE}: two Ray workers / local x 1.25 + 50 ms",
            there / (MORE * here + ROUND_TRIPS),
            1.0,
            f"{there * 1e3:.0f} ms against {here * 1e3:.0f} ms",
        )


def main() -> None:
    n, method = int(float(sys.argv[-2])), sys.argv[-1]
    if "--inside" in sys.argv:
        print(json.dumps(on_cluster(n, method)))
        return
    found = measure(n, method)
    if found is None:
        sys.exit("no network namespace can be made here")
    for name in ("here", "seconds"):
        spent = np.array(found[name]) * 1e3
        where = "local" if name == "here" else "Ray"
        print(
            f"{where}: mean {spent.mean():.1f} ms, median {np.median(spent):.1f}, "
            f"highest {spent.max():.1f}"
        )
    print("MiB per worker:", [one >> 20 for one in found["bytes"]])


if __name__ == "__main__":
    main()
