"""Keys: a device's is agreed on and never sent, and a curator's is followed by the next one.

The curator signs with an Ed25519 key, which stands in the enrolment link, and agrees with an X25519
key, which the first vouches for. A device follows a succession only if the key it knows signed it.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrasyn.errors import WireError
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.layout import AGREEMENT, PUBLIC_BYTES, SIGNATURE_BYTES, SUCCESSION, VERSION

Verify = Callable[[bytes, bytes, bytes], bool]
"""Tells whether a signature is valid, given (public key, message, signature)."""
MAX_SUCCESSIONS = 1000
_AGREEMENT_BYTES = AGREEMENT.size + SIGNATURE_BYTES
_SUCCESSION_BYTES = SUCCESSION.size + SIGNATURE_BYTES


@dataclass(frozen=True, slots=True)
class CuratorKeys:
    """The key by which a device knows the curator, and for a while the one before it."""

    key: bytes
    before: bytes = b""  # empty if this device has followed no succession
    until: int = 0  # Unix seconds; from then on `before` counts no more

    def signed(self, kind: str, body: bytes, signature: bytes, *, verify: Verify, now: int) -> bool:
        """Tell whether the curator signed something; now is in Unix seconds."""
        part = signed_part(kind, body)
        if verify(self.key, part, signature):
            return True
        return now < self.until and verify(self.before, part, signature)

    def to_dict(self) -> dict[str, Any]:
        """Return the keys as they are kept in JSON."""
        return {"key": self.key.hex(), "before": self.before.hex(), "until": self.until}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> "CuratorKeys":
        """Read what `to_dict` returned; anything else is a KeyError, TypeError or ValueError."""
        keys = cls(bytes.fromhex(given["key"]), bytes.fromhex(given["before"]), given["until"])
        sizes = len(keys.key), len(keys.before)
        if (
            sizes not in ((PUBLIC_BYTES, 0), (PUBLIC_BYTES, PUBLIC_BYTES))
            or type(keys.until) is not int
        ):
            raise ValueError("these are no keys")
        return keys


def follow(curator: CuratorKeys, statement: bytes, verify: Verify) -> tuple[CuratorKeys, bytes]:
    """Return the curator's newest keys and its key for agreements, as its statement proves them.

    Successions of keys that this device does not know are passed over.
    """
    n, rest = divmod(len(statement) - _AGREEMENT_BYTES, _SUCCESSION_BYTES)
    if rest or not 0 <= n <= MAX_SUCCESSIONS:
        raise WireError(f"{len(statement)} bytes state no keys of a curator; see docs/wire.md")
    for place in range(_AGREEMENT_BYTES, len(statement), _SUCCESSION_BYTES):
        body = statement[place : place + SUCCESSION.size]
        version, until, before, key = SUCCESSION.unpack(body)
        if before == curator.key:
            signature = statement[place + SUCCESSION.size : place + _SUCCESSION_BYTES]
            if version != VERSION or not verify(before, signed_part("succession", body), signature):
                raise WireError(
                    "a new key of the curator is not signed by the one before; refuse it"
                )
            curator = CuratorKeys(key, before, until)
    body, signature = statement[: AGREEMENT.size], statement[AGREEMENT.size : _AGREEMENT_BYTES]
    version, agreement = AGREEMENT.unpack(body)
    if version != VERSION or not verify(curator.key, signed_part("agreement", body), signature):
        raise WireError(
            "who answers is not the curator whose key this device knows; check the link and the "
            "network, and ask the operator"
        )
    return curator, agreement


def write_agreement(public: bytes) -> bytes:
    """Write what vouches for a curator's X25519 key once it is signed."""
    return AGREEMENT.pack(VERSION, public)


def write_succession(*, before: bytes, key: bytes, until: int) -> bytes:
    """Write what lets one key follow another once it is signed by that other."""
    return SUCCESSION.pack(VERSION, until, before, key)


def agreed_key(
    shared: bytes, *, agreement: bytes, public: bytes, manifest: bytes, device: bytes
) -> bytes:
    """Derive a device's key from what X25519 gave both sides: HKDF-SHA256 (RFC 5869), no salt.

    The context is the curator's and the device's public key, the manifest's id and the device's.
    """
    context = signed_part("device key", agreement + public + manifest + device)
    extracted = hmac.digest(bytes(32), shared, "sha256")
    return hmac.digest(extracted, context + b"\1", "sha256")
