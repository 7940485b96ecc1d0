"""The estimator of `steered`: a log-linear model of moves, fitted to two kinds of reports.

Some people report how they moved, others where they are. A move from cell i to cell j has a
share proportional to exp((u_i + u_j) / 2 + a_kind), where the heights u of the cells vary smoothly
over the map. Two chains of memory, a slow and a fast one, are fitted at every timestamp; each
fits a long past first, and lets a shorter one deviate from it. What predicts the reports best is
trusted most; before there are any, and as long as they say little, that is the prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.arrays import with_prefix, without_prefix
from retrasyn.mobility import kernels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from retrasyn.messages import Estimate
    from retrasyn.space import StateSpace

    Vector = npt.NDArray[np.float64]

FACTORS = np.array([1.0, 0.99, 0.95, 0.7])  # of forgetting, by timestamp
N_CHAINS = 2  # the slow one fits the first two factors, the fast one the others
MOST_MODES = 81
_KINDS = (-3.0, 0.3)  # prior means of a_1 and of a_2 - 2 a_1
_KIND_SPREADS = ((1.5, 0.7), (0.5, 0.5))  # of both, by level
_FIELDS = ((4.0, 1.0, 0.09), (0.36, 0.5, 0.01))  # variance, range and nugget of u, by level
_AROUND_MAP = ((1.0, 1.0, 0.09), _FIELDS[1])  # the same, where u lies around those of a map
_BEFORE_EVIDENCE = np.full(2, 0.5)  # odds of no map, and of a map that holds
_UNPROVEN = 0.15  # odds up to which a map counts for nothing
_EXPONENT_SPREAD = 0.25  # of the power of a map that people follow, around 1
_FEW_REPORTS = 2000  # up to here, more rounds are worth their time
_ROUNDS, _FIRST_ROUNDS = 2, 6
_LAG = 2.0  # times the square of what has moved between the levels of a chain
_MOST_RELATIVE = 2.0
_SHARED = 0.005  # share of trust spread evenly at each timestamp, to adapt quickly to changes


@dataclass(frozen=True, slots=True)
class Flow:
    """The share of every move, and how uncertain it and the arrivals in every cell are."""

    shares: Vector  # [n_moves], sums to 1
    variances: Vector  # [n_moves]
    arrival_variances: Vector  # [n_cells]


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of moves before any report: mostly staying, everywhere or by a map.

    The heights are a Gaussian field whose covariance falls with distance. In its place stand the
    smoothest cosine waves, independent, each with the variance that the field gives it: all of
    them on coarse grids, as many as reports can tell apart on fine ones. Around the heights of a
    public map the field varies less, and one more mode is the power of the map.
    """

    moves: npt.NDArray[np.int32]  # [n_moves, 3]: origin, destination and kind
    modes: Vector  # [n_cells, n_modes]
    spreads: Vector  # [2, n_modes + 2], standard deviations by level
    base: Vector  # [n_cells + 2], mean heights of cells and of kinds of move

    @classmethod
    def of(cls, states: StateSpace) -> Prior:
        """Return the prior over a grid's moves, which stay (0), go straight (1) or across (2)."""
        side = states.grid.side
        origins, destinations = states.origins, states.destinations
        down = np.abs(origins // side - destinations // side)
        right = np.abs(origins % side - destinations % side)
        moves = np.stack([origins, destinations, down + right], axis=1).astype(np.int32)
        base = np.append(np.zeros(side * side), _KINDS)
        return cls(moves, *_waves(side, _FIELDS), base)

    def beside(self, heights: Vector, *, follows: bool) -> Prior:
        """Return the prior where there is a map with these heights: around it, or as before.

        Both have the same parameters, so that they can be compared and mixed.
        """
        modes, spreads = self.modes, self.spreads
        if follows:
            modes, spreads = _waves(round(heights.size**0.5), _AROUND_MAP)
        power = np.array([_EXPONENT_SPREAD if follows else 0.0, 0.0])
        return replace(
            self,
            modes=np.column_stack([modes, heights]),
            spreads=np.insert(spreads, modes.shape[1], power, axis=1),
            base=np.append(heights * follows, _KINDS),
        )

    def flow(self, shares: Vector, hessian: Vector, level: int) -> Flow:
        """Return a flow with its uncertainty, from the curvature of what reports say."""
        flow = Flow(shares, np.empty(shares.size), np.empty(self.modes.shape[0]))
        kernels.variances(
            shares,
            self.moves,
            self.modes,
            self.spreads[level],
            hessian,
            flow.variances,
            flow.arrival_variances,
        )
        return flow

    def unseen(self) -> Flow:
        """Return the flow before any report."""
        n_parameters = self.spreads.shape[1]
        shares = self.shares_of(self.base)
        return self.flow(shares, np.zeros((n_parameters, n_parameters)), 0)

    def shares_of(self, heights: Vector) -> Vector:
        """Return the shares of all moves by heights: [n_moves]."""
        shares = np.empty(self.moves.shape[0])
        kernels.shares_of(heights, self.moves, shares)
        return shares


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """What may be believed before any report: nothing of places and, given a map, that it holds."""

    priors: tuple[Prior, ...]
    unseen: tuple[Flow, ...]

    @classmethod
    def of(cls, states: StateSpace, map_shares: Vector | None = None) -> Hypotheses:
        """Return the hypotheses about a grid, of whose cells a public map has these shares."""
        priors: tuple[Prior, ...] = (Prior.of(states),)
        if map_shares is not None:
            heights = np.log(map_shares)
            heights -= heights.mean()
            priors = tuple(priors[0].beside(heights, follows=follows) for follows in (False, True))
        return cls(priors, tuple(prior.unseen() for prior in priors))


def _waves(side: int, fields: Sequence[tuple[float, float, float]]) -> tuple[Vector, Vector]:
    """Return the modes of a prior [n_cells, n_modes], and their spreads [2, n_modes + 2]."""
    places = (np.arange(side) + 0.5) / side
    waves = np.cos(np.pi * np.outer(places, np.arange(side)))
    waves /= np.sqrt((waves**2).sum(axis=0))
    rows, columns = np.divmod(np.arange(side * side), side)
    smoothest = np.argsort(rows**2 + columns**2, kind="stable")[:MOST_MODES]
    modes = waves[rows[:, None], rows[smoothest]] * waves[columns[:, None], columns[smoothest]]
    distances = np.hypot(
        places[rows][:, None] - places[rows], places[columns][:, None] - places[columns]
    )
    spreads = []
    for (variance, reach, nugget), kinds in zip(fields, _KIND_SPREADS, strict=True):
        field_variance = (modes * (np.exp(-distances / reach) @ modes)).sum(axis=0)
        spreads.append(np.append(np.sqrt(variance * field_variance + nugget), kinds))
    return modes, np.array(spreads)


@dataclass(slots=True)
class ReportSums:
    """Sums of reports about one thing, forgotten at several paces.

    A report is an unbiased guess of `share` times what is asked for; the sums weigh it as least
    squares does.
    """

    sums: Vector  # [n_factors, n]
    weights: Vector  # [n_factors]

    @classmethod
    def empty(cls, n: int) -> ReportSums:
        """Return sums of no reports."""
        return cls(np.zeros((FACTORS.size, n)), np.zeros(FACTORS.size))

    def forget(self) -> None:
        """Fade by one timestamp."""
        self.sums *= FACTORS[:, None]
        self.weights *= FACTORS

    def add(self, estimate: Estimate, share: float = 1.0) -> None:
        """Add the reports of a timestamp, of which `share` is about what is asked for."""
        self.sums += estimate.n * share * estimate.frequencies
        self.weights += estimate.n * share**2

    def balanced(self, which: int) -> tuple[Vector, float]:
        """Return the mean at one pace, moved evenly to the sum 1, and its weight."""
        n, weight = self.sums.shape[1], float(self.weights[which])
        mean = self.sums[which] / weight if weight > 0 else np.zeros(n)
        return mean + (1.0 - mean.sum()) / n, weight

    def copied(self) -> ReportSums:
        """Return an independent copy."""
        return ReportSums(self.sums.copy(), self.weights.copy())

    def to_arrays(self) -> dict[str, Vector]:
        """Return the sums as plain arrays."""
        return {"sums": self.sums, "weights": self.weights}

    def load_arrays(self, arrays: Mapping[str, Vector]) -> None:
        """Restore the sums from plain arrays."""
        self.sums, self.weights = arrays["sums"].copy(), arrays["weights"].copy()


def believed(evidence: Vector) -> Vector:
    """Return how far each of two hypotheses is believed: a map, as far as reports speak for it.

    What they say is the logarithm of how likely they are under each. A map that is wrong is to do
    no harm while there are too few reports to tell, so it counts only above odds that say nothing.
    """
    of_map = _normalised(np.log(_BEFORE_EVIDENCE) + evidence)[1]
    counted = max((of_map - _UNPROVEN) / (1.0 - _UNPROVEN), 0.0)
    return np.array([1.0 - counted, counted])


def mixed(heights: Sequence[Vector], belief: Vector) -> Vector:
    """Return the heights of what the hypotheses expect together: the mean share of every cell.

    The mean of heights would be the mean of exponents, and what only one of the hypotheses rules
    out would be all but ruled out.
    """
    together = belief @ np.array([_normalised(each[:-2]) for each in heights])
    kinds = belief @ np.array([each[-2:] for each in heights])
    logarithms = np.log(together)
    return np.append(logarithms - logarithms.mean(), kinds)


def judged(trust: Vector, losses: Vector, variance: float) -> Vector:
    """Shift trust to the predictions with the least squared losses; each keeps a little."""
    trust = trust * np.exp(-(losses - losses.min()) / (2.0 * variance))
    kept: Vector = (1.0 - _SHARED) * trust / trust.sum() + _SHARED / trust.size
    return kept


def _skewed(variances: Vector, shares: Vector) -> Vector:
    """Widen variances as logarithms of shares are uncertain: they may be many times what they seem.

    Quiet cells count as average ones, so that what is little does not look unknown.
    """
    relative = variances / np.maximum(shares, shares.mean()) ** 2
    widened: Vector = variances * np.exp(np.minimum(relative, _MOST_RELATIVE))
    return widened


@dataclass(slots=True)
class FlowMemory:
    """Both kinds of reports about moves, the chains fitted to them, and the trust in each.

    The last rows of `shares` and `trust` are the hypotheses before any report.
    """

    states: StateSpace
    hypotheses: Hypotheses
    moves: ReportSums = field(init=False)
    arrivals: ReportSums = field(init=False)
    standard: Vector = field(init=False)  # [n_chains, n_hypotheses + 1, n_modes + 2]: level 1, 2
    shares: Vector = field(init=False)  # [n_predictions, n_moves], for the next reports
    trust: Vector = field(init=False)  # [n_predictions]
    belief: Vector = field(init=False)  # [n_hypotheses], sums to 1
    variance: float = 0.0  # of an estimate from one report; 0 before the first

    def __post_init__(self) -> None:
        n_hypotheses = len(self.hypotheses.priors)
        n_parameters = self.hypotheses.priors[0].spreads.shape[1]
        self.moves = ReportSums.empty(self.states.n_moves)
        self.arrivals = ReportSums.empty(self.states.grid.n_cells)
        self.standard = np.zeros((N_CHAINS, n_hypotheses + 1, n_parameters))
        first = _BEFORE_EVIDENCE if n_hypotheses > 1 else np.ones(1)
        self.belief = np.eye(n_hypotheses)[0]
        unseen = np.array([flow.shares for flow in self.hypotheses.unseen])
        self.shares = np.concatenate([np.tile(unseen[0], (N_CHAINS, 1)), unseen])
        self.trust = np.append(np.ones(N_CHAINS), first) / (N_CHAINS + 1)

    @property
    def started(self) -> bool:
        """Whether there has been any report."""
        return bool(self.moves.weights[0] + self.arrivals.weights[0] > 0)

    @property
    def alarm(self) -> float:
        """Trust in the fast chain: how surely people do other things than they used to."""
        return float(self.trust[N_CHAINS - 1])

    @property
    def belief_in_map(self) -> float:
        """How far a public map is believed; 0 where there is none."""
        return float(self.belief[1:].sum())

    def update(
        self,
        moves: Estimate | None,
        arrivals: Estimate | None,
        *,
        moving: float | None,
        present: float = 1.0,
    ) -> None:
        """Judge the predictions of both kinds of reports, then add them to the sums.

        `moving` and `present` are the shares of those asked that move, and that are present;
        reports of moves say nothing while `moving` is unknown.
        """
        parts = []
        if moves is not None and moving is not None:
            parts.append((self.moves, moves, moving, self.shares))
        if arrivals is not None and present > 0:
            parts.append((self.arrivals, arrivals, present, self._predicted_arrivals()))
        for _, estimate, _, _ in parts:
            self.variance = estimate.variance * estimate.n
        if parts and self.started:
            losses = [
                estimate.n * ((estimate.frequencies - share * predicted) ** 2).sum(axis=1)
                for _, estimate, share, predicted in parts
            ]
            self.trust = judged(self.trust, np.sum(losses, axis=0), self.variance)
        for sums in (self.moves, self.arrivals):
            sums.forget()
        for sums, estimate, share, _ in parts:
            sums.add(estimate, share)

    def fit(self) -> Flow:
        """Fit both chains to the sums; return the mean of all flows by trust."""
        known = self.moves.weights[0] + self.arrivals.weights[0]
        rounds = _FIRST_ROUNDS if known <= _FEW_REPORTS else _ROUNDS
        chains = [self._fit(chain, rounds) for chain in range(N_CHAINS)]
        return self._mixed([*chains, *self.hypotheses.unseen])

    def _fit(self, chain: int, rounds: int) -> Flow:
        """Fit a long past under each hypothesis, then how a shorter one deviates from their mean.

        The slow chain, which forgets nothing at first, tells how likely each hypothesis is. What
        has moved between the two pasts goes on moving, and the shorter one lags behind, too: that
        is a part of the uncertainty.
        """
        fitted = [self._fit_level(chain, 0, which, rounds) for which in range(self.belief.size)]
        if chain == 0 and self.belief.size > 1:
            self.belief = believed(np.array([evidence for *_, evidence in fitted]))
        heights = fitted[0][0]
        if self.belief.size > 1:
            heights = mixed([heights for heights, *_ in fitted], self.belief)
        earlier = self.hypotheses.priors[0].shares_of(heights)
        _, shares, hessian, _ = self._fit_level(chain, 1, 0, rounds, heights)
        self.shares[chain] = shares
        flow, moved = self.hypotheses.priors[0].flow(shares, hessian, 1), shares - earlier
        return Flow(
            shares,
            flow.variances + _LAG * moved**2,
            flow.arrival_variances + _LAG * self.arriving(moved) ** 2,
        )

    def _fit_level(
        self, chain: int, level: int, which: int, rounds: int, base: Vector | None = None
    ) -> tuple[Vector, Vector, Vector, float]:
        """Fit one level under one hypothesis; return heights, shares, curvature and evidence."""
        prior = self.hypotheses.priors[which]
        observed, weight = self.moves.balanced(2 * chain + level)
        arriving, arrival_weight = self.arrivals.balanced(2 * chain + level)
        n_parameters = prior.spreads.shape[1]
        heights, shares = np.empty(prior.base.size), np.empty(self.states.n_moves)
        hessian = np.empty((n_parameters, n_parameters))
        evidence = kernels.fit(
            prior.base if base is None else base,
            prior.modes,
            prior.spreads[level],
            prior.moves,
            observed,
            weight / self.variance,
            arriving,
            arrival_weight / self.variance,
            rounds,
            self.standard[chain, which if level == 0 else -1],
            heights,
            shares,
            hessian,
        )
        return heights, shares, hessian, evidence

    def _mixed(self, flows: Sequence[Flow]) -> Flow:
        """Return the mean flow by trust; where flows differ, they are uncertain."""
        shares = self.trust @ self.shares
        arriving = self.arriving(shares)
        gaps = self.shares - shares, self._predicted_arrivals() - arriving
        of_moves = self.trust @ (gaps[0] ** 2 + [flow.variances for flow in flows])
        of_arrivals = self.trust @ (gaps[1] ** 2 + [flow.arrival_variances for flow in flows])
        return Flow(shares, _skewed(of_moves, shares), _skewed(of_arrivals, arriving))

    def _predicted_arrivals(self) -> Vector:
        """Return the arrivals that each prediction foresees: [n_predictions, n_cells]."""
        return np.array([self.arriving(row) for row in self.shares])

    def arriving(self, shares: Vector) -> Vector:
        """Return the arrivals in every cell, [n_cells], by the shares of moves, [n_moves]."""
        destinations, n_cells = self.states.destinations, self.states.grid.n_cells
        return np.bincount(destinations, shares, n_cells).astype(np.float64, copy=False)

    def copied(self) -> FlowMemory:
        """Return an independent copy."""
        twin = FlowMemory(self.states, self.hypotheses)
        twin.load_arrays(self.to_arrays())
        return twin

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        arrays = {
            "standard": self.standard,
            "shares": self.shares,
            "trust": self.trust,
            "belief": self.belief,
            "variance": np.array([self.variance]),
        }
        arrays |= with_prefix("moves_", self.moves.to_arrays())
        return arrays | with_prefix("arrivals_", self.arrivals.to_arrays())

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        self.standard, self.shares = arrays["standard"].copy(), arrays["shares"].copy()
        self.trust, self.variance = arrays["trust"].copy(), float(arrays["variance"][0])
        self.belief = arrays["belief"].copy()
        self.moves.load_arrays(without_prefix("moves_", arrays))
        self.arrivals.load_arrays(without_prefix("arrivals_", arrays))


_USUAL = 0.98  # memory of where people usually are
UNKNOWN_TOTAL, LEAST_TOTAL = 0.02, 1e-3
_TILT_SPREAD = 0.4
_MOST_TILT, _MOST_TILT_STEP = 3.0, 0.5
_TILT_ROUNDS = 2


@dataclass(slots=True)
class EndMemory:
    """Where people enter and quit: where people usually are, tilted as all reports so far say.

    Both share one tilt. `sums` are unforgotten, of entering and quitting.
    """

    sums: Vector  # [2, n_cells]
    weights: Vector  # [2]
    tilt: Vector  # [n_cells], logarithms
    usual: Vector | None = None  # [n_cells], sums to 1; None before the first flow

    @classmethod
    def empty(cls, n_cells: int) -> EndMemory:
        """Return the memory without reports."""
        return cls(np.zeros((2, n_cells)), np.zeros(2), np.zeros(n_cells))

    def add(self, which: int, frequencies: Vector, n: int, share: float = 1.0) -> None:
        """Add reports about entering (0) or quitting (1), of which `share` are of the present."""
        self.sums[which] += n * share * frequencies
        self.weights[which] += n * share**2

    def totals(self) -> Vector:
        """Return the shares that enter and quit as the reports so far have them: [2]."""
        if self.usual is None or not self.weights.all():
            return np.full(2, UNKNOWN_TOTAL)
        means = self.sums / self.weights[:, None]
        return np.maximum(means @ self.usual / (self.usual @ self.usual), LEAST_TOTAL)

    def follow(self, arriving: Vector, alarm: float) -> Vector:
        """Move where people usually are towards where they are now; return where they may end.

        The more of an alarm there is, the more that is where they are now.
        """
        usual = arriving if self.usual is None else _USUAL * self.usual + (1.0 - _USUAL) * arriving
        self.usual = usual / usual.sum()
        return alarm * arriving + (1.0 - alarm) * self.usual

    def fit(self, around: Vector, totals: Vector, variance: float) -> Vector:
        """Adjust the tilt of a distribution to the reports; return it tilted: [n_cells]."""
        logarithms = np.log(np.maximum(around, 1e-300))
        for _ in range(_TILT_ROUNDS):
            where = _normalised(logarithms + self.tilt)
            known = self.weights > 0
            expected = totals[known, None] * where
            weights = self.weights[known, None] / variance
            gaps = self.sums[known] / self.weights[known, None] - expected
            slope = (weights * expected * gaps).sum(axis=0) - self.tilt / _TILT_SPREAD**2
            bend = (weights * expected**2).sum(axis=0) + _TILT_SPREAD**-2
            self.tilt = self.tilt + np.clip(slope / bend, -_MOST_TILT_STEP, _MOST_TILT_STEP)
            self.tilt = np.clip(self.tilt, -_MOST_TILT, _MOST_TILT)
        return _normalised(logarithms + self.tilt)

    def copied(self) -> EndMemory:
        """Return an independent copy."""
        return EndMemory(self.sums.copy(), self.weights.copy(), self.tilt, self.usual)

    def to_arrays(self) -> dict[str, Vector]:
        """Return the memory as plain arrays."""
        usual = np.empty(0) if self.usual is None else self.usual
        return {"sums": self.sums, "weights": self.weights, "tilt": self.tilt, "usual": usual}

    def load_arrays(self, arrays: Mapping[str, Vector]) -> None:
        """Restore the memory from plain arrays."""
        self.sums, self.weights = arrays["sums"].copy(), arrays["weights"].copy()
        self.tilt = arrays["tilt"]
        self.usual = arrays["usual"] if arrays["usual"].size else None


def _normalised(logarithms: Vector) -> Vector:
    """Return the distribution with these logarithms, up to a constant."""
    weights = np.exp(logarithms - logarithms.max())
    whole: Vector = weights / weights.sum()
    return whole


@dataclass(slots=True)
class PresenceMemory:
    """The share of the enrolled that are present, where nobody shows it."""

    sums: ReportSums = field(default_factory=lambda: ReportSums.empty(1))
    trust: Vector = field(default_factory=lambda: np.full(FACTORS.size, 1.0 / FACTORS.size))

    @property
    def started(self) -> bool:
        """Whether there has been any report."""
        return bool(self.sums.weights[0] > 0)

    @property
    def means(self) -> Vector:
        """The share at every pace of forgetting: [n_factors]."""
        return self.sums.sums[:, 0] / self.sums.weights

    @property
    def share(self) -> float:
        """The mean of all paces by trust; 0 before the first report."""
        return min(max(float(self.trust @ self.means), 0.0), 1.0) if self.started else 0.0

    def update(self, estimate: Estimate) -> None:
        """Judge every pace by how it predicted the reports, then add them."""
        if self.started:
            losses = estimate.n * (estimate.frequencies[0] - self.means) ** 2
            self.trust = judged(self.trust, losses, estimate.variance * estimate.n)
        self.sums.forget()
        self.sums.add(estimate)

    def copied(self) -> PresenceMemory:
        """Return an independent copy."""
        return PresenceMemory(self.sums.copied(), self.trust)

    def to_arrays(self) -> dict[str, Vector]:
        """Return the memory as plain arrays."""
        return self.sums.to_arrays() | {"trust": self.trust}

    def load_arrays(self, arrays: Mapping[str, Vector]) -> None:
        """Restore the memory from plain arrays."""
        self.sums.load_arrays(arrays)
        self.trust = arrays["trust"].copy()
