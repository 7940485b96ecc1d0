"""The table of methods: each one is a combination of parts, none has a loop of its own."""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retrasyn.errors import SettingError
from retrasyn.interpretation import Interpretation
from retrasyn.mechanisms.base import Mechanism
from retrasyn.mechanisms.loglinear import LogLinear
from retrasyn.mechanisms.one_ask import Adaptive, Everything, OneAsk, Sample, Uniform
from retrasyn.mechanisms.probe_publish import Absorption, Distribution, ProbeThenPublish
from retrasyn.messages import Presence, Topic
from retrasyn.mobility.model import replace_all, select_significant
from retrasyn.oracles.registry import PAPER_ORACLE
from retrasyn.privacy.division import BudgetDivision, Division, NoPrivacy, UserDivision
from retrasyn.privacy.selection import OwnSlot, PhaseSlots, age_thresholds
from retrasyn.synthesis.lifecycle import (
    EnterQuit,
    Immortal,
    Lifecycle,
    QuitAsSeen,
    QuitByAge,
    QuitByLength,
    Trips,
)

ALIASES = {"alpha": "gain", "kappa": "lookback", "p_max": "max_portion"}
"""The paper's symbols for settings, and our names."""
_FIXED = ("ages", "speeds", "cells", "roads", "endpoints", "of_paper")
"""What the parts of a row rely on: no settings."""
_SWITCH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Method:
    """One row: what is split, how much is asked, what changes, what a state is, who is born.

    What is public of presence, and whether ages, speeds or cells are asked about, is said here
    only. Who asks about speeds needs a public map, to which alone the answers serve.
    """

    name: str
    summary: str
    division: Division
    mechanism: Mechanism
    endpoints: bool = True
    lifecycle: Lifecycle = dataclasses.field(default_factory=EnterQuit)
    presence: Presence = "count"
    ages: bool = False
    speeds: bool = False
    cells: bool = False
    roads: bool = False  # whether the public map must have some
    steers: bool = False
    continuous: bool = False
    jump: Literal["split", "clamp"] = "split"
    of_paper: bool = True

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics devices are asked about, in the order of the asks."""
        of_presence: dict[Presence, tuple[Topic, ...]] = {
            "count": ("transition",),
            "flags": ("move", "enter", "quit"),
            "hidden": ("transition", "present"),
        }
        ages: tuple[Topic, ...] = ("older",) if self.ages else ()
        speeds: tuple[Topic, ...] = ("faster",) if self.speeds else ()
        cells: tuple[Topic, ...] = ("cell",) if self.cells else ()
        return (*of_presence[self.presence], *ages, *speeds, *cells)

    def furthest_lookback(self, gap: int) -> int:
        """Return how many timestamps back the furthest answer reaches."""
        return age_thresholds(gap)[-1] if self.ages else 1


def _steered(
    name: str,
    summary: str,
    lifecycle: Lifecycle,
    *,
    presence: Presence = "count",
    ages: bool = False,
    speeds: bool = False,
    roads: bool = False,
) -> Method:
    """Return a row of our method; a role exists only where its question is asked."""
    slots = PhaseSlots(
        age_share=0.1 if ages else None,
        presence_share=0.2 if presence == "hidden" else None,
        cell_share=0.45,
        speed_share=0.05 if speeds else None,
    )
    return Method(
        name,
        summary,
        UserDivision(slots),
        LogLinear(),
        lifecycle=lifecycle,
        presence=presence,
        ages=ages,
        speeds=speeds,
        cells=True,
        roads=roads,
        steers=True,
        continuous=True,
        jump="clamp",
        of_paper=False,
    )


def _steered_rows() -> Iterable[Method]:
    summary = "our method: phase slots, a log-linear model, steering"
    yield _steered("steered", summary, QuitByAge(), ages=True)
    summary = "steered with a public map"
    yield _steered("steered-map", summary, QuitByAge(), ages=True, speeds=True)
    summary = "steered with a public map of roads, on which streams drive"
    yield _steered("steered-roads", summary, Trips(), ages=True, speeds=True, roads=True)
    summary = "steered, with starting and stopping treated as public"
    yield _steered("steered-flags", summary, QuitAsSeen(), presence="flags")
    summary = "steered without age reports: streams quit by their length"
    yield _steered("steered-length", summary, QuitByLength())
    summary = "steered without knowing who is present: the absent report null"
    yield _steered("steered-hidden", summary, QuitByLength(), presence="hidden")


def _rows() -> Iterable[Method]:
    yield from _steered_rows()
    adaptive = OneAsk(Adaptive(), select_significant)
    uniform = OneAsk(Uniform(), select_significant)
    sample = OneAsk(Sample(), select_significant)
    everything = OneAsk(Everything(), select_significant)
    update_all = OneAsk(Adaptive(), replace_all)
    users, budget = UserDivision(), BudgetDivision()
    yield Method("retrasyn-p", "the paper's method, dividing the users", users, adaptive)
    yield Method("retrasyn-b", "the paper's method, dividing epsilon", budget, adaptive)
    yield Method("uniform-p", "the same share of the available users each time", users, uniform)
    yield Method("uniform-b", "the same part of epsilon each time", budget, uniform)
    yield Method("sample-p", "everybody once per window, nobody between", users, sample)
    yield Method("sample-b", "all of epsilon once per window, nothing between", budget, sample)
    yield Method(
        "random-p", "everybody at a slot drawn on entering", UserDivision(OwnSlot()), everything
    )
    yield Method("allupdate-p", "retrasyn-p without selecting what to update", users, update_all)
    yield Method("allupdate-b", "retrasyn-b without selecting what to update", budget, update_all)
    yield Method(
        "noeq-p", "retrasyn-p without entering and quitting", users, adaptive, False, Immortal()
    )
    yield Method(
        "noeq-b", "retrasyn-b without entering and quitting", budget, adaptive, False, Immortal()
    )
    yield from _baseline_rows()
    yield Method(
        "exact",
        "NOT PRIVATE: true frequencies, simulation only, to show the ceiling",
        NoPrivacy(),
        OneAsk(Everything(), replace_all),
    )


def _baseline_rows() -> Iterable[Method]:
    """LDP-IDS as the paper runs it, then with the paper's lifecycle, then with our synthesiser."""
    halving, absorbing = ProbeThenPublish(Distribution()), ProbeThenPublish(Absorption())
    plain = [
        Method("lbd", "LDP-IDS, halving what is left of epsilon", BudgetDivision(), halving),
        Method("lba", "LDP-IDS, absorbing skipped parts of epsilon", BudgetDivision(), absorbing),
        Method("lpd", "LDP-IDS, halving what is left of the users", UserDivision(), halving),
        Method("lpa", "LDP-IDS, absorbing skipped parts of the users", UserDivision(), absorbing),
    ]
    for row in plain:
        yield dataclasses.replace(row, lifecycle=Immortal(wanders=True))
    for row in plain:
        summary = f"{row.name} with entering, quitting and resizing"
        yield dataclasses.replace(row, name=f"{row.name}-eq", summary=summary)
    for row in plain:
        yield dataclasses.replace(
            row,
            name=f"{row.name}-steered",
            summary=f"{row.name} with the synthesiser of steered",
            lifecycle=QuitByLength(),
            steers=True,
            continuous=True,
            jump="clamp",
            of_paper=False,
        )


METHODS: Mapping[str, Method] = {row.name: row for row in _rows()}
"""Every method by its name, in the order of `retrasyn methods`."""
DEFAULT_METHOD = "steered"
MAP_METHOD, ROADS_METHOD = "steered-map", "steered-roads"
"""What the default becomes with a public map, without and with roads."""
PAPER_METHOD = "retrasyn-p"


def check_oracle(method: Method, wish: str) -> None:
    """Refuse an oracle whose variance the method does not account for."""
    if wish != PAPER_ORACLE and method.mechanism.unary_only:
        raise SettingError(
            f"{method.name} foresees the errors of unary encoding and of nothing else; "
            f'use `oracle="oue"`, not {wish}'
        )


def find_method(name: str) -> Method:
    """Return a row by its name.

    >>> find_method("retrasyn-p").division.name
    'population'
    """
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(METHODS)}"
        raise SettingError(f"unknown method {name!r}; {hint}")
    return METHODS[name]


def configure(
    method: Method, reading: Interpretation, settings: Mapping[str, str]
) -> tuple[Method, Interpretation]:
    """Apply settings by name to the parts of a method or to the reading.

    >>> from retrasyn.interpretation import SAFE
    >>> row, reading = configure(find_method("retrasyn-p"), SAFE, {"kappa": "7"})
    >>> row.mechanism.portion.lookback
    7
    """
    for given, text in settings.items():
        name = ALIASES.get(given, given)
        part = next((part for part in parts_of(method) if name in settings_of(part)), None)
        if part is not None:
            value = _value(given, text, getattr(part, name))
            method = _replaced(method, part, dataclasses.replace(part, **{name: value}))
        elif name == "length_scale" and name in _questions(method, reading):
            reading = reading.answer(length_scale=reading.parse_length_scale(text))
        elif name in _questions(method, reading):
            now = getattr(reading, name)
            answer = text if isinstance(now, str) else _value(given, text, now)
            reading = reading.answer(**{name: answer})
        else:
            own = [name for part in parts_of(method) for name in settings_of(part)]
            letters = [letter for letter, word in ALIASES.items() if word in own]
            known = sorted([*letters, *own, *_questions(method, reading)])
            raise SettingError(f"{method.name} has no setting {given!r}; it has {', '.join(known)}")
    return method, reading


def parts_of(method: Method) -> list[Any]:
    """Return the parts that have settings: those of the paper's methods are how much is asked."""
    parts = [*_within(method.mechanism)]
    return parts if method.of_paper else [*parts, *_within(method.division), method]


def settings_of(part: Any) -> list[str]:
    """Return the names of a part's settings: its numbers and switches."""
    return [
        name
        for name in _fields(part)
        if isinstance(getattr(part, name), (bool, int, float)) and name not in _FIXED
    ]


def _within(part: Any) -> Iterator[Any]:
    """Yield the parts nested in a part, then the part itself."""
    for name in _fields(part):
        yield from _within(getattr(part, name))
    if dataclasses.is_dataclass(part):
        yield part


def _replaced(whole: Any, old: Any, new: Any) -> Any:
    """Return a part with one of its nested parts replaced."""
    if whole is old:
        return new
    changes = {name: _replaced(getattr(whole, name), old, new) for name in _fields(whole)}
    return dataclasses.replace(whole, **changes) if changes else whole


def _questions(method: Method, reading: Interpretation) -> list[str]:
    """Return the questions of a reading that matter to a method."""
    if method.of_paper:
        return _fields(reading)
    own = ["unit", "ledger", "jump", "size_target"]
    return [*own, "length_scale"] if method.lifecycle.uses_length else own


def _fields(part: Any) -> list[str]:
    """Return the names of a part's fields; a function or a number has none."""
    return (
        [field.name for field in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
    )


def _value(name: str, text: str, like: float) -> float:
    """Parse a number or a switch of the same kind as the current value."""
    if isinstance(like, bool):
        if text not in _SWITCH:
            raise SettingError(f"setting {name}={text!r} is neither true nor false")
        return _SWITCH[text]
    try:
        return type(like)(text)
    except ValueError:
        kind = "a whole number" if isinstance(like, int) else "a number"
        raise SettingError(f"setting {name}={text!r} is not {kind}") from None
