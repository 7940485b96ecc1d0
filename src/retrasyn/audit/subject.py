"""Who is audited: one oracle, by one of its two paths, and what its reports should look like.

A report is looked at through *events*, things that happen in it or do not: a bit is on, it is a
certain symbol, the hash of an answer matches. Every event has a chance that can be written down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.oracles import kernels, single
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.choice import named_oracle
from retrasyn.oracles.hashed import OLH
from retrasyn.randomness.words import Words, system_bytes

Events = npt.NDArray[np.bool_]
Tick = Callable[[int], None]
"""Told how many more reports were made."""
PATHS = {"oue": single.report_unary, "grr": single.report_symbol, "olh": single.report_hash}
"""What devices run, by the name of the oracle."""
_CHUNK = 5_000
_TOLD = 64  # values of a hash that are counted one by one


class ReportMaker(Protocol):
    """Makes one report, as a device does."""

    def __call__(self, state: int, n_answers: int, *, epsilon: int, words: Words) -> bytes:
        """Return the bytes that would be sent."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePath:
    """The path of devices: one call of the shipped function for every report."""

    report: ReportMaker
    words: Words = system_bytes

    def sample(
        self, state: int, n: int, *, oracle: Oracle, n_answers: int, tick: Tick
    ) -> npt.NDArray[np.uint8]:
        """Return n reports of one state: [n, size]."""
        made: list[bytes] = []
        for done in range(0, n, _CHUNK):
            now = min(_CHUNK, n - done)
            made += (
                self.report(state, n_answers, epsilon=oracle.epsilon, words=self.words)
                for _ in range(now)
            )
            tick(now)
        return np.frombuffer(b"".join(made), np.uint8).reshape(n, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The compiled path of simulated devices, with addressed words under fresh keys."""

    words: Words = system_bytes

    def sample(
        self, state: int, n: int, *, oracle: Oracle, n_answers: int, tick: Tick
    ) -> npt.NDArray[np.uint8]:
        """Return n reports of one state: [n, size]."""
        packed = oracle.perturb(
            np.full(n, state, np.int32),
            np.arange(n, dtype=np.uint64),
            key=int.from_bytes(self.words(8), "little"),
            n_states=n_answers,
        )
        tick(n)
        return packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An oracle at one budget, and the path that makes its reports."""

    name: str
    epsilon: int
    n_answers: int
    path: DevicePath | Simulated

    @property
    def oracle(self) -> Oracle:
        """The oracle as the curator knows it."""
        return named_oracle(self.name, self.epsilon, self.n_answers)

    def sample(self, state: int, n: int, tick: Tick) -> npt.NDArray[np.uint8]:
        """Return n reports of one state: [n, size]."""
        return self.path.sample(state, n, oracle=self.oracle, n_answers=self.n_answers, tick=tick)

    def events(self, packed: npt.NDArray[np.uint8]) -> Events:
        """Tell what happened in each report: [n, n_events], support of the answers first."""
        oracle = self.oracle
        if self.name == "oue":
            return np.unpackbits(packed, axis=1, bitorder="little").astype(bool)
        if isinstance(oracle, OLH):
            seeds = np.unpackbits(packed[:, : single.SEED_BYTES], axis=1, bitorder="little")
            matches = kernels.match_hashed(packed, self.n_answers, np.uint64(oracle.n_values))
            values = _one_of(packed[:, single.SEED_BYTES :], min(oracle.n_values, _TOLD))
            return np.concatenate([matches, seeds, values], axis=1).astype(bool)
        return _one_of(packed, self.n_answers + 1)

    @property
    def n_independent(self) -> int:
        """How many of the events, from the first on, are independent of one another."""
        if self.name == "grr":
            return 0  # one symbol excludes the others
        return self.n_answers + (8 * single.SEED_BYTES if self.name == "olh" else 0)

    def chances(self, state: int) -> npt.NDArray[np.float64]:
        """Return the chance of every event in a report of a state: [n_events]."""
        oracle = self.oracle
        chances: npt.NDArray[Any] = np.full(self.n_answers, oracle.q)
        if self.name == "oue":
            chances = np.append(chances, np.zeros(-self.n_answers % 8))  # the padding
        elif isinstance(oracle, OLH):
            n_told = min(oracle.n_values, _TOLD)
            beyond = (oracle.n_values - n_told) / oracle.n_values
            values = np.append(np.full(n_told, oracle.q), beyond)
            chances = np.concatenate([chances, np.full(8 * single.SEED_BYTES, 0.5), values])
        else:
            chances = np.append(chances, [oracle.q, 0.0])  # null, and what is no symbol
            state = self.n_answers if state == single.NULL else state
        if state != single.NULL:
            chances[state] = oracle.p
        return chances


def _one_of(packed: npt.NDArray[np.uint8], n: int) -> Events:
    """Tell which of the numbers below n each row is, lowest byte first, or none: [rows, n + 1]."""
    numbers = packed @ (256 ** np.arange(packed.shape[1], dtype=np.int64))
    known = numbers[:, None] == np.arange(n)
    return np.concatenate([known, (numbers >= n)[:, None]], axis=1)
