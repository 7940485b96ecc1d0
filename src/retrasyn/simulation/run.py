"""From recorded trajectories to a private synthetic stream, in one call."""

from __future__ import annotations

import dataclasses
import secrets
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from retrasyn.data.metadata import Metadata
from retrasyn.data.parts import drop_after
from retrasyn.data.trajectories import Trajectories
from retrasyn.engines.base import Engine
from retrasyn.errors import SettingError
from retrasyn.messages import Release
from retrasyn.oracles.registry import OracleWish
from retrasyn.privacy.receipt import Receipt
from retrasyn.simulation.checkpoint import Checkpoint, fingerprint
from retrasyn.simulation.plan import Plan
from retrasyn.simulation.population import Identities, Outside, Recording, stable_words
from retrasyn.simulation.simulation import Simulation
from retrasyn.sinks.collected import Collected
from retrasyn.sinks.parts import PartSink, Scattered
from retrasyn.space import Box, Grid
from retrasyn.space.grid import format_box
from retrasyn.synthesis.shard_base import MakeSink

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

Progress = Callable[[int, int], None]
"""Called after every timestamp with how many are done and how many there are."""


class BoxInferredWarning(UserWarning):
    """The bounding box was taken from raw data, which is not private."""


class Synthesis(NamedTuple):
    """What `synthesize` returns."""

    synthetic: Trajectories
    receipt: Receipt


def synthesize(
    real: Trajectories,
    method: str | None = None,
    *,
    epsilon: float = 1.0,
    window: int = 20,
    grid: int | Grid = 6,
    box: Box | tuple[float, float, float, float] | None = None,
    seed: int | Literal["random"] = 0,
    unit: Literal["position", "transition"] | None = None,
    ledger: Literal["user", "stream"] | None = None,
    jump: Literal["split", "clamp"] | None = None,
    length_scale: Literal["released", "data"] | float | None = None,
    outside: Outside = "refuse",
    faithful: bool = False,
    settings: Mapping[str, str] | None = None,
    oracle: OracleWish = "oue",
    door: Literal["counts", "reports"] = "counts",
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    on_release: Callable[[Release], None] | None = None,
    engine: Engine | None = None,
    parts: str | os.PathLike[str] | None = None,
) -> Synthesis:
    """Synthesise a private stream from recorded trajectories.

    Args:
        real: What the simulated devices sense.
        method: A row of `METHODS`; steered, or with `faithful` retrasyn-p, if none is given.
        epsilon: Privacy budget over any window.
        window: Length w of the protected window, in timestamps.
        grid: Side K of the grid, or a whole `Grid`.
        box: The public bounding box; without it the data's own is taken, with a warning.
        seed: Repeats the run exactly; "random" draws one and keeps it out of the receipt.
        unit: What a window protects; "position" unless the reading says otherwise.
        ledger: Whose spending is counted; "user" unless the reading says otherwise.
        jump: What a step beyond the neighbouring cells is.
        length_scale: Lambda of Eq. 8.
        outside: What to do with points outside the box.
        faithful: Answer every open question as the authors' program does.
        settings: Further settings by name, such as alpha, kappa and p_max.
        oracle: How states are hidden: "oue", "grr" or "olh", "auto" for the least variance, or
            "small" for the smallest report.
        door: Draw the sum of all reports at once, or every report bit by bit.
        checkpoint: A folder to keep finished timestamps in.
        resume: Go on from the checkpoint, if the folder holds one.
        progress: Told after every timestamp how far the run is. A KeyboardInterrupt it raises
            stops the run between two timestamps, with the checkpoint saved.
        on_release: Given every release as it is made, with its standard errors. Releases that a
            checkpoint holds already are not made again.
        engine: Where synthetic streams live: in this process, or on a cluster. The same seed gives
            the same bytes.
        parts: A folder into which every shard writes its points. The trajectories that are
            returned then have none; read the folder.

    Returns:
        The synthetic trajectories and the receipt.
    """
    plan = Plan.of(
        method,
        unit=unit,
        ledger=ledger,
        jump=jump,
        length_scale=length_scale,
        faithful=faithful,
        settings=settings,
        oracle=oracle,
    )
    if seed != "random" and (isinstance(seed, str) or seed < 0):
        raise SettingError(f"seed={seed!r} must be a whole number from 0 on, or random")
    cells, inferred = _grid_for(real, grid, box)
    secret = secrets.randbits(128) if seed == "random" else seed
    keeper = None
    if checkpoint is not None:
        configuration = {
            "method": plan.method.name,
            "settings": dict(plan.settings),
            "epsilon": epsilon,
            "window": window,
            "side": cells.side,
            "box": list(cells.box),
            "reading": dataclasses.asdict(plan.reading),
            "outside": outside,
            "seed": seed,
            "oracle": oracle,
            "door": door,
            "data": fingerprint(real),
        }
        if parts is not None:
            configuration["parts"] = str(parts)
        keeper = Checkpoint.open(checkpoint, configuration, secret=secret, resume=resume)
        secret = keeper.secret
    recording = Recording.of(real, cells, outside)
    simulation = set_up(
        plan,
        real,
        recording,
        cells,
        epsilon=epsilon,
        window=window,
        seed=secret,
        door=door,
        engine=engine,
        make_sink=None if parts is None else _sink_for(real, Path(parts)),
    )
    collected = Collected() if parts is None else Scattered(Path(parts))
    if parts is not None and (keeper is None or not keeper.resumes):
        drop_after(Path(parts), -1)  # of a run that nobody goes on with
    _run(simulation, recording, collected, keeper, progress, on_release)
    synthetic = dataclasses.replace(collected.trajectories(), clock=real.clock, crs=real.crs)
    receipt = plan.receipt(
        simulation,
        seed=None if seed == "random" else secret,
        has_users=real.user_of_stream is not None,
        box_inferred=inferred,
        enrols_on_sight=False,
        n_points_in=real.n_points,
        n_points_dropped=recording.n_dropped,
        n_points_out=collected.n_points,
    )
    return Synthesis(synthetic, receipt)


def set_up(
    plan: Plan,
    real: Trajectories,
    recording: Recording,
    grid: Grid,
    *,
    epsilon: float,
    window: int,
    seed: int,
    door: Literal["counts", "reports"] = "counts",
    engine: Engine | None = None,
    make_sink: MakeSink | None = None,
) -> Simulation:
    """Return a curator and the devices of recorded people, ready for the first timestamp."""
    return plan.simulation(
        grid,
        _identities(real, plan.reading.ledger),
        epsilon=epsilon,
        window=window,
        seed=seed,
        mean_length=recording.mean_length,
        door=door,
        engine=engine,
        make_sink=make_sink,
    )


def _sink_for(real: Trajectories, folder: Path) -> MakeSink:
    """Return what makes the sinks of shards that write their own parts."""
    known = Metadata(real.clock, real.crs)
    return partial(PartSink.open, folder=str(folder.absolute()), known=known)


def _run(
    simulation: Simulation,
    recording: Recording,
    collected: Collected | Scattered,
    keeper: Checkpoint | None,
    progress: Progress | None,
    on_release: Callable[[Release], None] | None,
) -> None:
    """Step through the recording, saving on the way."""
    done: int | None = None
    if keeper is not None and keeper.resumes:
        keeper.load(simulation, collected)
        done = simulation.curator.state.t
        collected.go_on_from(done)
        for step in recording.steps(until=done):
            simulation.population.observe(step)
    for step in recording.steps(after=done):
        release = simulation.step(step)
        collected.write(release)
        if on_release is not None:
            on_release(release)
        if keeper is not None and keeper.due():
            keeper.save(simulation, collected)
        if progress is not None:
            try:
                progress(step.t - recording.first_t + 1, recording.n_timestamps)
            except KeyboardInterrupt:
                if keeper is not None:
                    keeper.save(simulation, collected)
                raise
    if keeper is not None:
        keeper.save(simulation, collected, finished=True)
    simulation.curator.state.streams.flush()


def _grid_for(
    real: Trajectories, grid: int | Grid, box: tuple[float, float, float, float] | None
) -> tuple[Grid, bool]:
    """Return the grid, and whether its box had to be taken from the data."""
    if isinstance(grid, Grid):
        return grid, False
    if box is not None:
        return Grid(Box(*box), grid), False
    inferred = bounding_box(real)
    warnings.warn(
        f"no box was given, so the bounding box of the raw data is used: {format_box(inferred)}. "
        "It shows the outermost positions and is NOT private; give a public one with --box",
        BoxInferredWarning,
        stacklevel=3,
    )
    return Grid(inferred, grid), True


def bounding_box(real: Trajectories) -> Box:
    """Return the smallest box around all points, widened where it has no extent."""
    sides: list[tuple[float, float]] = []
    for values in (real.x, real.y):
        low, high = float(values.min()), float(values.max())
        if high - low <= 1e-6 * max(abs(low), abs(high)):
            margin = max(1e-3 * max(abs(low), abs(high)), 0.5)
            low, high = low - margin, high + margin
        sides.append((low, high))
    return Box(sides[0][0], sides[1][0], sides[0][1], sides[1][1])


def _identities(real: Trajectories, ledger: Literal["user", "stream"]) -> Identities:
    """Number ledger keys and persons, with a stable word each."""
    words = _words(real, "traj_id", real.stream_ids)  # [n_streams]
    streams = np.arange(real.n_streams)
    users, user_words = streams, words
    if real.user_of_stream is not None:
        user_ids, users = np.unique(real.user_of_stream, return_inverse=True)
        user_words = _words(real, "user_id", user_ids)
    identities = Identities.none()
    if ledger == "user":
        identities.add_keys(user_words, np.arange(user_words.size))
        identities.add_streams(users.astype(np.int64))
    else:
        identities.add_keys(words, users.astype(np.int64))
        identities.add_streams(streams)
    return identities


def _words(
    real: Trajectories, column: str, identifiers: npt.NDArray[Any]
) -> npt.NDArray[np.uint64]:
    """Return the stable words of identifiers, of their text where they are coded text."""
    labels = real.labels.get(column)
    return stable_words((identifiers if labels is None else labels[identifiers]).tolist())
