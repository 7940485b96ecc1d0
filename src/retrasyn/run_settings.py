"""All settings of one run in one object: method, interpretation of the paper, budget."""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, get_args

from retrasyn.data.folding import Fold
from retrasyn.errors import SettingError
from retrasyn.interpretation import AUTHORS, SAFE, Interpretation
from retrasyn.messages import MICRO
from retrasyn.methods import (
    DEFAULT_METHOD,
    MAP_METHOD,
    METHODS,
    PAPER_METHOD,
    ROADS_METHOD,
    Method,
    check_oracle,
    configure,
    find_method,
)
from retrasyn.oracles.registry import OracleWish, choose_oracle
from retrasyn.roads.public_map import PublicMap
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.space.grid import format_box

MAX_EPSILON = 40.0
MAX_WINDOW = 1_000_000_000
MAX_REPLICATES = 1_000
Outside = Literal["refuse", "drop"]
"""What to do with points outside the box."""
Door = Literal["counts", "reports"]
"""How simulated reports are drawn: their sum at once, or one by one."""


def micro_nats(epsilon: float) -> int:
    """Return a budget as a whole number of micro-nats, rounded down.

    >>> micro_nats(1.0)
    1000000
    """
    if not math.isfinite(epsilon) or not 0 < epsilon <= MAX_EPSILON:
        raise SettingError(
            f"epsilon={epsilon:g} must lie above 0 and at most {MAX_EPSILON:g}; 1 is a usual value"
        )
    micro = int(epsilon * MICRO + 1e-6)
    if micro < 1:
        raise SettingError(
            f"epsilon={epsilon:g} is below {1 / MICRO:g}, the least that is counted; 1 is usual"
        )
    return micro


class RunOptions(TypedDict, total=False):
    """The keyword arguments of `RunSettings.of` and `retrasyn.synthesize`."""

    epsilon: float
    window: int
    seed: int | Literal["random"]
    unit: Literal["position", "transition"] | None
    ledger: Literal["user", "stream"] | None
    jump: Literal["split", "clamp"] | None
    length_scale: Literal["released", "data"] | float | None
    outside: Outside
    faithful: bool
    settings: Mapping[str, str] | None
    oracle: OracleWish
    door: Door
    fewest: int
    public_map: PublicMap | None
    fold: Fold | None
    replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Everything that identifies a run; two runs with equal settings and data give equal bytes.

    Build it with `of`. It is checked whenever it is made, also by `dataclasses.replace`, and
    nowhere else. The engine, the checkpoint's folder and the sinks are no part of it: they say
    where a run happens, not what comes out, and are handed over beside it.

    >>> from retrasyn import Box, Grid, RunSettings
    >>> grid = Grid(Box(0, 0, 1, 1), 6)
    >>> settings = RunSettings.of("retrasyn-p", grid=grid, window=10, seed=7)
    >>> settings.method.name, settings.gap, settings.chosen_oracle
    ('retrasyn-p', 11, 'oue')
    >>> RunSettings.from_dict(settings.to_dict()) == settings
    True
    """

    method: Method
    """The row of the method, its settings applied."""
    interpretation: Interpretation
    """How the paper is read where it leaves a choice."""
    grid: Grid
    """The public grid."""
    box_inferred: bool = False
    """Whether the grid's box was taken from the raw data, which is not private."""
    epsilon: float = 1.0
    """Privacy budget over any window, in nats."""
    window: int = 20
    """Length w of the protected window, in timestamps."""
    seed: int = field(repr=False)
    """Repeats the run exactly."""
    seed_is_secret: bool
    """Whether the seed was drawn, or is kept: then no receipt names it."""
    oracle: OracleWish = "oue"
    """An oracle, or how to choose one."""
    door: Door = "counts"
    """How simulated reports are drawn."""
    fewest: int = 1
    """Reports that an estimate is made of at least; fewer wait for the next ones."""
    outside: Outside = "refuse"
    """What to do with points outside the box."""
    faithful: bool = False
    """Whether every open question is answered as the authors' program does."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the method and the interpretation, as they were given by name."""
    public_map: PublicMap | None = None
    """What is public about the place: where people are likely, and its roads."""
    fold: Fold | None = None
    """Whether many days become one, and whose budget they share: the person's, or none."""
    replicates: int = 0
    """How many replicas of the curator run beside it, which tell what in the release is chance."""

    @classmethod
    def of(
        cls,
        method: str | Method | None = None,
        *,
        grid: Grid,
        epsilon: float = 1.0,
        window: int = 20,
        seed: int | Literal["random"] = "random",
        unit: Literal["position", "transition"] | None = None,
        ledger: Literal["user", "stream"] | None = None,
        jump: Literal["split", "clamp"] | None = None,
        length_scale: Literal["released", "data"] | float | None = None,
        outside: Outside = "refuse",
        faithful: bool = False,
        settings: Mapping[str, str] | None = None,
        oracle: OracleWish = "oue",
        door: Door = "counts",
        fewest: int = 1,
        public_map: PublicMap | None = None,
        fold: Fold | None = None,
        replicates: int = 0,
    ) -> RunSettings:
        """Combine a method's row with what was asked for.

        Args:
            method: A row of `METHODS` by its name, or a row of your own; steered, or with
                `faithful` retrasyn-p, if none is given.
            grid: The public grid.
            epsilon: Privacy budget over any window.
            window: Length w of the protected window, in timestamps.
            seed: "random" draws one that nobody can guess, and no receipt names it. A number
                repeats the run exactly, for experiments: whoever guesses it undoes the noise.
            unit: What a window protects; "position" unless the interpretation says otherwise.
            ledger: Whose spending is counted; "user" unless the interpretation says otherwise.
            jump: What a step beyond the neighbouring cells is.
            length_scale: Lambda of Eq. 8.
            outside: What to do with points outside the box.
            faithful: Answer every open question as the authors' program does.
            settings: Further settings by name, such as alpha, kappa and p_max.
            oracle: How states are hidden: "oue", "grr" or "olh", "auto" for the least variance, or
                "small" for the smallest report.
            door: Draw the sum of all simulated reports at once ("counts"), or every report bit by
                bit ("reports").
            fewest: Reports that an estimate is made of at least; fewer wait for the next ones.
            public_map: A public map of the grid's box; `steered` becomes the row that uses it.
            fold: Turn many days into one: a person still has one budget ("day"), or one for each
                of their days ("person-day").
            replicates: How many replicas to make beside the release: 20 tell a standard error.
        """
        if method is None:
            method = PAPER_METHOD if faithful else DEFAULT_METHOD
        if public_map is not None and method == DEFAULT_METHOD:
            method = MAP_METHOD if public_map.roads is None else ROADS_METHOD
        row = find_method(method) if isinstance(method, str) else method
        if length_scale is not None and not (row.of_paper or row.lifecycle.uses_length):
            raise SettingError(
                f"{row.name} has no length scale: it does not end streams by their length"
            )
        if seed != "random" and (isinstance(seed, str) or seed < 0):
            raise SettingError(f"seed={seed!r} must be a whole number from 0 on, or random")
        asked = {"unit": unit, "ledger": ledger, "jump": jump, "length_scale": length_scale}
        answers = {name: value for name, value in asked.items() if value is not None}
        own = AUTHORS if faithful else SAFE.answer(jump=row.jump)
        row, interpretation = configure(row, own.answer(**answers), settings or {})
        return cls(
            method=row,
            interpretation=interpretation,
            grid=grid,
            epsilon=epsilon,
            window=window,
            seed=secrets.randbits(128) if seed == "random" else seed,
            seed_is_secret=seed == "random",
            oracle=oracle,
            door=door,
            fewest=fewest,
            outside=outside,
            faithful=faithful,
            settings=dict(settings or {}),
            public_map=public_map,
            fold=fold,
            replicates=replicates,
        )

    def __post_init__(self) -> None:
        if self.faithful and not self.method.of_paper:
            raise SettingError(
                f"{self.method.name} is not a method of the paper; `faithful=True` goes with "
                f"{PAPER_METHOD} and its relatives"
            )
        check_oracle(self.method, self.oracle)
        self._check_map()
        if self.interpretation.length_scale == "data" and not self.faithful:
            raise SettingError(
                "length scale 'data' is learnt from raw positions and breaks the guarantee; use "
                "'released' or a public number (`faithful=True` allows it, for reproduction only)"
            )
        if self.interpretation.jump == "authors" and self.interpretation.ledger == "user":
            raise SettingError(
                "a jump read as the authors do may report twice, so the ledger cannot be of users; "
                'use `jump="split"` or `jump="clamp"`, or `ledger="stream"`'
            )
        micro_nats(self.epsilon)
        if not 1 <= self.window <= MAX_WINDOW:
            raise SettingError(
                f"window={self.window} must be at least 1 timestamp and at most {MAX_WINDOW:,}; "
                "1 protects single events, 20 is usual"
            )
        if self.fewest < 1:
            raise SettingError(f"fewest={self.fewest} must be at least 1 report; 50 is usual")
        if not 0 <= self.replicates <= MAX_REPLICATES:
            raise SettingError(
                f"replicates={self.replicates} must be from 0 to {MAX_REPLICATES:,}; 20 is usual"
            )
        _ = self.chosen_oracle  # refuses unknown names
        self._check_fold()

    def _check_fold(self) -> None:
        """Refuse a fold whose receipt could not say in one sentence what is protected."""
        if self.fold is None:
            return
        if self.fold not in get_args(Fold):
            raise SettingError(f"fold={self.fold!r} is neither {' nor '.join(get_args(Fold))}")
        if self.interpretation.ledger == "stream":
            raise SettingError(
                "folded days share the budget of a person, or of a person-day; leave "
                '`ledger="stream"` (and `faithful=True`) away, or `fold`'
            )
        if self.method.presence == "flags":
            raise SettingError(
                f"{self.method.name} tells who starts and stops, and who is there on several "
                "folded days does both at once; use steered, or leave `fold` away"
            )
        if self.interpretation.jump != "clamp" and not self.method.of_paper:
            raise SettingError(
                "who jumps on one folded day and starts on another would show the jump in what "
                'they are asked; leave `jump="split"` away, or `fold`'
            )

    def _check_map(self) -> None:
        """Refuse a map that nothing uses, one of another place, and a method that lacks its map."""
        known, row = self.public_map, self.method
        if known is None:
            if row.speeds:
                raise SettingError(f"{row.name} needs a public map; without one use steered")
            return
        if not row.speeds:
            raise SettingError(f"{row.name} uses no public map; {DEFAULT_METHOD} does")
        if row.roads and known.roads is None:
            raise SettingError(f"{row.name} needs a public map with roads; use {MAP_METHOD}")
        if known.box != self.grid.box:
            raise SettingError(
                f"the public map is of the box {format_box(known.box)}, the grid of "
                f"{format_box(self.grid.box)}; make both of one"
            )

    @property
    def budget(self) -> int:
        """Epsilon in micro-nats, as ledgers count it."""
        return micro_nats(self.epsilon)

    @property
    def gap(self) -> int:
        """How many timestamps must pass between two full-budget reports of one ledger key."""
        return self.interpretation.gap(self.window)

    @property
    def public_seed(self) -> int | None:
        """The seed, if a receipt may name it."""
        return None if self.seed_is_secret else self.seed

    @property
    def states(self) -> StateSpace:
        """What a device can report."""
        return StateSpace(self.grid, endpoints=self.method.endpoints)

    @property
    def chosen_oracle(self) -> str:
        """The oracle in use, chosen from public settings: how many states, what one report has.

        Where epsilon is divided, a report is taken to have an even part of it.
        """
        whole = self.method.division.splits_users
        each = self.budget if whole else max(1, self.budget // self.gap)
        return choose_oracle(self.oracle, each, self.states.n_states)

    def length_scale(self, mean_length: float | None) -> float | None:
        """Return lambda of Eq. 8; None where it follows from what was released.

        `mean_length` is that of the recorded streams, where there are recorded ones.
        """
        scale = self.interpretation.length_scale
        if scale == "data" and mean_length is None:
            raise SettingError(
                "length scale 'data' needs recorded data; give a public number as `length_scale`"
            )
        number = mean_length if scale == "data" else None if scale == "released" else scale
        return None if number is None else float(number)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON: what a checkpoint has to agree with.

        A secret seed is "random". A row that is not in the table is told part by part.
        """
        told = {name: getattr(self, name) for name in _PLAIN} | {
            "method": self.method.name,
            "reading": dataclasses.asdict(self.interpretation),
            "side": self.grid.side,
            "box": list(self.grid.box),
            "seed": "random" if self.seed_is_secret else self.seed,
        }
        if self.fold is not None:
            told["fold"] = self.fold
        if self.replicates:
            told["replicates"] = self.replicates
        known = METHODS.get(self.method.name)
        if self.public_map is not None:
            told["public_map"] = self.public_map.to_dict()
        if known is None or configure(known, SAFE, self.settings)[0] != self.method:
            told["row"] = _describe(self.method)
        return told

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        *,
        row: Method | None = None,
        seed: int | None = None,
        public_map: PublicMap | None = None,
    ) -> RunSettings:
        """Read what `to_dict` wrote.

        A row of your own, a public map and a secret seed have to be given again.
        """
        told = None if public_map is None else public_map.to_dict()
        if told != values.get("public_map"):
            raise SettingError(
                "the public map is not the one of these settings; give the map of the run"
            )
        if row is None and "row" in values:
            raise SettingError(f"{values['method']} is not in the table of methods; give its row")
        try:
            given = row or find_method(values["method"])
            drawn = values["seed"] == "random" and seed is None
            return cls(
                method=configure(given, SAFE, dict(values["settings"]))[0],
                interpretation=SAFE.answer(**values["reading"]),
                grid=Grid(Box(*values["box"]), values["side"]),
                seed=secrets.randbits(128) if drawn else values["seed"] if seed is None else seed,
                seed_is_secret=values["seed"] == "random",
                public_map=public_map,
                fold=values.get("fold"),
                replicates=values.get("replicates", 0),
                **{name: values[name] for name in _PLAIN},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SettingError(f"these are no settings of a run ({error})") from None


_PLAIN = (
    *("box_inferred", "epsilon", "window", "oracle", "door", "fewest", "outside", "faithful"),
    "settings",
)
"""Fields that `to_dict` writes unchanged."""


def _describe(part: Any) -> Any:
    """Return a part as plain values: its class, then its fields; for a function, its name."""
    if dataclasses.is_dataclass(part):
        fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
        return {"is": type(part).__name__} | {name: _describe(v) for name, v in fields.items()}
    return part.__qualname__ if callable(part) else part
