"""Known answers for another language, made by our own code. Run as a script, this writes them."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from retrasyn.device.signatures import share_x25519
from retrasyn.device.store import Witness, write_witness
from retrasyn.messages import (
    ENTERING,
    MICRO,
    MOVING,
    QUITTING,
    SPEEDS,
    Ack,
    Heartbeat,
    Manifest,
    Question,
    Report,
)
from retrasyn.oracles.single import report_binary, report_hash, report_symbol, report_unary
from retrasyn.oracles.threshold import hash_range, lie_threshold, noise_threshold
from retrasyn.wire import (
    decode_manifest,
    decode_round,
    encode_ack,
    encode_heartbeat,
    encode_manifest,
    encode_report,
    encode_round,
    manifest_id,
    round_hash,
)
from retrasyn.wire.batches import join_frames
from retrasyn.wire.canonical import seal, signed_part
from retrasyn.wire.frames import acked_part, question_code, tag_of
from retrasyn.wire.keys import agreed_key, write_agreement, write_succession
from retrasyn.wire.layout import VERSION
from retrasyn.wire.statuses import STATUSES
from retrasyn.wire.texts import MANIFEST_FIELDS, ROUND_FIELDS
from support.campaigns import DEVICE, DEVICE_KEY, Campaign, manifest_of
from support.feeding import fed

FOLDER = Path(__file__).parents[1] / "vectors" / f"v{VERSION}"
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


def _public(secret: bytes = SECRET) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def _signed(kind: str, body: bytes, secret: bytes = SECRET) -> dict[str, str]:
    signature = Ed25519PrivateKey.from_private_bytes(secret).sign(signed_part(kind, body))
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
        strata=("transition", "older", "cell"),
        other_shares=(100_000, 450_000),
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
        "manifest_with_a_public_map": _signed("manifest", encode_manifest(_mapped(manifest))),
        "rounds": rounds,
        "manifest_fields": sorted(MANIFEST_FIELDS),
        "round_fields": sorted(ROUND_FIELDS),
    }


def _mapped(manifest: Manifest) -> Manifest:
    """Return the same campaign with a public map, which also asks how far devices moved."""
    return replace(
        manifest,
        strata=("transition", "older", "faster", "cell"),
        other_shares=(100_000, 50_000, 450_000),
        speeds=SPEEDS,
        public_map=bytes(range(32)),
    )


def _ack(status: str, frame: bytes) -> bytes:
    """Acknowledge as the curator does: unauthenticated with its signature, else with a tag."""
    part = signed_part("ack", acked_part(status, frame))
    if status == "unauthenticated":
        return encode_ack(
            Ack(status=status, proof=Ed25519PrivateKey.from_private_bytes(SECRET).sign(part))
        )
    return encode_ack(Ack(status=status, proof=tag_of(DEVICE_KEY, part)))


def _x25519(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def _stated(body: bytes, kind: str, secret: bytes = SECRET) -> bytes:
    return body + Ed25519PrivateKey.from_private_bytes(secret).sign(signed_part(kind, body))


NEXT, AFTER = bytes(range(1, 33)), bytes(range(2, 34))
"""The secret keys that succeed the test curator's."""
CURATOR_X, DEVICE_X = bytes(range(50, 82)), bytes(range(60, 92))


def _succession(before: bytes, after: bytes, until: int, signer: bytes | None = None) -> bytes:
    body = write_succession(before=_public(before), key=_public(after), until=until)
    return _stated(body, "succession", signer or before)


def keys() -> dict[str, Any]:
    """Return an agreement on a device's key, and statements with and without successions."""
    agreement, public = _x25519(CURATOR_X), _x25519(DEVICE_X)
    shared = share_x25519(DEVICE_X, agreement)
    manifest = bytes(range(8))
    key = agreed_key(shared, agreement=agreement, public=public, manifest=manifest, device=DEVICE)
    body = write_agreement(agreement)
    chain = (_succession(SECRET, NEXT, 1_700_000_000), _succession(NEXT, AFTER, 1_800_000_000))
    return {
        "curator_x25519_secret": CURATOR_X.hex(),
        "curator_x25519_public": agreement.hex(),
        "device_x25519_secret": DEVICE_X.hex(),
        "device_x25519_public": public.hex(),
        "manifest_id": manifest.hex(),
        "device_id": DEVICE.hex(),
        "shared": shared.hex(),
        "device_key": key.hex(),
        "enrolled_tag": tag_of(key, signed_part("enrolled", DEVICE)).hex(),
        "leave_tag": tag_of(key, signed_part("leave", DEVICE)).hex(),
        "left_tag": tag_of(key, signed_part("left", DEVICE)).hex(),
        "known_key": _public().hex(),
        "statement": _stated(body, "agreement").hex(),
        "statement_after_two_successions": (
            _stated(body, "agreement", AFTER) + b"".join(chain)
        ).hex(),
        "newest_key": _public(AFTER).hex(),
        "key_before": _public(NEXT).hex(),
        "which_counts_until": 1_800_000_000,
    }


def frames() -> dict[str, Any]:
    """Return whole reports with their tags, and acknowledgements of the first."""
    manifest = manifest_of(ages=(2, 6, 16, 42), speeds=SPEEDS)
    made = []
    for oracle, question, n, bits in (
        ("oue", Question(), 328, report_unary(7, 328, epsilon=MICRO, words=fed(words_of(0, 328)))),
        ("oue", Question(about="move"), 256, bytes(32)),
        ("oue", Question(about="enter"), 36, b"\xff\xff\xff\xff\x0f"),
        ("oue", Question(about="quit"), 36, bytes(5)),
        ("oue", Question(about="present"), 1, b"\x01"),
        ("oue", Question(about="older", threshold=16), 1, b"\x00"),
        ("oue", Question(about="cell"), 36, b"\x01\x00\x00\x80\x08"),
        ("oue", Question(about="faster", threshold=20), 1, b"\x01"),
        ("grr", Question(), 328, b"\x48\x01"),
        ("olh", Question(), 328, b"\x01\x02\x03\x04\x03"),
    ):
        report = Report(
            question=question_code(question, manifest),
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
            }
        )
    first = bytes.fromhex(made[0]["frame"])
    acks = [{"status": status, "ack": _ack(status, first).hex()} for status in STATUSES]
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
        "ages": list(manifest.ages),
        "speeds": list(manifest.speeds),
        "reports": made,
        "acks_of_the_first_report": acks,
        "heartbeats": heartbeats,
        "batch_of_the_fifth_report_and_the_first_heartbeat": join_frames(batched).hex(),
    }


def negative() -> dict[str, Any]:
    """Return what must be refused, each with the rule that refuses it."""
    return {
        "frames": _bad_frames(),
        "acks_of_the_first_report": _bad_acks(),
        "rounds_for_a_device_that_saw_round_1_and_whose_clock_shows_round_2": _bad_rounds(),
        "manifests_for_a_device_that_pinned_the_one_with_a_public_map": _bad_manifests(),
        "statements": _bad_statements(),
        "witnesses_of_a_ledger": _bad_witnesses(),
    }


def _bad_frames() -> list[dict[str, str]]:
    """Frames under the key of frames.json, for a reader of version 3 with the oracle oue."""
    good = frames()
    report, enter = (bytes.fromhex(good["reports"][place]["frame"]) for place in (0, 2))
    beat = bytes.fromhex(good["heartbeats"][0]["frame"])

    def again(message: bytes) -> bytes:
        return message + tag_of(DEVICE_KEY, message)

    zero, out = (0).to_bytes(4, "little"), (100 * MICRO + 1).to_bytes(4, "little")
    rows = {
        "bad tag: its last bit is turned": report[:-1] + bytes([report[-1] ^ 1]),
        "bad tag: of a heartbeat": beat[:-1] + bytes([beat[-1] ^ 1]),
        "bad tag: made with another key": report[:-16] + tag_of(bytes(32), report[:-16]),
        "bad padding: a bit beyond the last answer": again(enter[:-17] + bytes([enter[-17] | 16])),
        "wrong epsilon: 0": again(report[:8] + zero + report[12:-16]),
        "wrong epsilon: above 100 nats": again(report[:8] + out + report[12:-16]),
        "wrong version: 2": again(b"\2" + report[1:-16]),
        "wrong question: none has this code": again(report[:1] + b"\x06" + report[2:-16]),
        "wrong length: a byte too many": again(report[:-16] + b"\0"),
        "wrong length: cut": report[:-1],
    }
    return [{"rule": rule, "frame": frame.hex()} for rule, frame in rows.items()]


def _bad_acks() -> list[dict[str, str]]:
    """Acknowledgements that the device of frames.json must take for no answer."""
    report, other = (bytes.fromhex(row["frame"]) for row in frames()["reports"][:2])
    accepted, forgotten = _ack("accepted", report), _ack("unauthenticated", report)
    part = signed_part("ack", acked_part("unauthenticated", report))
    stranger = Ed25519PrivateKey.from_private_bytes(NEXT).sign(part)
    rows = {
        "forged ack: no proof": accepted[:2] + bytes(16),
        "forged ack: another status than was proven": b"\3\2" + accepted[2:],
        "forged ack: of another report": _ack("accepted", other),
        "forged ack: the tag of the report itself": accepted[:2] + report[-16:],
        "forged ack: signed by a key that is not the curator's": forgotten[:2] + stranger,
        "forged ack: a signature that is none": forgotten[:2] + bytes(64),
    }
    return [{"rule": rule, "ack": ack.hex()} for rule, ack in rows.items()]


def _bad_rounds() -> list[dict[str, Any]]:
    """Rounds of campaign.json's manifest; the rules are numbered as in docs/device.md."""
    good = campaign()
    asked = decode_round(good["rounds"][2]["body"].encode())
    rows = (
        (1, "wrong curator key: signed by another", {}, NEXT),
        (1, "bad chain: does not follow from round 1", {"previous": bytes(32)}, SECRET),
        (1, "wrong manifest", {"manifest": bytes(8)}, SECRET),
        (2, "stale round: not the one of the device's clock", {"t": 0}, SECRET),
        (2, "early round: not the one of the device's clock", {"t": 3}, SECRET),
        (3, "wrong epsilon: above the manifest's", {"epsilon": asked.epsilon + 1}, SECRET),
        (3, "wrong instants: longer than the period", {"close": asked.close + 1}, SECRET),
    )
    made = []
    for number, rule, changes, secret in rows:
        if changes.get("t") == 0:  # honest in its own time
            text = good["rounds"][0]["body"].encode()
        else:
            text = encode_round(replace(asked, **changes))
        row = {
            "rule": rule,
            "number": number,
            "envelope": _signed("round", text, secret)["envelope"],
        }
        made.append(row)
    return made


def _bad_manifests() -> list[dict[str, str]]:
    """Manifests of the campaign in campaign.json, whose map a device has pinned."""
    good = campaign()
    mapped = decode_manifest(good["manifest_with_a_public_map"]["body"].encode())
    other = replace(mapped, public_map=bytes(range(1, 33)))
    rows = {
        "wrong map: another": _signed("manifest", encode_manifest(other))["envelope"],
        "wrong map: none any more": good["manifest"]["envelope"],
    }
    return [{"rule": rule, "envelope": envelope} for rule, envelope in rows.items()]


def _bad_statements() -> list[dict[str, str]]:
    """Statements of keys for a device that knows the key of keys.json."""
    body = write_agreement(_x25519(CURATOR_X))
    by_next = _stated(body, "agreement", NEXT)
    rows = {
        "wrong curator key: vouched for by another": by_next,
        "wrong succession: signed by the new key": by_next + _succession(SECRET, NEXT, 9, NEXT),
        "wrong succession: signed by a third key": by_next + _succession(SECRET, NEXT, 9, AFTER),
        "wrong succession: of a key this device does not know": (
            by_next + _succession(AFTER, NEXT, 9)
        ),
        "wrong succession: the old key vouches after it": (
            _stated(body, "agreement") + _succession(SECRET, NEXT, 9)
        ),
        "wrong kind: signed as a succession": _stated(body, "succession"),
        "wrong length: cut": by_next[:-1],
    }
    return [{"rule": rule, "statement": statement.hex()} for rule, statement in rows.items()]


def _bad_witnesses() -> list[dict[str, str]]:
    """Files beside a ledger that was written 7 times: with each, its device is in quarantine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "witness"
        write_witness(path, Witness(bytes(range(16)), 7))
        good = path.read_bytes()
        write_witness(path, Witness(bytes(range(16)), 9))
        older = path.read_bytes()
        write_witness(path, Witness(bytes(16), 7))
        other = path.read_bytes()
    rows = {
        "torn ledger: the witness ends in the middle": good[:20],
        "torn ledger: the witness is half old, half new": older[:20] + good[20:],
        "ledger put back: the witness has seen later writes": older,
        "ledger put back: the witness saw another store": other,
    }
    return [{"rule": rule, "witness": record.hex()} for rule, record in rows.items()]


VECTORS = {
    "thresholds": thresholds,
    "noise": noise,
    "campaign": campaign,
    "keys": keys,
    "frames": frames,
    "negative": negative,
}


def text_of(name: str) -> str:
    return json.dumps(VECTORS[name](), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for name in VECTORS:
        (FOLDER / f"{name}.json").write_text(text_of(name))
