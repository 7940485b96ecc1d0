"""What a promise for any window adds up to over a day, a week and a month."""

from __future__ import annotations

from dataclasses import dataclass

SPANS = {"a day": 1, "a week": 7, "a month": 30}
_DAY = 86_400 * 1_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class Total:
    """The worst case of somebody who is present all the time."""

    span: str
    n_timestamps: int
    n_windows: int  # that a gap apart fit into the span, begun ones included
    epsilon: float


def totals(*, period: int, epsilon: float, gap: int) -> list[Total]:
    """Return what is spent at most over each span; the period between timestamps in microseconds.

    Any `gap` consecutive timestamps share one epsilon, so a span costs one for each gap it touches.

    >>> [total.epsilon for total in totals(period=600_000_000, epsilon=1.0, gap=21)]
    [7.0, 48.0, 206.0]
    """
    found = []
    for span, n_days in SPANS.items():
        n_timestamps = -(-n_days * _DAY // period)
        n_windows = -(-n_timestamps // gap)
        found.append(Total(span, n_timestamps, n_windows, n_windows * epsilon))
    return found
