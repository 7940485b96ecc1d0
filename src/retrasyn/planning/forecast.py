"""The forecast for a given number of users: everything `retrasyn plan` prints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrasyn.errors import SettingError
from retrasyn.methods import DEFAULT_METHOD, ROADS_METHOD, Method, find_method
from retrasyn.planning.closed_forms import (
    ExpectedNoise,
    Total,
    expected_noise,
    fine_map,
    lost_detail,
    totals,
)
from retrasyn.planning.outlook import Outlook
from retrasyn.planning.trial import N_TIMESTAMPS, City, Trial, built_in_cities, run_trial
from retrasyn.privacy.usual_place import UsualPlace
from retrasyn.roads.opening import open_map
from retrasyn.run_settings import MAX_EPSILON, MAX_WINDOW, RunSettings
from retrasyn.simulation.accounting import usual_place_of
from retrasyn.simulation.city import CITY_BOX, city_roads
from retrasyn.space import Grid

SIDES = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24)
"""Grid sides K that are considered."""
SIMULATED = (2, 4, 6, 10, 24)
"""Sides that are simulated; errors for the others are interpolated."""
_FINEST_CHANGE = 10  # largest side at which changes are simulated; finer grids take too long
USUAL_SIDE = 6
"""The grid spoken of where none is recommended: that of a campaign by default."""
MAX_USERS = 10_000_000_000
Progress = Callable[[int, int], None]
"""Called with (timestamps done, timestamps in total); may raise to stop."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """An expected error, and its values in the city at rest and the one with rush hours."""

    expected: float
    at_rest: float
    rush_hours: float

    def scaled(self, ratios: Sequence[float]) -> Prospect:
        """Return the prospect with the error of each city multiplied by a ratio."""
        return Prospect.of([self.at_rest * ratios[0], self.rush_hours * ratios[1]])

    @classmethod
    def of(cls, errors: Sequence[float]) -> Prospect:
        """Return the prospect whose expected error is the mean over the cities."""
        return cls(sum(errors) / len(errors), *errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The forecast for one grid."""

    side: int
    cell_share: float  # mean share of people per cell
    cell_error: float  # its standard error, from one timestamp
    usual_place: UsualPlace | None = None  # after how long linked reports tell it
    density: Prospect | None = None
    transition: Prospect | None = None
    lost_detail: float | None = None

    @property
    def total(self) -> float:
        """Return the error of the map as seen on the finest grid."""
        if self.density is None or self.lost_detail is None:
            return math.nan
        return self.density.expected + self.lost_detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The effect of more users, epsilon or window, or of a map, on the recommended grid."""

    what: str
    n_users: int
    epsilon: float
    window: int
    worth: float  # factor on users that would have the same effect; NaN: no closed form tells
    mapped: bool = False  # whether the roads of the city are known
    density: Prospect | None = None
    transition: Prospect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The complete forecast."""

    method: str
    n_users: int
    epsilon: float
    window: int
    gap: int
    noise: ExpectedNoise
    rows: tuple[Row, ...]
    changes: tuple[Change, ...]
    lifetime: tuple[Total, ...]
    outlook: Outlook  # on the recommended grid, or on 6 x 6 cells before there is one
    n_timestamps: int
    recommended: int | None = None  # side K
    simulated_reports: float | None = None  # per timestamp, including those about ages or presence
    n_simulated: float | None = None  # people present at a time in the simulation

    def row(self, side: int) -> Row:
        """Return the row for one grid side."""
        return next(row for row in self.rows if row.side == side)

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON; None for what is unknown or infinite."""
        found: dict[str, Any] = _finite(dataclasses.asdict(self))
        found["outlook"] = self.outlook.to_dict()
        for row, values in zip(self.rows, found["rows"], strict=True):
            values["total"] = None if math.isnan(row.total) else row.total
        return found


def forecast(
    n_users: int,
    method: str | None = None,
    *,
    epsilon: float = 1.0,
    window: int = 20,
    period: int = 600_000_000,
    seed: int = 0,
    simulates: bool = True,
    n_timestamps: int = N_TIMESTAMPS,
    progress: Progress | None = None,
) -> Forecast:
    """Forecast a campaign with `n_users` people active at a time.

    Args:
        n_users: People active at a time, on average; not those who ever take part.
        method: The name of a private method in `METHODS`; steered by default. One that needs a
            public map has that of the built-in city's roads.
        epsilon: Privacy budget over any window.
        window: Length w of the protected window, in timestamps.
        period: Microseconds between two timestamps, for the privacy cost over time.
        seed: Determines the cities and the noise.
        simulates: Whether to predict errors by simulation; otherwise closed forms only.
        n_timestamps: Length of the simulated stream.
        progress: Called as the simulation advances.

    >>> closed = forecast(2_100, simulates=False)
    >>> round(closed.noise.n_reports), closed.lifetime[0].epsilon
    (45, 7.0)
    """
    row = find_method(DEFAULT_METHOD if method is None else method)
    _check(row, n_users, seed)
    settings = RunSettings.of(
        row,
        grid=Grid(CITY_BOX, SIDES[0]),
        epsilon=epsilon,
        window=window,
        seed=seed,
        public_map=open_map(CITY_BOX, roads=city_roads()) if row.speeds else None,
    )
    means, gap = _Means(settings, n_users), settings.gap
    noise = means.noise()
    shown = Forecast(
        method=settings.method.name,
        n_users=n_users,
        epsilon=epsilon,
        window=window,
        gap=gap,
        noise=noise,
        rows=tuple(_closed_row(means.on(side), noise, period / 1_000_000) for side in SIDES),
        changes=tuple(_changes(means, noise)),
        lifetime=tuple(totals(period=period, epsilon=epsilon, gap=gap)),
        outlook=Outlook.of(means.on(USUAL_SIDE), n_users),
        n_timestamps=n_timestamps,
    )
    if not simulates:
        return shown
    trials = _Trials(
        built_in_cities(n_timestamps=n_timestamps, seed=seed),
        n_steps=2 * n_timestamps * (len(SIMULATED) + len(shown.changes)),
        progress=progress or (lambda *_: None),
    )
    found = {side: trials.run(means, side) for side in SIMULATED}
    rows = tuple(_with_errors(row, found, trials.cities) for row in shown.rows)
    best = min(rows, key=lambda row: row.total)
    side = max(side for side in SIMULATED if side <= min(best.side, _FINEST_CHANGE))
    return dataclasses.replace(
        shown,
        rows=rows,
        changes=tuple(
            _changed(change, best, found[side], trials.run(means.changed(change), side))
            for change in shown.changes
        ),
        outlook=Outlook.of(means.on(best.side), n_users),
        recommended=best.side,
        simulated_reports=float(np.mean([trial.n_reports for trial in found[SIMULATED[0]]])),
        n_simulated=float(np.mean([city.of_size(n_users).n_active for city in trials.cities])),
    )


@dataclass(frozen=True, slots=True)
class _Means:
    """What a planner can change: users, epsilon and window."""

    settings: RunSettings
    n_users: int

    def on(self, side: int) -> RunSettings:
        """Return the run settings for a grid of that side."""
        return dataclasses.replace(self.settings, grid=Grid(CITY_BOX, side))

    def noise(self) -> ExpectedNoise:
        """Return the expected noise."""
        settings = self.settings
        return expected_noise(
            settings.method, n_users=self.n_users, epsilon=settings.budget, gap=settings.gap
        )

    def changed(self, change: Change) -> _Means:
        """Return the means after a change."""
        settings = dataclasses.replace(self.settings, epsilon=change.epsilon, window=change.window)
        if change.mapped:
            known = open_map(CITY_BOX, roads=city_roads())
            settings = dataclasses.replace(
                settings, method=find_method(ROADS_METHOD), public_map=known
            )
        return _Means(settings, change.n_users)


@dataclass(slots=True)
class _Trials:
    """Runs trials in both cities, counting timestamps for the progress callback."""

    cities: list[City]
    n_steps: int
    progress: Progress
    n_done: int = 0

    def run(self, means: _Means, side: int) -> list[Trial]:
        """Return the trial of each city."""
        return [
            run_trial(city.of_size(means.n_users), means.on(side), tick=self._tick)
            for city in self.cities
        ]

    def _tick(self) -> None:
        self.n_done += 1
        self.progress(self.n_done, self.n_steps)


def _check(method: Method, n_users: int, seed: int) -> None:
    """Refuse what cannot be planned."""
    if not method.division.private:
        raise SettingError(
            f"{method.name} is not private, so there is nothing to plan; use another method"
        )
    if not 1 <= n_users <= MAX_USERS:
        raise SettingError(
            f"users={n_users} must be 1 to {MAX_USERS:,}: the people active at a time"
        )
    if seed < 0:
        raise SettingError(f"seed={seed} must be a whole number from 0 on")


def _closed_row(settings: RunSettings, noise: ExpectedNoise, period: float) -> Row:
    """Return the row of a grid from closed forms only."""
    side = settings.grid.side
    return Row(
        side=side,
        cell_share=side**-2,
        cell_error=noise.cell_error(settings.states),
        usual_place=usual_place_of(settings, period=period),
    )


def _changes(means: _Means, noise: ExpectedNoise) -> Iterator[Change]:
    """Yield what doubles users, epsilon or window, where that is possible, and adds a map."""
    n_users, epsilon, window = means.n_users, means.settings.epsilon, means.settings.window
    doubled = {
        "twice the users": (2 * n_users, epsilon, window),
        "twice epsilon": (n_users, 2 * epsilon, window),
        "twice the window": (n_users, epsilon, 2 * window),
    }
    for what, (users, budget, length) in doubled.items():
        if budget > MAX_EPSILON or length > MAX_WINDOW:
            continue
        change = Change(what=what, n_users=users, epsilon=budget, window=length, worth=math.nan)
        yield dataclasses.replace(change, worth=means.changed(change).noise().worth(noise))
    if means.settings.method.name == DEFAULT_METHOD:
        yield Change(
            what="a map of the roads",
            n_users=n_users,
            epsilon=epsilon,
            window=window,
            worth=math.nan,
            mapped=True,
        )


def _with_errors(row: Row, found: dict[int, list[Trial]], cities: list[City]) -> Row:
    """Return a row with errors interpolated from the simulations."""
    lost = [lost_detail(fine_map(city.trips), row.side) for city in cities]
    return dataclasses.replace(
        row,
        density=_between(row.side, found, lambda trial: trial.density_error),
        transition=_between(row.side, found, lambda trial: trial.transition_error),
        lost_detail=sum(lost) / len(lost),
    )


def _between(side: int, found: dict[int, list[Trial]], error: Callable[[Trial], float]) -> Prospect:
    """Interpolate an error between simulated sides on logarithmic scales, for each city."""
    sides = np.log(list(found))
    by_city = zip(*found.values(), strict=True)
    return Prospect.of(
        [
            float(np.exp(np.interp(np.log(side), sides, _logarithms(map(error, trials)))))
            for trials in by_city
        ]
    )


def _logarithms(errors: Any) -> Any:
    return np.log(np.maximum(list(errors), 1e-9))


def _changed(change: Change, best: Row, before: list[Trial], after: list[Trial]) -> Change:
    """Return a change with its errors: those of the best row, scaled as in the simulation."""
    pairs = list(zip(before, after, strict=True))
    density = [new.density_error / old.density_error for old, new in pairs]
    transition = [new.transition_error / old.transition_error for old, new in pairs]
    return dataclasses.replace(
        change,
        density=None if best.density is None else best.density.scaled(density),
        transition=None if best.transition is None else best.transition.scaled(transition),
    )


def _finite(value: Any) -> Any:
    """Replace values that JSON cannot represent."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
