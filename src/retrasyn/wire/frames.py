"""Reports, heartbeats and acknowledgements as bytes, little-endian."""

import hashlib
import hmac
import struct

from retrasyn.errors import WireError
from retrasyn.messages import ENTERING, QUITTING, Ack, Heartbeat, Manifest, Question, Report
from retrasyn.oracles.single import SEED_BYTES, report_bytes
from retrasyn.oracles.threshold import hash_range
from retrasyn.wire.texts import MAX_EPSILON

VERSION = 1
TAG_BYTES = 16
DIGEST_BYTES = 16
DEVICE_BYTES = 16
MIN_KEY_BYTES = 16
STATUSES = (
    "accepted",
    "duplicate",
    "conflict",
    "early",
    "late",
    "unknown round",
    "too soon",
    "bad length",
    "bad manifest",
    "unauthenticated",
    "busy",
)
_HEAD = struct.Struct("<BBHII8s16s")
_ACK = struct.Struct("<BB8sI16s")
_CODES = {"transition": 0, "move": 1, "enter": 2, "quit": 3, "present": 4}
_FIRST_AGE = 16
_MOST_AGES = 16


def question_code(question: Question, ages: tuple[int, ...]) -> int:
    """Return the byte that names a question; ages are named by their place in the manifest.

    >>> question_code(Question(about="older", threshold=6), (2, 6, 16))
    17
    """
    if question.about == "older":
        return _FIRST_AGE + ages.index(question.threshold)
    return _CODES[question.about]


def question_of(code: int, ages: tuple[int, ...]) -> Question:
    """Return the question that a byte names.

    >>> question_of(17, (2, 6, 16)).threshold
    6
    """
    if _FIRST_AGE <= code < _FIRST_AGE + len(ages):
        return Question(about="older", threshold=ages[code - _FIRST_AGE])
    for about, known in _CODES.items():
        if known == code:
            return Question(about=about)  # type: ignore[arg-type]  # the table's keys are literal
    raise WireError(f"question {code} is not one of the manifest's; see docs/wire.md for the codes")


def n_answers(question: Question, manifest: Manifest) -> int:
    """Return how many answers a question has; yes and no are one bit."""
    match question.about:
        case "older" | "present":
            return 1
        case "move":
            return (3 * manifest.side - 2) ** 2
        case "enter" | "quit":
            return manifest.side**2
    return manifest.n_states


def body_bytes(code: int, n_states: int, epsilon: int, oracle: str) -> int:
    """Return how long the bits of a report are."""
    binary = code == _CODES["present"] or code >= _FIRST_AGE
    return report_bytes("bit" if binary else oracle, n_states, epsilon=epsilon)


def encode_report(report: Report, key: bytes, *, oracle: str) -> bytes:
    """Write a report and its tag."""
    check_key(key)
    _check_report(report, oracle)
    head = _HEAD.pack(
        VERSION,
        report.question,
        report.n_states,
        report.t,
        report.epsilon,
        report.manifest,
        report.device,
    )
    return head + report.bits + tag_of(key, head + report.bits)


def decode_report(frame: bytes, key: bytes, *, oracle: str) -> Report:
    """Read a report from exactly what `encode_report` writes with the same key."""
    check_key(key)
    _check_length(frame)
    version, question, n_states, t, epsilon, manifest, device = _HEAD.unpack_from(frame)
    if version != VERSION:
        raise WireError(f"version {version} is unknown; this side speaks version {VERSION}")
    report = Report(
        question=question,
        n_states=n_states,
        t=t,
        epsilon=epsilon,
        manifest=manifest,
        device=device,
        bits=frame[_HEAD.size : -TAG_BYTES],
    )
    _check_report(report, oracle)
    if not hmac.compare_digest(tag_of(key, frame[:-TAG_BYTES]), frame[-TAG_BYTES:]):
        raise WireError("the tag of a report does not fit its bytes; enrol the device again")
    return report


def device_of(frame: bytes) -> bytes:
    """Return the device id that a frame claims, to look up its key."""
    _check_length(frame)
    device: bytes = _HEAD.unpack_from(frame)[-1]
    return device


def report_digest(frame: bytes) -> bytes:
    """Return what an acknowledgement says about a report's bytes."""
    return hashlib.sha256(frame).digest()[:DIGEST_BYTES]


def encode_ack(ack: Ack) -> bytes:
    """Write an acknowledgement: 30 bytes."""
    if ack.status not in STATUSES:
        raise WireError(f"status {ack.status!r} is not one of {', '.join(STATUSES)}")
    if (len(ack.manifest), len(ack.digest)) != (8, DIGEST_BYTES) or not 0 <= ack.t < 1 << 32:
        raise WireError("an ack needs a manifest id of 8 bytes, a digest of 16 and t in 32 bits")
    return _ACK.pack(VERSION, STATUSES.index(ack.status), ack.manifest, ack.t, ack.digest)


def decode_ack(frame: bytes) -> Ack:
    """Read an acknowledgement from exactly what `encode_ack` writes."""
    if len(frame) != _ACK.size:
        raise WireError(f"an ack of {len(frame)} bytes is not one; it has {_ACK.size}")
    version, status, manifest, t, digest = _ACK.unpack(frame)
    if version != VERSION or status >= len(STATUSES):
        raise WireError(f"version {version} with status {status} is unknown; see docs/wire.md")
    return Ack(status=STATUSES[status], manifest=manifest, t=t, digest=digest)


def tag_of(key: bytes, message: bytes) -> bytes:
    """Return the first bytes of the HMAC-SHA256 of a message under a device's key."""
    return hmac.digest(key, message, "sha256")[:TAG_BYTES]


def _check_length(frame: bytes) -> None:
    if len(frame) < _HEAD.size + TAG_BYTES:
        raise WireError(f"a report of {len(frame)} bytes is too short; docs/wire.md has its length")


def check_key(key: bytes) -> None:
    """Refuse a key that could be guessed."""
    if len(key) < MIN_KEY_BYTES:
        raise WireError(f"a device key of {len(key)} bytes is too short; use 32 random bytes")


def _check_report(report: Report, oracle: str) -> None:
    """Refuse a report that no device would make, without telling what it says."""
    code, n, epsilon = report.question, report.n_states, report.epsilon
    if code not in _CODES.values() and not _FIRST_AGE <= code < _FIRST_AGE + _MOST_AGES:
        raise WireError(f"question {code} is unknown; see docs/wire.md for the codes")
    if not (1 <= n < 1 << 16 and 0 <= report.t < 1 << 32 and 1 <= epsilon <= MAX_EPSILON):
        raise WireError(f"n_states={n}, t={report.t} or epsilon={epsilon} is out of range")
    if (len(report.manifest), len(report.device)) != (8, DEVICE_BYTES):
        raise WireError("a report needs a manifest id of 8 bytes and a device id of 16")
    size = body_bytes(code, n, epsilon, oracle)
    if len(report.bits) != size:
        raise WireError(f"{len(report.bits)} bytes of bits do not fit {n} states; {size} do")
    if not _could_be_made(report, oracle):
        raise WireError("the bits of a report are none an oracle makes; padding must be zero")


def _could_be_made(report: Report, oracle: str) -> bool:
    """Tell whether the bits are within the range of their oracle."""
    code, n = report.question, report.n_states
    value = int.from_bytes(report.bits, "little")
    if code == _CODES["present"] or code >= _FIRST_AGE:
        return n == 1 and value <= 1
    if oracle == "oue":
        return value >> n == 0
    if oracle == "grr":
        return value <= n
    return value >> (8 * SEED_BYTES) < hash_range(report.epsilon)


FIRST_KIND = 64
"""The code of a heartbeat that enters; moving and quitting follow."""
_BEAT = struct.Struct("<BBI8s16s")
HEARTBEAT_BYTES = _BEAT.size + TAG_BYTES


def is_heartbeat(frame: bytes) -> bool:
    """Tell a heartbeat from a report by its second byte.

    >>> is_heartbeat(bytes([1, 65])), is_heartbeat(bytes([1, 0])), is_heartbeat(b"")
    (True, False, False)
    """
    return frame[1:2] >= bytes([FIRST_KIND])


def encode_heartbeat(heartbeat: Heartbeat, key: bytes) -> bytes:
    """Write a heartbeat and its tag."""
    check_key(key)
    _check(heartbeat)
    head = _BEAT.pack(
        VERSION,
        FIRST_KIND + heartbeat.kind,
        heartbeat.t,
        heartbeat.manifest,
        heartbeat.device,
    )
    return head + tag_of(key, head)


def decode_heartbeat(frame: bytes, key: bytes) -> Heartbeat:
    """Read a heartbeat from exactly what `encode_heartbeat` writes with the same key."""
    check_key(key)
    if len(frame) != HEARTBEAT_BYTES:
        raise WireError(f"a heartbeat of {len(frame)} bytes is none; it has {HEARTBEAT_BYTES}")
    version, code, t, manifest, device = _BEAT.unpack_from(frame)
    if version != VERSION:
        raise WireError(f"version {version} is unknown; this side speaks version {VERSION}")
    heartbeat = Heartbeat(kind=code - FIRST_KIND, t=t, manifest=manifest, device=device)
    _check(heartbeat)
    if not hmac.compare_digest(tag_of(key, frame[:-TAG_BYTES]), frame[-TAG_BYTES:]):
        raise WireError("the tag of a heartbeat does not fit its bytes; enrol the device again")
    return heartbeat


def _check(heartbeat: Heartbeat) -> None:
    """Refuse a heartbeat that no device would send."""
    if not ENTERING <= heartbeat.kind <= QUITTING or not 0 <= heartbeat.t < 1 << 32:
        raise WireError(f"kind={heartbeat.kind} or t={heartbeat.t} is out of range")
    if (len(heartbeat.manifest), len(heartbeat.device)) != (8, DEVICE_BYTES):
        raise WireError("a heartbeat needs a manifest id of 8 bytes and a device id of 16")
