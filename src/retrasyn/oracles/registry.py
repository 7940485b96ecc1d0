"""The table of oracles: all that devices, wire, service, command line and audit know of each.

Standard library only, so that devices can use it; implementations that need numpy, and the laws
for the audit, are named here and imported on demand. A new oracle is one
more row of `ORACLES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

from retrasyn.errors import SettingError
from retrasyn.oracles.single import (
    SEED_BYTES,
    n_whole_bytes,
    report_binary,
    report_hash,
    report_symbol,
    report_unary,
)
from retrasyn.oracles.threshold import hash_range, lie_chance

if TYPE_CHECKING:
    from retrasyn.messages import Grant, Question
    from retrasyn.oracles.base import Oracle
    from retrasyn.randomness.words import Words
    from retrasyn.space import StateSpace

SMALL_FACTOR = 2.0
"""How many times the least variance the "small" choice may have."""


class ReportMaker(Protocol):
    """Makes one report, as a device does."""

    def __call__(self, state: int, n_answers: int, *, epsilon: int, words: Words) -> bytes:
        """Return the bytes of the report."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleRow:
    """One oracle.

    A report is some bytes of arbitrary value (a seed, say), then a number, lowest byte first;
    `largest` gives the greatest an honest device sends. Size and validity follow from that.

    >>> [row.n_bytes(1_000_000, 328) for row in (*ORACLES.values(), BINARY)]
    [41, 2, 5, 1]
    """

    name: str  # in settings, manifests and receipts
    report: ReportMaker  # the function that devices run
    largest: Callable[[int, int], int]  # from epsilon in micro-nats and the number of answers
    support: Callable[[int, int], tuple[float, float]]  # p and q, from the same
    n_free: int = 0  # leading bytes of arbitrary value
    implementation: str  # "module:class" of an `Oracle` for many reports at once
    law: str = ""  # "module:class" of a `ReportLaw` for the audit; empty: none
    poisoning_tests: bool = False  # whether `retrasyn.poisoning` can inspect its reports

    def n_bytes(self, epsilon: int, n_answers: int) -> int:
        """Return the size of a report."""
        return self.n_free + n_whole_bytes(self.largest(epsilon, n_answers))

    def is_possible(self, bits: bytes, epsilon: int, n_answers: int) -> bool:
        """Tell whether an honest device could send these bits, which have the right size."""
        return int.from_bytes(bits[self.n_free :], "little") <= self.largest(epsilon, n_answers)

    def at(self, epsilon: int, n_answers: int) -> Oracle:
        """Return the vectorised oracle at one budget; this needs numpy."""
        oracle: Oracle = load(self.implementation).of(epsilon, n_answers)
        return oracle


ORACLES: dict[str, OracleRow] = {
    row.name: row
    for row in (
        OracleRow(
            name="oue",
            report=report_unary,
            largest=lambda epsilon, n_answers: (1 << n_answers) - 1,  # noqa: ARG005 - one for all
            support=lambda epsilon, n_answers: (0.5, lie_chance(epsilon, 1)),  # noqa: ARG005
            implementation="retrasyn.oracles.oue:OUE",
            law="retrasyn.audit.laws:UnaryLaw",
            poisoning_tests=True,
        ),
        OracleRow(
            name="grr",
            report=report_symbol,
            largest=lambda epsilon, n_answers: n_answers,  # noqa: ARG005 - null is the last
            support=lambda epsilon, n_answers: (
                1.0 - lie_chance(epsilon, n_answers),
                lie_chance(epsilon, n_answers) / n_answers,  # the others share the lies evenly
            ),
            implementation="retrasyn.oracles.grr:GRR",
            law="retrasyn.audit.laws:SymbolLaw",
        ),
        OracleRow(
            name="olh",
            report=report_hash,
            largest=lambda epsilon, n_answers: hash_range(epsilon) - 1,  # noqa: ARG005
            support=lambda epsilon, n_answers: (  # noqa: ARG005
                1.0 - lie_chance(epsilon, hash_range(epsilon) - 1),
                1.0 / hash_range(epsilon),  # for a good hash
            ),
            n_free=SEED_BYTES,
            implementation="retrasyn.oracles.hashed:OLH",
            law="retrasyn.audit.laws:HashLaw",
        ),
    )
}
"""Oracles that a campaign or a run may name."""

BINARY = OracleRow(
    name="binary",
    report=report_binary,
    largest=lambda epsilon, n_answers: 1,  # noqa: ARG005
    support=lambda epsilon, n_answers: (  # noqa: ARG005
        1.0 - lie_chance(epsilon, 1),
        lie_chance(epsilon, 1),
    ),
    implementation="retrasyn.oracles.binary:BinaryResponse",
)
"""The binary response: used for every yes-or-no question, whatever oracle is named."""

PAPER_ORACLE = "oue"
"""The paper's oracle, used by default."""
CHOICES = ("auto", "small")
"""Ways to choose an oracle automatically: by least variance, or by smallest report."""
if TYPE_CHECKING:
    OracleName = str
    OracleWish = str
else:  # literals at run time, so that the command line lists and checks them
    OracleName = Literal[tuple(ORACLES)]
    OracleWish = Literal[(*ORACLES, *CHOICES)]


def find_oracle(name: str) -> OracleRow:
    """Return an oracle by its name.

    >>> find_oracle("olh").n_bytes(1_000_000, 328)
    5
    >>> find_oracle("grr").at(1_000_000, 4)
    GRR(epsilon=1000000, n_answers=4)
    """
    if name not in ORACLES:
        raise SettingError(f"oracle {name!r} is not one of {', '.join(ORACLES)}")
    return ORACLES[name]


def check_wish(wish: str) -> str:
    """Return the wish if it is an oracle or a way to choose one; refuse anything else."""
    if wish not in (known := (*ORACLES, *CHOICES)):
        raise SettingError(f"oracle {wish!r} is not one of {', '.join(known)}")
    return wish


def row_for(question: Question, oracle: str) -> OracleRow:
    """Return the oracle for a question, given the one named for all but yes-or-no questions.

    >>> from retrasyn.messages import Question
    >>> row_for(Question(about="present"), "oue").name
    'binary'
    """
    return BINARY if question.binary else find_oracle(oracle)


def load(path: str) -> Any:
    """Import an object given as "module:class"."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def choose_oracle(wish: str, epsilon: int, n_answers: int) -> str:
    """Return the named oracle, or the one with the least variance or the smallest report.

    The smallest report is chosen among oracles with at most twice the least variance.

    >>> choose_oracle("auto", 1_000_000, 328), choose_oracle("small", 1_000_000, 328)
    ('oue', 'olh')
    >>> choose_oracle("auto", 1_000_000, 4), choose_oracle("small", 1_000_000, 4)
    ('grr', 'grr')
    """
    if check_wish(wish) not in CHOICES:
        return wish
    oracles = {name: row.at(epsilon, n_answers) for name, row in ORACLES.items()}
    variances = {name: oracle.variance(1) for name, oracle in oracles.items()}
    if wish == "auto":
        return min(variances, key=variances.__getitem__)
    least = min(variances.values())
    good = [name for name, variance in variances.items() if variance <= SMALL_FACTOR * least]
    return min(good, key=lambda name: (oracles[name].report_bytes(n_answers), variances[name]))


def oracle_for(grant: Grant) -> Oracle:
    """Return the binary response for yes-or-no questions, else the granted oracle."""
    return row_for(grant.question, grant.oracle).at(grant.epsilon, grant.n_answers)


def n_answers(question: Question, states: StateSpace) -> int:
    """Return how many answers a question has; a yes-or-no question is one bit."""
    match question.about:
        case "older" | "present" | "faster":
            return 1
        case "move":
            return states.n_moves
        case "enter" | "quit" | "cell":
            return states.grid.n_cells
    return states.n_states
