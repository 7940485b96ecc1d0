"""Runs the examples that need a service or end with Ctrl-C, at the ports that they name.

Only to be started in a network of its own (`namespaces`), where these ports are free. Prints how
each of them ended.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from retrasyn import demo_city, write

PATIENCE = 60
PROGRAM = [sys.executable, "-m"]


class Examples:
    """The examples by the names of their commands, and how those that were run have ended."""

    def __init__(self, texts):
        self.texts, self.ended = texts, {}

    def words(self, name, link=""):
        """Return an example to be run, with a link of the service in place of the one it shows."""
        text = re.sub(r"http\S+#enrol=TOKEN\.KEY", link, self.texts[name])
        return [*PROGRAM, *shlex.split(text)]

    def run(self, name, *more, link=""):
        """Run an example to its end, agreeing to whatever it asks."""
        done = subprocess.run(
            [*self.words(name, link), *more],
            input="y\n",
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.ended[name] = done.returncode
        return done.stdout

    def start(self, name, *more, until, link=""):
        """Start an example and wait for a line of it; return the process and what it said."""
        process = subprocess.Popen(
            [*self.words(name, link), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdin.write("y\n")
        process.stdin.flush()
        said = ""
        while until not in said:
            line = process.stdout.readline()
            assert line, f"{name} ended: {said}"
            said += line
        return process, said

    def stop(self, name, process):
        """End an example as its owner would."""
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.ended[name] = process.returncode

    def show(self, name, *more, until, link=""):
        """Start an example and end it as soon as it runs."""
        process, _ = self.start(name, *more, until=until, link=link)
        self.stop(name, process)


def run_all(examples):
    """Run all of them in the order in which one would."""
    examples.show("watch", until="Stop with Ctrl-C")
    quick = ("--set", "period=1", "--set", "window=1")
    service, _ = examples.start("serve", *quick, until="Stop with Ctrl-C")
    first, second, *_ = examples.run("invite").split()
    examples.run("device enrol", link=first)
    examples.run("device status")
    examples.run("device run", "--rounds", "2")
    examples.run("device accept")
    examples.run("device leave")
    examples.show("gateway", until="phones post to", link=second)
    shutil.copy("retrasyn-service/operator.token", "operator.token")
    examples.show("fleet", "--devices", "20", until="devices are silent")
    examples.stop("serve", service)
    examples.run("rotate-key")


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    city = demo_city(n_users=60, n_timestamps=30, seed=1)
    for file in ("trips.parquet", "synthetic.parquet"):
        write(city, Path(file))
    shown = Examples(json.loads(sys.argv[2]))
    run_all(shown)
    sys.stdout.write(json.dumps(shown.ended) + "\n")
