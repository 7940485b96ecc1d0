"""Recorded data with a clock, so that its days can be folded."""

import dataclasses

from retrasyn.data.metadata import Clock

PER_DAY = 12


def with_clock(real, epoch="2026-03-01T06:00:00+00:00"):
    """Return data with twelve timestamps a day, the first of them at six in the morning."""
    return dataclasses.replace(real, clock=Clock(epoch, 86_400.0 / PER_DAY))
