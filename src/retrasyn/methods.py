"""The table of methods: every one is a combination of parts, none is a loop of its own."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from retrasyn.errors import SettingError
from retrasyn.interpretation import Interpretation
from retrasyn.mechanisms.base import Mechanism
from retrasyn.mechanisms.filtered import Filtered
from retrasyn.mechanisms.one_ask import OneAsk
from retrasyn.mechanisms.portions import Adaptive, Everything, Sample, Uniform
from retrasyn.mechanisms.probe_publish import ProbeThenPublish
from retrasyn.mechanisms.schedules import Absorption, Distribution
from retrasyn.mobility.updating import replace_all, select_significant
from retrasyn.privacy.division import BudgetDivision, Division, NoPrivacy, UserDivision
from retrasyn.privacy.selection import OwnSlot, PhaseSlots
from retrasyn.synthesis.lifecycle import (
    EnterQuit,
    Immortal,
    Lifecycle,
    QuitAsSeen,
    QuitByAge,
    QuitByLength,
)

ALIASES = {"alpha": "gain", "kappa": "lookback", "p_max": "max_portion"}
"""The paper's letters for settings, and our words."""
_FIXED = ("endpoints", "of_paper", "ages", "stopping_any_time")  # what other parts rely on
_SWITCH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Method:
    """One row: what is split, how much is asked, what changes, what a state is, who is born."""

    name: str
    summary: str
    division: Division
    mechanism: Mechanism
    endpoints: bool = True
    lifecycle: Lifecycle = dataclasses.field(default_factory=EnterQuit)
    presence: Literal["count", "flags", "hidden"] = "count"
    steers: bool = False
    continuous: bool = False
    jump: Literal["split", "clamp"] = "split"
    of_paper: bool = True

    @property
    def uses_length_scale(self) -> bool:
        """Whether streams quit by their length (Eq. 8)."""
        return isinstance(self.lifecycle, EnterQuit | QuitByLength)


def _steered_rows() -> Iterable[Method]:
    ours = Method(
        "steered",
        "our method: phase slots, filters, shrinkage, steering",
        UserDivision(PhaseSlots(age_share=0.1)),
        Filtered(ages=True),
        lifecycle=QuitByAge(),
        steers=True,
        continuous=True,
        jump="clamp",
        of_paper=False,
    )
    yield ours
    yield dataclasses.replace(
        ours,
        name="steered-flags",
        summary="steered, with starting and stopping treated as public",
        division=UserDivision(PhaseSlots(stopping_any_time=True)),
        mechanism=Filtered(presence="flags", ages=False),
        lifecycle=QuitAsSeen(),
        presence="flags",
    )
    yield dataclasses.replace(
        ours,
        name="steered-length",
        summary="steered without age reports: streams quit by their length",
        division=UserDivision(PhaseSlots()),
        mechanism=Filtered(ages=False),
        lifecycle=QuitByLength(),
    )
    yield dataclasses.replace(
        ours,
        name="steered-hidden",
        summary="steered without knowing who is present: the absent report null",
        division=UserDivision(PhaseSlots(presence_share=0.2)),
        mechanism=Filtered(presence="hidden", ages=False),
        lifecycle=QuitByLength(),
        presence="hidden",
    )


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
PAPER_METHOD = "retrasyn-p"


def check_oracle(method: Method, wish: str) -> None:
    """Refuse an oracle whose errors a method does not foresee."""
    if wish != "oue" and isinstance(method.mechanism, ProbeThenPublish):
        raise SettingError(
            f"{method.name} foresees the errors of unary encoding and of nothing else; "
            f"use --oracle oue, not {wish}"
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
            method = _with_part(method, part, dataclasses.replace(part, **{name: value}))
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
    """Return the parts that have settings."""
    parts = [getattr(method.mechanism, "portion", None)]
    if not method.of_paper:
        parts += [method.mechanism, getattr(method.division, "selection", None), method]
    return [part for part in parts if part is not None]


def settings_of(part: Any) -> list[str]:
    """Return the names of a part's settings: its numbers and switches."""
    fixed: tuple[str, ...] = _FIXED
    if isinstance(part, PhaseSlots):  # a role nobody asks for would silence people
        fixed += tuple(name for name in ("age_share", "presence_share") if not getattr(part, name))
    return [
        name
        for name in _fields(part)
        if isinstance(getattr(part, name), (bool, int, float)) and name not in fixed
    ]


def _with_part(method: Method, old: Any, new: Any) -> Method:
    """Return a row with one of its parts replaced."""
    mechanism: Any = method.mechanism
    if old is method:
        return cast("Method", new)
    if old is mechanism:
        return dataclasses.replace(method, mechanism=new)
    if old is getattr(mechanism, "portion", None):
        return dataclasses.replace(method, mechanism=dataclasses.replace(mechanism, portion=new))
    division: Any = dataclasses.replace(method.division, selection=new)
    return dataclasses.replace(method, division=division)


def _questions(method: Method, reading: Interpretation) -> list[str]:
    """Return the questions of a reading that matter to a method."""
    if method.of_paper:
        return _fields(reading)
    own = ["unit", "ledger", "jump", "size_target"]
    return [*own, "length_scale"] if method.uses_length_scale else own


def _fields(part: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(part)] if part is not None else []


def _value(name: str, text: str, like: float) -> float:
    """Read a number or a switch of the kind a setting has now."""
    if isinstance(like, bool):
        if text not in _SWITCH:
            raise SettingError(f"setting {name}={text!r} is neither true nor false")
        return _SWITCH[text]
    try:
        return type(like)(text)
    except ValueError:
        kind = "a whole number" if isinstance(like, int) else "a number"
        raise SettingError(f"setting {name}={text!r} is not {kind}") from None
