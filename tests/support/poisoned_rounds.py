"""Rounds of reports: honest crowds of many shapes, and fakes of every kind we know."""

from __future__ import annotations

from functools import partial

import numpy as np

from retrasyn.messages import Question
from retrasyn.methods import find_method
from retrasyn.oracles.oue import OUE
from retrasyn.poisoning import EvidencePool, Inspection, inspect
from retrasyn.wire.frames import question_code
from support.campaigns import manifest_of

EPSILON = 1_000_000
N_STATES, N_CELLS = 328, 36  # of a grid of 6 x 6
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


def identical(n: int, random: np.random.Generator, n_states: int = N_STATES) -> np.ndarray:
    """One vector that looks honest, sent by all."""
    return np.repeat(pack(random.random((1, n_states)) < Q), n, axis=0)


def all_ones(n: int, random: np.random.Generator, n_states: int = N_STATES) -> np.ndarray:
    """Every bit set, with one bit cleared so that as few are equal as can be."""
    bits = np.ones((n, n_states), bool)
    bits[np.arange(n), random.permutation(n) % n_states] = False
    return pack(bits)


def ones_with_chance(
    n: int, random: np.random.Generator, n_states: int = N_STATES, *, chance: float
) -> np.ndarray:
    """One target, and all other bits noise with a wrong probability."""
    bits = random.random((n, n_states)) < chance
    bits[:, random.integers(n_states)] = True
    return pack(bits)


def targets(
    n: int,
    random: np.random.Generator,
    n_states: int = N_STATES,
    *,
    n_targets: int,
    exact: bool = False,
) -> np.ndarray:
    """Target states set by all, padded at random to the number of ones of honest reports."""
    chosen = random.permutation(n_states)[:n_targets]
    wanted = random.binomial(n_states - 1, Q, n) + random.binomial(1, 0.5, n)
    if exact:
        wanted[:] = round((n_states - 1) * Q + 0.5)
    order = random.random((n, n_states))
    order[:, chosen] = -1.0  # these first, then others at random
    ranks = order.argsort(axis=1).argsort(axis=1)
    return pack(ranks < np.maximum(wanted, n_targets)[:, None])


ATTACKS = {
    "identical vectors": identical,
    "all ones": all_ones,
    "no ones but the target": partial(ones_with_chance, chance=0.004),
    "too few ones": partial(ones_with_chance, chance=0.16),
    "too many ones": partial(ones_with_chance, chance=0.40),
    "always the same number of ones": partial(targets, n_targets=1, exact=True),
    "20 target states": partial(targets, n_targets=20),
    "10 target states": partial(targets, n_targets=10),
}
ESCAPING = {f"{k} target state{'s' * (k > 1)}": partial(targets, n_targets=k) for k in (5, 2, 1)}


def poisoned(n: int, n_fakes: int, attack, random: np.random.Generator, crowd: str = "city"):
    """Return a round of which the last n_fakes reports are fakes."""
    return np.concatenate([honest(n - n_fakes, random, crowd=crowd), attack(n_fakes, random)])


GAP = 21  # of a window of 20 positions
FALSE_ALARMS = 0.01  # in the rounds of a gap
_OTHERS = find_method("steered").division.other_shares
ROLES = {"transition": 1 - sum(_OTHERS), "cell": _OTHERS[-1]}
"""What is inspected, by the share of the devices that report it; the others tell ages."""
N_ANSWERS = {"transition": N_STATES, "cell": N_CELLS}
_CODES = {role: question_code(Question(about=role), manifest_of()) for role in ROLES}


def campaign(
    n_devices, share, attack, random, *, crowd: str = "city", n_rounds: int = GAP, gathered=""
):
    """Yield the reports of each round of `steered` by role, a share of its devices being liars.

    Every device reports once in a gap, in a phase of its own. Nobody can tell whether a device has
    the role it drew: `gathered` is the one that all liars claim to have. The crowd of every round
    is another one: no population moves faster.
    """
    lanes = []
    for role, part in ROLES.items():
        n_liars = share * n_devices * (part if not gathered else gathered == role)
        n_honest = round((1 - share) * part * n_devices)
        sizes = n_honest, round(n_liars), n_rounds, N_ANSWERS[role]
        lanes.append(_reports(*sizes, attack, random, crowd))
    for reports in zip(*lanes, strict=True):
        yield dict(zip(ROLES, reports, strict=True))


def _reports(n_honest, n_liars, n_rounds, n_states, attack, random, crowd):
    """Yield the reports of the devices of one role."""
    n_turns, phases = -(-n_rounds // GAP), random.integers(GAP, size=n_liars + n_honest)
    lies = None
    if n_liars:
        lies = attack(n_liars * n_turns, random, n_states).reshape(n_turns, n_liars, -1)
    for t in range(n_rounds):
        due = phases == t % GAP
        n_true = int(np.count_nonzero(due[n_liars:]))
        true = honest(n_true, random, crowd=crowd, n_states=n_states)
        yield true if lies is None else np.concatenate([true, lies[t // GAP, due[:n_liars]]])


def inspections(rounds):
    """Inspect rounds one after the other as the service does; yield what was found by role."""
    pool = EvidencePool(GAP)
    for t, reports in enumerate(rounds):
        found: dict[str, Inspection] = {
            role: inspect(
                packed,
                N_ANSWERS[role],
                epsilon=EPSILON,
                false_alarms=FALSE_ALARMS / (GAP * len(ROLES)),
                before=pool.before(t, _CODES[role], EPSILON),
            )
            for role, packed in reports.items()
        }
        evidence = {(_CODES[role], EPSILON): one.evidence for role, one in found.items()}
        pool.keep(t, pool.joined(t, evidence))
        yield found


def alarmed(found: dict[str, Inspection]) -> bool:
    """Whether the reports of any role raised an alarm."""
    return any(inspection.alarmed for inspection in found.values())


def first_alarm(rounds) -> int | None:
    """Return the number of rounds until the first alarm; None if there is none."""
    found = enumerate(inspections(rounds), start=1)
    return next((number for number, roles in found if alarmed(roles)), None)
