"""The layout of frames, little-endian: the only place that defines byte offsets.

| frame | parts in their order |
|---|---|
| report | `REPORT_HEAD`, device id, bits, tag |
| heartbeat | `HEARTBEAT_HEAD`, device id, tag |
| acknowledgement | `ACK` |
| batch | length of a frame, the frame, and so on |

Every frame begins with the version and a code, which tells a heartbeat from a report.
"""

import struct

VERSION = 1
REPORT_HEAD = struct.Struct("<BBHII8s")
"""Version, question, n_answers, t, epsilon, manifest id."""
HEARTBEAT_HEAD = struct.Struct("<BBI8s")
"""Version, kind, t, manifest id."""
ACK = struct.Struct("<BB8sI16s")
"""Version, status, manifest id, t, digest."""
CODE_AT = 1
"""Where the code of a question or a kind stands."""
FIRST_KIND = 64
"""The code of a heartbeat that enters; moving and quitting follow. Reports have lower codes."""
ID_BYTES = 8
"""Of a manifest's id."""
DEVICE_BYTES = 16
TAG_BYTES = 16
DIGEST_BYTES = 16
LENGTH_BYTES = 2
"""Of the length in front of each frame of a batch."""
REPORT_BITS_AT = REPORT_HEAD.size + DEVICE_BYTES
HEARTBEAT_BYTES = HEARTBEAT_HEAD.size + DEVICE_BYTES + TAG_BYTES
"""Of a whole heartbeat, the shortest frame."""
