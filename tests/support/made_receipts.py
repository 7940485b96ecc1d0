"""Receipts of real runs, small ones."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import retrasyn
from retrasyn.privacy.receipt import Receipt
from retrasyn.simulation.composition import ReleasedBeforeWarning
from support.folding import with_clock

RUNS = {
    "steered": {"method": "steered"},
    "hidden": {"method": "steered-hidden"},
    "flags": {"method": "steered-flags", "epsilon": 0.7},
    "budget": {"method": "retrasyn-b"},
    "probing": {"method": "lbd"},
    "transition": {"method": "uniform-p", "unit": "transition", "seed": "random"},
    "streams": {"method": "retrasyn-b", "ledger": "stream", "length_scale": 12.0},
    "faithful": {"method": "retrasyn-p", "faithful": True, "settings": {"alpha": "3"}},
    "exact": {"method": "exact"},
    "folded": {"fold": "day"},
    "folded by person-day": {"fold": "person-day", "seed": "random"},
    "counted": {"method": "steered", "counted": 1},
    "counted twice": {"method": "retrasyn-b", "epsilon": 0.5, "seed": "random", "counted": 2},
}


@functools.cache
def city() -> retrasyn.Trajectories:
    return with_clock(retrasyn.demo_city(n_users=60, n_timestamps=30, seed=1))


@functools.cache
def run(name: str) -> retrasyn.simulation.run.Synthesis:
    options = {"box": (0, 0, 10, 10), "grid": 3, "window": 4, "seed": 0} | RUNS[name]
    n_counted = options.pop("counted", 0)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleasedBeforeWarning)
        place = {"ledger_file": Path(folder) / "spent.json"} if n_counted else {}
        for _ in range(n_counted - 1):
            retrasyn.synthesize(city(), **options | place)
        return retrasyn.synthesize(city(), **options | place)


def receipt(name: str) -> Receipt:
    return run(name).receipt
