"""Results that look like real ones: the published figures with some noise, for tests of pages."""

import dataclasses

import numpy as np

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.published import published, published_seconds
from retrasyn.experiments.sources import DataSet
from retrasyn.metrics.suite import METRICS

EPSILONS = (0.5, 1.0, 1.5, 2.0)
LDP_IDS = ("lbd", "lba", "lpd", "lpa")
GAIN = {"larger": 1.4, "smaller": 0.3, "one": 1.0}
SIZES = {"tdrive": 3575.0, "oldenburg": 31_194.0}
DATASETS = (
    DataSet(
        name="tdrive",
        title="T-Drive",
        generated=False,
        statistics={
            "streams": 232_000.0,
            "points": 3_160_000.0,
            "mean_length": 13.6,
            "timestamps": 886.0,
        },
    ),
    DataSet(
        name="oldenburg",
        title="Oldenburg",
        generated=True,
        statistics={
            "streams": 259_000.0,
            "points": 15_500_000.0,
            "mean_length": 59.8,
            "timestamps": 500.0,
        },
    ),
)
METHODS = {
    **{name: name for name in LDP_IDS},
    **{f"{name}-eq": name for name in LDP_IDS},
    **{f"{name}-steered": name for name in LDP_IDS},
    **{f"{name}-b": "retrasyn-b" for name in ("retrasyn", "uniform", "sample")},
    **{f"{name}-p": "retrasyn-p" for name in ("retrasyn", "uniform", "sample", "random")},
    **{f"{name}-{k}": f"{name}-{k}" for name in ("allupdate", "noeq") for k in "bp"},
    **dict.fromkeys(("steered", "steered-flags", "steered-length"), "retrasyn-p"),
}
"""Our methods, and the published one whose figures stand in for them."""


def results(n_seeds=3, data=("tdrive", "oldenburg")):
    """Return utility figures of all studies."""
    rng = np.random.default_rng(5)
    rows = {}
    for cell in _cells(data):
        for seed in range(n_seeds):
            rows[dataclasses.replace(cell, seed=seed)] = _figures(cell, rng)
    return Results(rows)


def timings(n_seeds=3, data=("tdrive", "oldenburg")):
    """Return seconds of all studies."""
    rng = np.random.default_rng(6)
    rows = {}
    for name in data:
        for method in ("retrasyn-b", "retrasyn-p", "steered", "uniform-p", "sample-p", "random-p"):
            sides = [Timing(data=name, method=method, side=side) for side in (2, 6, 10, 14, 18)]
            shares = [
                Timing(data=name, method=method, share=share) for share in (0.2, 0.4, 0.6, 0.8, 1.0)
            ]
            for key in {*sides, *shares}:
                for seed in range(n_seeds):
                    rows[dataclasses.replace(key, seed=seed)] = _seconds(key, rng)
    return Timings(rows)


def _cells(data):
    main = (*LDP_IDS, "retrasyn-b", "retrasyn-p", "steered")
    for name in data:
        for method in METHODS:
            for epsilon in EPSILONS:
                yield Cell(data=name, method=method, epsilon=epsilon)
        for method in main:
            for window in (10, 30, 40, 50):
                yield Cell(data=name, method=method, window=window)
            for span in (5, 10, 50, 100):
                yield Cell(data=name, method=method, span=span)
            for side in (2, 10, 14, 18):
                yield Cell(data=name, method=method, side=side)
        for method in ("retrasyn-b", "retrasyn-p"):
            yield Cell(data=name, method=method, faithful=True)


def _figures(cell, rng):
    stand_in = METHODS[cell.method]
    figures = {}
    for metric in METRICS:
        value = published(metric.key, data=cell.data, method=stand_in, epsilon=cell.epsilon)
        if value is None:
            value = published(metric.key, data=cell.data, method=stand_in) or 0.9
        if cell.method.startswith("steered"):
            value = min(value * GAIN[metric.better], 0.95)
        drift = 1 + 0.004 * (cell.window - 20) + 0.02 * abs(cell.side - 6)
        figures[metric.key] = value * drift * (1 + 0.03 * rng.standard_normal())
    n_active, n_states = SIZES[cell.data], 9.0 * cell.side**2
    asked = 1.0 if cell.method.endswith("-b") else 1 / cell.window
    return figures | {
        "n_active": n_active,
        "n_timestamps": 500.0,
        "n_states": n_states,
        "n_reports": 500 * n_active * asked,
        "bits": n_active * asked * n_states,
        "never_asked": 0.4 if cell.method == "retrasyn-p" else 0.1,
    }


def _seconds(key, rng):
    n_active = SIZES[key.data] * key.share
    noise = 1 + 0.03 * rng.standard_normal()
    user = 1e-9 * n_active * key.side**2
    parts = {
        "seconds_user": user * noise,
        "seconds_model": 1e-6 * key.side**2,
        "seconds_update": 1e-6 * key.side**1.9,
        "seconds_synthesis": published_seconds("seconds_synthesis", data=key.data)
        * key.share
        / 900
        * noise,
    }
    slower = 2.0 if key.method == "steered" else 1.0
    parts = {name: slower * value for name, value in parts.items()}
    return parts | {
        "seconds_total": sum(parts.values()),
        "n_active": n_active,
        "n_reports": n_active / 20,
        "n_timestamps": 500.0,
    }
