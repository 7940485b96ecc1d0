"""The expected distribution of each oracle's reports, for the audit.

A report is described by *events* that happen in it or do not: a bit is on, it is a
certain symbol, the hash of an answer matches. Every event has a known probability.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.audit import exact
from retrasyn.errors import SettingError
from retrasyn.oracles import kernels
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import ReportMaker, find_oracle, load
from retrasyn.oracles.single import NULL, SEED_BYTES
from retrasyn.oracles.threshold import hash_range

Events = npt.NDArray[np.bool_]
Chances = npt.NDArray[np.float64]
_SEED_BITS = 8 * SEED_BYTES
_TOLD = 64  # hash values that are counted individually


class ReportLaw(Protocol):
    """The distribution of one oracle's reports."""

    def events(self, packed: npt.NDArray[np.uint8], oracle: Oracle, n_answers: int) -> Events:
        """Return the events that happened in each report, support first: [n, n_events]."""
        ...  # pragma: no cover - a protocol has no body

    def n_independent(self, n_answers: int) -> int:
        """Return how many of the leading events are independent of one another."""
        ...  # pragma: no cover - a protocol has no body

    def chances(self, state: int, oracle: Oracle, n_answers: int) -> Chances:
        """Return the probability of every event in a report of a state: [n_events]."""
        ...  # pragma: no cover - a protocol has no body

    def check(self, report: ReportMaker, epsilon: int, n_answers: int) -> None:
        """Raise `Disobedience` if a report does not use its words as specified."""
        ...  # pragma: no cover - a protocol has no body


class UnaryLaw:
    """Unary encoding: one bit per answer, all independent."""

    def events(self, packed: npt.NDArray[np.uint8], oracle: Oracle, n_answers: int) -> Events:
        """Return which bits are on, padding included."""
        del oracle, n_answers
        return np.unpackbits(packed, axis=1, bitorder="little").astype(bool)

    def n_independent(self, n_answers: int) -> int:
        """Return the number of bits."""
        return n_answers

    def chances(self, state: int, oracle: Oracle, n_answers: int) -> Chances:
        """Return p for the true bit, q for the others and 0 for the padding."""
        padding = np.zeros(-n_answers % 8)
        return np.append(_supports(state, oracle, n_answers), padding)

    def check(self, report: ReportMaker, epsilon: int, n_answers: int) -> None:
        """Check reports made from chosen words."""
        exact.check_unary(report, epsilon, n_answers)


class SymbolLaw:
    """A symbol: one answer, or null."""

    def events(self, packed: npt.NDArray[np.uint8], oracle: Oracle, n_answers: int) -> Events:
        """Return which symbol each report is; null and invalid symbols come last."""
        del oracle
        return _one_of(packed, n_answers + 1)

    def n_independent(self, n_answers: int) -> int:
        """Return 0: symbols exclude one another."""
        del n_answers
        return 0

    def chances(self, state: int, oracle: Oracle, n_answers: int) -> Chances:
        """Return p for the true symbol, q for the others and 0 for an invalid one."""
        truth = n_answers if state == NULL else state
        return np.append(_supports(truth, oracle, n_answers + 1), 0.0)

    def check(self, report: ReportMaker, epsilon: int, n_answers: int) -> None:
        """Check reports made from chosen words."""
        exact.check_symbol(report, epsilon, n_answers)


class HashLaw:
    """A hash: a seed, and a value to which some answers hash."""

    def events(self, packed: npt.NDArray[np.uint8], oracle: Oracle, n_answers: int) -> Events:
        """Return which answers match, which seed bits are on, and which value was sent."""
        n_values = hash_range(oracle.epsilon)
        seeds = np.unpackbits(packed[:, :SEED_BYTES], axis=1, bitorder="little")
        matches = kernels.match_hashed(packed, n_answers, np.uint64(n_values))
        values = _one_of(packed[:, SEED_BYTES:], min(n_values, _TOLD))
        return np.concatenate([matches, seeds, values], axis=1).astype(bool)

    def n_independent(self, n_answers: int) -> int:
        """Return the number of matches and seed bits."""
        return n_answers + _SEED_BITS

    def chances(self, state: int, oracle: Oracle, n_answers: int) -> Chances:
        """Return p and q for matches, 1/2 for seed bits, and equal probabilities for values."""
        n_values = hash_range(oracle.epsilon)
        n_told = min(n_values, _TOLD)
        beyond = (n_values - n_told) / n_values
        seeds, values = np.full(_SEED_BITS, 0.5), np.append(np.full(n_told, oracle.q), beyond)
        return np.concatenate([_supports(state, oracle, n_answers), seeds, values])

    def check(self, report: ReportMaker, epsilon: int, n_answers: int) -> None:
        """Check reports made from chosen words."""
        exact.check_hash(report, epsilon, n_answers)


def law_of(name: str) -> ReportLaw:
    """Return the law named in an oracle's row."""
    row = find_oracle(name)
    if not row.law:
        raise SettingError(f"oracle {name!r} has no law to be audited by; name one in its row")
    law: ReportLaw = load(row.law)()
    return law


def law_holds(name: str, report: ReportMaker, *, epsilon: int, n_answers: int) -> str | None:
    """Return None if the exact law holds, else what violates it."""
    try:
        law_of(name).check(report, epsilon, n_answers)
    except exact.Disobedience as fault:
        return str(fault)
    return None


def _supports(state: int, oracle: Oracle, n: int) -> Chances:
    """Return the probability that a report of a state supports each of n answers."""
    chances: Chances = np.full(n, oracle.q)
    if state != NULL:
        chances[state] = oracle.p
    return chances


def _one_of(packed: npt.NDArray[np.uint8], n: int) -> Events:
    """Decode each row as a little-endian number, one-hot; n stands for any other: [rows, n + 1]."""
    numbers = packed @ (256 ** np.arange(packed.shape[1], dtype=np.int64))
    known = numbers[:, None] == np.arange(n)
    return np.concatenate([known, (numbers >= n)[:, None]], axis=1)
