"""From settings and a method's row to the manifest that devices agree to."""

from __future__ import annotations

from typing import Any, Literal

from retrasyn.curator import micro_nats
from retrasyn.errors import SettingError
from retrasyn.mechanisms.filtered import Filtered
from retrasyn.mechanisms.one_ask import OneAsk
from retrasyn.messages import MICRO, Manifest
from retrasyn.methods import Method
from retrasyn.oracles.choice import choose_oracle
from retrasyn.privacy.division import NoPrivacy, Population
from retrasyn.privacy.selection import OwnSlot, PhaseSlots, age_thresholds
from retrasyn.service.settings import CampaignSettings
from retrasyn.simulation.plan import Plan
from retrasyn.space import Box, Grid, StateSpace

Sampling = Literal["phase", "self", "curator"]


def plan_of(settings: CampaignSettings) -> Plan:
    """Return the configured method, if real devices can answer it."""
    texts = {name: _text(value) for name, value in settings.settings.items()}
    plan = Plan.of(settings.method, unit=settings.unit, settings=texts, oracle=settings.oracle)
    method = plan.method
    if isinstance(method.division, NoPrivacy):
        raise SettingError(f"{method.name} is not private; no device answers it")
    if not isinstance(method.mechanism, OneAsk | Filtered):
        raise SettingError(
            f"{method.name} asks twice at a timestamp; the service runs methods that ask once, "
            "such as steered or retrasyn-p"
        )
    if plan.reading.ledger != "user" or plan.reading.unit != settings.unit:
        raise SettingError("a device has one ledger and one unit; leave both out of the settings")
    if settings.seconds_open > settings.period:
        raise SettingError(
            f"close_after={settings.seconds_open} is longer than the period of {settings.period} s"
        )
    return plan


def sampling_of(settings: CampaignSettings, method: Method) -> Sampling:
    """Return who decides which devices report."""
    wish = settings.sampling
    slots = isinstance(method.division, Population) and isinstance(
        method.division.selection, PhaseSlots | OwnSlot
    )
    if wish == "auto":
        return "phase" if slots else "self"
    if slots:
        raise SettingError(
            f"sampling={wish!r}: with {method.name} every device has a slot of its own; use auto"
        )
    if wish == "curator" and not method.division.splits_users:
        raise SettingError(
            f"sampling={wish!r}: {method.name} asks everybody, so nobody is drawn; use auto"
        )
    return wish


def grid_of(settings: CampaignSettings) -> Grid:
    """Return the grid with its box in whole millionths, as devices read it."""
    Grid(Box(*settings.box), settings.grid)  # says what is wrong with a box
    return Grid(Box(*(corner / MICRO for corner in _micro(settings))), settings.grid)


def manifest_of(settings: CampaignSettings, plan: Plan, *, key: bytes, epoch: int) -> Manifest:
    """Write the promise down."""
    method, gap = plan.method, plan.reading.gap(settings.window)
    states = StateSpace(grid_of(settings), endpoints=method.endpoints)
    epsilon = micro_nats(settings.epsilon)
    each = epsilon if method.division.splits_users else max(1, epsilon // gap)
    strata, other_share = _strata(method)
    fields: dict[str, Any] = {
        "division": method.division.name,
        "oracle": choose_oracle(settings.oracle, each, states.n_states),
        "jump": plan.reading.jump,
    }
    return Manifest(
        name=settings.name,
        key=key,
        box=_micro(settings),
        side=settings.grid,
        state_order=1,
        n_states=states.n_states,
        period=settings.period,
        epoch=epoch,
        window=settings.window,
        unit=settings.unit,
        gap=gap,
        epsilon=epsilon,
        sampling=sampling_of(settings, method),
        presence=method.presence,
        size_source="estimated" if method.presence == "hidden" else "counted",
        strata=strata,
        other_share=other_share,
        ages=age_thresholds(gap) if "older" in strata else (),
        lifetime_cap=int(settings.lifetime_cap * MICRO),
        retention=settings.retention,
        **fields,
    )


def _strata(method: Method) -> tuple[tuple[str, ...], int]:
    """Return what is asked, and the share of devices in the second role, in millionths."""
    if method.presence == "flags":
        return ("move", "enter", "quit"), 0
    selection = getattr(method.division, "selection", None)
    if isinstance(selection, PhaseSlots) and isinstance(method.mechanism, Filtered):
        if method.presence == "hidden":
            return ("transition", "present"), round(selection.presence_share * MICRO)
        if method.mechanism.ages:
            return ("transition", "older"), round(selection.age_share * MICRO)
    return ("transition",), 0


def _micro(settings: CampaignSettings) -> tuple[int, int, int, int]:
    x0, y0, x1, y1 = (round(corner * MICRO) for corner in settings.box)
    return x0, y0, x1, y1


def _text(value: str | float | bool) -> str:  # noqa: FBT001 - a switch of a method is a value
    """Write a setting as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
