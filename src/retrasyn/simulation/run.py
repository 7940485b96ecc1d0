"""From recorded trajectories to a private synthetic stream: in one call, or step by step."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from retrasyn.curator import Curator
from retrasyn.data.activity import Activity
from retrasyn.data.converting import recording_of
from retrasyn.data.folding import folded_as
from retrasyn.data.metadata import Metadata
from retrasyn.data.parts import drop_after
from retrasyn.data.trajectories import Trajectories
from retrasyn.engines.base import Engine, LocalEngine
from retrasyn.engines.shared import shares_of
from retrasyn.errors import InputError, SettingError
from retrasyn.messages import Aggregate, Flags, Grant, Release
from retrasyn.methods import Method
from retrasyn.privacy.receipt import Composition, FoldedDays, Receipt
from retrasyn.privacy.replay import Replay
from retrasyn.roads.opening import open_map
from retrasyn.run_settings import RunOptions, RunSettings
from retrasyn.simulation.accounting import receipt_of, replays_of
from retrasyn.simulation.checkpoint import REPLICAS, Checkpoint, fingerprint
from retrasyn.simulation.composition import ReleaseCount
from retrasyn.simulation.population import Identities, Recording, SimulatedDevices, Step
from retrasyn.simulation.replicas import Heard, Replicas
from retrasyn.simulation.report_sources import Counts, Reports, ReportSource, Truth
from retrasyn.simulation.result import Synthesis
from retrasyn.sinks.collected import Collected
from retrasyn.sinks.parts import PartSink, Scattered
from retrasyn.sinks.spooled import SpooledReplicas
from retrasyn.space import Box, Grid
from retrasyn.space.grid import format_box
from retrasyn.synthesis.shard import MakeSink

if TYPE_CHECKING:
    import os

    from retrasyn.roads.network import RoadNetwork

Progress = Callable[[int, int], None]
"""Called after every timestamp with the number done and the total."""
MOST_SPARSE = 100_000
"""Timestamps over which fewer than one person at a time is taken for a mistake."""
_SIDE = 6  # default side of the grid
_UNIT = Box(0, 0, 1, 1)  # placeholder until the data's own box is known


class BoxInferredWarning(UserWarning):
    """The bounding box was inferred from raw data, which is not private."""


@dataclass(slots=True)
class Simulation:
    """Steps devices and curator through the same timestamps; every grant is recounted twice."""

    curator: Curator
    population: SimulatedDevices
    source: ReportSource
    has_users: bool = False  # whether the data names them
    enrols_on_sight: bool = False
    folded: FoldedDays | None = None  # how many days became one
    n_points_inside: int = 0
    n_points_dropped: int = 0
    n_points_out: int = 0
    replicas: Replicas | None = None
    declared: Replay = field(init=False)  # in the declared unit and ledger key
    personal: Replay = field(init=False)  # per person and position
    _sums: dict[str, tuple[Grant, Aggregate]] = field(default_factory=dict)  # of a timestamp

    def __post_init__(self) -> None:
        self.declared, self.personal = replays_of(self.curator)

    @classmethod
    def of(cls, curator: Curator, identities: Identities) -> Simulation:
        """Create the simulated devices for a curator."""
        settings, division = curator.settings, curator.method.division
        population = SimulatedDevices(
            identities=identities,
            states=curator.states,
            reading=settings.interpretation,
            gap=settings.gap,
            seed=settings.seed,
            everybody_reports=not division.splits_users,
            everybody_enrolled=curator.method.presence == "hidden",
        )
        source: ReportSource = Truth()
        if division.private:
            source = (Counts if settings.door == "counts" else Reports)(settings.seed)
        return cls(curator, population, source)

    @property
    def source_name(self) -> str:
        """How reports arrive."""
        return self.source.name

    @property
    def n_users(self) -> int:
        """Number of persons behind the devices."""
        return self.population.identities.n_persons

    @property
    def n_points_in(self) -> int:
        """Number of positions so far, including those outside the box."""
        return self.n_points_inside + self.n_points_dropped

    @property
    def repeated(self) -> Sequence[Release]:
        """What the replicas released at the last timestamp."""
        return () if self.replicas is None else self.replicas.releases

    def observe(self, step: Step) -> None:
        """Advance the devices to a timestamp without collecting reports."""
        self.population.observe(step)
        self.n_points_inside += step.streams.size

    def step(self, step: Step) -> Release:
        """Run one timestamp."""
        self.observe(step)
        self._sums, roster = {}, self.population.roster()
        flags = Flags(
            n_entering=self.population.n_entering,
            ages_of_quitters=self.population.ages_of_quitters,
        )
        release = self.curator.step(
            step.t, size=self.population.size, roster=roster, collect=self._collect, flags=flags
        )
        self.n_points_out += release.n_points
        if self.replicas is not None:
            heard = Heard(
                t=step.t,
                size=self.population.size,
                n_enrolled=roster.keys.size,
                flags=flags if self.curator.method.presence == "flags" else None,
                sums=self._sums,
            )
            self.replicas.step(heard)
        return release

    def _collect(self, grant: Grant, lane: str) -> Aggregate:
        """Collect the reports of a grant, and pass them to both recounts."""
        if grant.private:
            lookback = grant.question.lookback
            persons = self.population.persons_of(grant)
            self.declared.observe(grant.t, grant.epsilon, grant.reporters, lookback)
            self.personal.observe(grant.t, grant.epsilon, persons, lookback)
        aggregate = self.source.collect(
            grant,
            self.population.answers_to(grant),
            self.population.identities.addresses[grant.reporters].astype(np.uint64),
            lane=lane,
        )
        self._sums[lane] = grant, aggregate
        return aggregate


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A run over recorded trajectories: what `synthesize` does, step by step.

    >>> from retrasyn.simulation.city import CITY_BOX, demo_city
    >>> city = demo_city(n_users=50, n_timestamps=20, seed=3)
    >>> run = SimulatedRun.of(city, RunSettings.of(grid=Grid(CITY_BOX, 4), seed=3))
    >>> release = next(run.releases())
    >>> release.t, run.receipt().last_t
    (0, 0)
    """

    simulation: Simulation
    recording: Recording

    @classmethod
    def of(
        cls,
        real: Trajectories,
        settings: RunSettings,
        *,
        engine: Engine | None = None,
        make_sink: MakeSink | None = None,
        on_ways: Progress | None = None,
    ) -> SimulatedRun:
        """Create the curator and the simulated devices, ready for the first timestamp."""
        real, topics = folded_as(real, settings.fold), settings.method.topics
        recording = Recording.of(real, settings.grid, settings.outside, topics)
        n_replicas, own = settings.replicates, list[Engine]()
        if n_replicas:
            engine, *own = shares_of(LocalEngine() if engine is None else engine, 1 + n_replicas)
        curator = Curator(
            settings,
            mean_length=recording.mean_length,
            engine=engine,
            make_sink=make_sink,
            on_ways=on_ways,
        )
        simulation = Simulation.of(curator, Identities.of(real, settings.interpretation.ledger))
        if n_replicas:
            simulation.replicas = Replicas.of(curator, n_replicas, own)
        simulation.has_users = real.user_of_stream is not None
        simulation.n_points_dropped = recording.n_dropped
        if real.fold is not None:
            simulation.folded = FoldedDays(by=real.fold.by, most_days=real.fold.most_days)
        return cls(simulation, recording)

    def releases(self) -> Iterator[Release]:
        """Yield the remaining releases, one per timestamp."""
        for step in self.recording.steps(after=self.simulation.curator.state.t):
            yield self.simulation.step(step)

    def receipt(self, count: ReleaseCount | None = None) -> Receipt:
        """Return the receipt of the run so far, which counts it if it is to be counted."""
        return receipt_of(self.simulation, composition=self.covered(count))

    def covered(self, count: ReleaseCount | None) -> Composition | None:
        """Count what was spent so far among the releases of the data, before any of it leaves."""
        return None if count is None else count.cover(self.simulation.personal.worst)


def synthesize(
    real: Trajectories | Any,
    method: str | Method | RunSettings | None = None,
    *,
    grid: int | Grid | None = None,
    box: Box | tuple[float, float, float, float] | None = None,
    roads: str | os.PathLike[str] | RoadNetwork | None = None,
    prior: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    on_ways: Progress | None = None,
    on_release: Callable[[Release], None] | None = None,
    engine: Engine | None = None,
    parts: str | os.PathLike[str] | None = None,
    ledger_file: str | os.PathLike[str] | None = None,
    budget: float | None = None,
    anyway: bool = False,
    **options: Unpack[RunOptions],
) -> Synthesis:
    """Synthesise a private stream from recorded trajectories.

    Args:
        real: What the simulated devices sense; or a frame of it, which counts time in steps (see
            `Trajectories.from_frame`).
        method: A row of `METHODS` by its name, or a `Method` of your own; steered, or with
            `faithful` retrasyn-p, if none is given. Or a whole `RunSettings`, beside which no
            grid, box or option may be given.
        grid: Side K of the grid, 6 if none is given, or a whole `Grid`.
        box: The public bounding box; without it that of the map, or else, with a warning, the
            data's own.
        roads: A public road network or a file of one, which streams then drive on. A map drawn
            from participants' traces is not public.
        prior: Where people are likely to be, if not on those roads: see `open_map`.
        checkpoint: A folder to keep finished timestamps in.
        resume: Go on from the checkpoint, if the folder holds one.
        progress: Told after every timestamp how far the run is. A KeyboardInterrupt it raises
            stops the run between two timestamps, with the checkpoint saved.
        on_ways: Told, where streams are to drive, how many ways through the public roads are found.
        on_release: Given every release as it is made, with its standard errors. Releases that a
            checkpoint holds already are not made again.
        engine: Where synthetic streams live: in this process, or on a cluster. The same seed gives
            the same bytes.
        parts: A folder into which every shard writes its points. The trajectories that are
            returned then have none; read the folder.
        ledger_file: A file that counts the releases of the same data: their epsilons add up, and
            the receipt states the sum. Without it the receipt says that the run is not counted.
        budget: With `ledger_file`: the most epsilon that all releases of the data may cost.
        anyway: Run even where almost all of very many timestamps are empty.
        **options: What else `RunSettings.of` takes: epsilon, window, seed, unit, ledger, jump,
            length_scale, outside, faithful, settings, oracle, door, fewest, fold and public_map,
            whose box is then the default.

    Returns:
        The synthetic trajectories and the receipt, as one object that unpacks into both.
    """
    real = recording_of(real)
    if not isinstance(method, RunSettings):
        if roads is not None or prior is not None:
            if options.get("public_map") is not None:
                raise SettingError("a public map has its roads and its prior; give it alone")
            place = grid.box if isinstance(grid, Grid) else box
            options["public_map"] = open_map(place, roads=roads, prior=prior, crs=real.crs)
        settings = _settings_for(real, method, grid, box, options)
    elif options or any(part is not None for part in (grid, box, roads, prior)):
        raise SettingError("give a RunSettings alone: grid, box, map and options are a part of it")
    else:
        settings = method
    if budget is not None and ledger_file is None:
        raise SettingError("a budget for all releases needs ledger_file, which counts them")
    folder = None if parts is None else _folder_for(parts, settings)
    data = "" if checkpoint is None and ledger_file is None else fingerprint(real)
    real = folded_as(real, settings.fold)
    if not anyway:
        refuse_sparse(real)
    saved = count = None
    if checkpoint is not None:
        about = {"data": data} | ({} if parts is None else {"parts": str(parts)})
        saved = Checkpoint.open(checkpoint, settings, about, resume=resume)
        settings = saved.settings
    if ledger_file is not None:
        count = ReleaseCount.open(Path(ledger_file), settings, data, budget=budget)
    run = SimulatedRun.of(
        real,
        settings,
        engine=engine,
        make_sink=None if folder is None else _sink_for(real, folder),
        on_ways=on_ways,
    )
    collected = Collected() if folder is None else Scattered(folder)
    if folder is not None and (saved is None or not saved.resumes):
        folder.mkdir(parents=True, exist_ok=True)
        drop_after(folder, -1)  # left over from an abandoned run
    replicas = SpooledReplicas.open(
        settings.replicates,
        Metadata(real.clock, real.crs),
        None if saved is None else saved.folder / REPLICAS,
    )
    _run(run, collected, replicas, saved, progress, _counted(on_release, run, count))
    synthetic = dataclasses.replace(collected.trajectories(), clock=real.clock, crs=real.crs)
    return Synthesis(synthetic, run.receipt(count), real=real, settings=settings, replicas=replicas)


def refuse_sparse(real: Trajectories) -> None:
    """Refuse data of which next to nothing can be learnt, and that in a long time.

    With fewer than one person at a time less than one report comes in per window, as everybody
    reports once in it, while every timestamp costs its fit. A running `stream` refuses as many
    timestamps without anybody.
    """
    if real.last_t - real.first_t >= MOST_SPARSE and (active := Activity.of(real)).mean < 1.0:
        raise InputError(
            f"too few: {active.words}, so less than one report comes in per window; try a longer "
            '`every` or `fold="day"` (retrasyn suggest FILE says which), or `anyway=True`'
        )


def _settings_for(
    real: Trajectories,
    method: str | Method | None,
    grid: int | Grid | None,
    box: Box | tuple[float, float, float, float] | None,
    options: RunOptions,
) -> RunSettings:
    """Return settings over the box that was given, else that of the map, else the data's own."""
    grid, known = _SIDE if grid is None else grid, options.get("public_map")
    if box is None and known is not None:
        box = known.box
    cells = grid if isinstance(grid, Grid) else Grid(Box(*(box or _UNIT)), grid)
    settings = RunSettings.of(method, grid=cells, **options)
    return over_data(settings, real) if box is None and not isinstance(grid, Grid) else settings


def _counted(
    on_release: Callable[[Release], None] | None, run: SimulatedRun, count: ReleaseCount | None
) -> Callable[[Release], None] | None:
    """Return a callback that counts a run before it hands a release on."""
    if on_release is None or count is None:
        return on_release

    def hand_on(release: Release) -> None:
        run.covered(count)
        on_release(release)

    return hand_on


def over_data(settings: RunSettings, real: Trajectories) -> RunSettings:
    """Return settings with the bounding box of the raw data, warning that it is not private."""
    box = Box.around(real.x, real.y)
    warnings.warn(
        f"no box was given, so the bounding box of the raw data is used: {format_box(box)}. "
        "It shows the outermost positions and is NOT private; give a public `box`",
        BoxInferredWarning,
        stacklevel=4,
    )
    return dataclasses.replace(settings, grid=Grid(box, settings.grid.side), box_inferred=True)


def _folder_for(parts: str | os.PathLike[str], settings: RunSettings) -> Path:
    """Return the folder for parts, which cannot be of a release with replicas."""
    if settings.replicates:
        raise SettingError(
            "replicas cannot go with parts: each is one file; leave `parts` or `replicates`"
        )
    return Path(parts)


def _sink_for(real: Trajectories, folder: Path) -> MakeSink:
    """Return a factory for the sinks of shards that write their own parts."""
    known = Metadata(real.clock, real.crs)
    return partial(PartSink.open, folder=str(folder.absolute()), known=known)


def _run(
    run: SimulatedRun,
    collected: Collected | Scattered,
    replicas: SpooledReplicas,
    checkpoint: Checkpoint | None,
    progress: Progress | None,
    on_release: Callable[[Release], None] | None,
) -> None:
    """Step through the recording, saving checkpoints on the way."""
    simulation, recording = run.simulation, run.recording

    def save(*, finished: bool = False) -> None:
        replicas.flush()
        if checkpoint is not None:
            checkpoint.save(simulation, collected, finished=finished)

    done = None
    if checkpoint is not None and checkpoint.resumes:
        checkpoint.load(simulation, collected)
        done = simulation.curator.state.t
        collected.go_on_from(done)
        simulation.n_points_out = collected.n_points
        for step in recording.steps(until=done):
            simulation.observe(step)
    replicas.go_on_from(-1 if done is None else done)
    for release in run.releases():
        collected.write(release)
        replicas.write(simulation.repeated)
        if on_release is not None:
            on_release(release)
        if checkpoint is not None and checkpoint.due():
            save()
        if progress is not None:
            try:
                progress(release.t - recording.first_t + 1, recording.n_timestamps)
            except KeyboardInterrupt:
                save()
                raise
    save(finished=True)
    simulation.curator.state.streams.flush()
