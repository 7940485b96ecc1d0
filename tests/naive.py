"""Every equation of the paper in plain loops (Sec. II-A, III, IV), the reference for our kernels.

Written from the paper and `algorithms.md`, part 1, without reading the package: where the two
agree, they agree because both are right. Slow on purpose; standard library only. Equations 7 to
10 follow the last column of that document's table; only Eq. 9 and 10 can be had as printed. The
metrics (Sec. IV) follow their definitions in words.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias

Box: TypeAlias = tuple[float, float, float, float]  # x0, y0, x1, y1
Path: TypeAlias = tuple[int, list[tuple[float, float]]]  # first timestamp, points
State: TypeAlias = tuple[str, int] | tuple[str, int, int]

MICRO = 1_000_000
SHORTEST_SCALE, LONGEST_SCALE = 2.0, 1000.0  # where the length scale is kept
SURPLUS_FLOOR = 1e-8  # lets a stream end in a cell where nobody was seen to quit


@dataclass(frozen=True, slots=True)
class NaiveModel:
    """The global mobility model (Eq. 6)."""

    move: dict[tuple[int, int], float]  # Pr(m_ij); a row sums to 1 - quit_hazard, or to 0
    quit_hazard: list[float]  # Pr(quit given c_i), [n_cells]
    enter: list[float]  # E, [n_cells]; sums to 1, or to 0 if nobody was seen to enter
    quit_share: list[float]  # Q, [n_cells]; sums to 1, or to 0 if nobody was seen to quit


@dataclass(frozen=True, slots=True)
class NaiveStream:
    """One synthetic stream: a cell for each timestamp from `entered_at` on."""

    identifier: int
    cells: list[int]
    entered_at: int


@dataclass(frozen=True, slots=True)
class NaiveTrip:
    """A stream on the grid, without jumps: a cell and a point for each timestamp from `begin`."""

    begin: int
    cells: list[int]
    points: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class NaivePair:
    """Real and synthetic trips on the real timestamps, which are numbered from 0."""

    real: list[NaiveTrip]
    synthetic: list[NaiveTrip]
    n_timestamps: int
    n_streams_real: int  # before cutting at jumps
    n_streams_synthetic: int


# Space: the grid and its states (Sec. III-B).


def cell_of(x: float, y: float, box: Box, side: int) -> int:
    """Return the cell of a point; the upper edge belongs to the last cell (Sec. III-B)."""
    x0, y0, x1, y1 = box
    if not (x0 <= x <= x1 and y0 <= y <= y1):
        raise ValueError(f"the point ({x}, {y}) lies outside the box {box}")
    column = min(int((x - x0) / (x1 - x0) * side), side - 1)
    row = min(int((y - y0) / (y1 - y0) * side), side - 1)
    return row * side + column


def neighbours(cell: int, side: int) -> list[int]:
    """Return N_c, the cells that touch a cell, itself included, ascending (Sec. III-B)."""
    row, column = divmod(cell, side)
    found = []
    for other in range(side * side):
        other_row, other_column = divmod(other, side)
        if abs(other_row - row) <= 1 and abs(other_column - column) <= 1:
            found.append(other)
    return found


def all_states(side: int, endpoints: bool = True) -> list[State]:  # noqa: FBT001, FBT002 - S or M
    """Return S in order: moves by origin then destination, enters, quits (Sec. III-B)."""
    cells = range(side * side)
    states: list[State] = []
    for origin in cells:
        states += [("move", origin, destination) for destination in neighbours(origin, side)]
    if endpoints:
        states += [("enter", cell) for cell in cells]
        states += [("quit", cell) for cell in cells]
    return states


def clamp(origin: int, destination: int, side: int) -> int:
    """Return the neighbour of `origin` whose centre is nearest to that of `destination`."""

    def squared_distance(cell: int) -> int:
        row, column = divmod(cell, side)
        goal_row, goal_column = divmod(destination, side)
        return (row - goal_row) ** 2 + (column - goal_column) ** 2

    return min(neighbours(origin, side), key=squared_distance)


def device_states(
    points: dict[int, int], side: int, jump: Literal["split", "clamp"]
) -> dict[int, list[State]]:
    """Return one person's states at each t: enter at a, moves at a+1..b, quit at b+1 (Sec. III-B).

    A jump is two states at one t (`split`), or a move towards it (`clamp`); in both the next
    state starts from the true cell.
    """
    if jump not in {"split", "clamp"}:
        raise ValueError(f"jump={jump!r} is neither 'split' nor 'clamp'")
    states: dict[int, list[State]] = {}
    for t in sorted(points):
        cell = points[t]
        if t - 1 not in points:
            states[t] = [("enter", cell)]
        else:
            previous = points[t - 1]
            if cell in neighbours(previous, side):
                states[t] = [("move", previous, cell)]
            elif jump == "split":
                states[t] = [("quit", previous), ("enter", cell)]
            else:
                states[t] = [("move", previous, clamp(previous, cell, side))]
        if t + 1 not in points:
            states[t + 1] = [("quit", cell)]
    return states


# The frequency oracle: optimised unary encoding (Sec. II-A).


def oue_perturb(state: int, n_states: int, epsilon: float, rng: random.Random) -> list[int]:
    """Return the noisy bits of one state, given by its number (Eq. 2)."""
    bits = []
    for index in range(n_states):
        probability = 0.5 if index == state else 1 / (math.exp(epsilon) + 1)
        bits.append(1 if rng.random() < probability else 0)
    return bits


def oue_estimate(reports: list[list[int]], epsilon: float) -> list[float]:
    """Return the unbiased frequency of each state; negatives are kept (below Eq. 2)."""
    if not reports:
        raise ValueError("nothing can be estimated from no reports")
    q = 1 / (math.exp(epsilon) + 1)
    estimated = []
    for index in range(len(reports[0])):
        count = 0
        for bits in reports:
            count += bits[index]
        estimated.append((count / len(reports) - q) / (0.5 - q))
    return estimated


def oue_variance(epsilon: float, n: int) -> float:
    """Return the variance of an estimate from n reports, as f -> 0 (Eq. 3); infinite for none."""
    if n == 0:
        return math.inf
    return 4 * math.exp(epsilon) / (n * (math.exp(epsilon) - 1) ** 2)


def oue_threshold(epsilon_micronats: int) -> int:
    """Return T = ceil(2^64 / (e^epsilon + 1)): a word below T turns a false bit on (Eq. 2)."""
    with localcontext() as context:
        context.prec = 80
        exponential = (Decimal(epsilon_micronats) / MICRO).exp()
        threshold = Decimal(2**64) / (exponential + 1)
        return int(threshold.to_integral_value(rounding=ROUND_CEILING))


# The mobility model and its update (Sec. III-B and III-C).


def mobility_model(released: list[float], side: int) -> NaiveModel:
    """Return move, hazard, enter and quit probabilities of a released vector (Eq. 6)."""
    n_cells = side * side
    mass = _mass_by_state(released, side)
    move = {}
    quit_hazard = []
    for origin in range(n_cells):
        quitting = mass.get(("quit", origin), 0.0)
        leaving = quitting
        for destination in neighbours(origin, side):
            leaving += mass["move", origin, destination]
        for destination in neighbours(origin, side):
            moving = mass["move", origin, destination]
            move[origin, destination] = moving / leaving if leaving > 0 else 0.0
        quit_hazard.append(quitting / leaving if leaving > 0 else 0.0)
    entering = [mass.get(("enter", cell), 0.0) for cell in range(n_cells)]
    quitting_by_cell = [mass.get(("quit", cell), 0.0) for cell in range(n_cells)]
    return NaiveModel(
        move=move,
        quit_hazard=quit_hazard,
        enter=_share(entering),
        quit_share=_share(quitting_by_cell),
    )


def replace_all(estimated: list[float]) -> list[float] | None:
    """Return the clipped, normalised estimate (AllUpdate); None if nothing is positive."""
    clipped = [max(frequency, 0.0) for frequency in estimated]
    if sum(clipped) == 0:
        return None
    return _share(clipped)


def select_significant(
    previous: list[float], estimated: list[float], variance: float
) -> tuple[list[float], int]:
    """Return the release that minimises Eq. 7, state by state, and the size of S*.

    As run: the estimate is clipped but not normalised when compared, an unselected state is
    brought to the estimate's total, then everything is normalised. No mass: `previous` stands.
    """
    clipped = [max(frequency, 0.0) for frequency in estimated]
    total = sum(clipped)
    updated = []
    n_significant = 0
    for old, new in zip(previous, clipped, strict=True):
        squared_gap = (old - new) ** 2
        if squared_gap > variance:
            updated.append(new)
            n_significant += 1
        else:
            updated.append(old * total)
    if sum(updated) == 0:
        return list(previous), n_significant
    return _share(updated), n_significant


# How much to ask for (Sec. III-E).


def deviation(
    history: list[list[float]],
    lookback: int,
    signed: bool = False,  # noqa: FBT001, FBT002 - as printed or as run
    extra_term: bool = False,  # noqa: FBT001, FBT002 - as printed or as run
) -> float:
    """Return Dev_t: how far release t-1, the last of `history`, is from the recent mean (Eq. 9).

    As printed is `signed` with the `extra_term`: kappa + 1 terms over kappa.
    """
    if not history:
        return 0.0
    recent = history[-(lookback + 1) :] if extra_term else history[-lookback:]
    n_terms = min(len(recent), lookback)
    total = 0.0
    for index, newest in enumerate(history[-1]):
        mean = sum(released[index] for released in recent) / n_terms
        difference = newest - mean
        total += difference if signed else abs(difference)
    return total


def portion(
    dev: float,
    significant_ratios: list[float],
    *,
    gain: float,
    window: int,
    lookback: int,
    max_portion: float,
    ratio_floor: float = 0.5,
) -> float:
    """Return p_t (Eq. 10); a `ratio_floor` of 0 is the equation as printed.

    A negative deviation (Eq. 9 as printed) asks for nothing.
    """
    if dev <= 0:
        return 0.0
    recent = significant_ratios[-lookback:]
    mean = sum(recent) / len(recent) if recent else 0.0
    calm = max(1 - mean, ratio_floor)
    return min(gain / window * calm * math.log(dev + 1), max_portion)


# Who may be asked: every window counts timestamps, not entries (Alg. 1, Eq. 4).


def budget_remaining(spent: dict[int, int], t: int, gap: int, epsilon: int) -> int:
    """Return epsilon_rm, what t-gap+1..t-1 left over, in micro-nats (Sec. III-E)."""
    remaining = epsilon
    for earlier in range(t - gap + 1, t):
        remaining -= spent.get(earlier, 0)
    return remaining


def available(last_report: dict[int, int], users: list[int], t: int, gap: int) -> list[int]:
    """Return U_A, the users who never reported or did so at least `gap` ago (Alg. 1, line 9)."""
    return [user for user in users if user not in last_report or t - last_report[user] >= gap]


def worst_window(reports: list[tuple[int, int]], span: int) -> int:
    """Return the most one person spent in any `span` consecutive timestamps (Eq. 4)."""
    worst = 0
    for start, _ in reports:  # the worst window can be slid until it begins at a report
        total = 0
        for t, micronats in reports:
            if start <= t < start + span:
                total += micronats
        worst = max(worst, total)
    return worst


# LDP-IDS: probe, then publish or wait (Ren et al., SIGMOD 2022), on transition states.
#
# Shares are of the whole: of epsilon (everybody reports with a part of it) or of the users with a
# state (a part of them reports with all of it). Half is for probes, half for publications, in any
# `gap` timestamps. Where their paper is silent or assumes a fixed population:
#  1. The first publication is unconditional: there is no release to compare with.
#  2. Absorption may absorb every timestamp since the first, empty ones too, at most `gap` parts.
#  3. Whoever was asked is spent: a publication that nobody answered, or without any mass, counts.
#     One that would buy nothing, neither a user nor a micro-nat, is not asked for.
#  4. The estimate's variance is averaged over the states, whose frequencies sum to 1: Eq. 3 plus
#     1 / (n n_states).


@dataclass(frozen=True, slots=True)
class NaivePublications:
    """What a publisher remembers: the last release, and the share of each publication by time."""

    released: list[float] | None
    shares: dict[int, Fraction]


def probe_share(gap: int) -> Fraction:
    """Return the share of the whole that each probe M1 takes."""
    return Fraction(1, 2 * gap)


def distribution_share(published: dict[int, Fraction], t: int, gap: int) -> Fraction:
    """Return what a publication may use at t: half of what the window left of the half (LBD)."""
    left = Fraction(1, 2)
    for earlier in range(t - gap + 1, t):
        left -= published.get(earlier, Fraction(0))
    return left / 2


def absorption_share(published: dict[int, Fraction], t: int, gap: int, first_t: int) -> Fraction:
    """Return what a publication may use at t: its part and those skipped before it (LBA).

    A publication of k parts took k - 1 that were not its own and repays them: as many timestamps
    after it have none.
    """
    part = Fraction(1, 2 * gap)
    first_of_its_own = first_t
    if published:
        last = max(published)
        n_parts = published[last] / part
        n_nullified = n_parts - 1
        first_of_its_own = last + int(n_nullified) + 1
    n_own = max(t - first_of_its_own + 1, 0)
    return min(n_own, gap) * part


def dissimilarity(probed: list[float], released: list[float], epsilon: float, n: int) -> float:
    """Return dis: the mean squared distance of truth and last release, estimated without bias."""
    n_states = len(probed)
    distance = 0.0
    for new, old in zip(probed, released, strict=True):
        distance += (new - old) ** 2
    variance = oue_variance(epsilon, n) + 1 / (n * n_states)
    return distance / n_states - variance


def what_a_share_buys(
    share: Fraction, epsilon: int, n_users: int, divides: Literal["budget", "users"]
) -> tuple[int, int]:
    """Return (micro-nats of each report, how many report)."""
    if divides == "budget":
        return math.floor(epsilon * share), n_users
    return epsilon, math.floor(n_users * share)


def probe_then_publish(
    memory: NaivePublications,
    t: int,
    n_users: int,
    *,
    first_t: int,
    epsilon: int,
    gap: int,
    schedule: Literal["distribution", "absorption"],
    divides: Literal["budget", "users"],
    collect: Callable[[str, int, int], tuple[list[float], int]],
) -> tuple[NaivePublications, list[Fraction]]:
    """Return the memory after one timestamp and the shares asked for, the probe's first.

    `collect(lane, epsilon, n)` asks n users with epsilon micro-nats each, to "probe" or to
    "publish": the estimate, and how many answered.
    """
    asked = [probe_share(gap)]
    epsilon_probe, n_probe = what_a_share_buys(asked[0], epsilon, n_users, divides)
    probed: list[float] = []
    n_answers = 0
    if n_probe > 0 and epsilon_probe > 0:
        probed, n_answers = collect("probe", epsilon_probe, n_probe)
    if schedule == "distribution":
        share = distribution_share(memory.shares, t, gap)
    else:
        share = absorption_share(memory.shares, t, gap, first_t)
    epsilon_publication, n_publication = what_a_share_buys(share, epsilon, n_users, divides)
    if n_publication == 0 or epsilon_publication == 0 or share == 0:
        return memory, asked
    if memory.released is not None:
        if n_answers == 0:
            return memory, asked
        publication_error = oue_variance(epsilon_publication / MICRO, n_publication)
        distance = dissimilarity(probed, memory.released, epsilon_probe / MICRO, n_answers)
        if distance <= publication_error:
            return memory, asked
    asked.append(share)
    estimated, n_answers = collect("publish", epsilon_publication, n_publication)
    released = replace_all(estimated) if n_answers > 0 else None
    return NaivePublications(
        released=memory.released if released is None else released,
        shares={**memory.shares, t: share},
    ), asked


# Synthesis (Sec. III-D).


def length_scale(released_history: list[list[float]], side: int) -> float:
    """Return lambda of Eq. 8: (moving + entering) over quitting mass of all releases so far."""
    going = quitting = 0.0
    for released in released_history:
        for state, mass in _mass_by_state(released, side).items():
            if state[0] == "quit":
                quitting += mass
            else:
                going += mass
    if quitting == 0:
        return LONGEST_SCALE
    return min(max(going / quitting, SHORTEST_SCALE), LONGEST_SCALE)


def quit_probability(hazard: float, length: int, scale: float) -> float:
    """Return Pr(quit) of a stream of `length` points (Eq. 8, capped and renormalised)."""
    quitting = min(1.0, length / scale) * hazard
    moving = 1 - hazard
    if quitting + moving == 0:
        return 0.0
    return quitting / (quitting + moving)


def synthesis_step(
    streams: list[NaiveStream],
    model: NaiveModel,
    *,
    t: int,
    target: int,
    scale: float,
    enter: list[float],
    next_identifier: int,
    side: int,
    rng: random.Random,
) -> tuple[list[NaiveStream], list[NaiveStream], int]:
    """Return (living, ended, next_identifier) after new points and size adjustment (Sec. III-D).

    The living keep their order, births last; the ended are the quits, then the surplus.
    """
    living: list[NaiveStream] = []
    ended: list[NaiveStream] = []
    for stream in streams:
        hazard = model.quit_hazard[stream.cells[-1]]
        if rng.random() < quit_probability(hazard, len(stream.cells), scale):
            ended.append(stream)
        else:
            cell = _next_cell(stream.cells[-1], model, side, rng)
            living.append(_with_cells(stream, [*stream.cells, cell]))
    while len(living) > target:
        weights = []
        for stream in living:
            cell_before = stream.cells[-2]
            weights.append(model.quit_share[cell_before] + SURPLUS_FLOOR)
        surplus = living.pop(_draw(weights, rng))
        ended.append(_with_cells(surplus, surplus.cells[:-1]))
    while len(living) < target:
        cell = _draw(enter, rng) if sum(enter) > 0 else rng.randrange(side * side)
        living.append(NaiveStream(next_identifier, [cell], t))
        next_identifier += 1
    return living, ended, next_identifier


def _next_cell(cell: int, model: NaiveModel, side: int, rng: random.Random) -> int:
    """Draw c_next given that the stream does not quit; a cell without mass keeps it."""
    destinations = neighbours(cell, side)
    weights = [model.move[cell, destination] for destination in destinations]
    if sum(weights) == 0:
        return cell
    return destinations[_draw(weights, rng)]


def _with_cells(stream: NaiveStream, cells: list[int]) -> NaiveStream:
    """Return the same stream with other cells; the caller's streams are never changed."""
    return NaiveStream(stream.identifier, cells, stream.entered_at)


def _draw(weights: list[float], rng: random.Random) -> int:
    """Draw an index with probability proportional to its weight."""
    return rng.choices(range(len(weights)), weights)[0]


def _share(masses: list[float]) -> list[float]:
    """Normalise; all zeros where there is no mass."""
    total = sum(masses)
    return [mass / total if total > 0 else 0.0 for mass in masses]


def _mass_by_state(released: list[float], side: int) -> dict[State, float]:
    """Name each entry of a released vector, which may hold moves only."""
    states = all_states(side)
    if len(released) < len(states):
        states = all_states(side, endpoints=False)
    return dict(zip(states, released, strict=True))


# Metrics: how synthetic streams compare with the real ones (Sec. IV).


def prepare(real: list[Path], synthetic: list[Path], box: Box, side: int) -> NaivePair:
    """Return both data sets on the grid, on the real timestamps, cut at jumps (Sec. IV)."""
    first_t = min(begin for begin, _ in real)
    last_t = max(begin + len(points) - 1 for begin, points in real)
    n_timestamps = last_t - first_t + 1
    real_kept = on_timeline(real, first_t, n_timestamps)
    synthetic_kept = on_timeline(synthetic, first_t, n_timestamps)
    if not synthetic_kept:
        raise ValueError("no common timestamp")
    for paths in (real_kept, synthetic_kept):
        n_points = sum(len(points) for _, points in paths)
        if 100 * count_outside(paths, box) > n_points:
            raise ValueError("more than 1 % of the points lie outside the box")
    return NaivePair(
        real=cut_at_jumps(real_kept, box, side),
        synthetic=cut_at_jumps(synthetic_kept, box, side),
        n_timestamps=n_timestamps,
        n_streams_real=len(real_kept),
        n_streams_synthetic=len(synthetic_kept),
    )


def count_outside(paths: list[Path], box: Box) -> int:
    """Count the points that lie outside the box; its edges are inside."""
    x0, y0, x1, y1 = box
    outside = 0
    for _, points in paths:
        for x, y in points:
            if not (x0 <= x <= x1 and y0 <= y <= y1):
                outside += 1
    return outside


def nearest_cell(x: float, y: float, box: Box, side: int) -> int:
    """Return the cell of a point, or the nearest one if the point lies outside the box."""
    x0, y0, x1, y1 = box
    return cell_of(min(max(x, x0), x1), min(max(y, y0), y1), box, side)


def on_timeline(paths: list[Path], first_t: int, n_timestamps: int) -> list[Path]:
    """Return the paths with t renumbered from first_t, without points beyond the timeline."""
    kept = []
    for begin, points in paths:
        within = []
        for index, point in enumerate(points):
            t = begin - first_t + index
            if 0 <= t < n_timestamps:
                within.append((t, point))
        if within:
            kept.append((within[0][0], [point for _, point in within]))
    return kept


def cut_at_jumps(paths: list[Path], box: Box, side: int) -> list[NaiveTrip]:
    """Return the paths on the grid, each cut wherever it moves further than a neighbour."""
    trips: list[NaiveTrip] = []
    for begin, points in paths:
        previous = None
        for index, (x, y) in enumerate(points):
            cell = nearest_cell(x, y, box, side)
            if previous is None or cell not in neighbours(previous, side):
                trips.append(NaiveTrip(begin + index, [], []))
            trips[-1].cells.append(cell)
            trips[-1].points.append((x, y))
            previous = cell
    return trips


def jsd(a: dict[Any, int], b: dict[Any, int]) -> float:
    """Return the Jensen-Shannon divergence of two tables of counts, in nats."""
    total_a, total_b = sum(a.values()), sum(b.values())
    if total_a == 0 and total_b == 0:
        return math.nan
    if total_a == 0 or total_b == 0:
        return math.log(2)
    divergence = 0.0
    for key in {*a, *b}:
        p, q = a.get(key, 0) / total_a, b.get(key, 0) / total_b
        middle = (p + q) / 2
        if p > 0:
            divergence += 0.5 * p * math.log(p / middle)
        if q > 0:
            divergence += 0.5 * q * math.log(q / middle)
    return divergence


def mean(values: list[float]) -> float:
    """Return the mean of all values that are not NaN; NaN if there is none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def cells_within(trips: list[NaiveTrip], first: int, last: int) -> Counter[int]:
    """Count the points of every cell at first..last-1."""
    counts: Counter[int] = Counter()
    for trip in trips:
        for index, cell in enumerate(trip.cells):
            if first <= trip.begin + index < last:
                counts[cell] += 1
    return counts


def moves_at(trips: list[NaiveTrip], t: int) -> Counter[tuple[int, int]]:
    """Count the moves from t-1 to t, stays included, of all trips present at both."""
    counts: Counter[tuple[int, int]] = Counter()
    for trip in trips:
        index = t - trip.begin
        if 1 <= index < len(trip.cells):
            counts[trip.cells[index - 1], trip.cells[index]] += 1
    return counts


def density_errors(pair: NaivePair) -> list[float]:
    """Return the divergence of points per cell at every timestamp (density error)."""
    errors = []
    for t in range(pair.n_timestamps):
        real, synthetic = (cells_within(trips, t, t + 1) for trips in (pair.real, pair.synthetic))
        errors.append(jsd(real, synthetic))
    return errors


def transition_errors(pair: NaivePair) -> list[float]:
    """Return the divergence of moves at every timestamp (transition error)."""
    timestamps = range(pair.n_timestamps)
    return [jsd(moves_at(pair.real, t), moves_at(pair.synthetic, t)) for t in timestamps]


def query_error(
    pair: NaivePair, box: Box, queries: list[tuple[int, float, float]], span: int
) -> float:
    """Return the mean relative error of counts; a query is its start and lower left (Sec. IV).

    Queries are squares of a ninth of the box's area, cut where they would leave it.
    """
    span = min(span, pair.n_timestamps)
    size = math.sqrt((box[2] - box[0]) * (box[3] - box[1]) / 9)
    n_points = sum(len(trip.cells) for trip in pair.real)
    floor = 0.01 * (n_points / pair.n_timestamps) * span

    def answer(trips: list[NaiveTrip], start: int, x0: float, y0: float) -> int:
        x1, y1 = min(x0 + size, box[2]), min(y0 + size, box[3])
        found = 0
        for trip in trips:
            for index, (x, y) in enumerate(trip.points):
                in_time = start <= trip.begin + index < start + span
                if in_time and x0 <= x <= x1 and y0 <= y <= y1:
                    found += 1
        return found

    errors = []
    for query in queries:
        real, synthetic = answer(pair.real, *query), answer(pair.synthetic, *query)
        errors.append(abs(real - synthetic) / max(real, floor))
    return mean(errors)


def ndcg(real: dict[int, int], synthetic: dict[int, int], top: int) -> float:
    """Return how well the synthetic ranking of cells finds the real one; NaN without points."""

    def ranked(counts: dict[int, int]) -> list[int]:
        visited = [cell for cell in counts if counts[cell] > 0]
        return sorted(visited, key=lambda cell: (-counts[cell], cell))[:top]

    gains = {cell: 1 / rank for rank, cell in enumerate(ranked(real), 1)}

    def gain_of(ranking: list[int]) -> float:
        total = 0.0
        for position, cell in enumerate(ranking, 1):
            total += gains.get(cell, 0.0) / math.log2(position + 1)
        return total

    if not gains:
        return math.nan
    return gain_of(ranked(synthetic)) / gain_of(ranked(real))


def hotspot_ndcg(pair: NaivePair, starts: list[int], span: int, top: int) -> float:
    """Return the mean NDCG of the cells with most points over all spans (Sec. IV)."""
    span = min(span, pair.n_timestamps)
    values = []
    for start in starts:
        real = cells_within(pair.real, start, start + span)
        synthetic = cells_within(pair.synthetic, start, start + span)
        values.append(ndcg(real, synthetic, top))
    return mean(values)


def patterns_within(trips: list[NaiveTrip], first: int, last: int) -> Counter[tuple[int, ...]]:
    """Count the patterns of 2 to 5 cells at first..last-1; beyond 2, no cell follows itself."""
    counts: Counter[tuple[int, ...]] = Counter()
    for trip in trips:
        for length in (2, 3, 4, 5):
            for index in range(len(trip.cells) - length + 1):
                t = trip.begin + index
                pattern = tuple(trip.cells[index : index + length])
                stays = any(pattern[i] == pattern[i + 1] for i in range(length - 1))
                if first <= t and t + length <= last and (length == 2 or not stays):
                    counts[pattern] += 1
    return counts


def top_patterns(
    trips: list[NaiveTrip], first: int, last: int, top: int
) -> list[tuple[tuple[int, ...], int]]:
    """Return the most frequent patterns with their counts; of equals the shorter, then smaller."""
    counts = patterns_within(trips, first, last)
    ranked = sorted(counts, key=lambda pattern: (-counts[pattern], len(pattern), pattern))
    return [(pattern, counts[pattern]) for pattern in ranked[:top]]


def pattern_f1(pair: NaivePair, starts: list[int], span: int, top: int) -> float:
    """Return the mean F1 of the most frequent patterns over all spans (Sec. IV)."""
    span = min(span, pair.n_timestamps)
    values = []
    for start in starts:
        real = {pattern for pattern, _ in top_patterns(pair.real, start, start + span, top)}
        found = {pattern for pattern, _ in top_patterns(pair.synthetic, start, start + span, top)}
        if real or found:
            values.append(2 * len(real & found) / (len(real) + len(found)))
    return mean(values)


def visits(trips: list[NaiveTrip], side: int) -> list[int]:
    """Return the number of trips that pass every cell."""
    counts = [0] * (side * side)
    for trip in trips:
        for cell in set(trip.cells):
            counts[cell] += 1
    return counts


def kendall_tau(pair: NaivePair, side: int) -> float:
    """Return how far cells keep their order by visits; a synthetic tie counts as reversed."""
    real, synthetic = visits(pair.real, side), visits(pair.synthetic, side)
    agreement = n_pairs = 0
    for i in range(side * side):
        for j in range(i + 1, side * side):
            n_pairs += 1
            if real[i] == real[j]:
                continue
            in_order = synthetic[i] != synthetic[j] and (
                (real[i] < real[j]) == (synthetic[i] < synthetic[j])
            )
            agreement += 1 if in_order else -1
    return agreement / n_pairs if n_pairs else math.nan


def trip_error(pair: NaivePair) -> float:
    """Return the divergence of (first cell, last cell) of the trips (Sec. IV)."""
    real, synthetic = (
        Counter((trip.cells[0], trip.cells[-1]) for trip in trips)
        for trips in (pair.real, pair.synthetic)
    )
    return jsd(real, synthetic)


def travelled(trip: NaiveTrip) -> float:
    """Return the length of a trip: the sum of its steps, 0 for a single point."""
    total = 0.0
    for index in range(1, len(trip.points)):
        total += math.dist(trip.points[index - 1], trip.points[index])
    return total


def length_buckets(pair: NaivePair, n_buckets: int) -> tuple[list[int], list[int]]:
    """Count the trips by length, in equal buckets up to the longest of either data set."""
    longest = max(travelled(trip) for trip in [*pair.real, *pair.synthetic])
    counted = []
    for trips in (pair.real, pair.synthetic):
        counts = [0] * n_buckets
        for trip in trips:
            bucket = int(travelled(trip) / longest * n_buckets) if longest > 0 else 0
            counts[min(bucket, n_buckets - 1)] += 1
        counted.append(counts)
    return counted[0], counted[1]


def length_error(pair: NaivePair) -> float:
    """Return the divergence of travelled lengths in 20 buckets (Sec. IV)."""
    real, synthetic = length_buckets(pair, 20)
    return jsd(dict(enumerate(real)), dict(enumerate(synthetic)))


def duration_error(pair: NaivePair) -> float:
    """Return the divergence of the number of points of the trips."""
    real, synthetic = (
        Counter(len(trip.cells) for trip in trips) for trips in (pair.real, pair.synthetic)
    )
    return jsd(real, synthetic)


def stream_ratio(pair: NaivePair) -> float:
    """Return synthetic over real streams, as they were before jumps cut them."""
    return pair.n_streams_synthetic / pair.n_streams_real


# Our method: `steered`, from `algorithms.md`, part 2, without reading the package.
#
# A movement table is [cell][direction 0..8], direction = 3 (row step + 1) + (column step + 1), so
# 4 is stay and directions ascend with the destination; an entry without a neighbour is 0 and never
# read. Where the document is ambiguous (0 / 0 is 0 everywhere):
#  1. Hazard by length is not renormalised after min(1, l / lambda), unlike Eq. 8 as run; l = age.
#  2. Last age bin: 400 and older, nobody falls off; a stream older than 400 has h(400).
#  3. The age histogram begins empty: at the first timestamp everybody enters and Q = 0.
#  4. ln(s/w)^2 is the square of the logarithm; w is the window, not the gap.
#  5. Order at t: histograms to N_t, reports of t pooled against them, weights, h and totals.
#     "Averaged over experts" means with those weights.
#  6. An age phase is uniform in 0..3 gap-1, so when one is asked does not depend on one's age.
#  7. thr is drawn anew for every report; only distinct thr <= 2 gap are used, since a larger one
#     (16 for w < 7) would look further back than three gaps cover.
#  8. Quit probabilities: h r_c, rescaled to sum h, capped at .95 once; then, if their *sum* is less
#     than N_{t-1} - N_t, scaled to it and capped at .98 once. No redistribution.
#  9. q_c sums to 1; share_c is over the streams alive at t-1, at their cell of t-1.
# 10. Steering's b uses m normalised to 1, whatever the moves' share. The last v is never used.
# 11. Points reflect at the cell's true walls, then are clamped to 5e-4 off them. The random sign on
#     the unchanged axis is that of the same uniform angle (the same law as a separate coin).
# 12. Flags: bucket k holds edge[k] <= age < edge[k+1], the last is open; ages as of t-1. What a
#     bucket lacks is taken from all streams left, smallest keys first. Out of phase waives only the
#     phase of a stopping device, never the gap.
# 13. Surplus: without replacement, by smallest -ln U / p (ends by weight p); p = 0 comes last.
# Beyond the document: steering that goes on from an earlier pull.

Table: TypeAlias = list[list[float]]  # [cell][direction]

OLDEST = 400
EDGES = [1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 33, 41]
EDGES += [50, 60, 72, 86, 103, 125, 150, 180, 215, 260, 320, 400]
MARGIN = 5e-4


@dataclass(frozen=True, slots=True)
class AgeReports:
    """What age reports told so far, by threshold."""

    n: list[int]  # [threshold]
    bits: list[float]  # [threshold], sum of debiased bits
    expected: list[list[float]]  # [expert][threshold], sum of P[age > thr], one term per report


def neighbour_table(side: int) -> list[list[int]]:
    """Return the neighbour of each cell in each direction, -1 where there is none."""
    table = []
    for cell in range(side * side):
        row, column = divmod(cell, side)
        found = []
        for direction in range(9):
            r, c = row + direction // 3 - 1, column + direction % 3 - 1
            found.append(r * side + c if 0 <= r < side and 0 <= c < side else -1)
        table.append(found)
    return table


# Who reports: phase slots, and windows of reports that look back.


def reports_transition(
    t: int, phase: int, gap: int, last: int | None, *, has_state: bool, waived: bool = False
) -> bool:
    """Tell whether a person reports at t; `waived`: a stopping device under flags."""
    rested = last is None or t - last >= gap
    return has_state and rested and (waived or t % gap == phase)


def reports_age(t: int, phase: int, gap: int, last: int | None, *, present: bool) -> bool:
    """Tell whether a person who reports ages does so at t; its phase is in 0..3 gap-1."""
    rested = last is None or t - last >= 3 * gap
    return present and rested and t % (3 * gap) == phase


def age_thresholds(gap: int) -> list[int]:
    """Return the thresholds whose lookback fits three gaps."""
    return sorted({thr for thr in (2, 6, 16, 2 * gap) if thr <= 2 * gap})


def worst_window_of_positions(reports: list[tuple[int, int, int]], window: int) -> int:
    """Return the most one person spent on any w positions; a report is (t, lookback, spend)."""
    if not reports:
        return 0
    oldest = min(t - lookback for t, lookback, _ in reports)
    newest = max(t for t, _, _ in reports)
    worst = 0
    for first in range(oldest - window + 1, newest + 1):
        read = 0
        for t, lookback, spend in reports:
            if any(first <= position < first + window for position in range(t - lookback, t + 1)):
                read += spend
        worst = max(worst, read)
    return worst


def worst_window_of_transitions(reports: list[tuple[int, int, int]], window: int) -> int:
    """Return the most one person spent on any w transitions: the one at t reads t-1 and t."""
    numbered = [(t, lookback - 1, spend) for t, lookback, spend in reports]
    return worst_window_of_positions(numbered, window)


def variance_of_one(epsilon: float) -> float:
    """Return V1, the variance of an estimate from one report."""
    return 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2


# Hazards and ends.


def hazard_by_length(length: int, scale: float, quit_mass: float, leaving_mass: float) -> float:
    """Return the quit probability of a stream; `leaving_mass` is the released row sum of m."""
    return min(1.0, length / scale) * _ratio(quit_mass, quit_mass + leaving_mass)


def choose_surplus(probabilities: list[float], uniforms: list[float], n: int) -> list[int]:
    """Return n streams to end, drawn by weight of their own quit probability."""
    keys = []
    for i, (p, u) in enumerate(zip(probabilities, uniforms, strict=True)):
        keys.append((-math.log(u) / p if p > 0 else math.inf, i))
    return sorted(i for _, i in sorted(keys)[:n])


def debias_bit(bit: int, epsilon: float) -> float:
    """Return the unbiased reading of one randomised bit."""
    q = 1 / (math.exp(epsilon) + 1)
    return (bit - q) / (1 - 2 * q)


def experts() -> list[tuple[float, float]]:
    """Return (s, k) of every expert."""
    scales = [2 * 150 ** (i / 21) for i in range(22)]
    return [(s, k) for s in scales for k in (0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0)]


def weibull_hazard(s: float, k: float) -> list[float]:
    """Return h(a) for a = 1..400, at index a - 1."""
    hazard = []
    for a in range(1, OLDEST + 1):
        raw = 1 - math.exp(((a - 1) / s) ** k - (a / s) ** k)
        hazard.append(min(max(raw, 1e-4), 0.9))
    return hazard


def age_step(n: list[float], h: list[float], size: int) -> tuple[list[float], float, float]:
    """Return an expert's age histogram at t, its E and its Q, given N_t = `size`."""
    oldest = len(n)
    quitting = sum(n[a] * h[a] for a in range(oldest))
    older = [0.0] * oldest
    for a in range(oldest):
        older[min(a + 1, oldest - 1)] += n[a] * (1 - h[a])
    survivors = sum(older)
    if survivors > size:
        older = [count * size / survivors for count in older]
        quitting += survivors - size
        survivors = float(size)
    older[0] = size - survivors
    return older, older[0], quitting


def older_than(n: list[float], thr: int) -> float:
    """Return an expert's P[age > thr]."""
    return _ratio(sum(n[thr:]), sum(n))


def pool_age_reports(
    pool: AgeReports,
    reports: list[tuple[int, int]],  # (threshold, noisy bit) of timestamp t
    histograms: list[list[float]],  # each expert's at t
    thresholds: list[int],
    epsilon: float,
) -> AgeReports:
    """Return the pool with the reports of t."""
    n, bits, expected = list(pool.n), list(pool.bits), [list(row) for row in pool.expected]
    for thr, bit in reports:
        k = thresholds.index(thr)
        n[k] += 1
        bits[k] += debias_bit(bit, epsilon)
        for e, histogram in enumerate(histograms):
            expected[e][k] += older_than(histogram, thr)
    return AgeReports(n, bits, expected)


def expert_score(
    s: float, k: float, window: int, pool: AgeReports, expert: int, epsilon: float
) -> float:
    """Return an expert's score: its prior and its misfit to the pooled bits."""
    score = math.log(s / window) ** 2 + (math.log(k / 1.2) / 0.6) ** 2
    precision = (math.exp(epsilon) - 1) ** 2 / math.exp(epsilon)
    for index, n in enumerate(pool.n):
        if n > 0:
            misfit = pool.bits[index] / n - pool.expected[expert][index] / n
            score += n * misfit**2 * precision
    return score


def expert_weights(scores: list[float]) -> list[float]:
    """Return the weight of each expert."""
    lowest = min(scores)
    return share([math.exp(-(score - lowest) / 2) for score in scores])


def mean_hazard(weights: list[float], hazards: list[list[float]]) -> list[float]:
    """Return h(a), the weighted mean of the experts' hazards."""
    pairs = list(zip(weights, hazards, strict=True))
    return [sum(weight * hazard[a] for weight, hazard in pairs) for a in range(OLDEST)]


def age_totals(
    weights: list[float], entering: list[float], quitting: list[float], size: int
) -> dict[str, float]:
    """Return the totals E/(N_t+Q) and Q/(N_t+Q), averaged over experts."""
    totals = {"enter": 0.0, "quit": 0.0}
    for weight, e, q in zip(weights, entering, quitting, strict=True):
        totals["enter"] += weight * _ratio(e, size + q)
        totals["quit"] += weight * _ratio(q, size + q)
    return totals


def smooth_totals(old: dict[str, float] | None, new: dict[str, float]) -> dict[str, float]:
    """Return the EMA of the totals; begun with None at the second timestamp with anybody."""
    if old is None:
        return dict(new)
    return {group: 0.98 * old[group] + 0.02 * new[group] for group in new}


def hazard_by_age(
    ages: list[int],
    cells: list[int],  # of each stream at t-1
    h: list[float],
    quit_distribution: list[float],
    size_now: int,
) -> list[float]:
    """Return the quit probability of each stream."""
    if not ages:
        return []
    ratio = []
    for c, q in enumerate(quit_distribution):
        present = cells.count(c) / len(cells)
        ratio.append(min(max((q + 0.002) / (present + 0.002), 0.1), 10.0))
    plain = [h[min(age, len(h)) - 1] for age in ages]
    tilted = [p * ratio[cell] for p, cell in zip(plain, cells, strict=True)]
    factor = _ratio(sum(plain), sum(tilted))
    quits = [min(p * factor, 0.95) for p in tilted]
    needed = len(ages) - size_now
    if sum(quits) < needed:
        factor = _ratio(needed, sum(quits))
        quits = [min(p * factor, 0.98) for p in quits]
    return quits


def age_bucket(age: int) -> int:
    """Return the number of an age's bucket."""
    return sum(1 for edge in EDGES if edge <= age) - 1


def choose_endings(
    ages: list[int],
    cells: list[int],
    qhat: list[float],
    uniforms: list[float],
    real_ages: list[int],  # of the real streams that quit, at their last point
) -> list[int]:
    """Return the streams to end: as many as real ones in each age bucket, by smallest key."""
    keys = sorted((-math.log(u) / (qhat[cells[i]] + 1e-6), i) for i, u in enumerate(uniforms))
    missing = [0] * len(EDGES)
    for age in real_ages:
        missing[age_bucket(age)] += 1
    chosen, left = [], []
    for _, i in keys:
        if missing[age_bucket(ages[i])] > 0:
            missing[age_bucket(ages[i])] -= 1
            chosen.append(i)
        else:
            left.append(i)
    return sorted(chosen + left[: sum(missing)])


# Steering and continuous points, in cell widths.


def steer(
    kernel0: Table,
    m: Table,
    a: list[int],
    side: int,
    pull: list[float] | None = None,
    rounds: int = 8,
) -> tuple[Table, list[float]]:
    """Return the kernel to draw from, the one of the last round, and v where the rounds ended."""
    table = neighbour_table(side)
    cells = range(side * side)
    mass = sum(sum(row) for row in m)
    b = [0.0 for _ in cells]
    softened = []
    for i in cells:
        known = [c for c in range(9) if table[i][c] >= 0]
        for c in known:
            b[table[i][c]] += sum(a) * m[i][c] / mass
        row = [0.0] * 9
        for c in known:
            row[c] = 0.999 * kernel0[i][c] + 0.001 / len(known)
        softened.append(row)
    v = [1.0 for _ in cells] if pull is None else list(pull)
    kernel: Table = []
    for _ in range(rounds):
        kernel = [share([softened[i][c] * v[table[i][c]] for c in range(9)]) for i in cells]
        col = [0.0 for _ in cells]
        for i in cells:
            for c in range(9):
                if table[i][c] >= 0:
                    col[table[i][c]] += a[i] * kernel[i][c]
        for j in cells:
            bent = v[j] * ((b[j] + 0.5) / (col[j] + 0.5)) ** 0.7
            v[j] = min(max(bent, 0.05), 20.0)
    return kernel, v


def step_point(
    at: tuple[float, float], cell: int, length: float, angle: float, side: int
) -> tuple[float, float]:
    """Return the next point in the same cell: a step, turned back at the walls."""
    row, column = divmod(cell, side)
    return (
        _step_axis(at[0], column, length * math.cos(angle)),
        _step_axis(at[1], row, length * math.sin(angle)),
    )


def _step_axis(x: float, low: int, step: float) -> float:
    """Move along one axis of a cell, and turn back at its walls."""
    x += step
    if x < low:
        x = 2 * low - x
    if x > low + 1:
        x = 2 * (low + 1) - x
    return min(max(x, low + MARGIN), low + 1 - MARGIN)


def nearest_of(at: tuple[float, float], places: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the first of the places that are nearest: where a newcomer to a cell is."""
    return min(places, key=lambda place: (place[0] - at[0]) ** 2 + (place[1] - at[1]) ** 2)


def place_in(cell: int, u: float, v: float, side: int) -> tuple[float, float]:
    """Return a point of a cell, a hair away from its walls."""
    row, column = divmod(cell, side)
    return column + MARGIN + (1 - 2 * MARGIN) * u, row + MARGIN + (1 - 2 * MARGIN) * v


def even_moves(
    ids: list[int], cells: list[int], kernel: Table, uniforms: list[float], side: int
) -> list[int]:
    """Return the next cell of each stream; one uniform per cell, ranks by (id modulo 64, id)."""
    table, rank, moved = neighbour_table(side), [0] * side * side, [0] * len(ids)
    for i in sorted(range(len(ids)), key=lambda i: (ids[i] % 64, ids[i])):
        cell = cells[i]
        u = math.modf(uniforms[cell] + 0.6180339887498949 * rank[cell])[0]
        rank[cell] += 1
        cumulative = 0.0
        for direction in [4, 0, 1, 2, 3, 5, 6, 7, 8]:
            if table[cell][direction] < 0:
                continue
            moved[i] = table[cell][direction]  # the last existing one, if none exceeds u
            cumulative += kernel[cell][direction]
            if cumulative > u:
                break
    return moved


def log_density(at: tuple[float, float], m: Table | None, side: int) -> float:
    """Return ln(arriving mass + 1e-4), bilinear between cell centres and constant beyond them."""
    if m is None:
        return 0.0
    arriving = [0.0] * side * side
    for cell, row in enumerate(neighbour_table(side)):
        for direction, target in enumerate(row):
            if target >= 0:
                arriving[target] += m[cell][direction]
    x, y = (min(max(place - 0.5, 0.0), side - 1.0) for place in at)
    found = 0.0
    for cell, mass in enumerate(arriving):
        row, column = divmod(cell, side)
        weight = max(1 - abs(x - column), 0.0) * max(1 - abs(y - row), 0.0)
        found += weight * math.log(mass + 1e-4)
    return found


def step_by_density(
    at: tuple[float, float],
    cell: int,
    stay: float,
    angle: float,
    uniform: float,
    m: Table | None,
    side: int,
) -> tuple[float, float]:
    """Return the next point of one that stays in its cell: it turns round where density falls."""
    length = math.pi / 4 * (1 - stay)
    after = step_point(at, cell, length, angle, side)
    fall = log_density(at, m, side) - log_density(after, m, side)
    if fall > 0 and uniform < 1 - math.exp(-fall):
        return step_point(at, cell, length, angle + math.pi, side)
    return after


def first_point(
    cell: int, tries: list[tuple[float, float, float]], m: Table | None, side: int
) -> tuple[float, float]:
    """Return the first point (u, v) of a cell that its uniform accepts; else the last."""
    row, column = divmod(cell, side)
    nine = [(column + i / 2, row + j / 2) for i in range(3) for j in range(3)]
    highest = max(log_density(place, m, side) for place in nine)
    point = (0.0, 0.0)
    for u, v, uniform in tries:
        point = place_in(cell, u, v, side)
        if uniform < math.exp(log_density(point, m, side) - highest):
            break
    return point


def squares_of(raster: Table, side: int, finest: int) -> Table:
    """Return a map resampled to at least `finest` squares a side, of which all cells have whole."""
    fine = math.ceil(finest / side)
    n = side * fine
    places = [int((k + 0.5) / n * len(raster)) for k in range(n)]
    return [[raster[row][column] for column in places] for row in places]


def point_by_map(cell: int, word: int, squares: Table, side: int) -> tuple[float, float]:
    """Return a point of a cell: its square by the map and a word's upper half, then the lower."""
    fine = len(squares) // side
    row, column = divmod(cell, side)
    inside = [(r, c) for r in range(fine) for c in range(fine)]
    masses = [squares[row * fine + r][column * fine + c] for r, c in inside]
    ends = [sum(masses[: k + 1]) for k in range(len(masses))]
    chosen = next(
        (k for k, end in enumerate(ends[:-1]) if word >> 32 < int(end / ends[-1] * 2**32)),
        len(masses) - 1,
    )
    u = (inside[chosen][1] + ((word >> 16) & 0xFFFF) / 2**16) / fine
    v = (inside[chosen][0] + (word & 0xFFFF) / 2**16) / fine
    return (
        column + min(max(u, MARGIN), 1 - MARGIN),
        row + min(max(v, MARGIN), 1 - MARGIN),
    )


def step_by_map(
    at: tuple[float, float],
    cell: int,
    length: float,
    parked: float,
    words: tuple[int, int, int],
    squares: Table,
    side: int,
) -> tuple[float, float]:
    """Return the next point of one that stays in its cell: parked, refused, or a step further."""
    if (words[0] >> 12) / 2**52 < parked:
        return at
    angle = (words[0] % 4096 + 0.5) * 2 * math.pi / 4096
    thrice = sum((words[1] >> shift) & 0xFFFF for shift in (0, 16, 48)) / 2**16
    after = step_point(at, cell, length * math.exp(thrice - 1.5), angle, side)
    fine = len(squares) // side
    here, there = (squares[int(y * fine)][int(x * fine)] for x, y in (at, after))
    return after if (words[2] >> 11) / 2**53 * here < there else at


def chance_named(n_reports: int, p: float, q: float, n_places: int) -> float:
    """Return how likely the most supported place is the right one; ties are decided by lot."""
    total = 0.0
    for count in range(n_reports + 1):
        below = sum(_binomial(n_reports, k, q) for k in range(count))
        same = _binomial(n_reports, count, q)
        for ties in range(n_places):
            others = math.comb(n_places - 1, ties) * same**ties * below ** (n_places - 1 - ties)
            total += _binomial(n_reports, count, p) * others / (ties + 1)
    return total


def _binomial(n: int, k: int, chance: float) -> float:
    return math.comb(n, k) * chance**k * (1 - chance) ** (n - k)


# The estimator of `steered`: a log-linear model of moves, in the space of cells, by definition.
#
# Parameters are (u_1..u_C, a_1, rest): log q of a move i -> j is (u_i + u_j) / 2 + a_kind, with
# a_0 = 0 (stay), a_1 (straight) and a_2 = 2 a_1 + rest (diagonal). Heights are sums of as many
# cosine waves as there are cells, so their prior has a precision matrix: sides up to 9 only.
# What was tuned is passed in. The curvature that says how uncertain a fit is, is that of the last
# round, in which the shares have settled.

Matrix: TypeAlias = list[list[float]]


@dataclass(frozen=True, slots=True)
class Tuning:
    """Constants of the estimator, by the names of its specification."""

    kept: float  # of the sums that the base is fitted to
    paces: tuple[float, ...]  # at which reports of presence are forgotten
    filters: tuple[tuple[float, float], ...]  # what is left of deviations, and their variance
    field: tuple[float, float, float]  # variance, range, nugget of u
    deviation_field: tuple[float, float, float]
    widths: tuple[float, ...]  # hypotheses on the variance of u
    kinds: tuple[float, float]  # prior means of a_1 and rest
    kind_spreads: tuple[float, float]  # of both
    kind_deviations: tuple[float, float]
    few_reports: int
    rounds: int
    first_rounds: int
    most_step: float
    settled: float
    most_relative: float
    shared: float  # trust spread evenly


@dataclass(frozen=True, slots=True)
class Reports:
    """Balanced means of both kinds, and their weights over the variance of one report."""

    moves: list[float]  # x
    weight: float  # w
    arrivals: list[float]  # z
    arrival_weight: float  # w'


@dataclass(frozen=True, slots=True)
class NaiveFit:
    """The most probable parameters, and the curvature of the last round's reports."""

    theta: list[float]
    curvature: Matrix


def grid_moves(side: int) -> list[tuple[int, int, int]]:
    """Return origin, destination and kind of every move, in the order of the states."""
    found = []
    for i in range(side * side):
        for j in neighbours(i, side):
            rows, columns = abs(i // side - j // side), abs(i % side - j % side)
            found.append((i, j, rows + columns))
    return found


def effects(side: int) -> Matrix:
    """Return D, what one more of each parameter adds to log q: [move][parameter]."""
    rows = []
    for i, j, kind in grid_moves(side):
        row = [0.0] * (side * side + 2)
        row[i] += 0.5
        row[j] += 0.5
        row[side * side] = float(kind)  # a_1, twice in a_2
        row[side * side + 1] = 1.0 if kind == 2 else 0.0
        rows.append(row)
    return rows


def move_shares(theta: list[float], side: int) -> list[float]:
    """Return m."""
    logs = [math.fsum(d * p for d, p in zip(row, theta, strict=True)) for row in effects(side)]
    return share([math.exp(log - max(logs)) for log in logs])


def arriving(masses: list[float], side: int) -> list[float]:
    """Return arr(m), the sum of what ends in each cell."""
    found = [0.0] * side * side
    for mass, (_, j, _) in zip(masses, grid_moves(side), strict=True):
        found[j] += mass
    return found


def share_slopes(m: list[float], side: int) -> Matrix:
    """Return the derivative of every share by every parameter: m_s (D_s - mean of D)."""
    d = effects(side)
    mean = [sum(m[s] * d[s][k] for s in range(len(m))) for k in range(len(d[0]))]
    return [[m[s] * (d[s][k] - mean[k]) for k in range(len(mean))] for s in range(len(m))]


def arriving_slopes(slopes: Matrix, side: int) -> Matrix:
    """Return the derivative of the arrivals in every cell by every parameter."""
    found = [[0.0] * len(slopes[0]) for _ in range(side * side)]
    for row, (_, j, _) in zip(slopes, grid_moves(side), strict=True):
        found[j] = [a + b for a, b in zip(found[j], row, strict=True)]
    return found


def waves(side: int) -> Matrix:
    """Return product cosines over the cells, each of length 1: [wave][cell]."""

    def along(k: int, place: int) -> float:
        return math.cos(math.pi * k * (place + 0.5) / side)

    found = []
    for row in range(side):
        for column in range(side):
            wave = [along(row, c // side) * along(column, c % side) for c in range(side * side)]
            length = math.sqrt(sum(value**2 for value in wave))
            found.append([value / length for value in wave])
    return found


def wave_variance(wave: list[float], law: tuple[float, float, float], side: int) -> float:
    """Return the variance that a field of covariance s^2 exp(-D / range) + nugget gives a wave."""
    variance, reach, nugget = law
    total = 0.0
    for i, a in enumerate(wave):
        for j, b in enumerate(wave):
            distance = math.dist(divmod(i, side), divmod(j, side)) / side
            total += a * b * variance * math.exp(-distance / reach)
    return total + nugget * sum(a**2 for a in wave)


@cache
def prior_precision(
    side: int, law: tuple[float, float, float], kind_spreads: tuple[float, float]
) -> Matrix:
    """Return Q, the precision of all parameters around their mean."""
    n_cells = side * side
    q = [[0.0] * (n_cells + 2) for _ in range(n_cells + 2)]
    for wave in waves(side):
        variance = wave_variance(wave, law, side)
        for i in range(n_cells):
            for j in range(n_cells):
                q[i][j] += wave[i] * wave[j] / variance
    for k, spread in enumerate(kind_spreads):
        q[n_cells + k][n_cells + k] = spread**-2
    return q


def log_posterior(
    theta: list[float], base: list[float], precision: Matrix, reports: Reports, side: int
) -> float:
    """Return the logarithm of the posterior, up to a constant."""
    m = move_shares(theta, side)
    off = [a - b for a, b in zip(theta, base, strict=True)]
    total = -0.5 * sum(a * b for a, b in zip(off, times(precision, off), strict=True))
    for weight, seen, said in (
        (reports.weight, reports.moves, m),
        (reports.arrival_weight, reports.arrivals, arriving(m, side)),
    ):
        total -= 0.5 * weight * sum((a - b) ** 2 for a, b in zip(seen, said, strict=True))
    return total


def posterior_slope(
    theta: list[float], base: list[float], precision: Matrix, reports: Reports, side: int
) -> list[float]:
    """Return the gradient of `log_posterior`: slopes times gaps, less the prior's pull."""
    m = move_shares(theta, side)
    pull = times(precision, [a - b for a, b in zip(theta, base, strict=True)])
    likely = likelihood_slope(m, reports, side)
    return [a - b for a, b in zip(likely, pull, strict=True)]


def likelihood_slope(m: list[float], reports: Reports, side: int) -> list[float]:
    """Return the sum of weight times gap times slope."""
    slopes = share_slopes(m, side)
    gradient = [0.0] * len(slopes[0])
    for weight, seen, said, rows in (
        (reports.weight, reports.moves, m, slopes),
        (
            reports.arrival_weight,
            reports.arrivals,
            arriving(m, side),
            arriving_slopes(slopes, side),
        ),
    ):
        for a, b, row in zip(seen, said, rows, strict=True):
            for k, slope in enumerate(row):
                gradient[k] += weight * (a - b) * slope
    return gradient


def report_curvature(theta: list[float], reports: Reports, side: int) -> Matrix:
    """Return the Gauss-Newton Hessian of the reports: the sum of weight times slope times slope."""
    slopes = share_slopes(move_shares(theta, side), side)
    h = [[0.0] * len(theta) for _ in theta]
    for weight, rows in (
        (reports.weight, slopes),
        (reports.arrival_weight, arriving_slopes(slopes, side)),
    ):
        if weight == 0:
            continue
        for row in rows:
            for k, a in enumerate(row):
                for n, b in enumerate(row):
                    h[k][n] += weight * a * b
    return h


def most_probable(
    base: list[float],
    begin: list[float],
    precision: Matrix,
    reports: Reports,
    side: int,
    tuning: Tuning,
    rounds: int,
) -> NaiveFit:
    """Return the most probable parameters, by rounds of Gauss-Newton."""
    theta, curvature = list(begin), report_curvature(begin, reports, side)
    for _ in range(rounds):
        curvature = report_curvature(theta, reports, side)
        slope = posterior_slope(theta, base, precision, reports, side)
        step = solve(plus(curvature, precision), [[each] for each in slope])
        largest = max(abs(each) for (each,) in step)
        factor = min(1.0, _ratio(tuning.most_step, largest) if largest > 0 else 1.0)
        theta = [old + factor * change for old, (change,) in zip(theta, step, strict=True)]
        if largest < tuning.settled:
            break
    return NaiveFit(theta, curvature)


def share_variances(
    m: list[float], covariance: Matrix, side: int
) -> tuple[list[float], list[float]]:
    """Return the diagonal of J cov J', of moves and of arrivals."""
    slopes = share_slopes(m, side)
    of_moves, of_arrivals = (
        [sum(a * b for a, b in zip(row, times(covariance, row), strict=True)) for row in rows]
        for rows in (slopes, arriving_slopes(slopes, side))
    )
    return of_moves, of_arrivals


def mixture(weights: list[float], rows: Matrix) -> list[float]:
    """Return the mean of rows by weights."""
    return [
        sum(p * row[k] for p, row in zip(weights, rows, strict=True)) for k in range(len(rows[0]))
    ]


def inverse(matrix: Matrix) -> Matrix:
    """Return the inverse."""
    return solve(matrix, identity(len(matrix)))


def scaled(matrix: Matrix, factor: float) -> Matrix:
    """Return a multiple of a matrix."""
    return [[factor * each for each in row] for row in matrix]


def log_determinant(matrix: Matrix) -> float:
    """Return ln of the determinant of a positive matrix, by elimination."""
    rows, total = [list(row) for row in matrix], 0.0
    for k, pivot in enumerate(rows):
        total += math.log(pivot[k])
        for row in rows[k + 1 :]:
            factor = row[k] / pivot[k]
            row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return total


def balanced_mean(sums: list[float], weight: float) -> list[float]:
    """Return the mean of the reports, moved evenly to the sum 1."""
    mean = [each / weight if weight > 0 else 0.0 for each in sums]
    lacking = 1 - sum(mean)
    return [each + lacking / len(mean) for each in mean]


def judge(trust: list[float], losses: list[float], v1: float, shared: float) -> list[float]:
    """Return the trust in each prediction after its losses."""
    lowest = min(losses)
    earned = [
        p * math.exp(-(loss - lowest) / (2 * v1)) for p, loss in zip(trust, losses, strict=True)
    ]
    return [(1 - shared) * p + shared / len(trust) for p in share(earned)]


def skewed(variances: list[float], shares: list[float], most_relative: float) -> list[float]:
    """Widen variances by the exponential of what they are to the square of the share."""
    mean = sum(shares) / len(shares)
    widened = []
    for variance, each in zip(variances, shares, strict=True):
        relative = variance / max(each, mean) ** 2
        widened.append(variance * math.exp(min(relative, most_relative)))
    return widened


class NaiveFlow:
    """Both kinds of reports, the base under every hypothesis, and the filters around it."""

    def __init__(self, side: int, tuning: Tuning) -> None:
        n_cells, n_moves, n_filters = side * side, len(grid_moves(side)), len(tuning.filters)
        self.side, self.tuning = side, tuning
        self.sums = {"moves": [0.0] * n_moves, "cells": [0.0] * n_cells}
        self.weights = dict.fromkeys(self.sums, 0.0)
        self.middle = [0.0] * n_cells + list(tuning.kinds)
        self.theta = [list(self.middle) for _ in tuning.widths]
        self.base = list(self.middle)
        self.off = [[0.0] * len(self.base) for _ in tuning.filters]
        away = prior_precision(side, tuning.deviation_field, tuning.kind_deviations)
        self.away = inverse(away)
        self.covariances = [scaled(self.away, width) for _, width in tuning.filters]
        self.shares = [move_shares(self.base, side) for _ in tuning.filters]
        self.trust = [1 / n_filters] * n_filters
        self.v1 = 0.0

    def precision(self, width: float) -> Matrix:
        """Return the precision of the base, where its heights vary by a factor of width."""
        variance, reach, nugget = self.tuning.field
        law = (width * variance, reach, width * nugget)
        return prior_precision(self.side, law, self.tuning.kind_spreads)

    def learn(
        self,
        moves: tuple[list[float], int] | None,  # y and n
        cells: tuple[list[float], int] | None,
        moving: float | None,
        present: float,
        v1: float,
    ) -> None:
        """Let deviations fade, judge and correct the filters, then add the reports."""
        heard = {}
        if moves is not None and moving is not None:
            heard["moves"] = (*moves, moving)
        if cells is not None:
            heard["cells"] = (*cells, present)
        if self.v1 > 0:
            self._fade()
            if heard:
                self._judge(heard)
                self._observe(heard)
        if heard:
            self.v1 = v1
        for kind, sums in self.sums.items():
            y, n, part = heard.get(kind, ([0.0] * len(sums), 0, 1.0))
            kept = self.tuning.kept
            self.sums[kind] = [kept * a + n * part * b for a, b in zip(sums, y, strict=True)]
            self.weights[kind] = kept * self.weights[kind] + n * part**2

    def _fade(self) -> None:
        for k, (kept, width) in enumerate(self.tuning.filters):
            self.off[k] = [kept * each for each in self.off[k]]
            fresh = scaled(self.away, (1 - kept**2) * width)
            self.covariances[k] = plus(scaled(self.covariances[k], kept**2), fresh)
        self._share()

    def _share(self) -> None:
        self.shares = [
            move_shares([a + b for a, b in zip(self.base, off, strict=True)], self.side)
            for off in self.off
        ]

    def _judge(self, heard: dict[str, tuple[list[float], int, float]]) -> None:
        losses = []
        for m in self.shares:
            loss = 0.0
            for kind, (y, n, part) in heard.items():
                said = m if kind == "moves" else arriving(m, self.side)
                loss += n * sum((a - part * b) ** 2 for a, b in zip(y, said, strict=True))
            losses.append(loss)
        self.trust = judge(self.trust, losses, self.v1, self.tuning.shared)

    def _observe(self, heard: dict[str, tuple[list[float], int, float]]) -> None:
        """Correct every filter as Kalman did, linear where it is."""
        parts: list[Any] = []
        for kind in ("moves", "cells"):
            y, n, part = heard.get(kind, ([0.0] * len(self.sums[kind]), 0, 1.0))
            parts += [balanced_mean([each / part for each in y], 1.0), n * part**2 / self.v1]
        reports = Reports(*parts)
        for k, off in enumerate(self.off):
            theta = [a + b for a, b in zip(self.base, off, strict=True)]
            curvature = report_curvature(theta, reports, self.side)
            self.covariances[k] = inverse(plus(inverse(self.covariances[k]), curvature))
            step = times(self.covariances[k], likelihood_slope(self.shares[k], reports, self.side))
            largest = max(abs(each) for each in step)
            factor = min(1.0, _ratio(self.tuning.most_step, largest) if largest > 0 else 1.0)
            self.off[k] = [a + factor * b for a, b in zip(off, step, strict=True)]

    def fit(self) -> tuple[list[float], list[float], list[float]]:
        """Return shares of moves, their variances and those of the arrivals."""
        known = self.weights["moves"] + self.weights["cells"]
        few = known <= self.tuning.few_reports or self.theta[0] == self.middle
        rounds = self.tuning.first_rounds if few else self.tuning.rounds
        reports = Reports(
            balanced_mean(self.sums["moves"], self.weights["moves"]),
            self.weights["moves"] / self.v1,
            balanced_mean(self.sums["cells"], self.weights["cells"]),
            self.weights["cells"] / self.v1,
        )
        evidence, posteriors = [], []
        for h, width in enumerate(self.tuning.widths):
            q, begin = self.precision(width), self.theta[h]
            fitted = most_probable(self.middle, begin, q, reports, self.side, self.tuning, rounds)
            self.theta[h] = fitted.theta
            posteriors.append(plus(q, fitted.curvature))
            height = log_posterior(fitted.theta, self.middle, q, reports, self.side)
            evidence.append(height + (log_determinant(q) - log_determinant(posteriors[-1])) / 2)
        belief = share([math.exp(each - max(evidence)) for each in evidence])
        self.base = self._together(belief)
        self._share()
        return self._described(inverse(posteriors[0]), belief)

    def _together(self, belief: list[float]) -> list[float]:
        """Return the heights of the mean shares of cells, and the mean heights of kinds."""
        n_cells = self.side**2
        rows = [share([math.exp(u) for u in theta[:n_cells]]) for theta in self.theta]
        pairs = list(zip(belief, rows, self.theta, strict=True))
        logs = [math.log(sum(p * row[i] for p, row, _ in pairs)) for i in range(n_cells)]
        kinds = [sum(p * theta[n_cells + k] for p, _, theta in pairs) for k in range(2)]
        return [each - sum(logs) / n_cells for each in logs] + kinds

    def _described(
        self, of_base: Matrix, belief: list[float]
    ) -> tuple[list[float], list[float], list[float]]:
        """Return the mean of the filters, with what is uncertain about it."""
        mean = mixture(self.trust, self.shares)
        covariance = of_base
        for p, of_filter in zip(self.trust, self.covariances, strict=True):
            covariance = plus(covariance, scaled(of_filter, p))
        told = share_variances(mean, covariance, self.side)
        usual = [move_shares(theta, self.side) for theta in self.theta]
        for weights, rows in ((self.trust, self.shares), (belief, usual)):
            for which, seen in enumerate((rows, [arriving(m, self.side) for m in rows])):
                middle = mixture(weights, seen)
                for p, row in zip(weights, seen, strict=True):
                    for k, (one, other) in enumerate(zip(row, middle, strict=True)):
                        told[which][k] += p * (one - other) ** 2
        found = [
            skewed(total, middle, self.tuning.most_relative)
            for total, middle in zip(told, (mean, arriving(mean, self.side)), strict=True)
        ]
        return mean, found[0], found[1]


class NaiveEnds:
    """Where people enter and quit: one tilt of where they usually are."""

    def __init__(self, side: int) -> None:
        self.sums = {group: [0.0] * side * side for group in ("enter", "quit")}
        self.numbers = {"enter": 0.0, "quit": 0.0}
        self.tilt = [0.0] * side * side
        self.usual: list[float] | None = None

    def add(self, group: str, y: list[float], n: int, present: float = 1.0) -> None:
        """Add reports about entering or quitting, weighed by the share of those present."""
        old = self.sums[group]
        self.sums[group] = [a + n * present * b for a, b in zip(old, y, strict=True)]
        self.numbers[group] += n * present**2

    def totals(self) -> dict[str, float]:
        """Return T by least squares on where people usually are; .02 while unknown."""
        if self.usual is None or 0.0 in self.numbers.values():
            return dict.fromkeys(self.sums, 0.02)
        square = sum(o**2 for o in self.usual)
        found = {}
        for group, sums in self.sums.items():
            along = sum(o * a / self.numbers[group] for o, a in zip(self.usual, sums, strict=True))
            found[group] = max(along / square, 1e-3)
        return found

    def fit(
        self, totals: dict[str, float], arrivals: list[float], v1: float, alarm: float = 0.0
    ) -> list[float]:
        """Follow the arrivals; return f, the tilted distribution."""
        if self.usual is None:
            self.usual = share(arrivals)
        else:
            old = self.usual
            self.usual = share([0.98 * a + 0.02 * b for a, b in zip(old, arrivals, strict=True)])
        here = [alarm * b + (1 - alarm) * a for a, b in zip(self.usual, arrivals, strict=True)]
        for _ in range(2):
            f = self.tilted(here)
            for i, tilt in enumerate(self.tilt):
                gradient, bend = -tilt / 0.16, 1 / 0.16
                for group, n in self.numbers.items():
                    if n > 0:
                        b = totals[group] * f[i]
                        gradient += n / v1 * b * (self.sums[group][i] / n - b)
                        bend += n / v1 * b**2
                step = min(max(gradient / bend, -0.5), 0.5)
                self.tilt[i] = min(max(tilt + step, -3.0), 3.0)
        return self.tilted(here)

    def tilted(self, here: list[float]) -> list[float]:
        """Return o* e^tilt, normalised."""
        return share([o * math.exp(e) for o, e in zip(here, self.tilt, strict=True)])


class NaivePresence:
    """The share of the enrolled that is present, remembered at several paces."""

    def __init__(self, tuning: Tuning) -> None:
        n = len(tuning.paces)
        self.tuning = tuning
        self.sums, self.weights, self.trust = [0.0] * n, [0.0] * n, [1 / n] * n

    def learn(self, y: float, n: int, v1: float) -> None:
        """Judge every pace, then add the reports."""
        paces = range(len(self.sums))
        if self.weights[0] > 0:
            losses = [n * (y - self.sums[k] / self.weights[k]) ** 2 for k in paces]
            self.trust = judge(self.trust, losses, v1, self.tuning.shared)
        for k, factor in enumerate(self.tuning.paces):
            self.sums[k] = factor * self.sums[k] + n * y
            self.weights[k] = factor * self.weights[k] + n

    def share(self) -> float:
        """Return the mean of all paces by trust, within 0 and 1; 0 before the first report."""
        if self.weights[0] == 0:
            return 0.0
        rows = zip(self.trust, self.sums, self.weights, strict=True)
        return min(max(sum(p * a / w for p, a, w in rows), 0.0), 1.0)


def moves_and_ends(
    moves: list[float], where: list[float], totals: dict[str, float]
) -> tuple[list[float], float]:
    """Return the released vector and the share of the moves in it, at least .05. It sums to 1."""
    ending = totals["enter"] + totals["quit"]
    factor = 0.95 / ending if ending > 0.95 else 1.0
    moving = max(1 - ending, 0.05)
    enter, quit_ = ([factor * totals[group] * f for f in where] for group in ("enter", "quit"))
    return [*(moving * m for m in moves), *enter, *quit_], moving


def identity(n: int) -> Matrix:
    """Return the matrix of ones on the diagonal."""
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def plus(one: Matrix, other: Matrix) -> Matrix:
    """Add two matrices."""
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]


def times(matrix: Matrix, vector: list[float]) -> list[float]:
    """Multiply a matrix by a vector."""
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def solve(matrix: Matrix, right: Matrix) -> Matrix:
    """Return X with matrix X = right, by elimination with pivots."""
    n = len(matrix)
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [each / rows[k][k] for each in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                multiple = rows[i][k]
                rows[i] = [a - multiple * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def share(masses: list[float]) -> list[float]:
    """Normalise; uniform where there is no mass."""
    total = sum(masses)
    return [mass / total if total > 0 else 1 / len(masses) for mass in masses]


def _ratio(above: float, below: float) -> float:
    """Divide; 0 / 0 is 0."""
    return above / below if below != 0 else 0.0


# Answers: what people ask of streams. A zone is a function of x and y; outside all of them is "-".

Rings: TypeAlias = list[list[tuple[float, float]]]  # the outer ring, then holes, each closed


def zone_of(x: float, y: float, zones: dict[str, Rings]) -> str:
    """Return the first zone a point is in, by how often a ray to the right crosses its rings."""
    for name, rings in zones.items():
        crossings = 0
        for ring in rings:
            for (x0, y0), (x1, y1) in pairwise(ring):
                if (y0 > y) != (y1 > y) and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
                    crossings += 1
        if crossings % 2:
            return name
    return "-"


def people_present(
    paths: list[Path], where: Callable[[float, float], str], when: Callable[[int], Any], n: int
) -> dict[tuple[Any, str], float]:
    """Return the mean number of points by period and zone, over timestamps 0 to n - 1."""
    points: Counter[tuple[Any, str]] = Counter()
    for begin, path in paths:
        for step, (x, y) in enumerate(path):
            if when(begin + step) is not None:
                points[when(begin + step), where(x, y)] += 1
    sizes = Counter(when(t) for t in range(n))
    return {key: count / sizes[key[0]] for key, count in points.items()}


def moves_between(
    paths: list[Path], where: Callable[[float, float], str], when: Callable[[int], Any]
) -> Counter[tuple[Any, str, str]]:
    """Count moves from a zone to another, by the period in which they arrive."""
    moves: Counter[tuple[Any, str, str]] = Counter()
    for begin, path in paths:
        for step in range(1, len(path)):
            origin, destination = where(*path[step - 1]), where(*path[step])
            if origin != destination and when(begin + step) is not None:
                moves[when(begin + step), origin, destination] += 1
    return moves


def trips_between(
    paths: list[Path], where: Callable[[float, float], str], when: Callable[[int], Any]
) -> Counter[tuple[Any, str, str]]:
    """Count streams by the zones of their first and last points, and the period of the first."""
    return Counter(
        (when(begin), where(*path[0]), where(*path[-1]))
        for begin, path in paths
        if when(begin) is not None
    )


def spread_of(values: list[float]) -> dict[str, float]:
    """Return mean and deciles; between two values in proportion."""
    ordered = sorted(values)
    spread = {"mean": sum(ordered) / len(ordered)}
    for tenth in range(1, 10):
        place = tenth * (len(ordered) - 1) / 10
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        spread[f"decile {tenth}"] = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return spread
