"""Devices enrolled without HTTP: tokens made and used, and keys agreed on as a device does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrasyn.device.signatures import draw_x25519, share_x25519
from retrasyn.wire.keys import agreed_key

if TYPE_CHECKING:
    from retrasyn.service.campaign import Campaign
    from retrasyn.service.enrolment import NewDevice
    from retrasyn.service.runtime import CampaignRuntime


def asking(campaign: Campaign, *tokens: str) -> dict[str, Any]:
    """Return the body of an enrolment, as a device sends it."""
    return {
        "tokens": list(tokens),
        "keys": [draw_x25519()[1].hex() for _ in tokens],
        "agreement": campaign.ring.agreement.public.hex(),
    }


async def enrolled(runtime: CampaignRuntime, n: int) -> list[NewDevice]:
    """Enrol n devices; the last of them agrees with the curator about its key."""
    pairs, agreement = [draw_x25519() for _ in range(n)], runtime.campaign.ring.agreement
    tokens = await runtime.devices.mint(n)
    made = await runtime.devices.enrol(tokens, [public for _, public in pairs], agreement)
    (private, public), last, id_ = pairs[-1], made[-1], runtime.campaign.id
    context = {"agreement": agreement.public, "public": public, "manifest": id_}
    shared = share_x25519(private, agreement.public)
    assert last.key == agreed_key(shared, device=last.device, **context)
    return made
