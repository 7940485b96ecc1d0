"""Receipts of real runs, small ones."""

from __future__ import annotations

import functools

import retrasyn
from retrasyn.privacy.receipt import Receipt

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
}


@functools.cache
def city() -> retrasyn.Trajectories:
    return retrasyn.demo_city(n_users=60, n_timestamps=30, seed=1)


@functools.cache
def run(name: str) -> retrasyn.simulation.run.Synthesis:
    options = {"box": (0, 0, 10, 10), "grid": 3, "window": 4} | RUNS[name]
    return retrasyn.synthesize(city(), **options)


def receipt(name: str) -> Receipt:
    return run(name).receipt
