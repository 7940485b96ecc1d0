"""A real PostgreSQL for tests: started once, on a socket in a folder of its own, ended at exit."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from support.components import need

USER = "retrasyn"


@dataclass
class Server:
    """One server. It refuses to run as root, so root runs it as nobody."""

    programs: Path
    folder: Path
    names: itertools.count = field(default_factory=itertools.count)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, program, *words):
        account = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": ()}
        with (self.folder / "output").open("ab") as output:
            done = subprocess.run(
                [self.programs / program, *words],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                timeout=60,
                **(account if os.geteuid() == 0 else {}),
            )
        assert done.returncode == 0, (self.folder / "output").read_text()

    def make(self):
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", USER, "--locale=C", "--no-sync")
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n")
            settings.write("max_connections = 20\nshared_buffers = 16MB\n")
            settings.write("recovery_init_sync_method = syncfs\n")

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "start")

    def stop(self):
        if (self.data / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def cut(self, url):
        """End every other connection to a database."""
        where = "datname = current_database() AND pid <> pg_backend_pid()"
        query = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {where}"  # noqa: S608 - our own words
        self.run("psql", "-q", "-d", url, "-c", query)

    def database(self, template=None):
        """Return the address of a new database, or of a copy of one that nobody uses."""
        name = f"test{next(self.names)}"
        source = template.split("/")[3].split("?")[0] if template else "template1"
        address = ("-h", str(self.folder), "-U", USER, "-q", "-d", "postgres")
        self.run("psql", *address, "-c", f"CREATE DATABASE {name} TEMPLATE {source}")
        return f"postgresql:///{name}?host={self.folder}&user={USER}"


def programs():
    """Return the folder of the newest server there is, installed if that is possible."""
    found = _newest()
    if found is None:
        need("pg_lsclusters", package="postgresql")
        found = _newest()
    assert found is not None, "postgresql is installed, but has no initdb"
    return found


def _newest():
    places = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(places, key=lambda place: float(place.parts[-3]), default=None)
    own = shutil.which("initdb")
    if newest is None and own is not None:
        newest = Path(own).resolve()
    return None if newest is None else newest.parent


@functools.cache
def server():
    """Return the server of this process."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    made = Server(programs(), folder)
    made.make()
    atexit.register(made.stop)
    made.start()
    return made
