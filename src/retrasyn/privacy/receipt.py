"""The machine-readable statement that travels with every release."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from retrasyn._version import __version__

PRESENCE = {
    "count": "count: the number of active devices is used as it is, nothing else about presence",
    "flags": "flags: that a device starts, moves or stops is treated as public, and the release "
    "copies how long real devices stay",
    "hidden": "hidden: everybody enrolled reports at a slot of their own, null while absent; the "
    "number of active devices is estimated",
}
"""How each way to treat presence reads in a receipt."""
_PRESENT = (
    "that a device takes part, and when it starts and stops",
    "the exact number of active devices at each timestamp",
)
_COPIED = "how long real devices stay: the release shows their exact numbers by duration"
_ENROLLED = "who is enrolled"
NOT_PROTECTED = (
    "facts about groups: what most people do is what the release is meant to show",
    "long-run repetition: a position held for k windows is reported up to k times",
    "two devices of one person",
)
"""What no method protects."""
SEEDED = (
    "anything against a reader who knows the seed or tries all likely ones: the simulated noise "
    "can be drawn again from it; before you publish, use --seed random"
)


def presence_left_open(presence: str) -> tuple[str, ...]:
    """List what a way to treat presence does not protect."""
    if presence == "hidden":
        return (_ENROLLED,)
    return (_COPIED, *_PRESENT) if presence == "flags" else _PRESENT


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """How well a share is known, as the mean standard error over all releases."""

    cell: float
    flow: float


@dataclass(frozen=True, slots=True)
class WorstWindow:
    """The most any one spender spent in any window, found by the replay."""

    unit: str  # position or transition
    per: str  # user, stream or person
    timestamps: int  # consecutive timestamps a window touches
    epsilon: float | None  # None: not private at all


@dataclass(frozen=True, slots=True)
class WorstWindows:
    """The recount as declared, and beside it per person and position."""

    declared: WorstWindow
    person_position: WorstWindow


@dataclass(frozen=True, slots=True)
class Rounds:
    """The timestamps at which anybody reported, column by column; at most the latest 100,000."""

    t: tuple[int, ...]
    n_reports: tuple[int, ...]
    epsilon: tuple[float, ...]  # what each reporter spent


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was run, what it cost, and what it does not protect."""

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
    worst_window: WorstWindows
    within_guarantee: bool  # in the declared unit and ledger key
    within_epsilon_per_person: bool  # per person and position, whatever was declared
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
    n_points_in: int
    n_points_dropped: int
    n_points_out: int
    n_streams_out: int
    faithful: bool
    reading: dict[str, Any]
    settings: dict[str, Any]
    not_protected: tuple[str, ...]
    standard_error: StandardErrors | None  # None: the method does not know it
    rounds: Rounds
    oracle: str = "oue"  # how states are hidden; "none" where they are not
    retrasyn_version: str = __version__

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """Return the receipt as JSON text, the long columns of rounds on one line."""
        values = self.to_dict()
        rounds, values["rounds"] = json.dumps(values["rounds"]), None
        return json.dumps(values, indent=2).replace('"rounds": null', f'"rounds": {rounds}', 1)


def state_guarantee(
    *, private: bool, epsilon: float, window: int, unit: str, ledger: str, presence: str = "count"
) -> str:
    """Return the guarantee in one sentence."""
    if not private:
        return "NOT PRIVATE: true frequencies were used. Never publish this output."
    whose = "person" if ledger == "user" else "stream"
    pairs = (
        "sequences, presence included"
        if presence == "hidden"
        else "sequences with the same presence"
    )
    return (
        f"For one {whose} and any {window} consecutive {unit}s, everything sent about them is "
        f"{epsilon:g}-locally differentially private in total, for any two {pairs}."
    )
