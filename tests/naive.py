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
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
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
