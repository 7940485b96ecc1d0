"""Trips on roads in plain loops: ways to anchors, driving, ends, births, factors, expected steps.

What was tuned is passed in or read from the product; everything else is written from the text of
docs/method.md again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

import naive
from retrasyn.randomness.kernels import words_at
from retrasyn.synthesis import trip_kernels, trips


@dataclass(frozen=True)
class PlainTrip:
    """One stream."""

    entered: int
    cell: int
    arc: int
    offset: float
    anchor: int
    own: float
    x: float
    y: float


def plain_times(network):
    """Return the time between all nodes by arcs that may be driven, fastest class or not."""
    n = network.n_nodes
    time = [[0.0 if a == b else math.inf for b in range(n)] for a in range(n)]
    for (a, b), duration in arcs_of(network):
        time[a][b] = min(time[a][b], duration)
    for middle in range(n):
        for a in range(n):
            for b in range(n):
                time[a][b] = min(time[a][b], time[a][middle] + time[middle][b])
    return time


def arcs_of(network):
    """Return (tail, head) and duration of every arc, by tail, then head."""
    found = []
    for edge in range(network.n_edges):
        ends = int(network.tail[edge]), int(network.head[edge])
        slow = 1.5 ** int(network.road_class[edge]) if network.classed else 1.0
        duration = max(float(network.length[edge]) * slow, 2.0**-1022)
        if network.one_way[edge] >= 0:
            found.append((ends, duration))
        if network.one_way[edge] <= 0:
            found.append((ends[::-1], duration))
    return sorted(found)


def plain_anchors(network, cells, key, most):
    """Return the nodes drawn by length of road, the first of every cell before all others."""
    weights = [0.0] * network.n_nodes
    for a, b, length in zip(network.tail, network.head, network.length, strict=True):
        weights[a] += float(length)
        weights[b] += float(length)
    least = 1e-9 * sum(weights) / len(weights)
    words = words_at(key, np.arange(network.n_nodes, dtype=np.uint64)).tolist()
    keys = [
        -math.log(((word >> 11) + 0.5) / 2**53) / max(weight, least)
        for word, weight in zip(words, weights, strict=True)
    ]
    order, first = sorted(range(len(keys)), key=keys.__getitem__), {}
    for node in order:
        first.setdefault(cells[node], node)
    rest = [node for node in order if node not in set(first.values())]
    return sorted((sorted(first.values(), key=order.index) + rest)[: max(most, len(first))])


def usual_times(time, x, y):
    """Return c and p of the times c d^p between places, by weighted least squares in logarithms."""
    pairs = []
    for a in range(len(x)):
        for b in range(len(x)):
            far = math.dist((x[a], y[a]), (x[b], y[b]))
            if far > 0 and time[a][b] > 0:
                pairs.append((1 / far, math.log(far), math.log(time[a][b])))
    if not pairs:
        return 1.0, 1.0
    whole = sum(weight for weight, _, _ in pairs)
    middle = sum(weight * far for weight, far, _ in pairs) / whole
    mean = sum(weight * took for weight, _, took in pairs) / whole
    spread = sum(weight * (far - middle) ** 2 for weight, far, _ in pairs)
    together = sum(weight * (far - middle) * (took - mean) for weight, far, took in pairs)
    power = min(max(together / spread, 0.5), 1.0) if spread > 1e-12 * whole else 1.0
    return math.exp(mean - power * middle), power


def word(step, purpose, identifier):
    """Return the word that a draw is addressed by."""
    key = np.uint64(step.key(purpose))
    return int(words_at(key, np.array([identifier], np.uint64))[0])


def uniform(step, purpose, identifier):
    return ((word(step, purpose, identifier) >> 11) + 0.5) / 2**53


def drive(trip, roads, speed, grid):
    """Return a stream after one step, or nothing if it has arrived."""
    arc, time = trip.arc, trip.offset + speed * trip.own
    while time >= roads.duration[arc]:
        time -= float(roads.duration[arc])
        node = int(roads.head[arc])
        if node == roads.anchors[trip.anchor]:
            return None
        arc = int(roads.begin[node]) + int(roads.ranks[trip.anchor, node])
    share = time / float(roads.duration[arc])
    a, b = int(roads.tail[arc]), int(roads.head[arc])
    x = (1 - share) * float(roads.x[a]) + share * float(roads.x[b])
    y = (1 - share) * float(roads.y[a]) + share * float(roads.y[b])
    return replace(trip, arc=arc, offset=time, x=x, y=y, cell=cell_at(x, y, grid))


def cell_at(x, y, grid):
    """Return the cell of the point that is released."""
    at = grid.box.x0 + x * grid.cell_width, grid.box.y0 + y * grid.cell_height
    return naive.nearest_cell(*at, grid.box, grid.side)


def time_left(trip, roads):
    """Return the time to the anchor at a stream's own speed."""
    on_arc = max(float(roads.duration[trip.arc]) - trip.offset, 0.0)
    return (on_arc + float(roads.times[trip.anchor, roads.head[trip.arc]])) / trip.own


def soonest(streams, roads, n, among=None):
    """Return the ids of the n streams that have the least time left."""
    ids = [i for i in streams if among is None or streams[i].cell == among]
    return sorted(ids, key=lambda i: (time_left(streams[i], roads), i))[:n]


def counts_of(streams, n_cells):
    found = [0] * n_cells
    for trip in streams.values():
        found[trip.cell] += 1
    return found


def relieved(streams, roads, flow, factors):
    """Return the streams without those that end where there are far too many."""
    left, total = dict(streams), len(streams)
    for cell, n in enumerate(counts_of(streams, len(flow))):
        wanted = flow[cell] * total
        excess = math.log((n + 0.5) / (wanted + 0.5)) - 0.2 - 2 / math.sqrt(wanted + 1)
        if excess > 0 and factors[cell] >= trips._CROWDED:
            n_ends = max(math.floor(min(trips._RELIEF * n, n - wanted)), 0)
            for i in soonest(streams, roads, n_ends, cell):
                del left[i]
    return left


def missing(streams, flow):
    """Return by how much births favour every cell."""
    n = len(streams)
    if n <= trips._FEW:
        return [1.0] * len(flow)
    low, high = trips._MISSING
    return [
        min(max((share * n + 0.5) / (count + 0.5), low), high)
        for share, count in zip(flow, counts_of(streams, len(flow)), strict=True)
    ]


def pick(slots, drawn):
    """Choose from one row of an alias table; that tables choose rightly is tested elsewhere."""
    slot = int(slots[drawn % len(slots)])
    return (slot if drawn >> 32 < slot >> 32 else slot >> 16) & 0xFFFF


def born(identifier, step, plan, start_slots, goal_slots, pace):
    """Return a new stream."""
    roads = plan.roads
    cell = pick(start_slots, word(step, "start cell", identifier))
    nodes = roads.by_cell[roads.cell_begin[cell] : roads.cell_begin[cell + 1]].tolist()
    below = roads.weight_below[roads.cell_begin[cell] : roads.cell_begin[cell + 1] + 1].tolist()
    weight = below[0] + uniform(step, "start node", identifier) * (below[-1] - below[0])
    start = next(
        (node for node, end in zip(nodes, below[1:], strict=True) if weight < end), nodes[-1]
    )
    even = 2 * uniform(step, "own speed", identifier) - 1
    own = math.exp(pace.spread * math.sqrt(3) * even)
    wanted = math.log(duration(plan.hazard.tolist(), uniform(step, "duration", identifier)))
    goals = []
    for k in range(2 * trip_kernels.N_GOALS):
        if k == trip_kernels.N_GOALS and goals:
            break
        goal = pick(goal_slots, word(step, f"goal {k}", identifier))
        if roads.anchors[goal] != start:
            x, y = (float(each[roads.anchors[goal]] - each[start]) for each in (roads.x, roads.y))
            usual = roads.usual_time * math.hypot(x, roads.stretch * y) ** roads.usual_power
            takes = usual / (pace.speed * own)
            goals.append((abs(math.log(takes + 0.5) - wanted), k, goal))
    times = roads.times[:, start].tolist()
    goal = min(goals)[2] if goals else times.index(max(times))
    return PlainTrip(
        entered=step.t,
        cell=cell,
        arc=int(roads.begin[start]) + int(roads.ranks[goal, start]),
        offset=0.0,
        anchor=goal,
        own=own,
        x=float(roads.x[start]),
        y=float(roads.y[start]),
    )


def duration(hazard, drawn):
    """Return at what age somebody quits who has a uniform drawn for all life."""
    alive, age = 1.0, 0
    while True:
        age += 1
        alive *= 1 - hazard[min(age, len(hazard)) - 1]
        if alive <= drawn:
            return float(age)


def factors(old, streams, flow):
    """Return by how much streams drive faster in every cell, where there are too many."""
    n, found = len(streams), []
    for u, count, share in zip(old, counts_of(streams, len(flow)), flow, strict=True):
        excess = math.log((count + 0.5) / (share * n + 0.5))
        excess = math.copysign(max(abs(excess) - trips._FACTOR_SLACK, 0), excess)
        new = u**trips._FACTOR_MEMORY * math.exp(trips._FACTOR_RATE * excess)
        found.append(min(max(new, trips._FACTORS[0]), trips._FACTORS[1]))
    return found


def advance(streams, plan, step, next_id, alias):
    """Take all streams, by id, through one timestamp; return them and the factors."""
    speeds = (plan.pace.speed * plan.pace.factors).tolist()
    driven = {
        i: drive(trip, plan.roads, speeds[trip.cell], step.grid) for i, trip in streams.items()
    }
    alive = {i: trip for i, trip in driven.items() if trip is not None}
    for i in soonest(alive, plan.roads, max(len(alive) - plan.target, 0)):
        del alive[i]
    flow = plan.flow.tolist()
    if plan.alarm > trips._ALARM:
        alive = relieved(alive, plan.roads, flow, plan.pace.factors.tolist())
    favour = missing(alive, flow)
    ends, cells = plan.ends.tolist(), plan.roads.anchor_cells.tolist()
    start_slots = alias([share * more**2 for share, more in zip(ends, favour, strict=True)])
    least = trips._LEAST_SHARE
    power = trips._GOAL_POWERS[1 if plan.alarm > trips._ALARM else 0]
    goals = [share * more**power + least for share, more in zip(ends, favour, strict=True)]
    goal_slots = alias([goals[c] / cells.count(c) for c in cells])
    n_left = len(alive)
    for identifier in range(next_id, next_id + max(plan.target - n_left, 0)):
        alive[identifier] = born(identifier, step, plan, start_slots, goal_slots, plan.pace)
    return alive, n_left, factors(plan.pace.factors.tolist(), alive, flow)


def share_above(log_steps, threshold, factor, spread):
    """Return the expected share of steps above a threshold."""
    half = math.sqrt(3) * spread
    found = [
        min(max((each + factor - threshold + half) / (2 * half), 0.0), 1.0) for each in log_steps
    ]
    return sum(found) / len(found)
