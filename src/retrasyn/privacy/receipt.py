"""The receipt: a machine-readable privacy statement for every release."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from html import escape
from typing import Any

from retrasyn._version import __version__
from retrasyn.messages import MICRO
from retrasyn.privacy.usual_place import UsualPlace

FORMAT = 4
"""Format version of receipts; a different set of fields gets a different number."""


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """The accuracy of shares, as mean standard errors over all releases."""

    cell: float
    flow: float


@dataclass(frozen=True, slots=True)
class WorstWindow:
    """The most that any one ledger key or person spent in any window, found by the replay."""

    unit: str  # position or transition
    per: str  # user, stream, person-day or person
    timestamps: int  # number of consecutive timestamps a window touches
    epsilon: float | None  # None: not private at all


@dataclass(frozen=True, slots=True)
class WorstWindows:
    """The worst windows: as declared, and per person and position."""

    declared: WorstWindow
    person_position: WorstWindow


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The most one ledger key could have spent over all timestamps, by the ledger's rule alone."""

    per: str  # user, stream or person-day
    timestamps: int
    windows: int  # windows one gap apart, including a partial one; each has one epsilon
    epsilon: float | None  # None: not private at all

    @classmethod
    def of(cls, *, per: str, timestamps: int, gap: int, epsilon: float, private: bool) -> Lifetime:
        """Count one epsilon for every gap that was started.

        >>> Lifetime.of(per="user", timestamps=100, gap=21, epsilon=1.0, private=True).epsilon
        5.0
        """
        windows = -(-timestamps // gap)
        micro = windows * round(epsilon * MICRO)
        return cls(per, timestamps, windows, micro / MICRO if private else None)


@dataclass(frozen=True, slots=True)
class ReportNoise:
    """The exact law of a report that is about all states and spends all of epsilon."""

    answers: int
    threshold: str  # T, in hexadecimal: a word below it leads to a lie
    p: float  # probability that it supports the true answer
    q: float  # probability that it supports any other


@dataclass(frozen=True, slots=True)
class DataFile:
    """The file a receipt belongs to."""

    name: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ReplicaFiles:
    """The files of replicas beside a release; the digest is of what ``sha256sum *`` prints."""

    n: int
    name: str  # of their folder
    n_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Holds:
    """What the file itself contains, if it is only a part of what the receipt describes."""

    first_t: int
    last_t: int
    n_points: int
    n_streams: int


@dataclass(frozen=True, slots=True)
class ReportedRounds:
    """The timestamps at which anyone reported, as columns; at most the latest 100,000.

    For a file that is a part, only those that share a window with its last timestamp.
    """

    t: tuple[int, ...]
    n_reports: tuple[int, ...]
    epsilon: tuple[float, ...]  # what each reporter spent


PERSON_DAY = "person-day"
"""What a ledger counts by if every day of a person has a budget of its own."""


@dataclass(frozen=True, slots=True)
class FoldedDays:
    """Many days that became one, on which a person may be in several places at a time."""

    by: str  # day: the days of a person share one budget; person-day: each has its own
    most_days: int  # of one person

    def limits(self, lifetime: Lifetime) -> tuple[str, ...]:
        """Say what the guarantee leaves out because of it."""
        midnight = "a window across midnight: its two parts lie far apart on the folded day"
        if self.by != PERSON_DAY:
            return (midnight,)
        each = lifetime.epsilon
        together = "whose cost has no bound"
        if each is not None:
            together = f"which together cost at most epsilon {self.most_days * each:,.6g}"
        person = f"a person: only a day of theirs is; the most active has {self.most_days:,} days"
        return f"{person}, {together}", midnight


@dataclass(frozen=True, slots=True)
class Composition:
    """All releases of the same recorded data, this one included: their epsilons add up."""

    n_releases: int
    epsilon: float | None  # the most one person spent over all of them; None: one is not private
    window: int  # the shortest of their windows, over which that holds
    n_unprotected: int  # how many are not private, or have a seed that can be guessed


@dataclass(frozen=True, slots=True)
class PublicKnowledge:
    """The public map that was used: no reports went into it, so it cost no privacy."""

    public: bool
    source: str
    sha256: str  # of the files it was read from
    weighting: str  # how likely places were told
    roads: bool  # whether it has some


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was run, what it spent, and what it does not protect."""

    headline: str  # whether this is private, in one line: a receipt opens with it
    method: str
    summary: str
    private: bool
    guarantee: str
    unit: str
    ledger: str
    window: int
    gap: int
    epsilon: float
    division: str
    oracle: str
    noise: ReportNoise | None  # None: no noise
    door: str  # how reports came: simulated as counts, reports or truth; from devices in rounds
    worst_window: WorstWindows
    within_guarantee: bool  # in the declared unit and ledger key
    within_epsilon_per_person: bool  # per person and position, whatever was declared
    lifetime: Lifetime
    usual_place: UsualPlace | None  # None: there is but one place, or no privacy
    presence: str
    seed: int | None
    grid: int
    box: tuple[float, float, float, float]
    box_inferred_from_data: bool
    length_scale: float | str
    length_scale_from_data: bool
    jump: str
    timestamps: int
    first_t: int
    last_t: int
    n_reports: int
    n_users: int
    n_points_in: int | None  # None: presence is hidden, and this would reveal it
    n_points_dropped: int
    n_points_out: int
    n_streams_out: int
    faithful: bool
    reading: dict[str, Any]
    settings: dict[str, Any]
    not_protected: tuple[str, ...]
    standard_error: StandardErrors | None  # None: the method does not know it
    public_map: PublicKnowledge | None  # None: none was used
    rounds: ReportedRounds
    composition: Composition | None = None  # None: not counted among the releases of its data
    data_file: DataFile | None = None  # None: nothing has been written yet
    holds: Holds | None = None  # None: the file holds everything
    folded: FoldedDays | None = None  # None: days were taken as they came
    replicas: ReplicaFiles | None = None  # None: there are none
    format_version: int = FORMAT
    retrasyn_version: str = __version__

    def travelling_with(self, file: DataFile) -> Receipt:
        """Return a copy that is tied to the released file it describes."""
        return dataclasses.replace(self, data_file=file)

    def holding(self, part: Holds) -> Receipt:
        """Return a copy for a file that holds only a part of what it describes."""
        return dataclasses.replace(self, holds=part)

    @property
    def due_headline(self) -> str:
        """The headline that the other fields call for."""
        return headline_of(
            private=self.private,
            within_guarantee=self.within_guarantee,
            seeded=self.seed is not None,
            epsilon=self.epsilon,
            window=self.window,
            unit=self.unit,
            composition=self.composition,
            folded=self.folded,
        )

    def __repr__(self) -> str:
        """Return one line: whether it is private, and what was spent of what was promised."""
        return f"Receipt({self.due_headline.partition(':')[0]}: {self._spending})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same, the guarantee, and what is not protected."""
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.not_protected)
        return (
            f"<p><strong>{escape(self.due_headline)}</strong></p>"
            f"<p>{escape(self._spending)}. {escape(self.guarantee)}</p>"
            f"<details><summary>What is not protected</summary><ul>{lines}</ul></details>"
        )

    @property
    def _spending(self) -> str:
        worst = self.worst_window.declared
        spent = "unbounded" if worst.epsilon is None else f"{worst.epsilon:g}"
        return (
            f"{self.method}, epsilon {self.epsilon:g} over any {self.window:,} {self.unit}s, "
            f"worst window {spent} per {worst.per}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """Return the receipt as JSON text, the long columns of rounds on one line."""
        values = self.to_dict()
        rounds, values["rounds"] = json.dumps(values["rounds"]), None
        return json.dumps(values, indent=2).replace('"rounds": null', f'"rounds": {rounds}', 1)


GUESSABLE = "NOT PRIVATE AGAINST A READER WHO GUESSES THE SEED"
"""What is said first of every run whose seed is a number."""
GUESSING = (
    "all noise follows from a number somebody chose, so whoever tries that number can draw the "
    "noise again and take it off. For experiments only; to publish, run again without a seed"
)
"""What that means."""


def headline_of(
    *,
    private: bool,
    within_guarantee: bool,
    seeded: bool,
    epsilon: float,
    window: int,
    unit: str,
    composition: Composition | None,
    folded: FoldedDays | None = None,
) -> str:
    """Return the line that opens a receipt: what its reader must know before all else.

    >>> headline_of(
    ...     private=True, within_guarantee=True, seeded=False, epsilon=1.0, window=20,
    ...     unit="position", composition=Composition(2, 2.0, 20, 0),
    ... )
    'Private: epsilon 1 over any 20 positions; release 2 of this data: epsilon 2 in total'
    """
    if not private:
        line = "NOT PRIVATE: true frequencies were used. Never publish this release"
    elif not within_guarantee:
        line = "OUTSIDE THE GUARANTEE: more was spent than was promised"
    elif seeded:
        line = f"{GUESSABLE}: {GUESSING}"
    else:
        what, of = "Private", ""
        if folded is not None:
            by_day = folded.by == PERSON_DAY
            what = "Private for a person's day, NOT for the person" if by_day else what
            of = " of one day of a person" if by_day else " of the folded day"
        line = f"{what}: epsilon {epsilon:g} over any {window:,} {unit}s{of}"
    if composition is None or composition.n_releases == 1:
        return line
    return f"{line}; {describe_composition(composition, window=window)}"


def describe_composition(composition: Composition, *, window: int) -> str:
    """Return in a few words what all releases of the same data cost together."""
    n, total, bad = composition.n_releases, composition.epsilon, composition.n_unprotected
    spent = "no bound" if total is None else f"epsilon {total:g}"
    shorter = f" over any {composition.window:,}" if composition.window < window else ""
    unprotected = f", {bad} of them unprotected" if bad else ""
    return f"release {n:,} of this data: {spent} in total{shorter}{unprotected}"


def state_guarantee(
    *,
    private: bool,
    epsilon: float,
    window: int,
    unit: str,
    ledger: str,
    presence: str = "count",
    folded: FoldedDays | None = None,
) -> str:
    """Return the guarantee as one sentence."""
    if not private:
        return "NOT PRIVATE: true frequencies were used. Never publish this output."
    whose = {"user": "person", PERSON_DAY: "day of one person"}.get(ledger, "stream")
    where = "" if folded is None else " of the folded day, whatever days they are from"
    if ledger == PERSON_DAY:
        where = " of it"
    pairs = (
        "sequences, presence included"
        if presence == "hidden"
        else "sequences with the same presence"
    )
    return (
        f"For one {whose} and any {window} consecutive {unit}s{where}, everything sent about them "
        f"is {epsilon:g}-locally differentially private in total, for any two {pairs}."
    )


PRESENCE = {
    "count": "count: the number of active devices is used as it is, nothing else about presence",
    "flags": "flags: that a device starts, moves or stops is treated as public, and the release "
    "copies how long real devices stay",
    "hidden": "hidden: everybody enrolled reports at a slot of their own, null while absent; the "
    "number of active devices is estimated",
}
"""How each treatment of presence is described in a receipt."""
_CLIPPED = "; it depends on the box, outside of which points were dropped"
_PRESENT = (
    "that a device takes part, and when it starts and stops",
    "the exact number of active devices at each timestamp",
)
_COPIED = "how long real devices stay: the release shows their exact numbers by duration"
_ENROLLED = "who is enrolled"
_GROUPS = "facts about groups: what most people do is what the release is meant to show"
_REPEATED = "long-run repetition: a position held for k windows is reported up to k times"
_TWO_DEVICES = "two devices of one person"
_NOTHING = "anything: this method is for simulation only and NOT PRIVATE"
_SEEDED = (
    "anything against a reader who knows the seed or tries all likely ones: the simulated noise "
    "can be drawn again from it; to publish, give no seed"
)
_MAPPED = (
    "people from whose traces the map was drawn, if it was drawn from any: it is taken to be public"
)
_UNCOUNTED = (
    "other releases of the same data: this one is not counted among them, and epsilons add up"
)


def describe_presence(presence: str, *, clipped: bool) -> str:
    """Describe how presence is treated, and whether dropped points make it depend on location."""
    return PRESENCE[presence] + (_CLIPPED if clipped else "")


def left_open(
    *,
    private: bool,
    presence: str,
    unit: str,
    ledger: str,
    jump: str,
    seeded: bool,
    counted: bool,
    has_users: bool,
    box_inferred: bool,
    length_from_data: bool,
    enrols_on_sight: bool,
    clipped: bool,
    usual_place: UsualPlace | None,
    mapped: bool = False,
    folded: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """List what is not protected, starting with the weaknesses of this run."""
    if not private:
        return (_NOTHING,)
    weaknesses = {
        "the outermost positions: the bounding box was taken from the raw data": box_inferred,
        "when a device is first seen: it is enrolled then": (
            presence == "hidden" and enrols_on_sight
        ),
        "the mean stream length: it was taken from the raw data": length_from_data,
        "crossing the edge of the box: points outside were dropped, which shows": clipped,
        "a jump: it shows in whether, or how often, its stream reports afterwards": (
            jump == "authors"
        ),
        "one position in each window of positions may be reported twice": unit == "transition",
        "a person with several streams: each stream has a budget of its own": (
            ledger == "stream" and has_users
        ),
        "a person behind several streams: the data names no users": not has_users,
        _MAPPED: mapped,
        _SEEDED: seeded,
        _UNCOUNTED: not counted,
    }
    own = [weakness for weakness, holds in weaknesses.items() if holds]
    repeated = _REPEATED if usual_place is None else f"long-run repetition: {usual_place.statement}"
    return (*folded, *own, *_left_open_by(presence), _GROUPS, repeated, _TWO_DEVICES)


def _left_open_by(presence: str) -> tuple[str, ...]:
    """List what a treatment of presence does not protect."""
    if presence == "hidden":
        return (_ENROLLED,)
    return (_COPIED, *_PRESENT) if presence == "flags" else _PRESENT


_TOLD = (
    "headline",
    "format_version",
    "retrasyn_version",
    "method",
    "private",
    "guarantee",
    "unit",
    "ledger",
    "window",
    "gap",
    "epsilon",
    "division",
    "oracle",
    "presence",
    "n_reports",
    "worst_window",
    "within_guarantee",
    "lifetime",
    "composition",
    "usual_place",
    "not_protected",
    "public_map",
    "folded",
)


def stamp_of(receipt: Receipt, *, n_rounds: int) -> dict[str, Any]:
    """Return the promise and the spending so far; rounds only as their number."""
    values = receipt.to_dict()
    return {name: values[name] for name in _TOLD} | {"rounds": n_rounds}
