"""Rounds of reports: honest crowds of many shapes, and fakes of every kind we know."""

from __future__ import annotations

import numpy as np

from retrasyn.oracles.oue import OUE
from retrasyn.poisoning import EvidencePool, inspect

EPSILON = 1_000_000
N_STATES = 328  # a grid of 6 x 6
Q = OUE(EPSILON).q

HONEST = ("even", "skewed", "city", "crowded", "null", "alone")


def frequencies(crowd: str, random: np.random.Generator, n_states: int = N_STATES) -> np.ndarray:
    """Return the share of each state, and last that of devices with nothing to say."""
    null = 0.05
    match crowd:
        case "even":
            shares = np.full(n_states, 1 / n_states)
        case "skewed":  # a few states have nearly all, as in real cities
            shares = 1.0 / np.arange(1, n_states + 1)
        case "city":  # every round another mixture
            shares = random.gamma(0.2, size=n_states)
        case "crowded":  # 30 % share one state
            shares = random.gamma(0.2, size=n_states)
            shares[0] = 0.3 / 0.7 * shares[1:].sum()
            null = 0.0
        case "null":  # half have nothing to say
            shares, null = random.gamma(0.5, size=n_states), 0.5
        case _:  # everybody in the same state
            shares, null = np.eye(n_states)[0], 0.0
    shares = random.permutation(shares / shares.sum()) if crowd != "even" else shares
    return np.append(shares * (1 - null), null)


def honest(
    n: int,
    random: np.random.Generator,
    *,
    crowd: str = "city",
    n_states: int = N_STATES,
    epsilon: int = EPSILON,
) -> np.ndarray:
    """Return honest reports of n devices, packed."""
    shares = frequencies(crowd, random, n_states)
    states = random.choice(n_states + 1, size=n, p=shares / shares.sum())
    states[states == n_states] = -1
    key = int(random.integers(1 << 62))
    addresses = np.arange(n, dtype=np.uint64)
    return OUE(epsilon).perturb(states.astype(np.int32), addresses, key=key, n_answers=n_states)


def pack(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, axis=1, bitorder="little")


def identical(n: int, random: np.random.Generator) -> np.ndarray:
    """One vector that looks honest, sent by all."""
    return np.repeat(pack(random.random((1, N_STATES)) < Q), n, axis=0)


def all_ones(n: int, random: np.random.Generator) -> np.ndarray:
    """Every bit set, with one bit cleared so that no two are equal."""
    bits = np.ones((n, N_STATES), bool)
    bits[np.arange(n), random.permutation(N_STATES)[:n]] = False
    return pack(bits)


def ones_with_chance(n: int, random: np.random.Generator, chance: float) -> np.ndarray:
    """One target, and all other bits noise with a wrong probability."""
    bits = random.random((n, N_STATES)) < chance
    bits[:, random.integers(N_STATES)] = True
    return pack(bits)


def targets(
    n: int, random: np.random.Generator, n_targets: int, *, exact: bool = False
) -> np.ndarray:
    """Target states set by all, padded at random to the number of ones of honest reports."""
    chosen = random.permutation(N_STATES)[:n_targets]
    wanted = random.binomial(N_STATES - 1, Q, n) + random.binomial(1, 0.5, n)
    if exact:
        wanted[:] = round((N_STATES - 1) * Q + 0.5)
    order = random.random((n, N_STATES))
    order[:, chosen] = -1.0  # these first, then others at random
    ranks = order.argsort(axis=1).argsort(axis=1)
    return pack(ranks < np.maximum(wanted, n_targets)[:, None])


ATTACKS = {
    "identical vectors": identical,
    "all ones": all_ones,
    "no ones but the target": lambda n, random: ones_with_chance(n, random, 0.004),
    "too few ones": lambda n, random: ones_with_chance(n, random, 0.16),
    "too many ones": lambda n, random: ones_with_chance(n, random, 0.40),
    "always the same number of ones": lambda n, random: targets(n, random, 1, exact=True),
    "20 target states": lambda n, random: targets(n, random, 20),
    "10 target states": lambda n, random: targets(n, random, 10),
}
ESCAPING = {
    f"{k} target state{'s' * (k > 1)}": (lambda n, random, k=k: targets(n, random, k))
    for k in (5, 2, 1)
}


def poisoned(n: int, n_fakes: int, attack, random: np.random.Generator, crowd: str = "city"):
    """Return a round of which the last n_fakes reports are fakes."""
    return np.concatenate([honest(n - n_fakes, random, crowd=crowd), attack(n_fakes, random)])


GAP = 21  # of a window of 20 positions
FALSE_ALARMS = 0.01  # in the rounds of a gap


def campaign(n_devices, share, attack, random, *, crowd: str = "city", n_rounds: int = GAP):
    """Yield the reports of each round of `steered`, a share of its devices being liars.

    Nine devices in ten answer about transitions, each once in a gap, in a phase of its own. The
    crowd of every round is another one: no population moves faster.
    """
    n_reporters, n_turns = round(0.9 * n_devices), -(-n_rounds // GAP)
    n_liars = round(share * n_reporters)
    phases = random.integers(GAP, size=n_reporters)
    lies = attack(n_liars * n_turns, random).reshape(n_turns, n_liars, -1) if n_liars else None
    for t in range(n_rounds):
        due = phases == t % GAP
        true = honest(int(np.count_nonzero(due[n_liars:])), random, crowd=crowd)
        yield true if lies is None else np.concatenate([true, lies[t // GAP, due[:n_liars]]])


def inspections(rounds, *, n_states: int = N_STATES, gap: int = GAP, epsilon: int = EPSILON):
    """Inspect rounds one after the other as the service does; yield what was found."""
    pool = EvidencePool(gap)
    for t, packed in enumerate(rounds):
        inspection = inspect(
            packed,
            n_states,
            epsilon=epsilon,
            false_alarms=FALSE_ALARMS / gap,
            before=pool.before(t, 0, epsilon),
        )
        pool.keep(t, pool.joined(t, {(0, epsilon): inspection.evidence}))
        yield inspection


def first_alarm(rounds, **settings) -> int | None:
    """Return the number of rounds until the first alarm; None if there is none."""
    found = enumerate(inspections(rounds, **settings), start=1)
    return next((number for number, inspection in found if inspection.alarmed), None)
