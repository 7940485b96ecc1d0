"""The audit of whole devices: how much a malicious curator learns about one window of positions.

Two persons differ in `window` consecutive positions and in nothing else. Real reporters with real
ledgers answer whatever the curator sends, and it guesses from all reports which person it faces.
The guess is optimal: a likelihood-ratio test on all reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from retrasyn.audit.checks import epsilon_lower_bound
from retrasyn.audit.game import ATTACKS, Attack, Game, Run, manifest_of
from retrasyn.errors import SettingError
from retrasyn.messages import MICRO

ALPHA = 1e-6
"""Upper bound on the probability that any attack's bound exceeds a correct device's epsilon."""
FEWEST = 100
_LEARNING = 5  # one in this many runs is used to choose the event, not to judge by it
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """The result of one attack."""

    attack: str
    about: str
    epsilon_lower_bound: float
    reports: int  # about the window, maximum over runs
    spent: float  # epsilon the device spent on the window, maximum over runs

    def exceeds(self, epsilon: float) -> bool:
        """Tell whether the attack learnt more than epsilon, or made a device spend more."""
        return max(self.epsilon_lower_bound, self.spent) > epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowVerdict:
    """The results of all attacks."""

    unit: str
    window: int
    epsilon: float
    alpha: float
    runs_per_input: int
    findings: tuple[AttackResult, ...]

    @property
    def worst(self) -> AttackResult:
        """The attack that learnt the most."""
        return max(self.findings, key=lambda finding: finding.epsilon_lower_bound)

    @property
    def violated(self) -> bool:
        """Whether any attack exceeds epsilon."""
        return any(finding.exceeds(self.epsilon) for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return {
            "unit": self.unit,
            "window": self.window,
            "epsilon": self.epsilon,
            "epsilon_lower_bound": self.worst.epsilon_lower_bound,
            "alpha": self.alpha,
            "runs_per_input": self.runs_per_input,
            "violated": self.violated,
            "attacks": {
                finding.attack: {
                    "epsilon_lower_bound": finding.epsilon_lower_bound,
                    "reports": finding.reports,
                    "spent": finding.spent,
                }
                for finding in self.findings
            },
        }


def audit_window(
    *,
    unit: Literal["position", "transition"] = "position",
    window: int = 3,
    epsilon: int = MICRO,
    runs: int = 5_000,
    attacks: tuple[Attack, ...] = ATTACKS,
    progress: Progress | None = None,
) -> WindowVerdict:
    """Run every attack against fresh devices, `runs` times for each of the two persons.

    >>> verdict = audit_window(runs=500, attacks=ATTACKS[:1])
    >>> verdict.violated, verdict.worst.reports
    (False, 1)
    """
    if runs < FEWEST:
        raise SettingError(f"{runs} runs show nothing; take {FEWEST:,} or more")
    if not 1 <= window <= 1000:  # noqa: PLR2004
        raise SettingError(f"a window of {window} is outside 1..1000; 3 shows what 20 would")
    manifest = manifest_of(unit, window=window, epsilon=epsilon)
    rest = _Counter(progress, 2 * runs * len(attacks))
    findings = tuple(
        _judge(attack, _play(Game(manifest, attack), runs, rest), alpha=ALPHA / len(attacks))
        for attack in attacks
    )
    return WindowVerdict(
        unit=unit,
        window=window,
        epsilon=epsilon / MICRO,
        alpha=ALPHA,
        runs_per_input=runs,
        findings=findings,
    )


@dataclass(slots=True)
class _Counter:
    """Reports how many devices have been attacked so far."""

    progress: Progress | None
    total: int
    done: int = 0

    def tick(self) -> None:
        self.done += 1
        if self.progress is not None and self.done % 100 == 0:
            self.progress(self.done, self.total)


def _play(game: Game, runs: int, counter: _Counter) -> tuple[list[Run], list[Run]]:
    """Return all runs against the first person, and all against the second."""
    played: tuple[list[Run], list[Run]] = [], []
    for person in (0, 1):
        for _ in range(runs):
            played[person].append(game.run(person))
            counter.tick()
    return played


def _judge(attack: Attack, played: tuple[list[Run], list[Run]], *, alpha: float) -> AttackResult:
    """Bound epsilon by the event that the score is at least c.

    c is chosen on separate runs, as the threshold with the best bound if the rest were like them.
    """
    ours, theirs = (np.array([run.score for run in runs]).round(6) for runs in played)
    n = ours.size // _LEARNING
    choices = np.unique(ours[:n])
    alike = [np.tile(scores[:n], _LEARNING - 1) for scores in (ours, theirs)]
    bounds = [_bound(alike[0] >= c, alike[1] >= c, alpha=alpha) for c in choices]
    best = choices[int(np.argmax(bounds))]
    everyone = [*played[0], *played[1]]
    return AttackResult(
        attack=attack.name,
        about=attack.about,
        epsilon_lower_bound=_bound(ours[n:] >= best, theirs[n:] >= best, alpha=alpha),
        reports=max(run.reports for run in everyone),
        spent=max(run.spent for run in everyone) / MICRO,
    )


def _bound(ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_], *, alpha: float) -> float:
    return epsilon_lower_bound(int(ours.sum()), int(theirs.sum()), ours.size, alpha=alpha)
