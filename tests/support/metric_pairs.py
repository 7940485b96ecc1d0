"""Random pairs of small data sets, as plain Python and as the package takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

import naive
from retrasyn.data.trajectories import Trajectories
from retrasyn.space import Box, Grid

UNIT = (0.0, 0.0, 1.0, 1.0)
BOXES = [UNIT, (-3.0, 10.0, 5.0, 11.5), (0.1, -0.75, 30.4, 0.5), (116.15, 39.75, 116.16, 40.1)]
SIDES = [1, 2, 2, 3, 4, 6, 6, 9]


@dataclass(frozen=True)
class Case:
    """Two data sets, and what they are looked at with."""

    real: list[naive.Path]
    synthetic: list[naive.Path]
    box: naive.Box
    side: int
    span: int
    seed: int

    @property
    def grid(self) -> Grid:
        return Grid(Box(*self.box), self.side)

    @property
    def trajectories(self) -> tuple[Trajectories, Trajectories]:
        return columns(self.real), columns(self.synthetic)

    @property
    def arguments(self) -> tuple[Trajectories, Trajectories, Grid]:
        return *self.trajectories, self.grid

    @property
    def prepared(self) -> naive.NaivePair:
        return naive.prepare(self.real, self.synthetic, self.box, self.side)


def same(expected: object) -> object:
    """Equal up to rounding; NaN equals NaN."""
    return pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


def columns(paths: list[naive.Path], ids: list[int] | None = None) -> Trajectories:
    """Return plain paths as the package takes them; a path's number is its identifier."""
    numbered = range(len(paths)) if ids is None else ids
    rows = [
        (identifier, begin + index, x, y)
        for identifier, (begin, points) in zip(numbered, paths, strict=True)
        for index, (x, y) in enumerate(points)
    ]
    traj_id, t, x, y = (np.array(column) for column in zip(*rows, strict=True))
    return Trajectories.from_columns(traj_id=traj_id, t=t, x=x, y=y)


@dataclass(frozen=True)
class Moods:
    """How people of one pair behave."""

    step: float  # spread of a step, in the unit square
    stay: float  # probability of staying at the very same point
    jump: float  # probability of being anywhere next
    blank: float  # probability that a timestamp has nobody
    longest: int  # most timestamps of a stream


@st.composite
def cases(draw: st.DrawFn, *, sides: list[int] | None = None, lattice: bool = True) -> Case:
    """Streams that stay, stroll, jump, touch and leave gaps; some points outside the box.

    With `lattice`, some data sets have points on the lines between cells only: counts, lengths
    and edges then tie.
    """
    side = draw(st.sampled_from([*SIDES, 64] if sides is None else sides))
    most = draw(st.sampled_from([60, 60, 25, 25, 8, 1]))  # streams
    span, seed = draw(st.sampled_from([3, 1, 2, 5, 20])), draw(st.integers(0, 3))
    # The rest is not hypothesis' to draw: it likes small numbers, and one point is seldom hard.
    random = np.random.default_rng([draw(st.integers(0, 2**32 - 1)), side, most, span, seed])
    box = BOXES[int(random.integers(len(BOXES)))]
    snapped = lattice and random.random() < 0.5
    first_t = int(random.choice([0, -7, 5, 1000]))
    n_timestamps = int(random.choice([1, 3, 9, 12, 16, 16]))
    moods = Moods(
        step=float(random.choice([0.2, 0.5, 0.8])) / side,
        stay=random.random() * 0.4,
        jump=float(random.choice([0, 0.1, 0.3])),
        blank=float(random.choice([0, 0, 0, 0.2, 0.6])),
        longest=int(random.choice([1, 5, n_timestamps, n_timestamps])),
    )
    nobody = random.random(n_timestamps) < random.choice([0, 0, 0, 0.3])  # in both
    times = [first_t + t for t in range(n_timestamps) if not nobody[t]] or [first_t]
    early, late = random.integers(0, 4, 2).tolist()
    around = [*range(first_t - early, first_t), *times]
    around += range(first_t + n_timestamps, first_t + n_timestamps + late)
    real = _paths(random, times, int(random.integers((most + 2) // 3, most + 1)), moods)
    synthetic = _paths(random, around, int(random.integers((most + 2) // 3, most + 1)), moods)
    if random.random() < 0.5:  # the real streams, moved a little, and a few others
        synthetic = [(t, _stroll(random, points, moods)) for t, points in real] + synthetic[:2]
    first = min(begin for begin, _ in real)
    last = max(begin + len(points) - 1 for begin, points in real)
    if not naive.on_timeline(synthetic, first, last - first + 1):
        synthetic.append((first, [(0.5, 0.5)]))
    lines = side if snapped else None
    real, synthetic = (_placed(paths, box, lines) for paths in (real, synthetic))
    return Case(
        real=_strayed(random, real, box, first, last),
        synthetic=_strayed(random, synthetic, box, first, last),
        box=box,
        side=side,
        span=span,
        seed=seed,
    )


def _paths(
    random: np.random.Generator, times: list[int], n_streams: int, moods: Moods
) -> list[naive.Path]:
    """Return streams in the unit square; at some of the times there is nobody."""
    peopled = [t for t in times if random.random() >= moods.blank] or times[:1]
    paths: list[naive.Path] = []
    for _ in range(n_streams):
        first = int(random.integers(len(peopled)))
        last = first + int(random.integers(1, moods.longest + 1))
        x, y = random.random(2)
        previous = None
        for t in peopled[first:last]:
            if random.random() < moods.jump:
                x, y = random.random(2)
            elif random.random() >= moods.stay:
                x, y = np.clip(random.normal([x, y], moods.step), 0, 1)
            if previous is None or t != previous + 1:
                paths.append((t, []))
            paths[-1][1].append((float(x), float(y)))
            previous = t
    return paths


def _stroll(
    random: np.random.Generator, points: list[tuple[float, float]], moods: Moods
) -> list[tuple[float, float]]:
    near = [np.clip(random.normal(point, moods.step), 0, 1) for point in points]
    return [(float(x), float(y)) for x, y in near]


def _placed(paths: list[naive.Path], box: naive.Box, lines: int | None) -> list[naive.Path]:
    """Bring paths from the unit square to the box, onto lines a side if their number is given."""
    x0, y0, x1, y1 = box
    placed = []
    for begin, points in paths:
        moved = []
        for point in points:
            u, v = point if lines is None else (round(part * lines) / lines for part in point)
            moved.append((min(x0 + u * (x1 - x0), x1), min(y0 + v * (y1 - y0), y1)))
        placed.append((begin, moved))
    return placed


def _strayed(
    random: np.random.Generator, paths: list[naive.Path], box: naive.Box, first: int, last: int
) -> list[naive.Path]:
    """Move one in a hundred of the points at first..last out of the box."""
    x0, _, _, y1 = box
    places = [
        (points, index)
        for begin, points in paths
        for index in range(len(points))
        if first <= begin + index <= last
    ]
    for place in random.choice(len(places), len(places) // 100, replace=False).tolist():
        points, index = places[place]
        x, y = points[index]
        points[index] = random.choice([(x, y1 + random.random()), (x0 - 1e3, y)]).tolist()
    return [(begin, [(x, y) for x, y in points]) for begin, points in paths]
