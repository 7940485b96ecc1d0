"""Raw positions, in a file or a frame, to trajectories: what `retrasyn convert` does, in Python."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Literal

from retrasyn.data.conversion_summary import ConversionSummary
from retrasyn.data.discretise import discretise
from retrasyn.data.formats import Options, read_fixes
from retrasyn.data.formats.tables import read_frame
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, SettingError
from retrasyn.space import Box


class ConversionWarning(UserWarning):
    """Something was read that may not be what was meant, above all who a person is."""


def convert(
    source: Any,
    *,
    every: float | str | None = None,
    box: Box | tuple[float, float, float, float] | None = None,
    format: str = "auto",  # noqa: A002 - the same name as on the command line
    to_crs: str | None = None,
    dense: bool = False,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Trajectories:
    """Turn raw positions into trajectories: one point per person and time step.

    What each column was taken for stands in the `notes` of the result. Where nothing says who a
    person is, a `ConversionWarning` says what was taken instead.

    Args:
        source: A file, a folder, or a frame: pandas, polars, GeoPandas, MovingPandas, pyarrow or
            a relation of duckdb.
        every: Length of a time step, in seconds or as text (``10min``). None: whole numbers
            already count steps.
        box: What lies outside is left out, in the units of the result.
        format: The format of a file, such as ``tdrive`` or ``gpx``; ``auto`` goes by its name and
            content.
        to_crs: Project to this coordinate system; ``from_crs`` names that of the input where the
            input does not.
        dense: Number steps in which nobody was seen away.
        progress: Given the number of positions read so far.
        **options: ``user``, ``time`` (or ``date`` and ``clock``), ``x``, ``y``, ``traj`` name
            columns; ``time_format``, ``timezone``, ``decimal``, ``on_error`` and ``from_crs`` are
            those of ``retrasyn convert``.
    """
    asked = {"every": every, "box": box, "to_crs": to_crs, "dense": dense, "progress": progress}
    real, summary = convert_with_summary(source, format, asked, options)
    warn_of(summary)
    return real


def convert_with_summary(
    source: Any, kind: str, steps: dict[str, Any], options: dict[str, Any]
) -> tuple[Trajectories, ConversionSummary]:
    """Convert a file or frame; `steps` is for `discretise`, `options` are for the reader."""
    traj = getattr(source, "get_traj_id_col", None)  # of a MovingPandas collection
    if traj is not None and options.get("traj") is None:
        options = {**options, "traj": traj()}
    numbers: Literal["steps", "seconds"] = "steps" if steps["every"] is None else "seconds"
    reading = Options(numbers=numbers, **options)
    is_path = isinstance(source, (str, os.PathLike))
    fixes = read_fixes(source, kind, reading) if is_path else read_frame(source, reading)
    box = steps.get("box")
    steps = {**steps, "box": None if box is None else Box(*box)}
    return discretise(fixes, from_crs=reading.from_crs, **steps)


def warn_of(summary: ConversionSummary) -> None:
    """Warn the caller of our caller of what may not be as it was meant."""
    for warning in summary.warnings:
        warnings.warn(warning, ConversionWarning, stacklevel=3)


def recording_of(given: Any) -> Trajectories:
    """Return trajectories as they are, and a frame that counts time in steps as trajectories."""
    if isinstance(given, Trajectories):
        return given
    if isinstance(given, (str, os.PathLike)):
        raise InputError(
            f"{os.fspath(given)!r} is a path; read it with retrasyn.read, or with "
            'retrasyn.convert(path, every="10min") if it has clock times'
        )
    try:
        real = Trajectories.from_frame(given)
    except (InputError, SettingError) as error:
        raise type(error)(
            f"{error}. Read it first, and give what comes of it: "
            'retrasyn.Trajectories.from_frame(frame, user=..., time=..., every="10min")'
        ) from None
    if real.user_of_stream is None:
        warnings.warn(
            "the frame has no column user_id: each traj_id counts as a person of its own, and "
            "whoever has several spends the whole budget as many times",
            ConversionWarning,
            stacklevel=3,
        )
    return real
