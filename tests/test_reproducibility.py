"""The same bytes from a process that compiles a kernel and from one that finds it compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrasyn

SHRINK = """
import hashlib
import numpy as np
from retrasyn.mobility.estimator import kernels
from retrasyn.space import Box, Grid

table = Grid(Box(0, 0, 1, 1), 6).neighbour_table
noisy = np.where(table >= 0, np.random.default_rng(1).random(table.shape) * 0.02 - 0.005, 0.0)
kernel, variance = np.empty((2, 36, 9))
density, spread = np.empty((2, 36))
priors = np.full((5, 40), 1 / 40)
kernels.shrink_moves(
    noisy, 1e-4, noisy, 1e-5, table, priors, 10, 31.0, kernel, variance, density, spread
)
parts = (kernel, variance, density, spread, priors)
print(hashlib.blake2b(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


@pytest.mark.system
@pytest.mark.long  # it compiles the largest of them
def test_a_kernel_gives_the_same_bytes_compiled_now_and_compiled_before(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, again = (
        subprocess.run(
            [sys.executable, "-c", SHRINK],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    )
    assert first == again


def test_no_kernel_lets_the_compiler_reorder_arithmetic():
    """A reordered sum depends on what was inlined, and that on what was compiled before."""
    for path in Path(retrasyn.__file__).parent.rglob("kernels.py"):
        assert "fastmath" not in path.read_text(), path
