"""The layout of frames, little-endian: the only place that defines byte offsets.

| frame | parts in their order |
|---|---|
| report | `REPORT_HEAD`, device id, bits, tag |
| heartbeat | `HEARTBEAT_HEAD`, device id, tag |
| acknowledgement | `ACK_HEAD`, tag or signature |
| statement of keys | `AGREEMENT`, signature; then `SUCCESSION`, signature, and so on |
| batch | length of a frame, the frame, and so on |

Every frame begins with the version and a code, which tells a heartbeat from a report.
"""

import struct

VERSION = 3
REPORT_HEAD = struct.Struct("<BBHII8s")
"""Version, question, n_answers, t, epsilon, manifest id."""
HEARTBEAT_HEAD = struct.Struct("<BBI8s")
"""Version, kind, t, manifest id."""
ACK_HEAD = struct.Struct("<BB")
"""Version, status."""
AGREEMENT = struct.Struct("<B32s")
"""Version, the curator's X25519 key."""
SUCCESSION = struct.Struct("<BQ32s32s")
"""Version, Unix seconds until which the key before counts, that key, the key after it."""
CODE_AT = 1
"""Where the code of a question or a kind stands."""
FIRST_KIND = 64
"""The code of a heartbeat that enters; moving and quitting follow. Reports have lower codes."""
ID_BYTES = 8
"""Of a manifest's id."""
DEVICE_BYTES = 16
TAG_BYTES = 16
SIGNATURE_BYTES = 64
PUBLIC_BYTES = 32
"""Of an Ed25519 or X25519 public key."""
LENGTH_BYTES = 2
"""Of the length in front of each frame of a batch."""
REPORT_BITS_AT = REPORT_HEAD.size + DEVICE_BYTES
HEARTBEAT_BYTES = HEARTBEAT_HEAD.size + DEVICE_BYTES + TAG_BYTES
"""Of a whole heartbeat, the shortest frame."""
