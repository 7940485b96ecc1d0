"""Which oracle answers which question."""

from retrasyn.messages import Grant, Question
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.oracles.oue import OUE
from retrasyn.space import StateSpace

Oracle = OUE | BinaryResponse


def oracle_for(grant: Grant) -> Oracle:
    """Return randomised response for yes and no, unary encoding for everything else."""
    return BinaryResponse(grant.epsilon) if grant.question.binary else OUE(grant.epsilon)


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
