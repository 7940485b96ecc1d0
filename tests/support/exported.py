"""A small city somewhere on Earth, and the programs of SUMO."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
from pathlib import Path

import numpy as np

import retrasyn
from retrasyn.data.metadata import Clock
from retrasyn.space.projection import Projection
from support.components import give_up

CLOCK = Clock("2026-05-04T05:50:00+02:00", 300.0)
METRES, DEGREES = "EPSG:32632", "EPSG:4326"
_CORNER = np.array([446_000.0, 5_887_000.0])


def roads():
    """Return a network in metres, north of 53 degrees."""
    city = retrasyn.city_network(60)
    return dataclasses.replace(city, x=city.x + _CORNER[0], y=city.y + _CORNER[1], crs=METRES)


def city(*, n_steps=24, clock=CLOCK, crs=METRES):
    """Return streams on those roads over two hours."""
    driven = retrasyn.generate(roads(), n_objects=60, n_new=4, n_steps=n_steps, seed=3)
    return dataclasses.replace(driven, clock=clock, crs=crs)


def in_degrees(data):
    x, y = Projection(data.crs, DEGREES)(data.x, data.y)
    return dataclasses.replace(data, x=x, y=y, crs=DEGREES)


def plain(*, x=(1.0, 2.0, 5.0), y=(1.0, 1.0, 5.0), traj_id=(7, 7, 9), t=(0, 1, 1), **known):
    """Return a stream of two points and one of a single point."""
    return retrasyn.Trajectories.from_columns(traj_id=traj_id, t=t, x=x, y=y, **known)


def sumo_home() -> Path:
    """Return where SUMO is, without the import, which changes where PROJ looks for its data."""
    found = importlib.util.find_spec("sumo")
    if found is None or found.origin is None:
        give_up("eclipse-sumo is missing: pip install eclipse-sumo")
    return Path(found.origin).parent


def run_sumo(program: str, folder: Path, *words: object) -> str:
    """Run a program of SUMO in a folder to its end; return what it said."""
    home = sumo_home()
    environment = os.environ | {"SUMO_HOME": str(home), "PROJ_DATA": str(home / "data" / "proj")}
    done = subprocess.run(
        [home / "bin" / program, *map(str, words)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
