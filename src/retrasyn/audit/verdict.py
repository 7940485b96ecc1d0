"""What an audit of an oracle found."""

from dataclasses import dataclass

from retrasyn.audit.checks import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an audit found. Every figure stands beside its limit."""

    oracle: str
    path: str
    epsilon: float
    n_answers: int
    reports_per_input: int
    alpha: float
    epsilon_lower_bound: float
    margin: float  # by how much the bound lies below what was seen
    exact_fault: str | None  # of the exact law; None: it holds, or the path was not asked
    repeats_after_fork: bool
    marginals: Finding
    independence: Finding
    unbiased: Finding
    variance: Finding

    @property
    def violations(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        failed = {
            "epsilon": self.epsilon_lower_bound > self.epsilon,
            "exact": self.exact_fault is not None,
            "marginals": not self.marginals.ok,
            "independence": not self.independence.ok or self.repeats_after_fork,
            "unbiased": not self.unbiased.ok,
            "variance": not self.variance.ok,
        }
        return tuple(name for name, fails in failed.items() if fails)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        failed = self.violations
        return {
            "oracle": self.oracle,
            "path": self.path,
            "epsilon": self.epsilon,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "alpha": self.alpha,
            "reports_per_input": self.reports_per_input,
            "answers": self.n_answers,
            "exact_ok": "exact" not in failed if self.path == "devices" else None,
            "marginals_ok": "marginals" not in failed,
            "independence_ok": "independence" not in failed,
            "unbiased_ok": "unbiased" not in failed,
            "variance_ok": "variance" not in failed,
            "violations": list(failed),
        }
