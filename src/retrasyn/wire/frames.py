"""Reports, heartbeats and acknowledgements as bytes, little-endian."""

import hmac

from retrasyn.errors import WireError
from retrasyn.messages import ENTERING, QUITTING, Ack, Heartbeat, Manifest, Question, Report
from retrasyn.oracles.registry import BINARY, OracleRow, find_oracle
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.layout import (
    ACK_HEAD,
    CODE_AT,
    DEVICE_BYTES,
    FIRST_KIND,
    HEARTBEAT_BYTES,
    HEARTBEAT_HEAD,
    ID_BYTES,
    REPORT_BITS_AT,
    REPORT_HEAD,
    SIGNATURE_BYTES,
    TAG_BYTES,
    VERSION,
)
from retrasyn.wire.statuses import STATUSES
from retrasyn.wire.texts import MAX_EPSILON

MIN_KEY_BYTES = 16
_CODES = {"transition": 0, "move": 1, "enter": 2, "quit": 3, "present": 4, "cell": 5}
_FIRST_CODES = {"older": 16, "faster": 32}
_MOST_THRESHOLDS = 16


def question_code(question: Question, manifest: Manifest) -> int:
    """Return the byte that names a question; a threshold is named by its place in the manifest."""
    about = question.about
    if about in _FIRST_CODES:
        return _FIRST_CODES[about] + manifest.thresholds(about).index(question.threshold)
    return _CODES[about]


def question_of(code: int, manifest: Manifest) -> Question:
    """Return the question that a byte names."""
    for question in manifest.questions:
        if question_code(question, manifest) == code:
            return question
    raise WireError(f"question {code} is not one of the manifest's; see docs/wire.md for the codes")


def n_answers(question: Question, manifest: Manifest) -> int:
    """Return how many answers a question has; yes and no are one bit."""
    if question.binary:
        return 1
    match question.about:
        case "move":
            return (3 * manifest.side - 2) ** 2
        case "enter" | "quit" | "cell":
            return manifest.side**2
    return manifest.n_states


def row_of(code: int, oracle: str) -> OracleRow:
    """Return the oracle row for a question, by its code."""
    binary = code == _CODES["present"] or code >= min(_FIRST_CODES.values())
    return BINARY if binary else find_oracle(oracle)


def body_bytes(code: int, n_answers: int, epsilon: int, oracle: str) -> int:
    """Return the length of a report's bits, in bytes."""
    return row_of(code, oracle).n_bytes(epsilon, n_answers)


def encode_report(report: Report, key: bytes, *, oracle: str) -> bytes:
    """Write a report and its tag."""
    check_key(key)
    _check_report(report, oracle)
    head = REPORT_HEAD.pack(
        VERSION, report.question, report.n_answers, report.t, report.epsilon, report.manifest
    )
    message = head + report.device + report.bits
    return message + tag_of(key, message)


def decode_report(frame: bytes, key: bytes, *, oracle: str) -> Report:
    """Read a report from exactly what `encode_report` writes with the same key."""
    check_key(key)
    _check_length(frame)
    version, question, n_answers, t, epsilon, manifest = REPORT_HEAD.unpack_from(frame)
    if version != VERSION:
        raise WireError(f"version {version} is unknown; this side speaks version {VERSION}")
    report = Report(
        question=question,
        n_answers=n_answers,
        t=t,
        epsilon=epsilon,
        manifest=manifest,
        device=device_of(frame),
        bits=frame[REPORT_BITS_AT:-TAG_BYTES],
    )
    _check_report(report, oracle)
    if not hmac.compare_digest(tag_of(key, frame[:-TAG_BYTES]), frame[-TAG_BYTES:]):
        raise WireError("the tag of a report does not fit its bytes; enrol the device again")
    return report


def device_of(frame: bytes) -> bytes:
    """Return the device id that a report or heartbeat claims; fewer bytes if it is too short."""
    at = HEARTBEAT_HEAD.size if is_heartbeat(frame) else REPORT_HEAD.size
    return frame[at : at + DEVICE_BYTES]


def encode_ack(ack: Ack) -> bytes:
    """Write an acknowledgement: two bytes, and what proves them."""
    if ack.status not in STATUSES:
        raise WireError(f"status {ack.status!r} is not one of {', '.join(STATUSES)}")
    if len(ack.proof) not in (TAG_BYTES, SIGNATURE_BYTES):
        raise WireError(f"{len(ack.proof)} bytes prove no ack; a tag has 16, a signature 64")
    return ACK_HEAD.pack(VERSION, STATUSES.index(ack.status)) + ack.proof


def decode_ack(body: bytes) -> Ack:
    """Read an acknowledgement from what `encode_ack` writes; whether it is true is not checked."""
    proof = body[ACK_HEAD.size :]
    if len(proof) not in (TAG_BYTES, SIGNATURE_BYTES):
        raise WireError(f"an ack of {len(body)} bytes is not one; it has 18 or 66")
    version, status = ACK_HEAD.unpack_from(body)
    if version != VERSION or status >= len(STATUSES):
        raise WireError(f"version {version} with status {status} is unknown; see docs/wire.md")
    return Ack(status=STATUSES[status], proof=proof)


def acked_part(status: str, frame: bytes) -> bytes:
    """Return what an acknowledgement proves: this status, of exactly these bytes."""
    return bytes([STATUSES.index(status)]) + frame


def is_tagged(ack: Ack, frame: bytes, key: bytes) -> bool:
    """Tell whether an acknowledgement of a frame was made with the key of the frame's device."""
    right = tag_of(key, signed_part("ack", acked_part(ack.status, frame)))
    return hmac.compare_digest(right, ack.proof)


def tag_of(key: bytes, message: bytes) -> bytes:
    """Return the first bytes of the HMAC-SHA256 of a message under a device's key."""
    return hmac.digest(key, message, "sha256")[:TAG_BYTES]


def _check_length(frame: bytes) -> None:
    if len(frame) < REPORT_BITS_AT + TAG_BYTES:
        raise WireError(f"a report of {len(frame)} bytes is too short; docs/wire.md has its length")


def check_key(key: bytes) -> None:
    """Refuse a key that could be guessed."""
    if len(key) < MIN_KEY_BYTES:
        raise WireError(f"a device key of {len(key)} bytes is too short; use 32 random bytes")


def _check_report(report: Report, oracle: str) -> None:
    """Refuse a report that no device would make, without telling what it says."""
    code, n, epsilon = report.question, report.n_answers, report.epsilon
    firsts = _FIRST_CODES.values()
    if code not in _CODES.values() and not any(0 <= code - n < _MOST_THRESHOLDS for n in firsts):
        raise WireError(f"question {code} is unknown; see docs/wire.md for the codes")
    if not (1 <= n < 1 << 16 and 0 <= report.t < 1 << 32 and 1 <= epsilon <= MAX_EPSILON):
        raise WireError(f"n_states={n}, t={report.t} or epsilon={epsilon} is out of range")
    if (len(report.manifest), len(report.device)) != (ID_BYTES, DEVICE_BYTES):
        raise WireError("a report needs a manifest id of 8 bytes and a device id of 16")
    row = row_of(code, oracle)
    size = row.n_bytes(epsilon, n)
    if len(report.bits) != size:
        raise WireError(f"{len(report.bits)} bytes of bits do not fit {n} states; {size} do")
    if not row.is_possible(report.bits, epsilon, n) or (row is BINARY and n != 1):
        raise WireError("the bits of a report are none an oracle makes; padding must be zero")


def is_heartbeat(frame: bytes) -> bool:
    """Tell a heartbeat from a report by its second byte.

    >>> is_heartbeat(bytes([1, 65])), is_heartbeat(bytes([1, 0])), is_heartbeat(b"")
    (True, False, False)
    """
    return frame[CODE_AT : CODE_AT + 1] >= bytes([FIRST_KIND])


def encode_heartbeat(heartbeat: Heartbeat, key: bytes) -> bytes:
    """Write a heartbeat and its tag."""
    check_key(key)
    _check_heartbeat(heartbeat)
    head = HEARTBEAT_HEAD.pack(
        VERSION, FIRST_KIND + heartbeat.kind, heartbeat.t, heartbeat.manifest
    )
    message = head + heartbeat.device
    return message + tag_of(key, message)


def decode_heartbeat(frame: bytes, key: bytes) -> Heartbeat:
    """Read a heartbeat from exactly what `encode_heartbeat` writes with the same key."""
    check_key(key)
    if len(frame) != HEARTBEAT_BYTES:
        raise WireError(f"a heartbeat of {len(frame)} bytes is none; it has {HEARTBEAT_BYTES}")
    version, code, t, manifest = HEARTBEAT_HEAD.unpack_from(frame)
    if version != VERSION:
        raise WireError(f"version {version} is unknown; this side speaks version {VERSION}")
    device = frame[HEARTBEAT_HEAD.size : -TAG_BYTES]
    heartbeat = Heartbeat(kind=code - FIRST_KIND, t=t, manifest=manifest, device=device)
    _check_heartbeat(heartbeat)
    if not hmac.compare_digest(tag_of(key, frame[:-TAG_BYTES]), frame[-TAG_BYTES:]):
        raise WireError("the tag of a heartbeat does not fit its bytes; enrol the device again")
    return heartbeat


def _check_heartbeat(heartbeat: Heartbeat) -> None:
    """Refuse a heartbeat that no device would send."""
    if not ENTERING <= heartbeat.kind <= QUITTING or not 0 <= heartbeat.t < 1 << 32:
        raise WireError(f"kind={heartbeat.kind} or t={heartbeat.t} is out of range")
    if (len(heartbeat.manifest), len(heartbeat.device)) != (ID_BYTES, DEVICE_BYTES):
        raise WireError("a heartbeat needs a manifest id of 8 bytes and a device id of 16")
