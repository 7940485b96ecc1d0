"""Frames, flows, histories and counts once more: written from docs/api.md, in plain loops."""

import struct
from collections import Counter

NAMES = "version t side rounds n_replicas n_reports has_moves n_travellers sampled".split()  # noqa: SIM905


def decode(body):
    """Read a frame; all bytes must be used."""
    header = dict(zip(NAMES, struct.unpack_from("<9I", body), strict=True))
    place, n_cells, m = 36, header["side"] ** 2, header["n_travellers"]

    def take(n, kind):
        nonlocal place
        values = list(struct.unpack_from(f"<{n}{kind}", body, place))
        place += struct.calcsize(f"<{n}{kind}")
        return values

    header["totals"] = take(3, "f")
    header["n_points"], header["n_born"], header["n_ended"] = header["totals"]
    header["cells"] = take(n_cells, "f")
    header["moves"] = take(n_cells * 2, "f") if header["has_moves"] else None
    if header["n_replicas"]:
        for name, n in (("totals", 3), ("cells", n_cells)):
            header[f"{name}_low"], header[f"{name}_high"] = take(n, "f"), take(n, "f")
        flags = take(n_cells + -n_cells % 4, "B")[:n_cells]
        header["unclear_cells"] = [bool(flag & 1) for flag in flags]
        header["unclear_moves"] = [bool(flag & 2) for flag in flags]
    header["ids"] = take(m, "I")
    header["x"] = take(m + m % 2, "H")[:m]
    header["y"] = take(m + m % 2, "H")[:m]
    assert place == len(body)
    return header


def balance(table):
    """Return by how many columns and rows streams moved on from each cell, of a table of flows."""
    found = []
    for begin in range(0, len(table), 9):
        columns = sum(n * (d % 3 - 1) for d, n in enumerate(table[begin : begin + 9]))
        rows = sum(n * (d // 3 - 1) for d, n in enumerate(table[begin : begin + 9]))
        found += [columns, rows]
    return found


def cell_of(x, y, side, box):
    """Return the cell of a point, row by row from the lower left."""
    x0, y0, x1, y1 = box
    column = min(max(int((x - x0) / (x1 - x0) * side), 0), side - 1)
    row = min(max(int((y - y0) / (y1 - y0) * side), 0), side - 1)
    return row * side + column


def located(points, side, box):
    """Return the cell of every stream."""
    rows = zip(points.ids.tolist(), points.x.tolist(), points.y.tolist(), strict=True)
    return {one: cell_of(x, y, side, box) for one, x, y in rows}


def flows(before, after, side, box):
    """Return moves by origin and direction, and by origin and target."""
    table, pairs = [0] * (side * side * 9), Counter()
    old, new = located(before, side, box), located(after, side, box)
    for one, target in new.items():
        if one not in old:
            continue
        origin = old[one]
        drow, dcol = target // side - origin // side, target % side - origin % side
        if abs(drow) <= 1 and abs(dcol) <= 1:
            table[origin * 9 + 3 * (drow + 1) + dcol + 1] += 1
            pairs[origin, target] += 1
    return table, pairs


def splitmix64(number):
    """Return the first word of SplitMix64, after its published program."""
    mask = (1 << 64) - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def travellers(points, most, box):
    """Return how often the crowd is halved, and id, x and y of those who are left."""
    n, k = len(points.ids), 0
    while n / 2**k > most:
        k += 1
    x0, y0, x1, y1 = box
    rows = zip(points.ids.tolist(), points.x.tolist(), points.y.tolist(), strict=True)
    left = [
        (one, round((x - x0) / (x1 - x0) * 65535), round((y - y0) / (y1 - y0) * 65535))
        for one, x, y in rows
        if splitmix64(one) < 2**64 / 2**k
    ]
    return k, left


def history(points, cell, timestamps, side, box):
    """Return what happened in a cell, and the moves to and from others, summed."""
    found = {"t": [], "n": [], "inflow": [], "outflow": []}
    to, come = Counter(), Counter()
    for t in timestamps:
        found["t"].append(t)
        found["n"].append(list(located(points[t], side, box).values()).count(cell))
        if t - 1 not in points:
            found["inflow"].append(None)
            found["outflow"].append(None)
            continue
        _, pairs = flows(points[t - 1], points[t], side, box)
        out = {b: n for (a, b), n in pairs.items() if a == cell != b}
        into = {a: n for (a, b), n in pairs.items() if b == cell != a}
        found["outflow"].append(sum(out.values()))
        found["inflow"].append(sum(into.values()))
        to.update(out)
        come.update(into)
    for name, sums in (("destinations", to), ("origins", come)):
        ranked = sorted(sums.items(), key=lambda one: (-one[1], one[0]))
        found[name] = [{"cell": other, "n": n} for other, n in ranked]
    return found


def inside(points, box):
    """Count the points in a box."""
    x0, y0, x1, y1 = box
    rows = zip(points.x.tolist(), points.y.tolist(), strict=True)
    return sum(x0 <= x <= x1 and y0 <= y <= y1 for x, y in rows)
