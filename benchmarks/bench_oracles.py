"""Many reports against numpy making and counting as many bits; one against a millisecond."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from retrasyn.oracles import single
from retrasyn.oracles.oue import OUE
from workloads import Line, best

N_REPORTS, N_STATES = 20_000, 328  # of a grid with K = 6
ONE = 1_000_000


def many_reports() -> Iterator[Line]:
    """Bit vectors of exact thresholds and addressed words, one thread."""
    oracle, generator = OUE(ONE), np.random.default_rng(0)
    states = (np.arange(N_REPORTS) % N_STATES).astype(np.int32)
    addresses = np.arange(N_REPORTS, dtype=np.uint64)
    packed = oracle.perturb(states, addresses, key=1, n_answers=N_STATES)
    n_bits = N_REPORTS * N_STATES
    seconds = best(
        {
            "make": lambda: oracle.perturb(states, addresses, key=1, n_answers=N_STATES),
            "bytes": lambda: generator.bytes(8 * n_bits),
            "count": lambda: oracle.aggregate(packed, n_answers=N_STATES),
            "unpack": lambda: np.unpackbits(packed, axis=1, count=N_STATES, bitorder="little").sum(
                axis=0
            ),
        }
    )
    for name, ours, theirs in [
        ("making bits / Generator.bytes, eight bytes a bit", "make", "bytes"),
        ("counting bits / unpackbits and sum", "count", "unpack"),
    ]:
        detail = f"{seconds[ours] * 1e3:.2f} ms against {seconds[theirs] * 1e3:.2f} ms"
        yield Line(name, seconds[ours] / seconds[theirs], 2, f"{detail} for {n_bits:,} bits")


def one_report() -> Iterator[Line]:
    """A report on a device, from the operating system's words, against a millisecond."""
    for name, report in {
        "oue": single.report_unary,
        "grr": single.report_symbol,
        "olh": single.report_hash,
    }.items():
        runs = []
        for _ in range(500):
            begin = time.perf_counter()
            report(3, N_STATES, epsilon=ONE)
            runs.append(time.perf_counter() - begin)
        middle = float(np.median(runs))
        detail = f"{middle * 1e6:.1f} us in the middle, {np.quantile(runs, 0.99) * 1e6:.1f} us p99"
        yield Line(f"one report ({name}, K = 6) / 1 ms", middle * 1e3, 1, detail)


def lines() -> Iterator[Line]:
    yield from many_reports()
    yield from one_report()
