"""Messages passed between packages: plain values; aggregates can be added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MICRO = 1_000_000
"""Micro-nats in one nat: privacy budgets travel as integers, so sums never drift."""


ENTERING, MOVING, QUITTING, ABSENT = 0, 1, 2, 3
"""Kinds of state of a device; public if the campaign makes presence public."""

Presence = Literal["count", "flags", "hidden"]
"""What is public about presence: the count, also who starts and stops, or nothing."""
Topic = Literal["transition", "move", "enter", "quit", "older", "present", "faster", "cell"]
"""What a question is about."""
SPEEDS = (2, 3, 5, 8, 13, 20, 32, 50)
"""Thresholds of "faster": thousandths of the longer side of the box, moved in one timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to devices, which determines how far back their answers reach."""

    about: Topic = "transition"
    threshold: int = 0  # of "older": present for more timestamps; of "faster": one of `SPEEDS`

    @property
    def lookback(self) -> int:
        """Timestamps before t that the answer depends on: a transition, a distance on t - 1.

        A cell depends on t alone; it rests as a transition does, to be safe in any unit.
        """
        return self.threshold if self.about == "older" else 1

    @property
    def binary(self) -> bool:
        """Whether the answer is yes or no."""
        return self.about in ("older", "present", "faster")


TRANSITION = Question()


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The ledger keys that have a state at t, with the data for a fair draw among them."""

    keys: npt.NDArray[np.int64]  # [n_roster], distinct
    addresses: npt.NDArray[np.uint64]  # [n_roster], one stable word per key
    slots: npt.NDArray[np.int64]  # [n_roster], timestamp of each key's own first slot
    kinds: npt.NDArray[np.uint8] | None = None  # [n_roster], kind of state; None: all moving

    @classmethod
    def empty(cls) -> Roster:
        """Return a roster without keys."""
        import numpy as np  # noqa: PLC0415 - devices share this module and have no numpy

        return cls(
            keys=np.empty(0, np.int64),
            addresses=np.empty(0, np.uint64),
            slots=np.empty(0, np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Counts of devices that start and stop, for methods that treat them as public."""

    n_entering: int
    ages_of_quitters: npt.NDArray[np.int64]  # [n_quitting], timestamps each was present


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A mechanism's budget request: a share of what `of` names.

    Dividing epsilon, "remaining" is what is left in the window and the others are all epsilon.
    Dividing users, "everybody" is all users with a state, the others are the available users; only
    available users are ever granted.
    """

    share: float
    of: Literal["remaining", "whole", "everybody"] = "remaining"
    lane: str = "publish"
    question: Question = TRANSITION
    adds_up: bool = False  # the mechanism adds answers up over all timestamps, so few are welcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The budget or users granted by the division and charged to the ledger."""

    t: int
    epsilon: int  # micro-nats each reporter spends
    reporters: npt.NDArray[np.int64]  # ledger keys
    private: bool = True
    question: Question = TRANSITION
    oracle: str = "oue"  # frequency oracle for answers other than yes or no
    n_answers: int = 0  # number of possible answers to the question


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """The sum of n reports: a commutative monoid, so shards and batches add.

    >>> import numpy as np
    >>> one = Aggregate(counts=np.array([1, 0]), n=1)
    >>> two = Aggregate(counts=np.array([1, 1]), n=2)
    >>> (one + two).counts.tolist(), (one + two).n
    ([2, 1], 3)
    """

    counts: npt.NDArray[np.int64]  # [n_answers]
    n: int

    def __add__(self, other: Aggregate) -> Aggregate:
        return Aggregate(counts=self.counts + other.counts, n=self.n + other.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Unbiased frequencies (f-hat) and the variance of one of them."""

    frequencies: npt.NDArray[np.float64]  # [n_answers], negatives kept
    variance: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """Standard errors of one release's shares, per cell and per flow.

    Flows are moves among all moves, nine per cell in the order of the grid's neighbour table.
    """

    cell_shares: npt.NDArray[np.float64]  # [n_cells], of the synthetic points
    cell_errors: npt.NDArray[np.float64]  # [n_cells]
    flow_shares: npt.NDArray[np.float64]  # [n_cells, 9], of the model
    flow_errors: npt.NDArray[np.float64]  # [n_cells, 9]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One timestamp of the synthetic stream.

    Where shards write their own points, the columns are empty here and `n_points` is not 0.
    """

    t: int
    n_points: int
    ids: npt.NDArray[np.int64]  # [n]
    cells: npt.NDArray[np.uint16]  # [n]
    x: npt.NDArray[np.float64]  # [n]
    y: npt.NDArray[np.float64]  # [n]
    n_born: int  # the last n_born of ids began at t
    n_ended: int  # streams whose last point is at t - 1
    epsilon_t: float  # nats each reporter spent at t
    n_reports: int
    uncertainty: Uncertainty | None = None  # from methods that estimate it, after the first report


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The terms of a campaign: shown at consent, pinned by the device, never changed after.

    The box is in whole millionths of the unit of the data, so that no float has to be written.
    """

    name: str
    key: bytes  # the curator's first Ed25519 public key, 32 bytes; others may succeed it
    box: tuple[int, int, int, int]  # micro-units: x0, y0, x1, y1
    side: int
    state_order: int  # version of the numbering of states
    n_states: int
    period: int  # seconds from one timestamp to the next
    epoch: int  # Unix seconds at which timestamp 0 opens
    window: int
    unit: Literal["position", "transition"]
    gap: int  # timestamps between two full-budget reports of one device
    epsilon: int  # micro-nats: the ceiling of any window
    division: Literal["population", "budget"]
    sampling: Literal["phase", "self", "curator"]
    oracle: str  # a row of `oracles.registry.ORACLES`
    presence: Literal["count", "flags", "hidden"]
    jump: Literal["split", "clamp"]
    size_source: Literal["counted", "estimated"]
    strata: tuple[Topic, ...]  # questions asked
    other_shares: tuple[int, ...]  # millionths of the devices for each of `other_strata`
    ages: tuple[int, ...]  # thresholds of "older", ascending
    lifetime_cap: int  # micro-nats a device may spend in its lifetime
    retention: int  # timestamps for which single reports are kept
    speeds: tuple[int, ...] = ()  # thresholds of "faster", ascending
    public_map: bytes = b""  # SHA-256 of the public map's files, 32 bytes; empty if there is none

    @property
    def other_strata(self) -> tuple[Topic, ...]:
        """What some devices answer for life in the place of their state; the last of `strata`."""
        return self.strata[len(self.strata) - len(self.other_shares) :]

    def thresholds(self, about: str) -> tuple[int, ...]:
        """Return the thresholds a device may be asked about; 0 for a question without any."""
        return {"older": self.ages, "faster": self.speeds}.get(about, (0,))

    @property
    def questions(self) -> tuple[Question, ...]:
        """Everything that devices may be asked."""
        return tuple(
            Question(about=about, threshold=threshold)
            for about in self.strata
            for threshold in self.thresholds(about)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The request of one timestamp, the same for all devices."""

    manifest: bytes  # id, 8 bytes
    t: int
    open: int  # Unix seconds
    close: int
    grace: int  # seconds after closing in which reports still count
    epsilon: int  # micro-nats
    portion: int  # a device reports iff its 64-bit random word is below; 0..2^64
    previous: bytes  # hash of the round before, 32 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A device's report. Its sender and content are kept out of logs."""

    question: int  # code, see `wire.frames`
    n_answers: int  # number of possible answers to the question
    t: int
    epsilon: int  # micro-nats
    manifest: bytes  # id, 8 bytes
    device: bytes = field(repr=False)  # id, 16 bytes
    bits: bytes = field(repr=False)  # output of the oracle


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Announces that a device shares at t, without its position; the curator counts these."""

    kind: int  # ENTERING, MOVING or QUITTING; always MOVING unless the manifest says flags
    t: int
    manifest: bytes  # id, 8 bytes
    device: bytes = field(repr=False)  # id, 16 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The status of one frame, and what proves that the curator says so."""

    status: str
    proof: bytes = field(repr=False)  # a tag under the device's key, or the curator's signature
