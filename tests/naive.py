"""Every equation of the paper in plain loops (Sec. II-A and III), the reference for our kernels.

Written from the paper and `algorithms.md`, part 1, without reading the package: where the two
agree, they agree because both are right. Slow on purpose; standard library only. Equations 7 to
10 follow the last column of that document's table; only Eq. 9 and 10 can be had as printed.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Literal, TypeAlias

Box: TypeAlias = tuple[float, float, float, float]  # x0, y0, x1, y1
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
