"""The known answers are what our code makes, and a second, plain reading of them agrees."""

import hashlib
import hmac
import json
import struct

import pytest

wire_vectors = pytest.importorskip("wire_vectors")
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
