"""The terms of a campaign, as text shown to the owner for consent."""

from __future__ import annotations

from retrasyn.device.tracker import numbering_of
from retrasyn.messages import MICRO, Manifest, Question
from retrasyn.oracles.registry import find_oracle
from retrasyn.privacy.usual_place import UsualPlace, duration, telling
from retrasyn.wire.frames import n_answers

_PRESENCE = {
    "count": "That this device shares, and when, is not hidden: heartbeats are counted.",
    "flags": "When this device starts and stops to share is not hidden.",
    "hidden": "Whether it shares at a given time is hidden, too, but not that it takes part.",
}


def promise(manifest: Manifest) -> str:
    """Return the terms of a campaign, one per line."""
    x0, y0, x1, y1 = (corner / MICRO for corner in manifest.box)
    side, period, window = manifest.side, manifest.period, manifest.window
    looked = "only cells are ever looked at."
    if manifest.speeds:
        looked = f"only cells are looked at, by some devices only whether {_distances(manifest)}."
    where = f"x {x0:g} to {x1:g}, y {y0:g} to {y1:g}, cut into {side} x {side} cells"
    when = f"a round every {duration(period)}; a window is {window} rounds"
    silence = f"{window + 1} rounds ({duration((window + 1) * period)})"
    lines = [
        f"Campaign {manifest.name!r}",
        f"  {guarantee(manifest)}",
        f"  Where: {where}; {looked} Outside, nothing is told.",
        f"  When: {when}, {duration(window * period)}.",
        f"  What: {_asked(manifest)}, hidden by the oracle {manifest.oracle}.",
        f"  {_PRESENCE[manifest.presence]}",
        "  Never hidden: its network address, and that its reports come from one device.",
        *(f"  {line}" for line in long_run(manifest)),
        *(f"  {line}" for line in _public_map(manifest)),
        f"  It is silent for the first {silence}.",
    ]
    return "\n".join(lines)


def _distances(manifest: Manifest) -> str:
    """Name the distances that may be asked about, in the unit of the box."""
    x0, y0, x1, y1 = (corner / MICRO for corner in manifest.box)
    side = max(x1 - x0, y1 - y0)
    *most, last = (f"{threshold / 1000 * side:.3g}" for threshold in manifest.speeds)
    return f"they moved farther than {' or '.join(filter(None, (', '.join(most), last)))}"


def _public_map(manifest: Manifest) -> list[str]:
    """Say that a public map is used, and which."""
    if not manifest.public_map:
        return []
    told = (
        f"The curator uses a public map, which nobody's reports made: {manifest.public_map.hex()} "
        "(sha256). Should another map take its place in this campaign, this device refuses it."
    )
    return [told]


def guarantee(manifest: Manifest) -> str:
    """Return the privacy guarantee in one sentence."""
    epsilon = manifest.epsilon / MICRO
    return (
        f"Whatever this device sends about any {manifest.window} consecutive {manifest.unit}s is "
        f"{epsilon:g}-differentially private in total, against everybody, the curator included."
    )


def usual_place_of(manifest: Manifest) -> UsualPlace | None:
    """Return what the linked reports of this device tell; reckoned here, not by the curator."""
    oracle, supports = find_oracle(manifest.oracle), []
    for about in telling(manifest.strata):
        n = n_answers(Question(about=about), manifest)
        supports.append(oracle.support(manifest.epsilon, n))
    return UsualPlace.of(
        supports,
        n_places=manifest.side**2,
        gap=manifest.gap,
        period=manifest.period,
        lifetime_cap=manifest.lifetime_cap / MICRO,
    )


def rounds_until_cap(manifest: Manifest) -> int:
    """Return after how many rounds of sharing a device stops, if each gap costs all of epsilon."""
    return manifest.lifetime_cap // manifest.epsilon * manifest.gap


def long_run(manifest: Manifest) -> list[str]:
    """Say after how many nights a usual place is known, and when the device stops."""
    cap, place = manifest.lifetime_cap, usual_place_of(manifest)
    sharing = duration(rounds_until_cap(manifest) * manifest.period)
    stops = (
        f"In all its life this device spends epsilon {cap / MICRO:g} at most: it stops after about "
        f"{sharing} of sharing"
    )
    if place is None:
        return [f"{stops}."]
    before = cap < place.reports * manifest.epsilon
    return [
        f"Its reports add up: your usual place is known after {place.words}.",
        f"{stops}, {'before that' if before else 'too late to hide it'}.",
    ]


def _asked(manifest: Manifest) -> str:
    """Describe the questions and the number of possible answers."""
    numbers = {
        "transition": f"which of {manifest.n_states:,} steps it made",
        "move": f"which of {numbering_of(manifest).n_moves:,} moves it made",
        "enter": "where it started",
        "quit": "where it stopped",
        "older": "whether it has shared for some time",
        "present": "whether it shares",
        "faster": "whether it moved farther than one of some distances since the round before",
        "cell": f"which of {manifest.side**2:,} cells it is in",
    }
    words = [numbers[about] for about in manifest.strata]
    return " or ".join(words)
