"""Which oracle answers which question.

The choice depends on the number of answers and on epsilon, which are public, and on nothing else.
"""

from retrasyn.messages import Grant, Question
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import CHOICES, ORACLES, check_wish, find_oracle, row_for
from retrasyn.space import StateSpace

SMALL_FACTOR = 2.0
"""How much more variance than the least a small report may have."""


def named_oracle(name: str, epsilon: int, n_answers: int) -> Oracle:
    """Return an oracle by its name.

    >>> named_oracle("grr", 1_000_000, 4)
    GRR(epsilon=1000000, n_answers=4)
    """
    return find_oracle(name).at(epsilon, n_answers)


def choose_oracle(wish: str, epsilon: int, n_answers: int) -> str:
    """Return the oracle wished for: itself, the least variance, or the smallest report.

    The smallest report is looked for among oracles with at most twice the least variance.

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
    """Return the binary response for yes and no, the granted oracle for everything else."""
    return row_for(grant.question, grant.oracle).at(grant.epsilon, grant.n_answers)


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
