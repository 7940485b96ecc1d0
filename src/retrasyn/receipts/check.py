"""One thing a receipt states, looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "FAIL", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, whether it holds, and which fields it speaks for."""

    name: str
    verdict: Verdict  # unknown: it cannot be recomputed from what is at hand
    detail: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        word = {"ok": "ok  ", "FAIL": "FAIL", "unknown": "?   "}[self.verdict]
        return f"{word}  {self.name}: {self.detail}"


def judge(name: str, fields: Sequence[str], faults: Sequence[str], fine: str) -> Check:
    """Return a failed check if there are faults, and a passed one if there are none."""
    if faults:
        return Check(name, "FAIL", "; ".join(faults), tuple(fields))
    return Check(name, "ok", fine, tuple(fields))


def unknown(name: str, fields: Sequence[str], needs: str) -> Check:
    """Return what cannot be recomputed, and what it would take."""
    return Check(name, "unknown", f"cannot be recomputed: needs {needs}", tuple(fields))
