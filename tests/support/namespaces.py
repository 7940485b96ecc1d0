"""Programs in a network of their own that has nothing but a loopback.

Ray listens on every address it finds, and so does a map for everybody. In such a network there is
only one.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from support import components

TESTS = Path(__file__).parents[1]
_AS_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
_LOOPBACK = 'ip link set lo up && exec "$@"'


@functools.cache
def prefix():
    """Return the command that runs another one in a network of its own."""
    unshare = components.need("unshare", package="util-linux")
    components.need("ip", package="iproute2")
    command = [str(unshare), "--net", *_AS_ROOT, "sh", "-c", _LOOPBACK, "sh"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        components.give_up(f"no network namespace can be made here: {tried.stderr.strip()}")
    return command


@contextlib.contextmanager
def namespace():
    """Keep one such network; give the command that runs another one in it."""
    nsenter = components.need("nsenter", package="util-linux")
    holder = subprocess.Popen(
        [*prefix(), "sh", "-c", "echo up && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"up\n"
        user = ["--user", "--preserve-credentials"] if _AS_ROOT else []
        yield (str(nsenter), "--target", str(holder.pid), "--net", *user)
    finally:
        holder.communicate()  # without input, it ends


def run_in_namespace(*arguments, patience=1200, **variables):
    """Run a Python program; return its last line as JSON."""
    environment = {
        **os.environ,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # else its workers starve beside other tests
        "PYTHONPATH": str(TESTS),
    }
    ended = subprocess.run(
        [*prefix(), sys.executable, *map(str, arguments)],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])
