"""A reader who guesses the seed undoes the noise; one that nobody chose cannot be guessed.

The reader knows everybody's positions, but not which of two ways one person took, and has the
release, the method and its settings. They run both ways again with every likely seed. A run that
gives the released points tells which way it was.
"""

import numpy as np
import pytest

from retrasyn import Box, Grid, RunSettings, Trajectories, read, write
from retrasyn.privacy.receipt import GUESSABLE
from retrasyn.receipts.files import open_receipt, receipt_place
from retrasyn.simulation.run import SimulatedRun, synthesize
from support.command_line import run

BOX = ("--box", "0,0,1,1")
N_PEOPLE, N_TIMESTAMPS = 8, 30


def crowd(home):
    """Return walkers, of whom the first one is somewhere around a place."""
    dice = np.random.default_rng(7)
    steps = dice.normal(0, 0.03, (2, N_PEOPLE, N_TIMESTAMPS))
    starts = dice.uniform(0.3, 0.7, (2, N_PEOPLE, 1))
    starts[:, 0, 0] = home
    x, y = np.clip(starts + np.cumsum(steps, axis=2), 0, 1)
    return Trajectories.from_columns(
        traj_id=np.repeat(np.arange(N_PEOPLE), N_TIMESTAMPS),
        t=np.tile(np.arange(N_TIMESTAMPS), N_PEOPLE),
        x=x.ravel(),
        y=y.ravel(),
    )


WAYS = (crowd((0.1, 0.1)), crowd((0.9, 0.9)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    paths = [folder / "here.parquet", folder / "there.parquet"]
    for way, path in zip(WAYS, paths, strict=True):
        write(way, path)
    return paths


def released(path, out, *flags):
    """Publish a release by the command, and return it."""
    assert run("synthesize", path, "-o", out, *BOX, *flags, "--no-ledger").code == 0
    return read(out)


def first_points(real, seed):
    """Return what a run with a seed releases first, by the first thing that leaves it."""
    settings = RunSettings.of(grid=Grid(Box(0, 0, 1, 1), 6), seed=seed)
    return next(SimulatedRun.of(real, settings).releases()).x.tobytes()


class Attacker:
    """Somebody who has tried all likely seeds on both ways."""

    def __init__(self, seeds):
        self.likely = {}
        for seed in seeds:
            for real in WAYS:
                self.likely.setdefault(first_points(real, seed), set()).add(seed)

    def guess(self, release):
        """Return which way it was: 0, 1, or None if that cannot be told."""
        first = release.x[release.t == release.first_t].tobytes()
        found = set()
        for seed in self.likely.get(first, ()):
            for way, real in enumerate(WAYS):
                again, _ = synthesize(real, box=(0, 0, 1, 1), seed=seed)
                if again.x.tobytes() == release.x.tobytes():
                    found.add(way)
        return found.pop() if len(found) == 1 else None


def told_apart(attacker, files, folder, seeds):
    """Count the releases of which the attacker knows the way, having published one per seed."""
    n = 0
    for number, seed in enumerate(seeds):
        way = number % 2
        flags = () if seed is None else ("--seed", seed)
        guess = attacker.guess(released(files[way], folder / f"{number}.parquet", *flags))
        assert guess in (way, None)  # points that are equal are never of the other way
        n += guess == way
    return n


def test_a_likely_seed_gives_a_person_away_and_the_default_does_not(files, tmp_path):
    attacker = Attacker(range(12))
    assert told_apart(attacker, files, tmp_path, [0, 7, 11]) == 3
    assert told_apart(attacker, files, tmp_path, [None] * 3) == 0


@pytest.mark.long
def test_b4_ten_thousand_seeds_tell_none_of_twenty_releases_apart(files, tmp_path):
    attacker = Attacker(range(10_000))
    chosen = np.random.default_rng(1).integers(0, 10_000, 20).tolist()
    assert told_apart(attacker, files, tmp_path, chosen) >= 18
    assert told_apart(attacker, files, tmp_path, [None] * 20) == 0


@pytest.mark.parametrize("flags", [(), ("--seed", "random")], ids=["by default", "random"])
def test_a_release_whose_seed_nobody_knows_says_that_it_is_private(flags, files, tmp_path):
    out = tmp_path / "out.parquet"
    said = run("synthesize", files[0], "-o", out, *BOX, *flags, "--no-ledger")
    assert GUESSABLE not in said.out + said.err
    receipt = open_receipt(receipt_place(out))
    assert receipt.seed is None
    assert receipt.headline == "Private: epsilon 1 over any 20 positions"


def test_a_number_as_the_seed_is_the_first_thing_a_receipt_and_the_terminal_say(files, tmp_path):
    out = tmp_path / "out.parquet"
    said = run("synthesize", files[0], "-o", out, *BOX, "--seed", 7, "--no-ledger", "--quiet")
    assert said.err.startswith(f"WARNING: {GUESSABLE}: all noise follows from a number")
    lines = receipt_place(out).read_text().splitlines()
    assert lines[1].startswith(f'  "headline": "{GUESSABLE}: ')
    assert run("receipt", "verify", receipt_place(out), "--input", files[0]).code == 0

    line = '{"t": 0, "traj_id": [1], "x": [0.1], "y": [0.1]}\n'
    streamed = run("stream", *BOX, "--seed", 7, stdin=line)
    assert streamed.err.startswith(f"WARNING: {GUESSABLE}")
    assert f'"receipt": {{"headline": "{GUESSABLE}' in streamed.out
    assert GUESSABLE not in (run("stream", *BOX, stdin=line).err)
