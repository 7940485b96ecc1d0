"""The terms of a campaign, as text shown to the owner for consent."""

from __future__ import annotations

from retrasyn.device.tracker import numbering_of
from retrasyn.messages import MICRO, Manifest

_PRESENCE = {
    "count": "That this device shares, and when, is not hidden: heartbeats are counted.",
    "flags": "When this device starts and stops to share is not hidden.",
    "hidden": "Whether it shares at a given time is hidden, too, but not that it takes part.",
}


def promise(manifest: Manifest) -> str:
    """Return the terms of a campaign, one per line."""
    x0, y0, x1, y1 = (corner / MICRO for corner in manifest.box)
    side, period, window = manifest.side, manifest.period, manifest.window
    where = f"x {x0:g} to {x1:g}, y {y0:g} to {y1:g}, cut into {side} x {side} cells"
    when = f"a round every {_duration(period)}; a window is {window} rounds"
    silence = f"{window + 1} rounds ({_duration((window + 1) * period)})"
    lines = [
        f"Campaign {manifest.name!r}",
        f"  {guarantee(manifest)}",
        f"  Where: {where}; only cells are ever looked at. Outside, nothing is told.",
        f"  When: {when}, {_duration(window * period)}.",
        f"  What: {_asked(manifest)}, hidden by the oracle {manifest.oracle}.",
        f"  In all its life this device spends epsilon {manifest.lifetime_cap / MICRO:g} at most.",
        f"  {_PRESENCE[manifest.presence]}",
        "  Never hidden: its network address, and that its reports come from one device.",
        f"  It is silent for the first {silence}.",
    ]
    return "\n".join(lines)


def guarantee(manifest: Manifest) -> str:
    """Return the privacy guarantee in one sentence."""
    epsilon = manifest.epsilon / MICRO
    return (
        f"Whatever this device sends about any {manifest.window} consecutive {manifest.unit}s is "
        f"{epsilon:g}-differentially private in total, against everybody, the curator included."
    )


def _asked(manifest: Manifest) -> str:
    """Describe the questions and the number of possible answers."""
    numbers = {
        "transition": f"which of {manifest.n_states:,} steps it made",
        "move": f"which of {numbering_of(manifest).n_moves:,} moves it made",
        "enter": "where it started",
        "quit": "where it stopped",
        "older": "whether it has shared for some time",
        "present": "whether it shares",
    }
    words = [numbers[about] for about in manifest.strata]
    return " or ".join(words)


def _duration(seconds: int) -> str:
    """Format a duration in words.

    >>> _duration(1), _duration(60), _duration(5400), _duration(86400)
    ('1 second', '1 minute', '1.5 hours', '1 day')
    """
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}{'' if seconds == size else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
