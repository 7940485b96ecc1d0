"""The known answers are what our code makes, and a second, plain reading of them agrees."""

import hashlib
import hmac
import json
import math
import struct
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import partial

import pytest

from retrasyn.device import Instant, MemoryStore, Refusal, Reporter, Tracker
from retrasyn.device.signatures import share_x25519, verify_ed25519
from retrasyn.device.store import read_witness
from retrasyn.errors import WireError
from retrasyn.wire import decode_heartbeat, decode_report
from retrasyn.wire.frames import is_heartbeat
from retrasyn.wire.keys import CuratorKeys, follow
from retrasyn.wire.statuses import REACTIONS

wire_vectors = pytest.importorskip("support.wire_vectors")
FILES = sorted(wire_vectors.VECTORS)


def loaded(name):
    return json.loads((wire_vectors.FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", FILES)
def test_known_answers_are_what_our_code_makes(name):
    assert (wire_vectors.FOLDER / f"{name}.json").read_text() == wire_vectors.text_of(name)


def test_no_file_of_known_answers_is_left_over():
    assert sorted(path.stem for path in wire_vectors.FOLDER.glob("*.json")) == FILES


def test_thresholds_have_the_values_of_the_design():
    noise = {row["epsilon"]: row["noise"] for row in loaded("thresholds")}
    assert noise[500_000] == "60a6815965e37a0f"
    assert noise[1_000_000] == "44d9585152ea1936"
    assert noise[1_500_000] == "2eb3706ab4375f64"
    assert noise[2_000_000] == "1e84152bac31aeaa"


def test_a_unary_report_follows_from_its_words_by_the_document_alone():
    noise = {row["epsilon"]: int(row["noise"], 16) for row in loaded("thresholds")}
    for row in loaded("noise"):
        if row["oracle"] != "oue":
            continue
        bits = bytearray(41)
        for k in range(328):
            word = (row["words_start"] + k + 1) * 0x9E3779B97F4A7C15 % 2**64
            limit = 2**63 if k == row["state"] else noise[row["epsilon"]]
            bits[k // 8] |= (word < limit) << (k % 8)
        assert bytes(bits).hex() == row["bits"]


def test_frames_follow_from_their_fields_by_the_document_alone():
    vectors = loaded("frames")
    key = bytes.fromhex(vectors["device_key"])
    for row in vectors["reports"]:
        head = struct.pack(
            "<BBHII", 3, row["question"], row["n_states"], vectors["t"], vectors["epsilon"]
        )
        front = head + bytes.fromhex(vectors["manifest_id"] + vectors["device_id"] + row["bits"])
        tag = hmac.new(key, front, hashlib.sha256).digest()[:16]
        assert (front + tag).hex() == row["frame"]
    assert len(bytes.fromhex(vectors["reports"][0]["frame"])) == 93


def test_heartbeats_and_batches_follow_by_the_document_alone():
    vectors = loaded("frames")
    key, named = bytes.fromhex(vectors["device_key"]), vectors["manifest_id"] + vectors["device_id"]
    for row in vectors["heartbeats"]:
        front = struct.pack("<BBI", 3, 64 + row["kind"], vectors["t"]) + bytes.fromhex(named)
        tag = hmac.new(key, front, hashlib.sha256).digest()[:16]
        assert (front + tag).hex() == row["frame"]
    frames = [vectors["reports"][4]["frame"], vectors["heartbeats"][0]["frame"]]
    assert vectors["batch_of_the_fifth_report_and_the_first_heartbeat"] == "".join(
        f"{len(frame) // 2:02x}00{frame}" for frame in frames
    )


def test_rounds_are_chained_and_signed():
    vectors = loaded("campaign")
    public = bytes.fromhex(vectors["public_key"])
    previous = vectors["manifest"]["sha256"]
    assert vectors["manifest_id"] == previous[:16]
    manifests = [vectors["manifest"], vectors["manifest_with_a_public_map"]]
    for row in [*manifests, *vectors["rounds"]]:
        signature = bytes.fromhex(row["signature"])
        assert verify_ed25519(public, row["signed"].encode(), signature)
        assert row["signed"] == f"retrasyn/3/{row['kind']}\n{row['body']}"
        assert row["envelope"] == f'{{"body":{row["body"]},"signature":"{row["signature"]}"}}'
    for row in vectors["rounds"]:
        assert json.loads(row["body"])["previous"] == previous
        previous = hashlib.sha256(row["body"].encode()).hexdigest()


def test_acknowledgements_follow_from_the_report_by_the_document_alone():
    vectors, campaign = loaded("frames"), loaded("campaign")
    key = bytes.fromhex(vectors["device_key"])
    frame = bytes.fromhex(vectors["reports"][0]["frame"])
    for code, row in enumerate(vectors["acks_of_the_first_report"]):
        part = b"retrasyn/3/ack\n" + bytes([code]) + frame
        ack = bytes.fromhex(row["ack"])
        assert ack[:2] == bytes([3, code])
        if row["status"] == "unauthenticated":
            assert verify_ed25519(bytes.fromhex(campaign["public_key"]), part, ack[2:])
        else:
            assert ack[2:] == hmac.new(key, part, hashlib.sha256).digest()[:16]


def test_a_devices_key_follows_from_the_agreement_by_the_document_alone():
    row = {name: value for name, value in loaded("keys").items() if isinstance(value, str)}
    given = {name: bytes.fromhex(value) for name, value in row.items()}
    for mine, theirs in (("curator", "device"), ("device", "curator")):
        secret, public = given[f"{mine}_x25519_secret"], given[f"{theirs}_x25519_public"]
        assert share_x25519(secret, public) == given["shared"]
    context = b"".join(
        given[name]
        for name in ("curator_x25519_public", "device_x25519_public", "manifest_id", "device_id")
    )
    extracted = hmac.new(bytes(32), given["shared"], hashlib.sha256).digest()
    info = b"retrasyn/3/device key\n" + context + b"\1"
    assert hmac.new(extracted, info, hashlib.sha256).digest() == given["device_key"]
    for kind in ("enrolled", "leave", "left"):
        part = f"retrasyn/3/{kind}\n".encode() + given["device_id"]
        tag = hmac.new(given["device_key"], part, hashlib.sha256).digest()[:16]
        assert tag == given[f"{kind}_tag"]


def test_statements_of_keys_follow_by_the_document_alone():
    vectors = loaded("keys")
    said = bytes.fromhex(vectors["statement_after_two_successions"])
    known, frames = bytes.fromhex(vectors["known_key"]), said[97:]
    assert len(frames) == 2 * 137
    for place in (0, 137):
        body, signature = frames[place : place + 73], frames[place + 73 : place + 137]
        version, until, before, key = struct.unpack("<BQ32s32s", body)
        assert (version, before) == (3, known)
        assert verify_ed25519(before, b"retrasyn/3/succession\n" + body, signature)
        known = key
    assert (known.hex(), before.hex()) == (vectors["newest_key"], vectors["key_before"])
    assert until == vectors["which_counts_until"]
    assert said[:33] == b"\3" + bytes.fromhex(vectors["curator_x25519_public"])
    assert verify_ed25519(known, b"retrasyn/3/agreement\n" + said[:33], said[33:97])
    keys, agreement = follow(CuratorKeys(bytes.fromhex(vectors["known_key"])), said, verify_ed25519)
    assert keys == CuratorKeys(known, before, until)
    assert agreement.hex() == vectors["curator_x25519_public"]


def negative(kind):
    rows = loaded("negative")[kind]
    return pytest.mark.parametrize("row", rows, ids=[row["rule"] for row in rows])


@negative("frames")
def test_a_bad_frame_is_refused(row):
    frame, key = bytes.fromhex(row["frame"]), bytes.fromhex(loaded("frames")["device_key"])
    read = decode_heartbeat if is_heartbeat(frame) else partial(decode_report, oracle="oue")
    with pytest.raises(WireError):
        read(frame, key)


@negative("acks_of_the_first_report")
def test_a_forged_ack_is_no_answer(row):
    vectors, campaign = loaded("frames"), loaded("campaign")
    curator = CuratorKeys(bytes.fromhex(campaign["public_key"]))
    device, key = (bytes.fromhex(vectors[name]) for name in ("device_id", "device_key"))
    reporter = Reporter(device, key, MemoryStore(), verify_ed25519, curator=curator)
    frame, now = bytes.fromhex(vectors["reports"][0]["frame"]), Instant(wall=0, boot=0)
    assert reporter.hear(bytes.fromhex(row["ack"]), frame, now) == "ignore"
    for good in vectors["acks_of_the_first_report"]:
        assert reporter.hear(bytes.fromhex(good["ack"]), frame, now) == REACTIONS[good["status"]]


@negative("rounds_for_a_device_that_saw_round_1_and_whose_clock_shows_round_2")
def test_a_bad_round_is_refused_by_its_rule(row):
    campaign = loaded("campaign")
    manifest = json.loads(campaign["manifest"]["body"])

    def at(t):
        wall = 1000 * (manifest["epoch"] + t * manifest["period"])
        return Instant(wall=wall, boot=wall)

    reporter = Reporter(bytes(16), bytes(32), MemoryStore(), verify_ed25519)
    tracker = Tracker(reporter.pin(campaign["manifest"]["envelope"].encode(), at(-50)))
    reporter.draw(campaign["rounds"][1]["envelope"].encode(), at(1), tracker)
    refusal = reporter.draw(row["envelope"].encode(), at(2), tracker)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == row["number"]
    good = reporter.draw(campaign["rounds"][2]["envelope"].encode(), at(2), tracker)
    assert not isinstance(good, Refusal) or good.rule == 7


@negative("manifests_for_a_device_that_pinned_the_one_with_a_public_map")
def test_a_manifest_with_another_map_is_refused(row):
    campaign, now = loaded("campaign"), Instant(wall=10**12, boot=0)
    reporter = Reporter(bytes(16), bytes(32), MemoryStore(), verify_ed25519)
    mapped = campaign["manifest_with_a_public_map"]["envelope"].encode()
    assert reporter.pin(mapped, now).public_map == bytes(range(32))
    with pytest.raises(WireError, match="another public map"):
        reporter.pin(row["envelope"].encode(), now)


@negative("statements")
def test_a_bad_statement_of_keys_is_refused(row):
    known = CuratorKeys(bytes.fromhex(loaded("keys")["known_key"]))
    with pytest.raises(WireError):
        follow(known, bytes.fromhex(row["statement"]), verify_ed25519)


@negative("witnesses_of_a_ledger")
def test_a_ledger_with_a_bad_witness_is_not_believed(row, tmp_path):
    (tmp_path / "witness").write_bytes(bytes.fromhex(row["witness"]))
    seen = read_witness(tmp_path / "witness")
    assert seen is None or not seen.vouches_for(bytes(range(16)), 7)


STRIDE = 0x9E3779B97F4A7C15
FULL = 2**64


def mixed(key, number):
    z = (key + number * STRIDE) % FULL
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % FULL
    z = (z ^ z >> 27) * 0x94D049BB133111EB % FULL
    return z ^ z >> 31


def hidden(truth, k, lot, choice, epsilon):
    assert choice >= FULL % k, "none of the known answers needs a redraw"
    limit = math.ceil(Fraction(FULL * k) / (Fraction(exact_power(epsilon)) + k))
    lie = choice % k
    lie += lie >= truth
    return lie if lot < limit else truth


def exact_power(epsilon):
    getcontext().prec = 80
    return (Decimal(epsilon) / 1_000_000).exp()


def test_symbols_and_hashes_follow_from_their_words_by_the_document_alone():
    for row in loaded("noise"):
        words = [(row["words_start"] + k + 1) * STRIDE % FULL for k in range(row["n_words"])]
        state, epsilon = row["state"], row["epsilon"]
        if row["oracle"] == "grr":
            truth = 328 if state == -1 else state
            assert hidden(truth, 328, *words, epsilon).to_bytes(2, "little").hex() == row["bits"]
        elif row["oracle"] == "olh":
            seed, n_values = words[0] % 2**32, round(1 + exact_power(epsilon))
            if state == -1:
                value = words[2] % n_values
            else:
                truth = (mixed(mixed(STRIDE, seed), state) >> 32) * n_values >> 32
                value = hidden(truth, n_values - 1, *words[1:], epsilon)
            assert (seed.to_bytes(4, "little") + bytes([value])).hex() == row["bits"]
