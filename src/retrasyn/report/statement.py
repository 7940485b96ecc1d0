"""The privacy statement at the top of a page, read from a receipt that may lack fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from retrasyn.privacy.receipt import GUESSABLE, GUESSING

Status = Literal["private", "unknown", "broken"]
_MOST_SHOWN = 400  # most characters shown of one value


@dataclass(frozen=True, slots=True)
class Statement:
    """The privacy statement a page opens with."""

    status: Status
    headline: str
    guarantee: str
    cautions: tuple[str, ...]
    not_protected: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]  # what was run, as (name, value)
    settings: tuple[tuple[str, str], ...]  # all remaining settings


def state(receipt: dict[str, Any] | None) -> Statement:
    """Build the statement of a receipt; whatever it does not state counts as unprotected."""
    if receipt is None:
        return Statement(
            "unknown",
            "No receipt: nothing is known about privacy",
            "The synthetic data came without its receipt. Take it for unprotected.",
            (),
            (),
            (),
            (),
        )
    status, headline = _judge(receipt)
    return Statement(
        status,
        headline,
        _text(receipt.get("guarantee", "The receipt states no guarantee.")),
        tuple(_cautions(receipt)),
        tuple(_text(line) for line in _entries(receipt.get("not_protected"))),
        tuple(_facts(receipt)),
        tuple(_settings(receipt)),
    )


def _judge(receipt: dict[str, Any]) -> tuple[Status, str]:
    """Return in a few words whether the release is protected."""
    if receipt.get("private") is False:
        return "broken", "NOT PRIVATE: never publish the synthetic data"
    if receipt.get("within_guarantee") is False:
        return "broken", "OUTSIDE THE GUARANTEE: more was spent than was promised"
    if not (receipt.get("private") is True and receipt.get("within_guarantee") is True):
        return "unknown", "The receipt does not say whether the release is private"
    if receipt.get("seed") is not None:
        return "broken", GUESSABLE
    epsilon, window = _number(receipt.get("epsilon")), _number(receipt.get("window"))
    if epsilon is None or window is None:
        return "private", "Private, as the receipt states it"
    unit = _text(receipt.get("unit", "position"))
    return "private", f"Private: epsilon {epsilon:g} over any {window:,} {unit}s"


def _cautions(receipt: dict[str, Any]) -> list[str]:
    """List what weakens the guarantee in this run."""
    cautions = []
    if receipt.get("within_epsilon_per_person") is False:
        worst = _number(_look(receipt, "worst_window", "person_position", "epsilon"))
        spent = "more than epsilon" if worst is None else f"up to {worst:g}"
        cautions.append(f"Counted per person and position, {spent} was spent in one window.")
    n_releases = _number(_look(receipt, "composition", "n_releases"))
    if n_releases is not None and n_releases > 1:
        total = _number(_look(receipt, "composition", "epsilon"))
        spent = "no bound" if total is None else f"epsilon {total:g}"
        cautions.append(f"This is release {n_releases:,} of the same data: {spent} in total.")
    if receipt.get("seed") is not None:
        cautions.append(f"The seed is the number {_text(receipt['seed'])}: {GUESSING}.")
    if receipt.get("box_inferred_from_data") is True:
        cautions.append("The box was taken from the data: the outermost positions are not hidden.")
    if receipt.get("length_scale_from_data") is True:
        cautions.append("The length scale was taken from the data without protection.")
    if receipt.get("faithful") is True:
        cautions.append("The paper was read as its authors' program does, which protects less.")
    return cautions


def _facts(receipt: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the main facts about the run."""
    rows: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("Method", receipt.get("method"), _text),
        ("Epsilon", receipt.get("epsilon"), _figure),
        ("Window", receipt.get("window"), _figure),
        ("Spent at most", _look(receipt, "worst_window", "declared", "epsilon"), _figure),
        ("Users", receipt.get("n_users"), _figure),
        ("Reports", receipt.get("n_reports"), _figure),
        ("Grid", receipt.get("grid"), lambda side: f"{_figure(side)} x {_figure(side)}"),
        ("Division", receipt.get("division"), _text),
        ("A cell is known to", _look(receipt, "standard_error", "cell"), _points),
        ("A flow is known to", _look(receipt, "standard_error", "flow"), _points),
    ]
    return [(name, show(value)) for name, value, show in rows if value is not None]


def _settings(receipt: dict[str, Any]) -> list[tuple[str, str]]:
    """Return all remaining scalar values, and tables of them."""
    told = {"guarantee", "not_protected", "rounds", "worst_window"}
    rows = []
    for name, value in receipt.items():
        if name in told:
            continue
        if isinstance(value, dict):
            rows += [(f"{name}.{part}", _text(entry)) for part, entry in value.items()]
        else:
            rows.append((str(name), _text(value)))
    return rows


def _look(receipt: dict[str, Any], *path: str) -> Any:
    """Look up nested keys; None where one is missing."""
    value: Any = receipt
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _entries(value: Any) -> list[Any]:
    """Return a list unchanged, a single value as a list of one, None as an empty list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _number(value: Any) -> float | int | None:
    """Return the value if it is a number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _figure(value: Any) -> str:
    """Format a number with thousands separators."""
    number = _number(value)
    if number is None:
        return _text(value)
    return f"{number:,}" if isinstance(number, int) else f"{number:,.4g}"


def _points(value: Any) -> str:
    """Format the standard error of a share in percentage points."""
    number = _number(value)
    return _text(value) if number is None else f"\N{PLUS-MINUS SIGN}{100 * number:.2g} points"


def _text(value: Any) -> str:
    """Format a value for people to read."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            text = f"{value:g}"
        case list() | tuple():
            text = ", ".join(_text(entry) for entry in value)
        case _:
            text = str(value)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
