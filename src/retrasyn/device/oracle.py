"""Rule 10, first half: one answer through the noise that the manifest names."""

from retrasyn.messages import Question
from retrasyn.oracles.single import report_bit, report_hash, report_symbol, report_unary
from retrasyn.randomness.entropy import Words

_REPORTS = {"oue": report_unary, "grr": report_symbol, "olh": report_hash}


def perturb(
    truth: int, n_answers: int, question: Question, oracle: str, epsilon: int, words: Words
) -> bytes:
    """Return the bits of a report; -1 is null, and no to a question of yes or no."""
    if question.binary:
        return report_bit(int(truth == 0), epsilon=epsilon, words=words)
    return _REPORTS[oracle](truth, n_answers, epsilon=epsilon, words=words)
