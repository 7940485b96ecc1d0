"""After how many linked reports of one device its usual place is known (standard library only).

Every report carries a device id, so the reports of one device can be added up. If all were made at
one place, each supports "stays here" with probability p there and q < p at any other place. Whoever
names the place with the most support, one of the best if several tie, guesses as well as anybody
can to whom all places were equally likely before: who knows more beforehand needs fewer reports.
A round may ask for a part of epsilon; all of it in one report per gap tells the most.

A device has one role for life. One that reports its state supports "stays here", one that reports
its cell "is here": both once per gap, with the p and q of their oracle, so they are reckoned
alike. Fewer answers may mean a larger p / q, so the role that tells the place first counts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

LONGEST = 1 << 14
"""Most reports that are looked at; what takes longer is said to take so many, on the safe side."""
NIGHT = 8 * 3600
"""Seconds of a night at home."""
_SPREAD = 9  # standard deviations beyond which a count is as good as impossible
_SLACK = 20  # and so many more: small counts have longer tails

Support = tuple[float, float]
"""p and q of an oracle: that a report supports its own answer, and that it supports another."""
About = TypeVar("About", bound=str)


def telling(asked: Sequence[About]) -> list[About]:
    """Return which questions tell a usual place: where a device moves, and its cell.

    >>> telling(("move", "enter", "quit", "cell")), telling(("transition", "older"))
    (['move', 'cell'], ['transition'])
    """
    return [about for about in asked if about in ("transition", "move", "cell")]


def chance_named(n_reports: int, support: Support, n_places: int) -> float:
    """Return how likely the place with the most support is the right one.

    Supports are taken as independent: they are for bits and hashes, and nearly so for symbols.

    >>> [round(chance_named(n, (0.5, 0.268941), 36), 3) for n in (0, 22, 66, 110)]
    [0.028, 0.567, 0.949, 0.995]
    """
    p, q = support
    most = min(n_reports, math.ceil(_upper(n_reports, p)))
    least = max(0, math.floor(n_reports * q - (_upper(n_reports, q) - n_reports * q)))
    below = total = 0.0  # chance that another place has less support, and that ours wins so far
    for right, other in zip(
        _weights(n_reports, p, least, most), _weights(n_reports, q, least, most), strict=True
    ):
        here = below + other
        total += right * _wins(below, here, n_places)
        below = here
    return total


def _upper(n: int, chance: float) -> float:
    """Return a count that is as good as never exceeded."""
    return n * chance + _SPREAD * math.sqrt(n * chance * (1 - chance)) + _SLACK


def _weights(n: int, chance: float, least: int, most: int) -> Iterator[float]:
    """Yield the binomial probabilities of the counts from least to most."""
    on, off = math.log(chance), math.log1p(-min(chance, 1 - 2**-53))
    whole = math.lgamma(n + 1)
    for k in range(least, most + 1):
        ways = whole - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        yield math.exp(ways + k * on + (n - k) * off)


def _wins(below: float, here: float, n_places: int) -> float:
    """Return how likely one count is the highest of all places, ties decided by lot.

    The others stay below it with probability `below` each, and do not exceed it with `here`:
    (here^C - below^C) / (C (here - below)), written so that nothing cancels.
    """
    if below >= here:
        return here ** (n_places - 1)
    tie = 1 - below / here
    rest = -1.0 if tie >= 1 else math.expm1(n_places * math.log1p(-tie))
    return here ** (n_places - 1) * -rest / (n_places * tie)


@lru_cache(maxsize=1024)
def fewest_naming(support: Support, n_places: int) -> int:
    """Return after how many reports the guess is right more often than not.

    >>> fewest_naming((0.5, 0.268941), 36)
    19
    """
    enough = 1
    while enough < LONGEST and chance_named(enough, support, n_places) < 1 / 2:
        enough *= 2
    few = enough // 2  # too few
    while enough - few > 1:
        middle = (few + enough) // 2
        if chance_named(middle, support, n_places) < 1 / 2:
            few = middle
        else:
            enough = middle
    return enough


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualPlace:
    """What the linked reports of one device, all made at one place, tell about that place."""

    reports: int  # fewest after which it is guessed right more often than not
    timestamps: int  # in which a device makes so many
    period: float | None  # seconds between two timestamps; None: not known
    nights: int | None  # of eight hours, begun ones included; None: the period is not known
    lifetime_cap: float | None  # epsilon at which a device stops; None: nobody is stopped

    @classmethod
    def of(
        cls,
        supports: Sequence[Support],
        *,
        n_places: int,
        gap: int,
        period: float | None = None,
        lifetime_cap: float | None = None,
    ) -> "UsualPlace | None":
        """Return it for one report per gap; None if there is but one place.

        `supports` has one for each role a device may have, and the role that tells most counts.

        >>> UsualPlace.of([(0.5, 0.268941)], n_places=36, gap=21, period=60).words
        'about 1 night (19 reports, 6.65 hours at one place)'
        """
        if n_places < 2:  # noqa: PLR2004 - one place is no secret
            return None
        reports = min(fewest_naming(support, n_places) for support in supports)
        timestamps = reports * gap
        nights = None if period is None else math.ceil(timestamps * period / NIGHT)
        return cls(
            reports=reports,
            timestamps=timestamps,
            period=period,
            nights=nights,
            lifetime_cap=lifetime_cap,
        )

    @property
    def words(self) -> str:
        """After how long it is known, as said in consents, plans and receipts."""
        reports = _plural(self.reports, "report")
        if self.period is None or self.nights is None:
            return f"{reports} ({_plural(self.timestamps, 'timestamp')} at one place)"
        stay = duration(self.timestamps * self.period)
        return f"about {_plural(self.nights, 'night')} ({reports}, {stay} at one place)"

    @property
    def statement(self) -> str:
        """What receipts and operators are told: when it is known, and when devices stop."""
        known = f"linked reports tell a usual place after {self.words}"
        cap = self.lifetime_cap
        return known if cap is None else f"{known}; devices stop at epsilon {cap:g}"


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def duration(seconds: float) -> str:
    """Format a duration in words.

    >>> duration(1), duration(60), duration(5400), duration(86400)
    ('1 second', '1 minute', '1.5 hours', '1 day')
    """
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = seconds / size
            shown = f"{number:.3g}" if number < 1000 else f"{number:,.0f}"  # noqa: PLR2004
            return f"{shown} {unit}{'' if number == 1 else 's'}"
    return f"{seconds:.3g} second{'' if seconds == 1 else 's'}"
