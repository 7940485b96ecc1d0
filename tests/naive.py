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
#  1. n = 0: nothing changes at all. A group lies in one stratum.
#  2. All movement states, stays included, get both readings; V is one number per stratum.
#  3. "hi at least 1e-6" is applied inside NPMLE; the posterior uses the last weights.
#  4. A round of step 1 is d, then kappa from that d, then kappa normalised to sum 1; sum kappa^2 of
#     step 2 is over existing neighbours (per cell).
#  5. Step 3 runs three NPMLEs, one per class, all cells and directions of a class pooled; the sums
#     in its hi are over the class's existing (cell, direction) pairs.
#  6. m of step 4 sums to 1; m of the release is that times the moves' share. Enter + quit + moves
#     may exceed 1 when the .05 floor acts; nothing is renormalised.
#  7. obar takes in this timestamp's marginal (normalised) before it is used.
#  8. Totals of the hazard by age that replace T_G keep the floor 1e-3. At the first timestamp with
#     anybody there are none: the formula of step 5 stands in.
#  9. Hazard by length is not renormalised after min(1, l / lambda), unlike Eq. 8 as run; l = age.
# 10. Last age bin: 400 and older, nobody falls off; a stream older than 400 has h(400).
# 11. The age histogram begins empty: at the first timestamp everybody enters and Q = 0.
# 12. ln(s/w)^2 is the square of the logarithm; w is the window, not the gap.
# 13. Order at t: histograms to N_t, reports of t pooled against them, weights, h and totals.
#     "Averaged over experts" means with those weights.
# 14. An age phase is uniform in 0..3 gap-1, so when one is asked does not depend on one's age.
# 15. thr is drawn anew for every report; only distinct thr <= 2 gap are used, since a larger one
#     (16 for w < 7) would look further back than three gaps cover.
# 16. Quit probabilities: h r_c, rescaled to sum h, capped at .95 once; then, if their *sum* is less
#     than N_{t-1} - N_t, scaled to it and capped at .98 once. No redistribution.
# 17. q_c sums to 1; share_c is over the streams alive at t-1, at their cell of t-1.
# 18. Steering's b uses m normalised to 1, whatever the moves' share. The last v is never used.
# 19. Points reflect at the cell's true walls, then are clamped to 5e-4 off them. The random sign on
#     the unchanged axis is that of the same uniform angle (the same law as a separate coin).
# 20. Flags: bucket k holds edge[k] <= age < edge[k+1], the last is open; ages as of t-1. What a
#     bucket lacks is taken from all streams left, smallest keys first. Out of phase waives only the
#     phase of a stopping device, never the gap.
# 21. Surplus: without replacement, by smallest -ln U / p (ends by weight p); p = 0 comes last.
# Beyond the document: `balance`, `calibrate`, EM that goes on from an earlier prior, steering that
# goes on from an earlier pull, and a bank that trusts by fixed share instead of by fading scores: a
# hundredth of all trust is spread evenly at each step.

Table: TypeAlias = list[list[float]]  # [cell][direction]

FACTORS = [0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0]
STAY, ORTHOGONAL, DIAGONAL = [4], [1, 3, 5, 7], [0, 2, 6, 8]
OLDEST = 400
EDGES = [1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 33, 41]
EDGES += [50, 60, 72, 86, 103, 125, 150, 180, 215, 260, 320, 400]
MARGIN = 5e-4
UNIFORM_PRIOR = [1 / 40] * 40


@dataclass(frozen=True, slots=True)
class Bank:
    """The filter bank of one stratum."""

    groups: list[str]  # the group of each state
    sums: list[list[float]]  # A, [factor][state]
    weights: list[float]  # W, [factor]
    trust: list[dict[str, float]]  # p, [factor][group]


@dataclass(frozen=True, slots=True)
class Posterior:
    """What NPMLE says of each theta, and the mixture weights EM ended with."""

    mean: list[float]
    variance: list[float]
    prior: list[float]


@dataclass(frozen=True, slots=True)
class NaiveMoves:
    """Steps 1 to 4 of empirical Bayes."""

    kernel: Table  # P
    kernel_variance: Table  # of rho, in units of the row sum
    density: list[float]  # o
    density_variance: list[float]
    priors: list[list[float]]  # of cells, staying, straight, diagonal, density

    @property
    def mass(self) -> Table:
        """Movement mass m."""
        return [[o * p for p in row] for o, row in zip(self.density, self.kernel, strict=True)]


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


# Filter bank.


def variance_of_one(epsilon: float) -> float:
    """Return V1, the variance of an estimate from one report."""
    return 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2


def empty_bank(groups: list[str]) -> Bank:
    """Return the bank before any report."""
    trust = [dict.fromkeys(groups, 1 / len(FACTORS)) for _ in FACTORS]
    return Bank(groups, [[0.0] * len(groups) for _ in FACTORS], [0.0] * len(FACTORS), trust)


def bank_step(bank: Bank, y: list[float], n: int, v1: float) -> Bank:
    """Judge every factor's prediction A/W of y, then accumulate y."""
    if n == 0:
        return bank
    trust = [dict(by_group) for by_group in bank.trust]
    for group in set(bank.groups) if bank.weights[-1] > 0 else ():
        losses = []
        for past, weight in zip(bank.sums, bank.weights, strict=True):
            known = [s for s, name in enumerate(bank.groups) if name == group]
            losses.append(sum(n * (y[s] - past[s] / weight) ** 2 for s in known))
        lowest = min(losses)
        likely = [math.exp(-(loss - lowest) / (2 * v1)) for loss in losses]
        earned = share([p[group] * like for p, like in zip(trust, likely, strict=True)])
        for k, p in enumerate(earned):
            trust[k][group] = 0.99 * p + 0.01 / len(FACTORS)
    sums, weights = [], []
    for factor, past, weight in zip(FACTORS, bank.sums, bank.weights, strict=True):
        sums.append([factor * old + n * new for old, new in zip(past, y, strict=True)])
        weights.append(factor * weight + n)
    return Bank(bank.groups, sums, weights, trust)


def bank_estimate(bank: Bank, group: str, v1: float) -> tuple[list[float], float]:
    """Return f of every state and their variance V, at the speeds a group trusts."""
    p = [by_group[group] for by_group in bank.trust]
    f = []
    for s in range(len(bank.groups)):
        total = 0.0
        for k in range(len(FACTORS)):
            total += p[k] * bank.sums[k][s] / bank.weights[k]
        f.append(total)
    remembered = sum(p[k] * bank.weights[k] for k in range(len(FACTORS)))
    return f, v1 / remembered


# Empirical Bayes.


def npmle(
    y: list[float],
    d: list[float],
    v: list[float],
    hi: float,
    prior: list[float] | None = None,
    rounds: int = 25,
) -> Posterior:
    """Return the posterior of theta for y ~ N(d theta, v), the prior fitted by EM."""
    grid = [max(hi, 1e-6) * (g / 39) ** 2 for g in range(40)]
    likelihood = []
    for yi, di, vi in zip(y, d, v, strict=True):
        logs = [-((yi - di * theta) ** 2) / (2 * vi) for theta in grid]
        highest = max(logs)
        likelihood.append([math.exp(log - highest) for log in logs])
    weights = UNIFORM_PRIOR if prior is None else prior
    for _ in range(rounds):
        total = [0.0] * 40
        for row in likelihood:
            for g, mass in enumerate(_posterior(weights, row)):
                total[g] += mass
        weights = [mass / len(y) for mass in total]
    means, variances = [], []
    for row in likelihood:
        posterior = _posterior(weights, row)
        first = sum(theta * mass for theta, mass in zip(grid, posterior, strict=True))
        means.append(first)
        variances.append(
            sum((theta - first) ** 2 * mass for theta, mass in zip(grid, posterior, strict=True))
        )
    return Posterior(means, variances, weights)


def _posterior(weights: list[float], row: list[float]) -> list[float]:
    """Return the posterior over the grid of one observation."""
    return share([w * like for w, like in zip(weights, row, strict=True)])


def rank_one(fl: Table, table: list[list[int]]) -> tuple[list[float], list[float]]:
    """Return d, kappa with fl[i][c] ~ d_i kappa_c (step 1)."""
    cells = range(len(table))
    kappa = [1 / 9] * 9

    def fit_d() -> list[float]:
        d = []
        for i in cells:
            known = [c for c in range(9) if table[i][c] >= 0]
            above = sum(kappa[c] * fl[i][c] for c in known)
            d.append(max(0.0, _ratio(above, sum(kappa[c] ** 2 for c in known))))
        return d

    for _ in range(6):
        d = fit_d()
        fitted = []
        for c in range(9):
            known = [i for i in cells if table[i][c] >= 0]
            above = sum(d[i] * fl[i][c] for i in known)
            fitted.append(max(1e-5, _ratio(above, sum(d[i] ** 2 for i in known))))
        kappa = share(fitted)
    return fit_d(), kappa


def empirical_bayes_movement(
    fast: tuple[Table, float],  # fs, Vs
    slow: tuple[Table, float],  # fl, Vl
    side: int,
    *,
    priors: list[list[float]] | None = None,
    rounds: int = 25,
    leaving_error: float = 0.0,  # 0: not calibrated, as in the document
) -> NaiveMoves:
    """Return the kernel P and the density o (steps 1 to 4)."""
    (fs, vs), (fl, vl) = fast, slow
    table = neighbour_table(side)
    cells = range(side * side)
    begin = [UNIFORM_PRIOR] * 5 if priors is None else priors
    end = list(begin)
    d, kappa = rank_one(fl, table)
    spread = [vl / sum(kappa[c] ** 2 for c in range(9) if table[i][c] >= 0) for i in cells]
    fitted = npmle(d, [1.0] * len(d), spread, max(d), begin[0], rounds)
    dhat, end[0] = fitted.mean, fitted.prior
    rho, rho_variance = ([[0.0] * 9 for _ in cells] for _ in range(2))
    for k, directions in enumerate((STAY, ORTHOGONAL, DIAGONAL), 1):
        pairs = [(i, c) for i in cells for c in directions if table[i][c] >= 0]
        if not pairs:  # a grid of one cell
            continue
        above = sum(fl[i][c] * dhat[i] for i, c in pairs)
        slope = _ratio(above, sum(dhat[i] ** 2 for i, _ in pairs))
        hi = 1.2 if directions is STAY else min(1.2, max(1e-3, 12 * slope))
        y, scale = [fl[i][c] for i, c in pairs], [dhat[i] for i, _ in pairs]
        fitted = npmle(y, scale, [vl] * len(pairs), hi, begin[k], rounds)
        end[k] = fitted.prior
        for (i, c), theta, spread_of_one in zip(pairs, fitted.mean, fitted.variance, strict=True):
            rho[i][c] = theta
            rho_variance[i][c] = spread_of_one
    kernel = [share(row) for row in rho]
    variances = [[_ratio(v, sum(rho[i]) ** 2) for v in rho_variance[i]] for i in cells]
    if leaving_error > 0:
        kernel = calibrate(kernel, dhat, fl, vl, leaving_error)
    squares = [sum(p**2 for p in row) for row in kernel]
    z = [sum(kernel[i][c] * fs[i][c] for c in range(9)) / squares[i] for i in cells]
    spread = [vs / square for square in squares]
    fitted = npmle(z, [1.0] * len(z), spread, max(z), begin[4], rounds)
    end[4] = fitted.prior
    whole = sum(fitted.mean)
    variance = [_ratio(each, whole**2) for each in fitted.variance]
    return NaiveMoves(kernel, variances, share(fitted.mean), variance, end)


def balance(fl: Table, whole: float, side: int) -> Table:
    """Return the table nearest to fl, in least squares, whose entries sum to `whole`."""
    table = neighbour_table(side)
    pairs = [(i, c) for i in range(side * side) for c in range(9) if table[i][c] >= 0]
    lacking = whole - sum(fl[i][c] for i, c in pairs)
    balanced = [list(row) for row in fl]
    for i, c in pairs:
        balanced[i][c] += lacking / len(pairs)
    return balanced


def calibrate(
    kernel: Table, weights: list[float], fl: Table, vl: float, leaving_error: float
) -> Table:
    """Scale all leaving until its share is within a standard error of what the sums say."""
    leaving = staying = now = 0.0
    for row in fl:
        for c, mass in enumerate(row):
            if c == STAY[0]:
                staying += mass
            else:
                leaving += mass
    for weight, row in zip(weights, kernel, strict=True):
        now += weight * (1 - row[STAY[0]])
    total = leaving + staying
    if now <= 0 or total <= 0:
        return kernel
    now /= sum(weights)
    error = math.sqrt(leaving_error * vl) / total
    said = min(positive_mean(leaving / total, error), 1.0)
    factor = min(max(now, said - error), said + error) / now
    bent = []
    for row in kernel:
        leaves = 1 - row[STAY[0]]
        goal = min(factor * leaves, 0.999)
        new = [_ratio(p * goal, leaves) for p in row]
        new[STAY[0]] = 1 - goal
        bent.append(new)
    return bent


def positive_mean(mu: float, sigma: float) -> float:
    """Return the mean of a normal variable given that it is positive, by Simpson's rule."""
    low = max(0.0, mu - 12 * sigma)
    high = max(0.0, mu) + 12 * sigma
    if mu < 0:  # nearly exponential
        high = min(high, 40 * sigma**2 / -mu)
    n = 2000
    top = -((max(mu, 0.0) - mu) ** 2)
    mass = first = 0.0
    for k in range(n + 1):
        x = low + (high - low) * k / n
        weight = 1 if k in {0, n} else 4 if k % 2 else 2
        density = weight * math.exp((-((x - mu) ** 2) - top) / (2 * sigma**2))
        mass += density
        first += density * x
    return first / mass


def update_obar(obar: list[float] | None, m: Table, side: int) -> list[float]:
    """Return the slow density after this timestamp's m; None before the first."""
    mixed = [0.0] * (side * side)  # half source, half destination
    for i, row in enumerate(neighbour_table(side)):
        for c, j in enumerate(row):
            if j >= 0:
                mixed[i] += 0.5 * m[i][c]
                mixed[j] += 0.5 * m[i][c]
    now = share(mixed)
    if obar is None:
        return now
    return share([0.98 * old + 0.02 * new for old, new in zip(obar, now, strict=True)])


def endpoints(
    x: dict[str, list[float]],  # "enter" and "quit": A/W of lam = 1
    vx: dict[str, float],  # V1/W of lam = 1
    obar: list[float],  # already updated with this timestamp's m
    totals: dict[str, float] | None = None,  # of the hazard by age
) -> dict[str, list[float]]:
    """Return the masses of enter and of quit (step 5)."""
    if totals is None:
        square = sum(o**2 for o in obar)
        totals = {g: sum(o * xi for o, xi in zip(obar, x[g], strict=True)) / square for g in x}
    floored = {group: max(1e-3, total) for group, total in totals.items()}
    middle = (floored["enter"] + floored["quit"]) / 2
    mass = {}
    for group in ("enter", "quit"):
        c = 0.5 * floored[group] + 0.5 * middle
        scaled = [xi / c for xi in x[group]]
        theta = npmle(scaled, obar, [vx[group] / c**2] * len(obar), 8.0).mean
        mass[group] = [c * o * th for o, th in zip(obar, theta, strict=True)]
    return mass


def release_count(m: Table, enter: list[float], quit_: list[float], side: int) -> list[float]:
    """Return the released vector, one stratum: moves, enters, quits. It sums to 1."""
    ending = sum(enter) + sum(quit_)
    moving = max(1 - ending, 0.05)
    if ending > 0.95:
        enter = [0.95 * mass / ending for mass in enter]
        quit_ = [0.95 * mass / ending for mass in quit_]
    table = neighbour_table(side)
    moves = [moving * m[i][c] for i in range(side * side) for c in range(9) if table[i][c] >= 0]
    return [*moves, *enter, *quit_]


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
    at: tuple[float, float], source: int, target: int, stay: float, angle: float, side: int
) -> tuple[float, float]:
    """Return the next point, in `target`; `stay` is kernel[source, source], the angle uniform."""
    v = math.pi / 4 * (1 - stay)
    old_row, old_column = divmod(source, side)
    row, column = divmod(target, side)
    return (
        _step_axis(at[0], old_column, column, v * math.cos(angle)),
        _step_axis(at[1], old_row, row, v * math.sin(angle)),
    )


def _step_axis(x: float, old: int, new: int, step: float) -> float:
    """Move along one axis: inward from the wall just crossed, else either way."""
    if new > old:
        x, step = float(new), abs(step)
    elif new < old:
        x, step = float(new + 1), -abs(step)
    x += step
    if x < new:
        x = 2 * new - x
    if x > new + 1:
        x = 2 * (new + 1) - x
    return min(max(x, new + MARGIN), new + 1 - MARGIN)


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
    cells: tuple[int, int],  # before and after
    stay: float,
    angle: float,
    uniform: float,
    m: Table | None,
    side: int,
) -> tuple[float, float]:
    """Return the next point; one that stays in its cell turns round where density falls."""
    after = step_point(at, *cells, stay, angle, side)
    if cells[0] == cells[1]:
        fall = log_density(at, m, side) - log_density(after, m, side)
        if fall > 0 and uniform < 1 - math.exp(-fall):
            return step_point(at, *cells, stay, angle + math.pi, side)
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
        point = (
            column + MARGIN + (1 - 2 * MARGIN) * u,
            row + MARGIN + (1 - 2 * MARGIN) * v,
        )
        if uniform < math.exp(log_density(point, m, side) - highest):
            break
    return point


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


def share(masses: list[float]) -> list[float]:
    """Normalise; uniform where there is no mass."""
    total = sum(masses)
    return [mass / total if total > 0 else 1 / len(masses) for mass in masses]


def _ratio(above: float, below: float) -> float:
    """Divide; 0 / 0 is 0."""
    return above / below if below != 0 else 0.0
