"""The bytes that travel between a device and a curator (standard library only).

`docs/wire.md` describes them so that they can be made in any language, and `tests/vectors` holds
known answers. Every decoder refuses whatever its encoder would not have made.
"""

from retrasyn.wire.frames import (
    decode_ack,
    decode_heartbeat,
    decode_report,
    encode_ack,
    encode_heartbeat,
    encode_report,
)
from retrasyn.wire.texts import (
    decode_manifest,
    decode_round,
    encode_manifest,
    encode_round,
    manifest_id,
    round_hash,
)

__all__ = [
    "decode_ack",
    "decode_heartbeat",
    "decode_manifest",
    "decode_report",
    "decode_round",
    "encode_ack",
    "encode_heartbeat",
    "encode_manifest",
    "encode_report",
    "encode_round",
    "manifest_id",
    "round_hash",
]
