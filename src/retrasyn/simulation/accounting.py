"""The independent recount of a run's spending, and the receipt that states it."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from retrasyn.curator import Curator, CuratorState
from retrasyn.messages import MICRO, Question
from retrasyn.methods import Method, parts_of, settings_of
from retrasyn.oracles.registry import find_oracle, n_answers
from retrasyn.privacy.receipt import (
    PERSON_DAY,
    Composition,
    FoldedDays,
    Lifetime,
    PublicKnowledge,
    Receipt,
    ReportedRounds,
    ReportNoise,
    StandardErrors,
    WorstWindow,
    WorstWindows,
    describe_presence,
    headline_of,
    left_open,
    state_guarantee,
)
from retrasyn.privacy.replay import Replay
from retrasyn.privacy.usual_place import UsualPlace, telling
from retrasyn.roads.public_map import PublicMap
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.replicas import Replicas


class AccountedRun(Protocol):
    """What a receipt is made from: a curator, the recounts of its reports, and their origin."""

    curator: Curator
    declared: Replay  # in the declared unit and ledger key
    personal: Replay  # per person and position
    replicas: Replicas | None

    @property
    def source_name(self) -> str:
        """How reports arrive."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def has_users(self) -> bool:
        """Whether it is known which streams belong to the same person."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def enrols_on_sight(self) -> bool:
        """Whether devices are enrolled when first seen."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def folded(self) -> FoldedDays | None:
        """How many days became one; None if they were taken as they came."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_users(self) -> int:
        """Number of persons behind the devices."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_points_in(self) -> int:
        """Number of positions so far, including those outside the box."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_points_dropped(self) -> int:
        """Number of positions outside the box."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_points_out(self) -> int:
        """Number of synthetic points so far."""
        ...  # pragma: no cover - a protocol has no body


def replays_of(curator: Curator) -> tuple[Replay, Replay]:
    """Return two empty recounts: in the declared unit and key, and per person and position."""
    furthest = curator.method.furthest_lookback(curator.gap)
    return Replay(curator.gap, furthest), Replay(curator.window + 1, furthest)


DEVICES = "rounds"
"""The source of reports that real devices make: each counts what it sends itself."""


def usual_place_of(
    settings: RunSettings, *, period: float | None = None, lifetime_cap: float | None = None
) -> UsualPlace | None:
    """Return what the linked reports of one device tell; None if nothing, or not private."""
    if not settings.method.division.private:
        return None
    oracle = find_oracle(settings.chosen_oracle)
    asked = [Question(about=about) for about in telling(settings.method.topics)]
    return UsualPlace.of(
        [oracle.support(settings.budget, n_answers(one, settings.states)) for one in asked],
        n_places=settings.grid.n_cells,
        gap=settings.gap,
        period=period,
        lifetime_cap=lifetime_cap,
    )


def receipt_of(
    run: AccountedRun,
    *,
    after: int | None = None,
    period: float | None = None,
    lifetime_cap: float | None = None,
    composition: Composition | None = None,
) -> Receipt:
    """Return the receipt of a run so far, with all its rounds or only those after a timestamp.

    A campaign has a period, in seconds, and a lifetime cap, in nats; a simulation has neither.
    `composition` is what all releases of its data cost; None if it is not counted among them.
    """
    curator, state = run.curator, run.curator.state
    first_t = 0 if state.first_t is None else state.first_t
    last_t = -1 if state.t is None else state.t
    timestamps = last_t - first_t + 1
    settings, method = curator.settings, curator.method
    reading, private = settings.interpretation, method.division.private
    ledger = ledger_of(reading.ledger, run.folded) if run.has_users else "stream"
    lifetime = Lifetime.of(
        per=ledger,
        timestamps=timestamps,
        gap=curator.gap,
        epsilon=curator.epsilon / MICRO,
        private=private,
    )
    clipped = bool(run.n_points_dropped)
    worst_declared, worst_personal = run.declared.worst, run.personal.worst
    declared = WorstWindow(
        unit=reading.unit,
        per=ledger,
        timestamps=curator.gap,
        epsilon=worst_declared / MICRO if private else None,
    )
    personal = WorstWindow(
        unit="position",
        per="person" if run.has_users else "stream (the data names no users)",
        timestamps=curator.window + 1,
        epsilon=worst_personal / MICRO if private else None,
    )
    usual_place = usual_place_of(settings, period=period, lifetime_cap=lifetime_cap)
    scale = curator.length_scale
    errors = state.mean_errors
    within = private and worst_declared <= curator.epsilon
    return Receipt(
        headline=headline_of(
            private=private,
            within_guarantee=within,
            seeded=not settings.seed_is_secret,
            epsilon=curator.epsilon / MICRO,
            window=curator.window,
            unit=reading.unit,
            composition=composition,
            folded=run.folded,
        ),
        method=method.name,
        summary=method.summary,
        private=private,
        guarantee=state_guarantee(
            private=private,
            epsilon=curator.epsilon / MICRO,
            window=curator.window,
            unit=reading.unit,
            ledger=ledger,
            presence=method.presence,
            folded=run.folded,
        ),
        unit=reading.unit,
        ledger=ledger,
        window=curator.window,
        gap=curator.gap,
        epsilon=curator.epsilon / MICRO,
        division=method.division.name,
        oracle=curator.oracle if private else "none",
        noise=(
            noise_of(curator.oracle, curator.epsilon, curator.states.n_states) if private else None
        ),
        door=run.source_name,
        worst_window=WorstWindows(declared=declared, person_position=personal),
        within_guarantee=within,
        within_epsilon_per_person=private and worst_personal <= curator.epsilon,
        lifetime=lifetime,
        usual_place=usual_place,
        presence=describe_presence(method.presence, clipped=clipped),
        seed=settings.public_seed,
        grid=curator.grid.side,
        box=curator.grid.box,
        box_inferred_from_data=settings.box_inferred,
        length_scale=scale or ("released" if method.lifecycle.uses_length else "not used"),
        length_scale_from_data=reading.length_scale == "data",
        jump=reading.jump,
        timestamps=timestamps,
        first_t=first_t,
        last_t=last_t,
        n_reports=state.n_reports,
        n_users=run.n_users,
        n_points_in=None if method.presence == "hidden" else run.n_points_in,
        n_points_dropped=run.n_points_dropped,
        n_points_out=run.n_points_out,
        n_streams_out=state.streams.next_id,
        faithful=settings.faithful,
        reading=dataclasses.asdict(reading),
        settings=_settings_of(method),
        not_protected=left_open(
            private=private,
            presence=method.presence,
            unit=reading.unit,
            ledger=reading.ledger,
            jump=reading.jump,
            seeded=not settings.seed_is_secret,
            counted=composition is not None or run.source_name == DEVICES,
            has_users=run.has_users,
            box_inferred=settings.box_inferred,
            length_from_data=reading.length_scale == "data",
            enrols_on_sight=run.enrols_on_sight,
            clipped=clipped,
            usual_place=usual_place,
            mapped=settings.public_map is not None,
            folded=() if run.folded is None else run.folded.limits(lifetime),
        ),
        standard_error=None if errors is None else StandardErrors(*errors),
        public_map=_public_knowledge(settings.public_map),
        rounds=_rounds_of(state, after),
        composition=composition,
        folded=run.folded,
    )


def ledger_of(ledger: str, folded: FoldedDays | None) -> str:
    """Return whose spending is counted, where every day of a person may count on its own."""
    return PERSON_DAY if folded is not None and folded.by == PERSON_DAY else ledger


def noise_of(name: str, epsilon: int, n_answers: int) -> ReportNoise:
    """Return the law of an oracle's reports at a budget in micro-nats."""
    oracle = find_oracle(name).at(epsilon, n_answers)
    return ReportNoise(answers=n_answers, threshold=hex(oracle.threshold), p=oracle.p, q=oracle.q)


def _public_knowledge(known: PublicMap | None) -> PublicKnowledge | None:
    """Return what a receipt says of a public map; its box is that of the grid."""
    if known is None:
        return None
    told = known.to_dict()
    del told["box"]
    return PublicKnowledge(**told)


def _rounds_of(state: CuratorState, after: int | None) -> ReportedRounds:
    """Return the curator's rounds as columns."""
    rounds = [row for row in state.rounds if after is None or row[0] > after]
    return ReportedRounds(
        t=tuple(t for t, _, _ in rounds),
        n_reports=tuple(n for _, n, _ in rounds),
        epsilon=tuple(spent / MICRO for _, _, spent in rounds),
    )


def _settings_of(method: Method) -> dict[str, Any]:
    """Return the settings of a method's parts by name."""
    return {name: getattr(part, name) for part in parts_of(method) for name in settings_of(part)}
