"""Known answers for another language, made by our own code. Run as a script, this writes them."""

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retrasyn.messages import ENTERING, MICRO, MOVING, QUITTING, Ack, Heartbeat, Question, Report
from retrasyn.oracles.single import report_binary, report_hash, report_symbol, report_unary
from retrasyn.oracles.threshold import hash_range, lie_threshold, noise_threshold
from retrasyn.wire import (
    encode_ack,
    encode_heartbeat,
    encode_manifest,
    encode_report,
    encode_round,
    manifest_id,
    report_digest,
    round_hash,
)
from retrasyn.wire.batches import join_frames
from retrasyn.wire.canonical import seal, signed_part
from retrasyn.wire.frames import question_code
from retrasyn.wire.statuses import STATUSES
from retrasyn.wire.texts import MANIFEST_FIELDS, ROUND_FIELDS
from support.campaigns import DEVICE, DEVICE_KEY, Campaign, manifest_of
from support.feeding import fed

FOLDER = Path(__file__).parents[1] / "vectors"
SECRET = bytes(range(32))
"""The secret key of the test curator: never use it for anything else."""
EPSILONS = (1, 1000, 100_000, 500_000, MICRO, 1_500_000, 2 * MICRO, 4 * MICRO, 10 * MICRO)
_STRIDE = 0x9E3779B97F4A7C15


def words_of(start: int, n: int) -> list[int]:
    """Return words that any language can make: multiples of an odd constant, modulo 2^64."""
    return [(start + k) * _STRIDE % 2**64 for k in range(1, n + 1)]


def thresholds() -> list[dict[str, Any]]:
    return [
        {
            "epsilon": epsilon,
            "noise": f"{noise_threshold(epsilon):016x}",
            "lie_among_328_others": f"{lie_threshold(epsilon, 328):016x}",
            "hash_range": hash_range(epsilon),
        }
        for epsilon in EPSILONS
    ]


def noise() -> list[dict[str, Any]]:
    """Reports of given words: (oracle, state, answers, epsilon, first word's number)."""
    made = []
    for oracle, report, n_words in (
        ("oue", report_unary, 328),
        ("grr", report_symbol, 2),
        ("olh", report_hash, 3),
    ):
        for start, (state, epsilon) in enumerate(
            [(0, MICRO), (7, MICRO), (327, MICRO), (-1, MICRO), (7, 500_000), (7, 4 * MICRO)]
        ):
            words = words_of(1000 * start, n_words)
            bits = report(state, 328, epsilon=epsilon, words=fed(words))
            made.append(
                {
                    "oracle": oracle,
                    "state": state,
                    "n_states": 328,
                    "epsilon": epsilon,
                    "words_start": 1000 * start,
                    "n_words": n_words,
                    "first_word": f"{words[0]:016x}",
                    "bits": bits.hex(),
                }
            )
    for start in range(6):
        truth = start % 2
        bits = report_binary(truth - 1, epsilon=MICRO, words=fed(words_of(start, 1)))
        made.append(
            {
                "oracle": "bit",
                "state": truth,
                "n_states": 1,
                "epsilon": MICRO,
                "words_start": start,
                "n_words": 1,
                "first_word": f"{words_of(start, 1)[0]:016x}",
                "bits": bits.hex(),
            }
        )
    return made


def _public() -> bytes:
    return Ed25519PrivateKey.from_private_bytes(SECRET).public_key().public_bytes_raw()


def _signed(kind: str, body: bytes) -> dict[str, str]:
    signature = Ed25519PrivateKey.from_private_bytes(SECRET).sign(signed_part(kind, body))
    return {
        "kind": kind,
        "body": body.decode(),
        "signed": signed_part(kind, body).decode(),
        "signature": signature.hex(),
        "envelope": seal(body, signature).decode(),
        "sha256": round_hash(body).hex(),
    }


def campaign() -> dict[str, Any]:
    """Return a manifest and the first rounds of its chain, signed with the test key."""
    manifest = manifest_of(
        name="Beispiel, \u6771\u4eac",
        key=_public(),
        side=6,
        window=20,
        sampling="self",
        strata=("transition", "older"),
        other_share=100_000,
        ages=(2, 6, 16, 42),
    )
    text = encode_manifest(manifest)
    asked = Campaign(manifest)
    rounds = []
    for t in range(3):
        body = encode_round(asked.round_of(t, portion=(1 << 64) >> t))
        asked.previous = round_hash(body)
        rounds.append(_signed("round", body))
    return {
        "secret_key": SECRET.hex(),
        "public_key": _public().hex(),
        "manifest": _signed("manifest", text),
        "manifest_id": manifest_id(text).hex(),
        "rounds": rounds,
        "manifest_fields": sorted(MANIFEST_FIELDS),
        "round_fields": sorted(ROUND_FIELDS),
    }


def frames() -> dict[str, Any]:
    """Return whole reports with their tags, and acknowledgements of the first."""
    ages = (2, 6, 16, 42)
    made = []
    for oracle, question, n, bits in (
        ("oue", Question(), 328, report_unary(7, 328, epsilon=MICRO, words=fed(words_of(0, 328)))),
        ("oue", Question(about="move"), 256, bytes(32)),
        ("oue", Question(about="enter"), 36, b"\xff\xff\xff\xff\x0f"),
        ("oue", Question(about="quit"), 36, bytes(5)),
        ("oue", Question(about="present"), 1, b"\x01"),
        ("oue", Question(about="older", threshold=16), 1, b"\x00"),
        ("grr", Question(), 328, b"\x48\x01"),
        ("olh", Question(), 328, b"\x01\x02\x03\x04\x03"),
    ):
        report = Report(
            question=question_code(question, ages),
            n_answers=n,
            t=77,
            epsilon=MICRO,
            manifest=bytes(range(8)),
            device=DEVICE,
            bits=bits,
        )
        frame = encode_report(report, DEVICE_KEY, oracle=oracle)
        made.append(
            {
                "oracle": oracle,
                "about": question.about,
                "threshold": question.threshold,
                "question": report.question,
                "n_states": n,
                "bits": bits.hex(),
                "frame": frame.hex(),
                "digest": report_digest(frame).hex(),
            }
        )
    acks = [
        {
            "status": status,
            "frame": encode_ack(
                Ack(
                    status=status,
                    manifest=bytes(range(8)),
                    t=77,
                    digest=bytes.fromhex(made[0]["digest"]),
                )
            ).hex(),
        }
        for status in STATUSES
    ]
    heartbeats = [
        {
            "kind": kind,
            "frame": encode_heartbeat(
                Heartbeat(kind=kind, t=77, manifest=bytes(range(8)), device=DEVICE), DEVICE_KEY
            ).hex(),
        }
        for kind in (ENTERING, MOVING, QUITTING)
    ]
    batched = [bytes.fromhex(row["frame"]) for row in (made[4], heartbeats[0])]
    return {
        "device_key": DEVICE_KEY.hex(),
        "device_id": DEVICE.hex(),
        "manifest_id": bytes(range(8)).hex(),
        "t": 77,
        "epsilon": MICRO,
        "ages": list(ages),
        "reports": made,
        "acks": acks,
        "heartbeats": heartbeats,
        "batch_of_the_fifth_report_and_the_first_heartbeat": join_frames(batched).hex(),
    }


VECTORS = {"thresholds": thresholds, "noise": noise, "campaign": campaign, "frames": frames}


def text_of(name: str) -> str:
    return json.dumps(VECTORS[name](), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for name in VECTORS:
        (FOLDER / f"{name}.json").write_text(text_of(name))
