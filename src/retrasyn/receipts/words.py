"""Formats a receipt for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from retrasyn.privacy.receipt import PERSON_DAY, Receipt, describe_composition

_WIDTH = 92


def show(receipt: Receipt) -> str:
    """Return the receipt as a page of plain text."""
    parts = [
        _wrap(receipt.due_headline),
        _wrap(receipt.guarantee),
        "",
        "What was run",
        *_facts(receipt),
        "",
        "What was spent",
        *_spending(receipt),
        "",
        "What is not protected",
        *(_wrap(line, "  - ") for line in receipt.not_protected),
    ]
    return "\n".join(parts)


def _facts(receipt: Receipt) -> Iterable[str]:
    noise = receipt.noise
    file = receipt.data_file
    yield _row("method", f"{receipt.method}: {receipt.summary}")
    yield _row("divides", receipt.division)
    yield _row(
        "oracle", receipt.oracle if noise is None else f"{receipt.oracle}, q = {noise.q:.6f}"
    )
    if asked := _asked(receipt):
        yield _row("asked", asked)
    yield _row("presence", receipt.presence)
    yield _row("counted per", receipt.ledger)
    if receipt.folded is not None:
        yield _row("folded by", receipt.folded.by)
    yield _row(
        "time", f"{receipt.timestamps:,} timestamps, {receipt.first_t:,} to {receipt.last_t:,}"
    )
    yield _row(
        "reports",
        f"{receipt.n_reports:,} of {receipt.n_users:,} users in {_rounds(receipt)}",
    )
    if (known := receipt.public_map) is not None:
        said = f"{known.source} ({known.weighting}), taken to be public, sha256 {known.sha256}"
        yield _row("map", said)
    yield _row("seed", "secret" if receipt.seed is None else str(receipt.seed))
    yield _row(
        "releases",
        "this one is not counted among those of its data"
        if receipt.composition is None
        else describe_composition(receipt.composition, window=receipt.window),
    )
    yield _row("file", "none yet" if file is None else f"{file.name}, sha256 {file.sha256}")
    yield _row("made by", f"RetraSyn {receipt.retrasyn_version}, format {receipt.format_version}")


_ROLES = {
    "age_share": "how long they have been there",
    "presence_share": "whether they are there",
    "speed_share": "whether they moved farther than a distance since the timestamp before",
    "cell_share": "their cell",
}
"""What some are asked for life, by the setting that says how many."""


def _asked(receipt: Receipt) -> str:
    """State what people are asked, where not all are asked their step."""
    shares = {role: receipt.settings.get(name) for name, role in _ROLES.items()}
    said = [f"{100 * share:.3g} % of the people {role}" for role, share in shares.items() if share]
    return ", ".join([*said, "the others their step"]) if said else ""


def _spending(receipt: Receipt) -> Iterable[str]:
    worst, life = receipt.worst_window, receipt.lifetime
    for window in (worst.declared, worst.person_position):
        spent = "unbounded" if window.epsilon is None else f"{window.epsilon:g}"
        yield _row(
            "worst window",
            f"{spent} per {window.per}, over any {window.timestamps:,} timestamps "
            f"({window.unit}), as recounted",
        )
    spent = "unbounded" if life.epsilon is None else f"at most {life.epsilon:g}"
    said = f"{spent} per {life.per} over {life.timestamps:,} timestamps ({life.windows:,} windows)"
    if (folded := receipt.folded) is not None and folded.by == PERSON_DAY:
        said += f"; the most active person has {folded.most_days:,} days"
    yield _row("lifetime", said)


def _row(name: str, value: str) -> str:
    return _wrap(value, f"  {name:<14}")


def _wrap(text: str, first: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )


def _rounds(receipt: Receipt) -> str:
    """State how many rounds there were; for a part, that only the latest are listed."""
    n = f"{len(receipt.rounds.t):,} rounds"
    return n if receipt.holds is None else f"all rounds so far, the latest {n} listed"
