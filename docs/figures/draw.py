"""Draws the pictures of our method and of how it works: python docs/figures/draw.py.

It takes a minute or two.

Everything is computed here, on the built-in city with fixed seeds, and drawn as plain SVG.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

import retrasyn
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.pair import Pair
from retrasyn.oracles.oue import OUE
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.stream import Live

HERE = Path(__file__).parent
GRID = retrasyn.Grid((0, 0, 10, 10), 6)
SEEDS = (1, 2, 3)
CHANGE = 60  # the timestamp from which on everybody heads elsewhere
CELL = 14  # one of the four in the middle, whose shares change most over the day
SURE = 1.645  # standard errors to either side of a 90 % interval
GAP = 21  # timestamps until everybody has been asked once

Series = npt.NDArray[np.float64]

STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#24292f}
.title{font-size:15px;font-weight:600}.head{font-weight:600}.small{font-size:12px}
.dim{fill:#57606a}.paper{fill:#fff;stroke:#d0d7de}.grid{stroke:#d8dee4}.axis{stroke:#57606a}
.box{fill:#f6f8fa;stroke:#8c959f}.safe{fill:#ddf4ff;stroke:#54aeff}.gold{fill:#fff8c5;stroke:#d4a72c}
.flow{fill:none;stroke:#57606a;stroke-width:1.5}.tip{fill:#57606a}.wall{stroke:#cf222e}.warn{fill:#cf222e}
.ours{stroke:#0969da}.theirs{stroke:#bc4c00}.truth{stroke:#24292f}.mid{stroke:#8250df}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.thin{stroke-width:1.4}
.band{fill:#0969da;fill-opacity:.16;stroke:none}.dots{fill:#8c959f}.dash{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.dim{fill:#9198a1}.paper{fill:#0d1117;stroke:#3d444d}.grid{stroke:#262c36}
.axis{stroke:#9198a1}.box{fill:#161b22;stroke:#656c76}.safe{fill:#0c2d4d;stroke:#1f6feb}
.gold{fill:#3b2e08;stroke:#9e6a03}.flow{stroke:#9198a1}.tip{fill:#9198a1}.wall{stroke:#f85149}
.warn{fill:#f85149}.ours{stroke:#58a6ff}.theirs{stroke:#f0883e}.truth{stroke:#e6edf3}
.mid{stroke:#bc8cff}.band{fill:#58a6ff;fill-opacity:.22}.dots{fill:#656c76}}
""".replace("\n", "")


def svg(width: int, height: int, title: str, about: str, parts: list[str]) -> str:
    """Return a whole picture on a card of its own, which follows the reader's light or dark."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
            f' viewBox="0 0 {width} {height}" role="img" aria-labelledby="title about">',
            f'<title id="title">{title}</title>',
            f'<desc id="about">{about}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *parts,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


class Chart:
    """Axes over time, and what is drawn in them."""

    left, right = 62, 838

    def __init__(
        self, n: int, values: tuple[float, float], *, top: int = 92, bottom: int = 336
    ) -> None:
        self.n, self.values, self.top, self.bottom = n, values, top, bottom
        self.parts: list[str] = []

    def x(self, t: float) -> float:
        """Return the place of a timestamp."""
        return self.left + (self.right - self.left) * t / self.n

    def y(self, value: float) -> float:
        """Return the place of a value; beyond an edge, the edge."""
        least, most = self.values
        return self.bottom - (self.bottom - self.top) * (
            min(max((value - least) / (most - least), 0.0), 1.0)
        )

    def axes(self, step: float, label: str, form: str) -> None:
        """Draw lines to read values by."""
        least, most = self.values
        for k in range(round(least / step), round(most / step) + 1):
            y = self.y(k * step)
            kind = "grid" if k else "axis"
            number = format(k * step, form).replace("-", "\N{MINUS SIGN}")
            self.parts += [
                f'<path class="{kind}" d="M{self.left} {y:.1f}H{self.right}"/>',
                text(self.left - 8, y + 4, number, kind="small dim", anchor="end"),
            ]
        self.parts.append(text(self.left, self.top - 12, label, kind="small dim"))

    def times(self) -> None:
        """Name timestamps below the chart."""
        for t in range(0, self.n + 1, 20):
            words, anchor = ("timestamp 0", "start") if t == 0 else (str(t), "middle")
            self.parts.append(
                text(self.x(t), self.bottom + 20, words, kind="small dim", anchor=anchor)
            )

    def line(self, values: Series, kind: str) -> None:
        """Draw a curve."""
        places = " ".join(
            f"{self.x(t):.1f},{self.y(value):.1f}"
            for t, value in enumerate(values)
            if np.isfinite(value)
        )
        self.parts.append(f'<polyline class="line {kind}" points="{places}"/>')

    def band(self, low: Series, high: Series) -> None:
        """Fill what lies between two curves."""
        known = np.flatnonzero(np.isfinite(low))
        there = [f"{self.x(t):.1f},{self.y(high[t]):.1f}" for t in known]
        back = [f"{self.x(t):.1f},{self.y(low[t]):.1f}" for t in known[::-1]]
        self.parts.append(f'<polygon class="band" points="{" ".join(there + back)}"/>')

    def dots(self, values: Series) -> None:
        """Draw single points."""
        self.parts += [
            f'<circle class="dots" cx="{self.x(t):.1f}" cy="{self.y(value):.1f}" r="2.4"/>'
            for t, value in enumerate(values)
            if np.isfinite(value)
        ]

    def legend(self, entries: list[tuple[str, str]], *, widths: list[int]) -> None:
        """Name the curves in a row above the chart."""
        x = self.left
        for (kind, words), width in zip(entries, widths, strict=True):
            if kind == "dots":
                sign = f'<circle class="dots" cx="{x + 11}" cy="51" r="3"/>'
            elif kind == "band":
                sign = f'<rect class="band" x="{x}" y="45" width="22" height="12"/>'
            else:
                sign = f'<line class="line {kind}" x1="{x}" x2="{x + 22}" y1="51" y2="51"/>'
            self.parts += [sign, text(x + 29, 55.5, words, kind="small")]
            x += width


def draw_change() -> str:
    """Draw the density error before and after everybody suddenly heads elsewhere."""
    errors: dict[str, list[Series]] = {"steered": [], "retrasyn-p": []}
    for seed in SEEDS:
        real = retrasyn.demo_city(reroute=CHANGE, seed=seed)
        for method, curves in errors.items():
            synthetic, _ = retrasyn.synthesize(real, method, grid=GRID, seed=seed)
            curves.append(density_errors(Pair.of(real, synthetic, GRID)))
    means = {method: np.mean(curves, axis=0) for method, curves in errors.items()}
    chart = Chart(means["steered"].size, (0.0, 0.25))
    chart.axes(0.05, "density error (divergence in nats; 0 is perfect)", ".2f")
    chart.times()
    edge = chart.x(CHANGE)
    chart.parts += [
        f'<path class="wall dash" d="M{edge:.1f} {chart.top}V{chart.bottom}"/>',
        text(edge + 8, chart.top + 14, "from here everybody heads elsewhere", kind="small warn"),
        text(20, 28, "A sudden change, halfway through the day", kind="title"),
    ]
    chart.line(means["retrasyn-p"], "theirs")
    chart.line(means["steered"], "ours")
    chart.legend([("ours", "steered"), ("theirs", "retrasyn-p")], widths=[100, 120])
    for method, curve in means.items():
        before, after = curve[CHANGE - 30 : CHANGE].mean(), curve[CHANGE + 20 : CHANGE + 40].mean()
        print(f"{method}: {before:.4f} before, {after:.4f} around 30 steps after")
    about = "Density error over 120 timestamps of steered and retrasyn-p, mean of three seeds."
    return svg(860, 372, "Density error around a sudden change", about, chart.parts)


def cell_reports(live: Live) -> Series:
    """Return the sums of all cell reports so far, and last their number: [n_cells + 1]."""
    arrivals = live.simulation.curator.state.memory.flow.arrivals
    return np.append(arrivals.sums[0], arrivals.weights[0])


def shares_of_reports(sums: list[Series], gap: int) -> Series:
    """Return what the cell reports of the last `gap` timestamps say: [n_cells]."""
    latest = sums[-1] - (sums[-1 - gap] if len(sums) > gap else 0.0)
    return latest[:-1] / latest[-1]


def draw_cell() -> str:
    """Draw what is known of one cell: reports alone, a window of them, released, and the truth."""
    real = retrasyn.demo_city(seed=SEEDS[0])
    live = Live.start(RunSettings.of("steered", grid=GRID, seed=SEEDS[0]))
    rows, sums = [], []
    for t in range(real.first_t, real.last_t + 1):
        now = real.t == t
        people = real.traj_id[now].tolist(), real.x[now].tolist(), real.y[now].tolist()
        release = live.step(t, *people, real.user_id[now].tolist())[-1]
        sums.append(cell_reports(live))
        rows.append(
            (
                np.mean(GRID.cells_of(real.x[now], real.y[now]) == CELL),
                shares_of_reports(sums, 1)[CELL],
                shares_of_reports(sums, GAP)[CELL],
                release.uncertainty.cell_shares[CELL],
                release.uncertainty.cell_errors[CELL],
            )
        )
    true, newest, window, share, error = np.array(rows).T
    far = Chart(true.size, (-0.2, 0.4), bottom=216)
    far.axes(0.2, "share of all people who are in this cell", ".0%")
    far.dots(newest)
    near = Chart(true.size, (0.0, 0.2), top=262, bottom=466)
    near.axes(0.05, "the same, enlarged", ".0%")
    near.times()
    near.band(share - SURE * error, share + SURE * error)
    near.line(window, "mid thin")
    for chart in (far, near):
        chart.line(share, "ours")
        chart.line(true, "truth dash")
    far.parts.append(text(20, 28, "One cell of the built-in city, over a day", kind="title"))
    far.legend(
        [
            ("dots", "cell reports, one timestamp"),
            ("mid thin", "the last 21"),
            ("ours", "released by steered"),
            ("band", "its 90 % interval"),
            ("truth dash", "truth"),
        ],
        widths=[220, 115, 170, 155, 90],
    )
    for name, series in {"reports": newest, "window": window, "released": share}.items():
        print(f"{name}: off by {np.sqrt(np.mean((series - true) ** 2)):.4f} (root mean square)")
    print(f"90 % interval covers {np.mean(np.abs(share - true) <= SURE * error):.0%}")
    about = "Noisy dots scatter widely; the released curve with its band follows the truth."
    return svg(860, 502, "What is known of one cell", about, far.parts + near.parts)


def box(x: int, y: int, width: int, lines: list[str], kind: str = "box") -> str:
    """Return a box with a heading and small lines."""
    height = 16 + 18 * len(lines)
    parts = [
        f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>',
        text(x + 12, y + 22, lines[0], kind="head"),
    ]
    parts += [
        text(x + 12, y + 22 + 18 * k, words, kind="small dim")
        for k, words in enumerate(lines[1:], 1)
    ]
    return "".join(parts)


def arrow(*places: tuple[float, float], words: str = "", at: tuple[float, float] = (0, 0)) -> str:
    """Return a line through places with a tip at the last."""
    (x0, y0), (x, y) = places[-2], places[-1]
    dx, dy = np.sign(x - x0), np.sign(y - y0)
    path = " ".join(f"{px:g},{py:g}" for px, py in [*places[:-1], (x - 6 * dx, y - 6 * dy)])
    sides = [(x - 9 * dx - 4 * dy, y - 9 * dy - 4 * dx), (x - 9 * dx + 4 * dy, y - 9 * dy + 4 * dx)]
    tip = " ".join(f"{px:g},{py:g}" for px, py in [(x, y), *sides])
    label = text(*at, words, kind="small dim") if words else ""
    return f'<polyline class="flow" points="{path}"/><polygon class="tip" points="{tip}"/>{label}'


def draw_flow() -> str:
    """Draw how one timestamp walks through the method."""
    parts = [
        text(20, 30, "One timestamp of steered", kind="title"),
        box(
            20,
            48,
            262,
            [
                "45 in 100, once per window",
                "\u201cI moved from cell 8 to cell 9\u201d,",
                "or entered, or quit: noisy bits,",
                "one for every possible state",
            ],
            "gold",
        ),
        box(
            299,
            48,
            262,
            [
                "45 in 100, once per window",
                "\u201cI am in cell 9\u201d:",
                "noisy bits, one for every cell",
                "",
            ],
            "gold",
        ),
        box(
            578,
            48,
            262,
            [
                "10 in 100, every third window",
                "\u201chave you been here for longer",
                "than 6 timestamps?\u201d:",
                "one noisy bit",
            ],
            "gold",
        ),
        '<path class="wall dash" d="M20 168H840"/>',
        text(510, 160, "devices", kind="small warn", anchor="middle"),
        text(
            510,
            184,
            "curator: noisy reports, and how many are present",
            kind="small warn",
            anchor="middle",
        ),
        arrow((70, 136), (70, 206)),
        arrow((314, 136), (314, 206)),
        arrow((740, 136), (740, 206)),
        box(
            20,
            206,
            310,
            [
                "Sums of both kinds of reports",
                "kept for ever, or faded by 1, 5 or 30 percent",
                "at each timestamp: what has been seen",
                "over long and short pasts",
            ],
        ),
        arrow((330, 250), (358, 250)),
        box(
            358,
            206,
            232,
            [
                "Log-linear model",
                "one height per cell, smooth over",
                "the map; trust goes to the past",
                "that predicts the next reports",
            ],
        ),
        arrow((640, 250), (590, 250), words="totals", at=(598, 242)),
        box(
            640,
            206,
            200,
            [
                "Experts on durations",
                "each a histogram of ages",
                "from the number present;",
                "answers say whom to trust",
            ],
        ),
        arrow(
            (380, 294), (380, 338), words="moves, density, where to enter and quit", at=(390, 320)
        ),
        arrow((665, 294), (665, 338), words="chance to quit at each age", at=(675, 320)),
        '<rect class="safe" x="20" y="338" width="820" height="92" rx="6"/>',
        text(32, 360, "Synthetic population", kind="head"),
    ]
    steps = {
        "1 Quits": "by age and cell",
        "2 Surplus": "down to the size",
        "3 Moves": "steered to the density",
        "4 Births": "up to the size",
        "5 Points": "a short step further",
    }
    for k, (name, words) in enumerate(steps.items()):
        parts += [
            text(32 + 164 * k, 388, name, kind="head"),
            text(32 + 164 * k, 408, words, kind="small dim"),
        ]
    parts += [
        arrow((430, 430), (430, 460)),
        box(
            190,
            460,
            480,
            ["Release", "synthetic points, and how well every cell and every flow is known"],
        ),
    ]
    about = "Devices report moves, cells or ages with noise; a model of them moves a crowd."
    return svg(860, 530, "How one timestamp of steered works", about, parts)


def bar(x: float, y: float, value: float, kind: str) -> str:
    """Return a bar that stands on y, or hangs from it."""
    top = y - max(value, 0.0)
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="24" '
        f'height="{max(abs(value), 1):.1f}"/>'
    )


def draw_report() -> str:
    """Draw one report, and what many of them add up to, on a grid of 2 x 2."""
    states = retrasyn.StateSpace(retrasyn.Grid((0, 0, 10, 10), 2))
    n_states, n, mine = states.n_states, 20_000, 6
    true = np.random.default_rng(3).dirichlet(np.full(n_states, 0.6))
    held = np.random.default_rng(4).choice(n_states, n, p=true).astype(np.int32)
    held[0] = mine
    oracle = OUE(1_000_000)
    addresses = np.arange(n, dtype=np.uint64)
    packed = oracle.perturb(held, addresses, key=3, n_answers=n_states)
    bits = np.unpackbits(packed[0], bitorder="little")[:n_states]
    found = oracle.estimate(oracle.aggregate(packed, n_answers=n_states)).frequencies
    shares = np.bincount(held, minlength=n_states) / n
    left, step = 236, 25.6
    names = [
        (76, "what one person did", "one of 24 possible states"),
        (136, "what the device sends", "one noisy bit for each"),
        (252, "what 20,000 reports say", "outlined: the truth"),
    ]
    parts = [text(20, 30, "One report says nothing, many say a lot", kind="title")]
    for y, words, more in names:
        parts += [text(20, y, words, kind="head"), text(20, y + 17, more, kind="small dim")]
    for k in range(n_states):
        x = left + k * step
        parts += [
            (
                f'<rect class="{"gold" if k == mine else "box"}" x="{x:.1f}" y="66" '
                'width="22" height="22" rx="4"/>'
            ),
            (
                f'<rect class="{"safe" if bits[k] else "box"}" x="{x:.1f}" y="126" '
                'width="22" height="22" rx="4"/>'
            ),
            bar(x - 1, 286, 420 * found[k], "safe"),
            (
                f'<rect class="line truth thin" x="{x + 3:.1f}" y="{286 - 420 * shares[k]:.1f}" '
                f'width="16" height="{max(420 * shares[k], 1):.1f}"/>'
            ),
        ]
        if k == mine:
            parts.append(text(x + 11, 82, "1", kind="small", anchor="middle"))
        if bits[k]:
            parts.append(text(x + 11, 142, "1", kind="small", anchor="middle"))
    parts.append(f'<path class="axis" d="M{left} 286H{left + n_states * step:.0f}"/>')
    print(f"report: {bits.sum()} bits on, largest error {np.abs(found - shares).max():.4f}")
    about = "A report has bits on that mean nothing; the sum of many is close to the truth."
    return svg(860, 312, "One report and the sum of many", about, parts)


def heat(x: int, y: int, shares: Series, most: float, names: tuple[str, str]) -> list[str]:
    """Return a map of the grid, darker where there are more."""
    size, side = 38, GRID.side
    parts = [text(x, y - 26, names[0], kind="head"), text(x, y - 9, names[1], kind="small dim")]
    for cell, share in enumerate(shares):
        row, column = divmod(cell, side)
        depth = min(max(share / most, 0.0), 1.0)
        below = share < 0
        parts.append(
            f'<rect class="grid" x="{x + column * size}" y="{y + (side - 1 - row) * size}" '
            f'width="{size - 2}" height="{size - 2}" rx="3" '
            f'fill="{"#d55e00" if below else "#0072b2"}" '
            f'fill-opacity="{min(abs(share) / most, 1.0) * 0.85 if below else depth:.2f}"/>'
        )
    return parts


def draw_maps() -> str:
    """Draw one timestamp: where people are, what its reports say, what is released."""
    real = retrasyn.demo_city(seed=SEEDS[0])
    live = Live.start(RunSettings.of("steered", grid=GRID, seed=SEEDS[0]))
    n_cells = GRID.n_cells
    seen: list[tuple[float, int, Series, Series, Series]] = []
    sums = []
    for t in range(real.first_t, real.last_t + 1):
        now = real.t == t
        people = real.traj_id[now].tolist(), real.x[now].tolist(), real.y[now].tolist()
        release = live.step(t, *people, real.user_id[now].tolist())[-1]
        sums.append(cell_reports(live))
        raw = shares_of_reports(sums, 1)
        true = np.bincount(GRID.cells_of(real.x[now], real.y[now]), minlength=n_cells) / now.sum()
        made = np.bincount(release.cells, minlength=n_cells) / release.cells.size
        seen.append((float(np.abs(made - true).sum()), t, true, raw, made))
    _, goal, true, raw, made = sorted(seen, key=lambda row: row[0])[len(seen) // 2]  # as usual
    parts = [text(20, 30, f"The built-in city at timestamp {goal}, a usual one", kind="title")]
    most = float(true.max())
    sides = [
        (true, ("where people are", "nobody but they know")),
        (raw, ("what its reports say", "orange: less than nothing")),
        (made, ("what is released", "the synthetic crowd")),
    ]
    for k, (shares, names) in enumerate(sides):
        parts += heat(28 + 284 * k, 92, shares, most, names)
    for name, shares in {"reports": raw, "released": made}.items():
        print(f"maps, {name}: off by {np.sqrt(np.mean((shares - true) ** 2)):.4f}")
    about = "The reports of one timestamp are mostly noise; the released map is like the real one."
    return svg(860, 338, "Truth, reports and release at one timestamp", about, parts)


def main() -> None:
    """Draw everything."""
    pictures = {
        "timestamp": draw_flow,
        "change": draw_change,
        "cell": draw_cell,
        "report": draw_report,
        "maps": draw_maps,
    }
    for name, draw in pictures.items():
        (HERE / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
