"""The estimator of `steered`: a log-linear model of moves, fitted to two kinds of reports.

Some people report how they moved, others where they are. A move from cell i to cell j has a
share proportional to exp((u_i + u_j) / 2 + a_kind), where the heights u of the cells vary smoothly
over the map. What usually holds, the base, is fitted to the reports of a long memory. How far the
present deviates from it is followed by three Kalman filters, from a still to a lively one, and
those that predict the reports better are trusted more.
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
    Told = tuple[tuple["ReportSums", Estimate | None, float], ...]
    """Sums of reports, the reports of a timestamp, and the share of them that is meant."""

KEPT = 0.998  # of the sums of reports that the base is fitted to, by timestamp
PACES = np.array([1.0, 0.99, 0.95, 0.7])  # at which reports of presence are forgotten
FILTERS = ((0.99, 0.03), (0.99, 0.3), (0.97, 2.0))
"""A still, a calm and a lively one: what is left of a deviation after a timestamp, and the variance
of deviations in units of the prior's."""
MOST_MODES = 81
_KINDS = (-3.0, 0.3)  # prior means of a_1 and of a_2 - 2 a_1
_KIND_SPREADS, _KIND_DEVIATIONS = (1.5, 0.7), (0.5, 0.5)  # of both
_FIELD, _DEVIATION_FIELD = (4.0, 1.0, 0.09), (0.36, 0.5, 0.01)  # variance, range and nugget of u
_WIDTHS = (1.0, 0.1, 0.01)  # hypotheses on the variance of u: places differ much, little, not
_AROUND_MAP = (1.0, 1.0, 0.09)  # the field where u lies around those of a map
_EVEN = 0.5  # odds of a map before any evidence
_UNPROVEN = 0.15  # odds up to which a map counts for nothing
_EXPONENT_SPREAD = 0.25  # of the power of a map that people follow, around 1
_FEW_REPORTS = 2000  # up to here, more rounds are worth their time
_ROUNDS, _FIRST_ROUNDS = 2, 6
_MOST_RELATIVE = 2.0
_MISFIT = 0.3  # spread of the logarithm of a move's share around what heights make of it
_SHARED = 0.005  # share of trust spread evenly at each timestamp, to adapt quickly to changes


@dataclass(frozen=True, slots=True)
class Flow:
    """The share of every move, and how uncertain it and the arrivals in every cell are."""

    shares: Vector  # [n_moves], sums to 1
    variances: Vector  # [n_moves]; empty where they are not known
    arrival_variances: Vector  # [n_cells]; the same


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of heights before any report: the same everywhere, or as on a map.

    Heights are a Gaussian field whose covariance falls with distance. In its place stand the
    smoothest cosine waves, independent, each with the variance that the field gives it: all of
    them on coarse grids, as many as reports can tell apart on fine ones. Around the heights of a
    public map the field varies less, and one more mode is the power of the map.
    """

    modes: Vector  # [n_cells, n_modes]
    spreads: Vector  # [n_modes + 2], standard deviations of modes and of kinds of move
    base: Vector  # [n_cells + 2], mean heights of cells and of kinds of move

    @classmethod
    def of(cls, side: int, width: float = 1.0) -> Prior:
        """Return the prior of people who mostly stay, where heights vary by a factor of width."""
        modes, spreads = _waves(side, _FIELD)
        spreads = np.append(np.sqrt(width) * spreads, _KIND_SPREADS)
        return cls(modes, spreads, np.append(np.zeros(side * side), _KINDS))

    def drawn(self, chance: Vector) -> Prior:
        """Return the prior around one of the things it holds possible: [n_modes + 2], normal."""
        steps = self.spreads * chance
        return replace(self, base=self.base + np.append(self.modes @ steps[:-2], steps[-2:]))

    @classmethod
    def of_deviations(cls, side: int) -> Prior:
        """Return the prior of how far the heights of a timestamp are from the usual ones."""
        modes, spreads = _waves(side, _DEVIATION_FIELD)
        return cls(modes, np.append(spreads, _KIND_DEVIATIONS), np.zeros(side * side + 2))

    def beside(self, heights: Vector, *, follows: bool) -> Prior:
        """Return the prior where there is a map with these heights: around it, or as before.

        Both have the same parameters, so that they can be compared and mixed.
        """
        modes, spreads = self.modes, self.spreads[:-2]
        if follows:
            modes, spreads = _waves(round(heights.size**0.5), _AROUND_MAP)
        power = _EXPONENT_SPREAD if follows else 0.0
        return replace(
            self,
            modes=np.column_stack([modes, heights]),
            spreads=np.concatenate([spreads, [power], _KIND_SPREADS]),
            base=np.append(heights * follows, _KINDS),
        )


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """What may be believed before any report: how much places differ and, given a map, it."""

    moves: npt.NDArray[np.int32]  # [n_moves, 3]: origin, destination and kind
    priors: tuple[Prior, ...]
    deviations: Prior
    has_map: bool  # which is the last of the priors

    @classmethod
    def of(cls, states: StateSpace, map_shares: Vector | None = None) -> Hypotheses:
        """Return the hypotheses about a grid, of whose cells a public map has these shares."""
        side = states.grid.side
        origins, destinations = states.origins, states.destinations
        down = np.abs(origins // side - destinations // side)
        right = np.abs(origins % side - destinations % side)
        # stays (0), goes straight (1) or across (2)
        moves = np.stack([origins, destinations, down + right], axis=1).astype(np.int32)
        priors = tuple(Prior.of(side, width) for width in _WIDTHS)
        if map_shares is not None:
            heights = np.log(map_shares)
            heights -= heights.mean()
            follows = priors[0].beside(heights, follows=True)
            priors = (*(prior.beside(heights, follows=False) for prior in priors), follows)
        return cls(moves, priors, Prior.of_deviations(side), map_shares is not None)

    def drawn(self, random: np.random.Generator) -> Hypotheses:
        """Return the hypotheses, each around one of the things that it holds possible."""
        chance = random.standard_normal(self.priors[0].spreads.size)
        return replace(self, priors=tuple(prior.drawn(chance) for prior in self.priors))

    def believed(self, evidence: Vector) -> Vector:
        """Return how far each is believed, by the logarithm of how likely it makes the reports.

        A map that is wrong is to do no harm while there are too few reports to tell, so it counts
        only above odds that say nothing.
        """
        if not self.has_map:
            return _normalised(evidence)
        odds = np.log([*np.full(evidence.size - 1, (1.0 - _EVEN) / (evidence.size - 1)), _EVEN])
        of_map = _normalised(odds + evidence)[-1]
        counted = max((of_map - _UNPROVEN) / (1.0 - _UNPROVEN), 0.0)
        return np.append((1.0 - counted) * _normalised(evidence[:-1]), counted)

    def shares_of(self, heights: Vector) -> Vector:
        """Return the shares of all moves by heights: [n_moves]."""
        shares = np.empty(self.moves.shape[0])
        kernels.shares_of(heights, self.moves, shares)
        return shares


def _waves(side: int, terms: tuple[float, float, float]) -> tuple[Vector, Vector]:
    """Return the modes of a field [n_cells, n_modes], and their spreads [n_modes]."""
    places = (np.arange(side) + 0.5) / side
    waves = np.cos(np.pi * np.outer(places, np.arange(side)))
    waves /= np.sqrt((waves**2).sum(axis=0))
    rows, columns = np.divmod(np.arange(side * side), side)
    smoothest = np.argsort(rows**2 + columns**2, kind="stable")[:MOST_MODES]
    modes = waves[rows[:, None], rows[smoothest]] * waves[columns[:, None], columns[smoothest]]
    distances = np.hypot(
        places[rows][:, None] - places[rows], places[columns][:, None] - places[columns]
    )
    variance, reach, nugget = terms
    field_variance = (modes * (np.exp(-distances / reach) @ modes)).sum(axis=0)
    return modes, np.sqrt(variance * field_variance + nugget)


@dataclass(slots=True)
class ReportSums:
    """Sums of reports about one thing, forgotten at several paces.

    A report is an unbiased guess of `share` times what is asked for; the sums weigh it as least
    squares does.
    """

    sums: Vector  # [n_paces, n]
    weights: Vector  # [n_paces]
    paces: Vector  # [n_paces], what is kept at each timestamp

    @classmethod
    def empty(cls, n: int, paces: Vector) -> ReportSums:
        """Return sums of no reports."""
        return cls(np.zeros((paces.size, n)), np.zeros(paces.size), paces)

    def forget(self) -> None:
        """Fade by one timestamp."""
        self.sums *= self.paces[:, None]
        self.weights *= self.paces

    def add(self, estimate: Estimate, share: float = 1.0) -> None:
        """Add the reports of a timestamp, of which `share` is about what is asked for."""
        self.sums += estimate.n * share * estimate.frequencies
        self.weights += estimate.n * share**2

    def balanced(self) -> tuple[Vector, float]:
        """Return the mean at the first pace, moved evenly to the sum 1, and its weight."""
        weight = float(self.weights[0])
        return balanced(self.sums[0] / weight if weight > 0 else self.sums[0]), weight

    def copied(self) -> ReportSums:
        """Return an independent copy."""
        return ReportSums(self.sums.copy(), self.weights.copy(), self.paces)

    def to_arrays(self) -> dict[str, Vector]:
        """Return the sums as plain arrays."""
        return {"sums": self.sums, "weights": self.weights}

    def load_arrays(self, arrays: Mapping[str, Vector]) -> None:
        """Restore the sums from plain arrays."""
        self.sums, self.weights = arrays["sums"].copy(), arrays["weights"].copy()


def balanced(mean: Vector) -> Vector:
    """Return a mean moved evenly to the sum 1, as shares have it."""
    moved: Vector = mean + (1.0 - mean.sum()) / mean.size
    return moved


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


@dataclass(frozen=True, slots=True)
class Lead:
    """How the truth of a replica differs, and what it is told, as noise on noise would mislead it.

    It follows one of the filters and, of the hypotheses without a map, the one that supposes least:
    what the estimator says of its own uncertainty rests on the same.
    """

    place: float  # of its filter, in the order of their trust: 0 to 1
    misfit: Vector  # [n_moves], factors that reports are too few to tell from 1
    trust: Vector  # [n_filters]
    belief: Vector  # [n_hypotheses]
    moved: Vector  # [n_modes + 2], how its deviations move by chance, in standard deviations


@dataclass(slots=True)
class FlowMemory:
    """Both kinds of reports about moves, the base fitted to them, and the filters around it."""

    states: StateSpace
    hypotheses: Hypotheses
    moves: ReportSums = field(init=False)
    arrivals: ReportSums = field(init=False)
    standard: Vector = field(init=False)  # [n_hypotheses, n_parameters] of the base, in spreads
    base: Vector = field(init=False)  # [n_cells + 2], heights
    deviations: Vector = field(init=False)  # [n_filters, n_modes + 2], in spreads
    covariances: Vector = field(init=False)  # [n_filters, n_modes + 2, n_modes + 2]
    shares: Vector = field(init=False)  # [n_filters, n_moves]
    trust: Vector = field(init=False)  # [n_filters], sums to 1
    belief: Vector = field(init=False)  # [n_hypotheses], sums to 1
    variance: float = 0.0  # of an estimate from one report; 0 before the first
    lead: Lead | None = None  # of a replica, at each timestamp

    def __post_init__(self) -> None:
        priors, n_filters = self.hypotheses.priors, len(FILTERS)
        n_deviations = self.hypotheses.deviations.spreads.size
        self.moves = ReportSums.empty(self.states.n_moves, np.array([KEPT]))
        self.arrivals = ReportSums.empty(self.states.grid.n_cells, np.array([KEPT]))
        self.standard = np.zeros((len(priors), priors[0].spreads.size))
        self.base = priors[0].base
        self.deviations = np.zeros((n_filters, n_deviations))
        self.covariances = np.array([width * np.eye(n_deviations) for _, width in FILTERS])
        self.shares = self._shares()
        self.trust = np.full(n_filters, 1.0 / n_filters)
        self.belief = self.hypotheses.believed(np.zeros(len(priors)))

    @property
    def started(self) -> bool:
        """Whether there has been any report."""
        return self.variance > 0.0

    @property
    def alarm(self) -> float:
        """Trust in the lively filter: how surely people do other things than they used to."""
        return float(self.trust[-1])

    @property
    def belief_in_map(self) -> float:
        """How far reports speak for a public map; 0 where there is none."""
        return float(self.belief[-1]) if self.started and self.hypotheses.has_map else 0.0

    def update(
        self,
        moves: Estimate | None,
        arrivals: Estimate | None,
        *,
        moving: float | None,
        present: float = 1.0,
    ) -> None:
        """Let deviations fade, judge what the filters predict, then learn from the reports.

        `moving` and `present` are the shares of those asked that move, and that are present;
        reports of moves say nothing while `moving` is unknown. The first reports of all tell of
        the base alone.
        """
        told = (
            (self.moves, moves if moving is not None else None, moving or 0.0),
            (self.arrivals, arrivals if present > 0 else None, present),
        )
        if self.started:
            self._fade()
            self._judge(told)
            self._observe(told)
        for sums, estimate, share in told:
            sums.forget()
            if estimate is not None:
                sums.add(estimate, share)
                self.variance = estimate.variance * estimate.n

    def begin_apart(self, random: np.random.Generator) -> None:
        """Begin as a replica, whose truth is its own."""
        chance = random.standard_normal(self.deviations.shape[1])
        self.deviations = np.array([np.sqrt(width) * chance for _, width in FILTERS])
        self.shares = self._shares()
        misfit = np.exp(_MISFIT * random.standard_normal(self.states.n_moves))
        misfit[self.hypotheses.moves[:, 2] == 0] = 1.0
        self.lead = Lead(random.random(), misfit, self.trust, self.belief, chance)

    def follow(self, main: FlowMemory, random: np.random.Generator) -> None:
        """Take over what the estimator that it repeats trusts and believes at this timestamp."""
        if self.lead is None:
            raise AssertionError("only a replica follows")
        trust, belief = np.zeros(main.trust.size), np.zeros(main.belief.size)
        trust[np.searchsorted(np.cumsum(main.trust)[:-1], self.lead.place)] = 1.0
        belief[-1] = main.belief_in_map
        belief[0] += 1.0 - main.belief_in_map
        moved = random.standard_normal(self.deviations.shape[1])
        self.lead = replace(self.lead, trust=trust, belief=belief, moved=moved)

    def fit(self) -> Flow:
        """Fit the base to all reports, under each hypothesis; return the mean of the filters.

        That of a replica is one of what is possible, and knows no errors.
        """
        known = self.moves.weights[0] + self.arrivals.weights[0]
        first = known <= _FEW_REPORTS or not self.standard.any()
        fitted = [self._fit(which, first=first) for which in range(self.belief.size)]
        if self.lead is not None:
            self.belief = self.lead.belief
        else:
            self.belief = self.hypotheses.believed(np.array([evidence for *_, evidence in fitted]))
        self.base = mixed([heights for heights, *_ in fitted], self.belief)
        self.shares = self._shares()
        if self.lead is not None:
            shares = self.lead.misfit * (self.trust @ self.shares)
            return Flow(shares / shares.sum(), np.empty(0), np.empty(0))
        return self._described(fitted)

    def _described(self, fitted: Sequence[tuple[Vector, Vector, float]]) -> Flow:
        """Return the mean of the filters; where they or the hypotheses differ, it is uncertain."""
        moves, deviations = self.hypotheses.moves, self.hypotheses.deviations
        shares = self.trust @ self.shares
        arriving = self.arriving(shares)
        usual = np.array([self.hypotheses.shares_of(heights) for heights, *_ in fitted])
        of_moves, of_arrivals = np.zeros(shares.size), np.zeros(arriving.size)
        for weights, rows in ((self.trust, self.shares), (self.belief, usual)):
            gaps = rows - weights @ rows
            of_moves += weights @ gaps**2
            of_arrivals += weights @ np.array([self.arriving(gap) for gap in gaps]) ** 2
        units = np.outer(deviations.spreads, deviations.spreads)
        parts = [(deviations.modes, units * np.tensordot(self.trust, self.covariances, axes=1))]
        # Of the hypotheses without a map, the first supposes least: its uncertainty is theirs.
        for which, belief in ((0, 1.0 - self.belief_in_map), (-1, self.belief_in_map)):
            if belief > 0:
                prior, hessian = self.hypotheses.priors[which], fitted[which][1]
                covariance = kernels.covariance_of(hessian, prior.spreads)
                parts.append((prior.modes, belief * covariance))
        for modes, covariance in parts:
            kernels.add_variances(shares, moves, modes, covariance, of_moves, of_arrivals)
        return Flow(shares, _skewed(of_moves, shares), _skewed(of_arrivals, arriving))

    def _fit(self, which: int, *, first: bool) -> tuple[Vector, Vector, float]:
        """Fit the base under one hypothesis; return heights, curvature and evidence."""
        prior = self.hypotheses.priors[which]
        n_parameters = prior.spreads.size
        heights, hessian = np.empty(prior.base.size), np.empty((n_parameters, n_parameters))
        observed, weight = self.moves.balanced()
        arriving, arrival_weight = self.arrivals.balanced()
        evidence = kernels.fit(
            prior.base,
            prior.modes,
            prior.spreads,
            self.hypotheses.moves,
            observed,
            weight / self.variance,
            arriving,
            arrival_weight / self.variance,
            _FIRST_ROUNDS if first else _ROUNDS,
            self.standard[which],
            heights,
            hessian,
        )
        return heights, hessian, evidence

    def _shares(self) -> Vector:
        """Return the shares that each filter has: [n_filters, n_moves]."""
        prior, heights = self.hypotheses.deviations, np.empty(self.base.size)
        found = []
        for deviation in self.deviations:
            kernels.heights_of(self.base, prior.modes, prior.spreads, deviation, heights)
            found.append(self.hypotheses.shares_of(heights))
        return np.array(found)

    def _fade(self) -> None:
        """Let deviations return towards the base, and be less sure of them."""
        for which, (kept, width) in enumerate(FILTERS):
            self.deviations[which] *= kept
            self.covariances[which] *= kept**2
            moved = (1.0 - kept**2) * width
            self.covariances[which] += moved * np.eye(self.deviations.shape[1])
            if self.lead is not None:
                self.deviations[which] += np.sqrt(moved) * self.lead.moved
        self.shares = self._shares()

    def _judge(self, told: Told) -> None:
        """Trust the filter more that foresaw what was told."""
        if self.lead is not None:
            self.trust = self.lead.trust
            return
        losses = np.zeros(len(FILTERS))
        foreseen = self.shares, self._predicted_arrivals()
        for (_, estimate, share), shares in zip(told, foreseen, strict=True):
            if estimate is not None:
                gaps = estimate.frequencies - share * shares
                losses += estimate.n * (gaps**2).sum(axis=1)
        self.trust = judged(self.trust, losses, self.variance)

    def _observe(self, told: Told) -> None:
        """Let each filter learn from what was told."""
        if not any(estimate for _, estimate, _ in told):
            return
        (observed, weight), (arrivals, arrival_weight) = (self._weighed(*part) for part in told)
        prior = self.hypotheses.deviations
        for which in range(len(FILTERS)):
            kernels.observe(
                self.shares[which],
                self.hypotheses.moves,
                prior.modes,
                prior.spreads,
                observed,
                weight,
                arrivals,
                arrival_weight,
                self.deviations[which],
                self.covariances[which],
            )

    def _weighed(
        self, sums: ReportSums, estimate: Estimate | None, share: float
    ) -> tuple[Vector, float]:
        """Return what reports say of shares, and how much that weighs."""
        if estimate is None:
            return balanced(np.zeros(sums.sums.shape[1])), 0.0
        return balanced(estimate.frequencies / share), estimate.n * share**2 / self.variance

    def _predicted_arrivals(self) -> Vector:
        """Return the arrivals that each filter foresees: [n_filters, n_cells]."""
        return np.array([self.arriving(row) for row in self.shares])

    def arriving(self, shares: Vector) -> Vector:
        """Return the arrivals in every cell, [n_cells], by the shares of moves, [n_moves]."""
        destinations, n_cells = self.states.destinations, self.states.grid.n_cells
        return np.bincount(destinations, shares, n_cells).astype(np.float64, copy=False)

    def copied(self) -> FlowMemory:
        """Return an independent copy."""
        twin = FlowMemory(self.states, self.hypotheses, lead=self.lead)
        twin.load_arrays(self.to_arrays())
        return twin

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        arrays = {
            "standard": self.standard,
            "base": self.base,
            "deviations": self.deviations,
            "covariances": self.covariances,
            "shares": self.shares,
            "trust": self.trust,
            "belief": self.belief,
            "variance": np.array([self.variance]),
        }
        arrays |= with_prefix("moves_", self.moves.to_arrays())
        return arrays | with_prefix("arrivals_", self.arrivals.to_arrays())

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        self.standard, self.base = arrays["standard"].copy(), arrays["base"].copy()
        self.deviations = arrays["deviations"].copy()
        self.covariances = arrays["covariances"].copy()
        self.shares = arrays["shares"].copy()
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
    own: Vector | float = 0.0  # [n_cells], what the tilt of a replica is held around

    @classmethod
    def empty(cls, n_cells: int) -> EndMemory:
        """Return the memory without reports."""
        return cls(np.zeros((2, n_cells)), np.zeros(2), np.zeros(n_cells))

    def begin_apart(self, random: np.random.Generator) -> None:
        """Begin as a replica, around a tilt of its own."""
        self.own = self.tilt = _TILT_SPREAD * random.standard_normal(self.tilt.size)

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
            slope = (weights * expected * gaps).sum(axis=0)
            slope -= (self.tilt - self.own) / _TILT_SPREAD**2
            bend = (weights * expected**2).sum(axis=0) + _TILT_SPREAD**-2
            self.tilt = self.tilt + np.clip(slope / bend, -_MOST_TILT_STEP, _MOST_TILT_STEP)
            self.tilt = np.clip(self.tilt, -_MOST_TILT, _MOST_TILT)
        return _normalised(logarithms + self.tilt)

    def copied(self) -> EndMemory:
        """Return an independent copy."""
        return replace(self, sums=self.sums.copy(), weights=self.weights.copy())

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

    sums: ReportSums = field(default_factory=lambda: ReportSums.empty(1, PACES))
    trust: Vector = field(default_factory=lambda: np.full(PACES.size, 1.0 / PACES.size))

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
