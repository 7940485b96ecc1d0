"""The same bytes from a process that compiles a kernel and from one that finds it compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrasyn

FIT = """
import hashlib
import numpy as np
from retrasyn.messages import Estimate
from retrasyn.mobility.estimator import FlowMemory, Hypotheses
from retrasyn.space import Box, Grid, StateSpace

states = StateSpace(Grid(Box(0, 0, 1, 1), 6))
memory, generator = FlowMemory(states, Hypotheses.of(states)), np.random.default_rng(1)
for n in (4_000, 2_000, 9):
    moves, cells = generator.dirichlet(np.ones(states.n_moves)), generator.dirichlet(np.ones(36))
    heard = [Estimate(frequencies=each, variance=4 / n, n=n) for each in (moves, cells)]
    memory.update(*heard, moving=1.0)
    flow = memory.fit()
parts = (*memory.to_arrays().values(), flow.shares, flow.variances, flow.arrival_variances)
print(hashlib.blake2b(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


def bytes_of_a_fit(**environment):
    """Return the hash of a fit in a fresh process."""
    return subprocess.run(
        [sys.executable, "-c", FIT],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.system
@pytest.mark.long  # it compiles the largest of them
def test_a_kernel_gives_the_same_bytes_compiled_now_and_compiled_before(tmp_path):
    first, again = (bytes_of_a_fit(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first == again


@pytest.mark.system
@pytest.mark.parametrize("variable", ["OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"])
def test_a_fit_gives_the_same_bytes_whatever_the_number_of_threads(variable):
    one, more = (bytes_of_a_fit(**{variable: n}) for n in ("1", "2"))
    assert one == more


def test_no_kernel_lets_the_compiler_reorder_arithmetic():
    """A reordered sum depends on what was inlined, and that on what was compiled before."""
    for path in Path(retrasyn.__file__).parent.rglob("kernels.py"):
        assert "fastmath" not in path.read_text(), path
