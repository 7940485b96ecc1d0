"""Which oracle answers which question.

The choice depends on the number of answers and on epsilon, which are public, and on nothing else.
"""

from typing import Literal, get_args

from retrasyn.errors import SettingError
from retrasyn.messages import Grant, Question
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.oracles.grr import GRR
from retrasyn.oracles.hashed import OLH
from retrasyn.oracles.oue import OUE
from retrasyn.space import StateSpace

OracleName = Literal["oue", "grr", "olh"]
OracleWish = Literal["oue", "grr", "olh", "auto", "small"]
"""An oracle, or how to choose one: by variance, or by the size of a report."""
SMALL_FACTOR = 2.0
"""How much more variance than the least a small report may have."""


def named_oracle(name: str, epsilon: int, n_answers: int) -> Oracle:
    """Return an oracle by its name.

    >>> named_oracle("grr", 1_000_000, 4)
    GRR(epsilon=1000000, n_answers=4)
    """
    match name:
        case "oue":
            return OUE(epsilon)
        case "grr":
            return GRR(epsilon, n_answers)
        case "olh":
            return OLH(epsilon)
    raise SettingError(f"oracle {name!r} is not one of {', '.join(get_args(OracleName))}")


def choose_oracle(wish: OracleWish, epsilon: int, n_answers: int) -> OracleName:
    """Return the oracle wished for: itself, the least variance, or the smallest report.

    The smallest report is looked for among oracles with at most twice the least variance.

    >>> choose_oracle("auto", 1_000_000, 328), choose_oracle("small", 1_000_000, 328)
    ('oue', 'olh')
    >>> choose_oracle("auto", 1_000_000, 4), choose_oracle("small", 1_000_000, 4)
    ('grr', 'grr')
    """
    if wish not in get_args(OracleWish):
        raise SettingError(f"oracle {wish!r} is not one of {', '.join(get_args(OracleWish))}")
    if wish != "auto" and wish != "small":  # noqa: PLR1714 - so that the type is narrowed
        return wish
    names: tuple[OracleName, ...] = get_args(OracleName)
    oracles = {name: named_oracle(name, epsilon, n_answers) for name in names}
    variances = {name: oracle.variance(1) for name, oracle in oracles.items()}
    if wish == "auto":
        return min(names, key=variances.__getitem__)
    least = min(variances.values())
    good = [name for name in names if variances[name] <= SMALL_FACTOR * least]
    return min(good, key=lambda name: (oracles[name].report_bytes(n_answers), variances[name]))


def oracle_for(grant: Grant) -> Oracle:
    """Return randomised response for yes and no, the granted oracle for everything else."""
    if grant.question.binary:
        return BinaryResponse(grant.epsilon)
    return named_oracle(grant.oracle, grant.epsilon, grant.n_answers)


def n_answers(question: Question, states: StateSpace) -> int:
    """Return how many answers a question has; yes and no are one bit."""
    match question.about:
        case "older" | "present":
            return 1
        case "move":
            return states.n_moves
        case "enter" | "quit":
            return states.grid.n_cells
    return states.n_states
