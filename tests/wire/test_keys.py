"""Keys: what both sides derive, and which successions a device follows."""

import dataclasses
import itertools

import pytest

from retrasyn.errors import WireError
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.keys import (
    MAX_SUCCESSIONS,
    CuratorKeys,
    agreed_key,
    follow,
    write_agreement,
    write_succession,
)
from support.campaigns import verify
from support.keys import ONE, THREE, TWO, agreement_by, signature_by, statement, succession

CONTEXT = {"agreement": b"c" * 32, "public": b"d" * 32, "manifest": b"m" * 8, "device": b"i" * 16}


def test_a_device_key_is_what_hkdf_of_a_library_makes():
    hkdf = pytest.importorskip("cryptography.hazmat.primitives.kdf.hkdf")
    hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes")
    info = b"retrasyn/3/device key\n" + b"c" * 32 + b"d" * 32 + b"m" * 8 + b"i" * 16
    derive = hkdf.HKDF(hashes.SHA256(), 32, salt=None, info=info).derive
    assert agreed_key(b"s" * 32, **CONTEXT) == derive(b"s" * 32)


@pytest.mark.parametrize("name", CONTEXT)
def test_whatever_the_context_names_changes_the_key(name):
    other = CONTEXT | {name: bytes(len(CONTEXT[name]))}
    assert agreed_key(b"s" * 32, **other) != agreed_key(b"s" * 32, **CONTEXT)


def test_without_successions_the_key_of_the_link_vouches_for_the_agreement_key():
    keys, agreement = follow(CuratorKeys(ONE), statement(agreement_by(ONE)), verify)
    assert keys == CuratorKeys(ONE)
    assert agreement == b"x" * 32


def test_a_device_follows_all_successions_from_the_key_it_knows():
    chain = succession(ONE, TWO, until=50), succession(TWO, THREE, until=90)
    said = statement(agreement_by(THREE), *chain)
    assert follow(CuratorKeys(ONE), said, verify)[0] == CuratorKeys(THREE, TWO, 90)
    assert follow(CuratorKeys(TWO), said, verify)[0] == CuratorKeys(THREE, TWO, 90)
    newest = CuratorKeys(THREE, TWO, 90)
    assert follow(newest, said, verify)[0] == newest, "nothing changes twice"


def test_a_succession_that_the_known_key_did_not_sign_is_refused():
    thief = b"t" * 32
    forged = [
        succession(ONE, thief, until=50, signer=thief),
        succession(ONE, thief, until=50, signer=TWO),
        succession(ONE, TWO, until=50)[:-1] + b"\0",
        b"\1" + succession(ONE, TWO, until=50)[1:],
    ]
    for one in forged:
        with pytest.raises(WireError, match="not signed by the one before"):
            follow(CuratorKeys(ONE), statement(agreement_by(thief), one), verify)


def test_successions_of_keys_that_are_not_known_lead_nowhere():
    thief = b"t" * 32
    said = statement(agreement_by(thief), succession(TWO, thief, until=50))
    with pytest.raises(WireError, match="not the curator"):
        follow(CuratorKeys(ONE), said, verify)


def test_who_does_not_have_the_known_key_is_not_the_curator():
    for forged in (
        agreement_by(TWO),
        agreement_by(ONE)[:-1] + b"\0",
        b"\1" + agreement_by(ONE)[1:],
    ):
        with pytest.raises(WireError, match="not the curator"):
            follow(CuratorKeys(ONE), statement(forged), verify)


def test_after_a_succession_the_old_keys_statement_is_refused():
    """So nobody leads a device back to a key that it has left."""
    with pytest.raises(WireError, match="not the curator"):
        follow(CuratorKeys(TWO, ONE, 50), statement(agreement_by(ONE)), verify)


def test_a_signature_of_one_kind_is_none_of_another():
    body = write_agreement(b"x" * 32)
    for kind in ("succession", "round", "ack"):
        with pytest.raises(WireError, match="not the curator"):
            follow(CuratorKeys(ONE), body + signature_by(ONE, kind, body), verify)


@pytest.mark.parametrize("n", [0, 96, 98, 97 + 136, 97 + 137 * (MAX_SUCCESSIONS + 1)])
def test_a_statement_of_another_length_is_refused(n):
    with pytest.raises(WireError, match=f"{n} bytes state no keys"):
        follow(CuratorKeys(ONE), bytes(n), verify)


def test_as_many_successions_as_there_may_be_are_followed():
    keys = [bytes([n // 256, n % 256]) * 16 for n in range(MAX_SUCCESSIONS + 1)]
    chain = [succession(a, b, until=9) for a, b in itertools.pairwise(keys)]
    said = statement(agreement_by(keys[-1]), *chain)
    assert follow(CuratorKeys(keys[0]), said, verify)[0].key == keys[-1]


def test_the_bytes_are_those_of_the_document():
    assert write_agreement(ONE) == b"\3" + ONE
    said = write_succession(before=ONE, key=TWO, until=258)
    assert said == b"\3" + b"\2\1" + bytes(6) + ONE + TWO


@pytest.mark.parametrize("keys", [CuratorKeys(ONE), CuratorKeys(TWO, ONE, 1_700_000_000)])
def test_keys_come_back_as_they_were(keys):
    assert CuratorKeys.from_dict(keys.to_dict()) == keys


@pytest.mark.parametrize(
    "changes", [{"key": "00"}, {"before": "00"}, {"until": "soon"}, {"until": True}, {"key": "x"}]
)
def test_what_are_no_keys_is_refused(changes):
    with pytest.raises(ValueError, match=r"no keys|fromhex"):
        CuratorKeys.from_dict(CuratorKeys(ONE).to_dict() | changes)


def test_the_key_before_counts_until_its_end():
    keys, text = CuratorKeys(TWO, ONE, 50), b"text"
    old, new = signature_by(ONE, "round", text), signature_by(TWO, "round", text)
    for now, counts in ((0, True), (49, True), (50, False), (51, False)):
        assert keys.signed("round", text, old, verify=verify, now=now) is counts
        assert keys.signed("round", text, new, verify=verify, now=now)
    assert not keys.signed("ack", text, new, verify=verify, now=0)
    unknown = dataclasses.replace(keys, before=THREE)
    assert not unknown.signed("round", text, old, verify=verify, now=0)
    assert signed_part("round", text) == b"retrasyn/3/round\ntext"
