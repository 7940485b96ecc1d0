"""What to run and how to read the paper: shared by recorded and live simulation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retrasyn.curator import Curator, CuratorState
from retrasyn.engines.base import Engine
from retrasyn.errors import SettingError
from retrasyn.interpretation import AUTHORS, SAFE, Interpretation
from retrasyn.messages import MICRO
from retrasyn.methods import (
    DEFAULT_METHOD,
    PAPER_METHOD,
    Method,
    check_oracle,
    configure,
    find_method,
    parts_of,
    settings_of,
)
from retrasyn.oracles.choice import named_oracle
from retrasyn.oracles.registry import OracleWish
from retrasyn.privacy.receipt import (
    Lifetime,
    Receipt,
    ReportedRounds,
    ReportNoise,
    StandardErrors,
    WorstWindow,
    WorstWindows,
    describe_presence,
    left_open,
    state_guarantee,
)
from retrasyn.simulation.population import Identities
from retrasyn.simulation.report_sources import Counts, Reports
from retrasyn.simulation.simulation import AccountedRun, Simulation
from retrasyn.space import Grid
from retrasyn.synthesis.shard_base import MakeSink


@dataclass(frozen=True, slots=True)
class Plan:
    """A configured method and a reading."""

    method: Method
    reading: Interpretation
    faithful: bool
    settings: Mapping[str, str]
    oracle: OracleWish = "oue"

    @classmethod
    def of(
        cls,
        method: str | None = None,
        *,
        unit: str | None = None,
        ledger: str | None = None,
        jump: str | None = None,
        length_scale: str | float | None = None,
        faithful: bool = False,
        settings: Mapping[str, str] | None = None,
        oracle: OracleWish = "oue",
    ) -> Plan:
        """Combine a method's row with what was asked for; None leaves a question as it is read."""
        usual = PAPER_METHOD if faithful else DEFAULT_METHOD
        row = find_method(usual if method is None else method)
        if faithful and not row.of_paper:
            raise SettingError(
                f"{row.name} is not a method of the paper; --faithful goes with {PAPER_METHOD} "
                "and its relatives"
            )
        if length_scale is not None and not (row.of_paper or row.lifecycle.uses_length):
            raise SettingError(
                f"{row.name} has no length scale: it does not end streams by their length"
            )
        check_oracle(row, oracle)
        asked = {"unit": unit, "ledger": ledger, "jump": jump, "length_scale": length_scale}
        answers = {name: value for name, value in asked.items() if value is not None}
        own = AUTHORS if faithful else SAFE.answer(jump=row.jump)
        reading = own.answer(**answers)
        row, reading = configure(row, reading, settings or {})
        if reading.length_scale == "data" and not faithful:
            raise SettingError(
                "length scale 'data' is learnt from raw positions and breaks the guarantee; use "
                "'released' or a public number (--faithful allows it, for reproduction only)"
            )
        if reading.jump == "authors" and reading.ledger == "user":
            raise SettingError(
                "a jump read as the authors do may report twice, so the ledger cannot be the "
                "user's; use --jump split or clamp, or --ledger stream"
            )
        return cls(row, reading, faithful, dict(settings or {}), oracle)

    def simulation(
        self,
        grid: Grid,
        identities: Identities,
        *,
        epsilon: float,
        window: int,
        seed: int,
        mean_length: float | None = None,
        door: Literal["counts", "reports"] = "counts",
        engine: Engine | None = None,
        make_sink: MakeSink | None = None,
    ) -> Simulation:
        """Set a curator and its simulated devices up."""
        curator = self.curator(
            grid,
            epsilon=epsilon,
            window=window,
            seed=seed,
            mean_length=mean_length,
            engine=engine,
            make_sink=make_sink,
        )
        return Simulation.of(
            curator, identities, Counts(seed) if door == "counts" else Reports(seed)
        )

    def curator(
        self,
        grid: Grid,
        *,
        epsilon: float,
        window: int,
        seed: int,
        mean_length: float | None = None,
        engine: Engine | None = None,
        make_sink: MakeSink | None = None,
    ) -> Curator:
        """Set a curator up."""
        scale = self.reading.length_scale
        number = mean_length if scale == "data" else None if scale == "released" else scale
        if scale == "data" and mean_length is None:
            raise SettingError(
                "length scale 'data' needs recorded data; give a public number with --length-scale"
            )
        return Curator(
            grid,
            self.method,
            epsilon=epsilon,
            window=window,
            seed=seed,
            reading=self.reading,
            length_scale=None if number is None else float(number),
            oracle=self.oracle,
            engine=engine,
            make_sink=make_sink,
        )

    def receipt(
        self,
        simulation: AccountedRun,
        *,
        seed: int | None,
        has_users: bool,
        box_inferred: bool,
        enrols_on_sight: bool,
        n_points_in: int,
        n_points_dropped: int,
        n_points_out: int,
        rounds: ReportedRounds | None = None,
    ) -> Receipt:
        """State what a run did, from its own counts and the replays; all rounds if none given."""
        curator, state = simulation.curator, simulation.curator.state
        reading, private = self.reading, curator.method.division.private
        ledger = reading.ledger if has_users else "stream"
        declared = WorstWindow(
            unit=reading.unit,
            per=ledger,
            timestamps=curator.gap,
            epsilon=simulation.declared.worst / MICRO if private else None,
        )
        personal = WorstWindow(
            unit="position",
            per="person" if has_users else "stream (the data names no users)",
            timestamps=curator.window + 1,
            epsilon=simulation.personal.worst / MICRO if private else None,
        )
        scale = curator.length_scale
        errors = state.mean_errors
        first_t = 0 if state.first_t is None else state.first_t
        last_t = -1 if state.t is None else state.t
        return Receipt(
            method=self.method.name,
            summary=self.method.summary,
            private=private,
            guarantee=state_guarantee(
                private=private,
                epsilon=curator.epsilon / MICRO,
                window=curator.window,
                unit=reading.unit,
                ledger=ledger,
                presence=curator.method.presence,
            ),
            unit=reading.unit,
            ledger=ledger,
            window=curator.window,
            gap=curator.gap,
            epsilon=curator.epsilon / MICRO,
            division=curator.method.division.name,
            oracle=curator.oracle if private else "none",
            noise=(
                noise_of(curator.oracle, curator.epsilon, curator.states.n_states)
                if private
                else None
            ),
            door=simulation.door_name,
            worst_window=WorstWindows(declared=declared, person_position=personal),
            within_guarantee=private and simulation.declared.worst <= curator.epsilon,
            within_epsilon_per_person=private and simulation.personal.worst <= curator.epsilon,
            lifetime=Lifetime.of(
                per=ledger,
                timestamps=last_t - first_t + 1,
                gap=curator.gap,
                epsilon=curator.epsilon / MICRO,
                private=private,
            ),
            presence=describe_presence(curator.method.presence, clipped=bool(n_points_dropped)),
            seed=seed,
            grid=curator.grid.side,
            box=curator.grid.box,
            box_inferred_from_data=box_inferred,
            length_scale=scale or ("released" if self.method.lifecycle.uses_length else "not used"),
            length_scale_from_data=reading.length_scale == "data",
            jump=reading.jump,
            timestamps=last_t - first_t + 1,
            first_t=first_t,
            last_t=last_t,
            n_reports=state.n_reports,
            n_users=simulation.n_users,
            n_points_in=None if curator.method.presence == "hidden" else n_points_in,
            n_points_dropped=n_points_dropped,
            n_points_out=n_points_out,
            n_streams_out=state.streams.next_id,
            faithful=self.faithful,
            reading=dataclasses.asdict(reading),
            settings=_settings_of(self.method),
            not_protected=left_open(
                private=private,
                presence=curator.method.presence,
                unit=reading.unit,
                ledger=reading.ledger,
                jump=reading.jump,
                seeded=seed is not None,
                has_users=has_users,
                box_inferred=box_inferred,
                length_from_data=reading.length_scale == "data",
                enrols_on_sight=enrols_on_sight,
                clipped=bool(n_points_dropped),
            ),
            standard_error=None if errors is None else StandardErrors(*errors),
            rounds=rounds or _rounds_of(state),
        )


def noise_of(name: str, epsilon: int, n_answers: int) -> ReportNoise:
    """State the law of an oracle at a budget in micro-nats."""
    oracle = named_oracle(name, epsilon, n_answers)
    return ReportNoise(answers=n_answers, threshold=hex(oracle.threshold), p=oracle.p, q=oracle.q)


def _rounds_of(state: CuratorState) -> ReportedRounds:
    """Return the curator's rounds as columns."""
    return ReportedRounds(
        t=tuple(t for t, _, _ in state.rounds),
        n_reports=tuple(n for _, n, _ in state.rounds),
        epsilon=tuple(spent / MICRO for _, _, spent in state.rounds),
    )


def _settings_of(method: Method) -> dict[str, Any]:
    """Return the settings of a method's parts by name."""
    return {name: getattr(part, name) for part in parts_of(method) for name in settings_of(part)}
