"""Settings that fit recorded data, each with its reason: what `retrasyn suggest` prints.

The longest step is taken at which people move by about one cell at most, the window from how long
people stay, and the grid from what can be learnt of so many people (`Outlook`). Days are folded
only where nothing could be learnt of them one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.activity import Activity
from retrasyn.data.folding import whole_day
from retrasyn.errors import InputError
from retrasyn.planning.outlook import Outlook
from retrasyn.run_settings import RunSettings
from retrasyn.space import Box, Grid
from retrasyn.space.grid import format_box

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.folding import Fold
    from retrasyn.data.trajectories import Trajectories

    Values = npt.NDArray[np.float64]
    Numbers = npt.NDArray[np.int64]

_STEPS = (60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200)  # seconds; each divides a day
_DAY = 86_400
_USUAL_WINDOW = 20
_OUTSIDE = 0.01  # share of points that `evaluate` accepts outside the box
_LARGER = 2.0  # times the area, from which on a box around everybody is too large
_UNITS_ACROSS = 20  # a box is rounded outwards to about so many units a side
PRIVACY = (
    "None of this is public: it was read off raw data. The box matters most, as it stands in every "
    "receipt and its edges lie near somebody's outermost positions; take one from a map. Step, "
    "window and grid tell roughly how many people there are and how long they stay: choose them "
    "from what is known anyway if that is a secret. Fix all four before the first report, and do "
    "not choose again by what comes out."
)
"""Which of the suggested settings tell something about people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Settings that fit recorded data; `reasons` are by the name of the option."""

    period: float | None  # seconds; None: the data has no clock
    as_recorded: bool  # whether that is the step of the data already
    fold: Fold | None
    box: Box
    outside: float  # share of points
    grid: int
    window: int
    epsilon: float
    active: Activity
    outlook: Outlook
    reasons: dict[str, str]

    @property
    def every(self) -> str | None:
        """The step as `convert` takes it."""
        if self.period is None:
            return None
        hours, minutes = self.period / 3600, self.period / 60
        if hours >= 1 and hours.is_integer():
            return f"{hours:g}h"
        return f"{minutes:g}min" if minutes.is_integer() else f"{self.period:g}s"

    @property
    def options(self) -> str:
        """The options of `synthesize`."""
        parts = [f"--box {format_box(self.box)} --grid {self.grid} --window {self.window}"]
        parts += [f"--epsilon {self.epsilon:g}"] if self.epsilon != 1.0 else []
        parts += [f"--fold {self.fold}"] if self.fold else []
        parts += ["--outside drop"] if self.outside else []
        return " ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON."""
        return {
            "every": self.every,
            "period": self.period,
            "as_recorded": self.as_recorded,
            "fold": self.fold,
            "box": list(self.box),
            "outside": self.outside,
            "grid": self.grid,
            "window": self.window,
            "epsilon": self.epsilon,
            "active": asdict(self.active),
            "outlook": self.outlook.to_dict(),
            "reasons": self.reasons,
            "options": self.options,
            "privacy": PRIVACY,
        }


def suggest(real: Trajectories, *, epsilon: float = 1.0) -> Suggestion:
    """Suggest step, box, grid and window for `steered`, and whether to fold days.

    >>> from retrasyn import demo_city
    >>> found = suggest(demo_city(n_users=5_000, n_timestamps=60, seed=1))
    >>> found.box, found.grid, found.fold
    (Box(x0=0.0, y0=0.0, x1=10.0, y1=10.0), 5, None)
    """
    box, outside = rounded_box(real.x, real.y)
    rows = _Visits.of(real, box)
    stay = rows.stay
    best: Outlook | None = None
    for fold, period in _candidates(real, rows):
        n_steps = 1 if real.clock is None or period is None else round(period / real.clock.period)
        coarse = rows.every(n_steps)
        active = coarse.active(real, fold, n_steps)
        window = _window(stay / n_steps, period if fold else None)
        settings = RunSettings.of(grid=Grid(box, 2), epsilon=epsilon, window=window, seed=0)
        outlook = Outlook.of(settings, active.mean, active.n_timestamps)
        best = max(outlook, best or outlook, key=lambda one: one.n_users)
        if outlook.best is None or outlook.best * coarse.mean_step(box) > 1.0:
            continue
        found = RunSettings.of(grid=Grid(box, outlook.best), epsilon=epsilon, window=window, seed=0)
        outlook = Outlook.of(found, active.mean, active.n_timestamps)
        own = None if real.clock is None else real.clock.period
        return Suggestion(
            period=period,
            as_recorded=period == own,
            fold=fold,
            box=box,
            outside=outside,
            grid=outlook.side,
            window=window,
            epsilon=epsilon,
            active=active,
            outlook=outlook,
            reasons=_reasons(
                fold, outside, outlook, stay=stay * (own or 1.0), timed=own is not None
            ),
        )
    most = 0.0 if best is None else best.n_users
    raise InputError(
        f"too few: at no step are there enough people at a time to learn a map of ({most:.2g} at "
        f"most, epsilon {epsilon:g}); record more people, raise epsilon, or give every day of a "
        "person a budget of its own by --fold person-day"
    )


def rounded_box(x: Values, y: Values) -> tuple[Box, float]:
    """Return a box of round figures and the share of points outside it.

    It holds everybody, unless a few stray points would make it twice as large as what holds all
    but the hundredth that `evaluate` accepts outside.

    >>> rounded_box(np.array([116.153, 116.49]), np.array([39.85, 40.1]))
    (Box(x0=116.15, y0=39.85, x1=116.49, y1=40.1), 0.0)
    """
    whole = Box.around(x, y)
    edges = [np.quantile(values, [_OUTSIDE / 4, 1.0 - _OUTSIDE / 4]) for values in (x, y)]
    most = Box.around(*edges)
    box = _rounded(most if _area(whole) > _LARGER * _area(most) else whole)
    off = (x < box.x0) | (x > box.x1) | (y < box.y0) | (y > box.y1)
    return box, float(off.mean())


def _area(box: Box) -> float:
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def _rounded(box: Box) -> Box:
    """Move the edges outwards to multiples of 1, 2 or 5 times a power of ten."""
    unit = max(box.x1 - box.x0, box.y1 - box.y0) / _UNITS_ACROSS
    power = 10.0 ** math.floor(math.log10(unit))
    unit = max(step * power for step in (1, 2, 5) if step * power <= unit)
    digits = max(0, -math.floor(math.log10(unit)))
    low = [round(math.floor(edge / unit) * unit, digits) for edge in box[:2]]
    high = [round(math.ceil(edge / unit) * unit, digits) for edge in box[2:]]
    return Box(*low, *high)


def _candidates(real: Trajectories, rows: _Visits) -> Iterator[tuple[Fold | None, float | None]]:
    """Yield what may be suggested, the best first: no fold, then longer steps."""
    if real.clock is None:
        yield None, None
        return
    own = real.clock.period
    shortest, longest = own * rows.usual_step, own * max(rows.stay / 2, rows.usual_step)
    whole = [float(step) for step in _STEPS if step % own == 0]
    steps = [step for step in whole if shortest <= step <= longest] or [own]
    for step in reversed(steps):
        yield None, step
    if real.user_of_stream is not None:
        for step in reversed(steps):
            if step < _DAY and _DAY % step == 0:
                yield "day", step


def _window(stay: float, folded_step: float | None) -> int:
    """Return a window that holds a usual stay, but not more than usual.

    Where days are folded its gap divides the day, if it can: then those who report in phase rest
    as long across midnight, too.
    """
    window = min(max(math.ceil(stay), 2), _USUAL_WINDOW)
    if folded_step is None:
        return window
    per_day = round(_DAY / folded_step)
    whole = (gap for gap in range(window + 1, 2 * window + 2) if per_day % gap == 0)
    return next(whole, window + 1) - 1


def _reasons(
    fold: Fold | None, outside: float, outlook: Outlook, *, stay: float, timed: bool
) -> dict[str, str]:
    """Say why, by the name of the option."""
    stays = (
        f"half of all stays last {stay / 60:,.0f} min or more"
        if timed
        else (f"half of all stays last {stay:,.0f} timestamps or more")
    )
    kept = (
        "it holds all points"
        if not outside
        else (f"it holds all but {outside:.2%} of the points, which would make it much larger")
    )
    reasons = {
        "every": f"the longest step at which people move by at most a cell, on average; {stays}",
        "box": f"{kept}, and its figures are round",
        "grid": outlook.words,
        "window": f"{stays}, and that together is to be protected, up to {_USUAL_WINDOW} steps",
    }
    if not timed:
        reasons["every"] = "timestamps are taken as they are: the data has no clock"
    if fold is not None:
        reasons["fold"] = (
            "of days one by one nothing can be learnt; folded, a person reports once a window "
            "about one of their days, and all their days share one budget"
        )
    return reasons


@dataclass(frozen=True, slots=True)
class _Visits:
    """Points by person and time, one per person and timestamp."""

    person: Numbers  # [n]
    t: Numbers  # [n]
    x: Values  # [n]
    y: Values  # [n]

    @classmethod
    def of(cls, real: Trajectories, box: Box) -> _Visits:
        """Return the points inside a box; without users every stream counts as a person."""
        users = np.arange(real.n_streams) if real.user_of_stream is None else real.user_of_stream
        person, t = np.repeat(users, real.lengths), real.t
        inside = (real.x >= box.x0) & (real.x <= box.x1) & (real.y >= box.y0) & (real.y <= box.y1)
        order = np.lexsort((t, person))
        order = order[inside[order]]
        return cls(person[order], t[order], real.x[order], real.y[order])

    @property
    def _steps(self) -> Numbers:
        """Timestamps from each point to the next of the same person: [fewer than n]."""
        steps: Numbers = np.diff(self.t)[self.person[1:] == self.person[:-1]]
        return steps

    @property
    def usual_step(self) -> int:
        """Timestamps from a point to the next of the same person, as a rule."""
        return int(np.median(self._steps)) if self._steps.size else 1

    @property
    def stay(self) -> float:
        """Timestamps that people stay as a rule, with gaps of up to three usual steps."""
        goes_on = (self.person[1:] == self.person[:-1]) & (np.diff(self.t) <= 3 * self.usual_step)
        first = np.flatnonzero(np.append(True, ~goes_on))
        last = np.append(first[1:], self.t.size) - 1
        return float(np.median(self.t[last] - self.t[first] + self.usual_step))

    def every(self, n_steps: int) -> _Visits:
        """Return the last point of every person in each longer step."""
        step = self.t // n_steps
        last = np.append((self.person[1:] != self.person[:-1]) | (np.diff(step) > 0), True)
        return _Visits(self.person[last], step[last], self.x[last], self.y[last])

    def active(self, real: Trajectories, fold: Fold | None, n_steps: int) -> Activity:
        """Count people at a time, of which several of a person's days are one."""
        if fold is None or real.clock is None:
            return Activity.of_counts(np.bincount(self.t - self.t.min()))
        per_day, before, _ = whole_day(real.clock)
        slot = (self.t + before // n_steps) % (per_day // n_steps)
        pairs = np.unique(np.stack([self.person, slot]), axis=1)
        return Activity.of_counts(np.bincount(pairs[1] - slot.min()))

    def mean_step(self, box: Box) -> float:
        """Return how far people move from one timestamp to the next, as a share of the box."""
        follows = (self.person[1:] == self.person[:-1]) & (np.diff(self.t) == 1)
        if not follows.any():
            return 0.0
        across = np.abs(np.diff(self.x))[follows] / (box.x1 - box.x0)
        up = np.abs(np.diff(self.y))[follows] / (box.y1 - box.y0)
        return float(np.maximum(across, up).mean())
