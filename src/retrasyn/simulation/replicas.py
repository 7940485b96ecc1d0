"""Replicas of a curator: what else it might have released, which tells what in a release is chance.

A replica is a curator of the same settings that is told the same sums with fresh noise of the law
that the reports had. Where a mechanism knows how far it may be off, noise is added to what was
reported, and the replica begins, and moves, around other things that are as possible: then
replicas differ from the release as the truth may. Where it does not, reports are drawn around the
release, and only noise is repeated. Nobody is asked again and no ledger is charged: replicas are
computed from sums that are private already.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.arrays import with_prefix, without_prefix
from retrasyn.curator import Curator
from retrasyn.engines.base import Engine, LocalEngine
from retrasyn.mechanisms.base import drive
from retrasyn.messages import Aggregate, Ask, Estimate, Flags, Grant, Release
from retrasyn.oracles.registry import oracle_for
from retrasyn.randomness.words import address

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a curator was told at a timestamp."""

    t: int
    size: int
    n_enrolled: int
    flags: Flags | None
    sums: Mapping[str, tuple[Grant, Aggregate]]  # by lane


@dataclass(slots=True)
class Replicas:
    """Curators that repeat what a curator does; each has a seed and a synthetic population.

    >>> from retrasyn import Box, Curator, Grid, RunSettings
    >>> curator = Curator(RunSettings.of(grid=Grid(Box(0, 0, 1, 1), side=2), window=5))
    >>> replicas = Replicas.of(curator, 3)
    >>> nothing = Heard(t=0, size=4, n_enrolled=0, flags=None, sums={})
    >>> [release.n_points for release in replicas.step(nothing)]
    [4, 4, 4]
    """

    main: Curator
    curators: list[Curator]
    releases: Sequence[Release] = field(default_factory=list)  # of the last timestamp

    @classmethod
    def of(cls, main: Curator, n: int, engines: Sequence[Engine] = ()) -> Replicas:
        """Return n replicas of a curator that has not begun yet, each on its engine or here."""
        own = engines or [LocalEngine() for _ in range(n)]
        return cls(main, [_replica(main, *one) for one in enumerate(own[:n], 1)])

    def step(self, heard: Heard) -> Sequence[Release]:
        """Repeat the timestamp that the curator has just ended."""
        self.releases = [self._repeat(curator, heard) for curator in self.curators]
        return self.releases

    def _repeat(self, curator: Curator, heard: Heard) -> Release:
        t, seed, state = heard.t, curator.seed, curator.state
        around = state.memory.follow(self.main.state.memory, _random(seed, t, "doubt"))

        def answer(ask: Ask) -> Estimate | None:
            if ask.lane not in heard.sums:
                return None
            grant, aggregate = heard.sums[ask.lane]
            estimate = curator.estimate(ask, grant, aggregate)
            if estimate is None or not grant.private:
                return estimate
            return told_again(estimate, grant, around, _random(seed, t, f"noise/{ask.lane}"))

        dialogue = curator.begin(t, size=heard.size, n_enrolled=heard.n_enrolled, flags=heard.flags)
        outcome = drive(dialogue, answer)
        return curator.end(t, outcome, size=heard.size, granted=[], flags=heard.flags)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the states of all replicas as plain arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, curator in enumerate(self.curators, 1):
            arrays |= with_prefix(f"replica{number}_", curator.state.to_arrays())
        return arrays

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the states of all replicas from plain arrays."""
        for number, curator in enumerate(self.curators, 1):
            curator.state.load_arrays(without_prefix(f"replica{number}_", arrays))


def _replica(main: Curator, number: int, engine: Engine) -> Curator:
    """Return a curator of the same settings with a seed of its own."""
    seed = address(main.seed, number, "replica", n_bytes=16)
    curator = Curator(
        dataclasses.replace(main.settings, seed=seed),
        mean_length=main.length_scale,
        engine=engine,
        roads=main.roads,
    )
    curator.state.memory = curator.state.memory.replica(_random(seed, 0, "prior"))
    return curator


def told_again(
    estimate: Estimate,
    grant: Grant,
    around: npt.NDArray[np.float64] | None,
    random: np.random.Generator,
) -> Estimate:
    """Return an estimate from as many reports, with fresh noise of their law.

    It is around the given frequencies, else around those of the estimate itself. The noise is of
    which people happen to be asked, and of the oracle.
    """
    oracle = oracle_for(grant)
    centre = estimate.frequencies if around is None else around
    shares = np.maximum(centre, 0.0)
    shares /= max(shares.sum(), 1.0)
    rest = max(1.0 - shares.sum(), 0.0)
    asked = random.multinomial(estimate.n, np.append(shares, rest))[:-1]
    fresh = oracle.estimate(oracle.draw_counts(asked, estimate.n, generator=random))
    noise = (fresh.frequencies - shares) * np.sqrt(estimate.variance / fresh.variance)
    return dataclasses.replace(estimate, frequencies=centre + noise)


def _random(seed: int, t: int, purpose: str) -> np.random.Generator:
    """Return the generator of a replica for one purpose at one timestamp."""
    return np.random.Generator(np.random.Philox(key=address(seed, t, purpose, n_bytes=16)))
