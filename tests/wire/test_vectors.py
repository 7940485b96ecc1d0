"""The known answers are what our code makes, and a second, plain reading of them agrees."""

import hashlib
import hmac
import json
import math
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

import pytest

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
            "<BBHII", 1, row["question"], row["n_states"], vectors["t"], vectors["epsilon"]
        )
        front = head + bytes.fromhex(vectors["manifest_id"] + vectors["device_id"] + row["bits"])
        tag = hmac.new(key, front, hashlib.sha256).digest()[:16]
        assert (front + tag).hex() == row["frame"]
        assert hashlib.sha256(front + tag).hexdigest()[:32] == row["digest"]
    assert len(bytes.fromhex(vectors["reports"][0]["frame"])) == 93


def test_heartbeats_and_batches_follow_by_the_document_alone():
    vectors = loaded("frames")
    key, named = bytes.fromhex(vectors["device_key"]), vectors["manifest_id"] + vectors["device_id"]
    for row in vectors["heartbeats"]:
        front = struct.pack("<BBI", 1, 64 + row["kind"], vectors["t"]) + bytes.fromhex(named)
        tag = hmac.new(key, front, hashlib.sha256).digest()[:16]
        assert (front + tag).hex() == row["frame"]
    frames = [vectors["reports"][4]["frame"], vectors["heartbeats"][0]["frame"]]
    assert vectors["batch_of_the_fifth_report_and_the_first_heartbeat"] == "".join(
        f"{len(frame) // 2:02x}00{frame}" for frame in frames
    )


def test_rounds_are_chained_and_signed():
    from retrasyn.device.signatures import verify_ed25519

    vectors = loaded("campaign")
    public = bytes.fromhex(vectors["public_key"])
    previous = vectors["manifest"]["sha256"]
    assert vectors["manifest_id"] == previous[:16]
    for row in [vectors["manifest"], *vectors["rounds"]]:
        signature = bytes.fromhex(row["signature"])
        assert verify_ed25519(public, row["signed"].encode(), signature)
        assert row["signed"] == f"retrasyn/1/{row['kind']}\n{row['body']}"
        assert row["envelope"] == f'{{"body":{row["body"]},"signature":"{row["signature"]}"}}'
    for row in vectors["rounds"]:
        assert json.loads(row["body"])["previous"] == previous
        previous = hashlib.sha256(row["body"].encode()).hexdigest()


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
