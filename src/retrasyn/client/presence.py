"""What a device says about its presence, and it is the same wherever it is."""

from __future__ import annotations

from retrasyn.device import Reporter
from retrasyn.messages import ABSENT, MOVING, QUITTING, Heartbeat, Manifest
from retrasyn.wire.heartbeats import encode_heartbeat


def heartbeat_of(
    manifest: Manifest, id_: bytes, reporter: Reporter, *, kind: int, t: int
) -> bytes | None:
    """Return the heartbeat of a round, None where the manifest wants none.

    Where presence is counted, those who share say so, and no more; where it is flagged, also
    whether they start or stop; where it is hidden, nobody says anything.
    """
    if kind == ABSENT or manifest.presence == "hidden":
        return None
    if manifest.presence == "count":
        if kind == QUITTING:
            return None
        kind = MOVING
    beat = Heartbeat(kind=kind, t=t, manifest=id_, device=reporter.device)
    return encode_heartbeat(beat, reporter.key)
