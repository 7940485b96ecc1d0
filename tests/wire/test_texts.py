"""Manifests and rounds: one text for one value, and a refusal of all others."""

import dataclasses
import json
import math
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import WireError
from retrasyn.messages import MICRO, SPEEDS
from retrasyn.wire import (
    decode_manifest,
    decode_round,
    encode_manifest,
    encode_round,
    manifest_id,
    round_hash,
)
from retrasyn.wire.canonical import MAX_TEXT, read_canonical, seal, unseal, write_canonical
from retrasyn.wire.texts import OPTIONAL, choice, digits, hexadecimal, name, names, numbers, whole
from support.campaigns import Campaign, manifest_of

MANIFESTS = [
    manifest_of(),
    manifest_of(side=6, window=20, sampling="phase", jump="clamp"),
    manifest_of(side=1, unit="transition", sampling="self", division="budget"),
    manifest_of(strata=("transition", "older"), other_shares=(100_000,), ages=(2, 6)),
    manifest_of(strata=("move", "enter", "quit"), presence="flags"),
    manifest_of(
        strata=("transition", "present"),
        other_shares=(200_000,),
        presence="hidden",
        size_source="estimated",
    ),
    manifest_of(strata=("transition", "cell"), other_shares=(450_000,)),
    manifest_of(strata=("transition", "older", "cell"), other_shares=(1, 999_998), ages=(2,)),
    manifest_of(
        strata=("move", "enter", "quit", "cell"), other_shares=(450_000,), presence="flags"
    ),
    manifest_of(
        strata=("transition", "present", "cell"),
        other_shares=(200_000, 450_000),
        presence="hidden",
        size_source="estimated",
    ),
    manifest_of(n_states=49, oracle="grr"),
    manifest_of(
        strata=("transition", "faster"), other_shares=(5,), speeds=(7,), public_map=bytes(32)
    ),
    manifest_of(
        strata=("transition", "older", "faster", "cell"),
        other_shares=(100_000, 50_000, 450_000),
        ages=(2, 6),
        speeds=SPEEDS,
        public_map=bytes(range(32)),
    ),
    manifest_of(name='Köln, "quoted" and 東京', oracle="olh"),
]
ROUND = Campaign(manifest_of()).round_of(4)
FASTER = {
    "strata": ("transition", "faster"),
    "other_shares": (50_000,),
    "speeds": (2, 6),
    "public_map": bytes(32),
}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=range(len(MANIFESTS)))
def test_a_manifest_comes_back_as_it_was(manifest):
    text = encode_manifest(manifest)
    assert decode_manifest(text) == manifest
    assert len(manifest_id(text)) == 8
    assert round_hash(text)[:8] == manifest_id(text)


@given(
    t=st.integers(0, 2**32 - 1),
    portion=st.integers(0, 2**64),
    epsilon=st.integers(1, 100 * MICRO),
    grace=st.integers(0, 86_400),
    previous=st.binary(min_size=32, max_size=32),
)
def test_a_round_comes_back_as_it_was(t, portion, epsilon, grace, previous):
    asked = dataclasses.replace(
        ROUND, t=t, portion=portion, epsilon=epsilon, grace=grace, previous=previous
    )
    assert decode_round(encode_round(asked)) == asked


@pytest.mark.parametrize(
    ("kind", "bounds", "pairs", "not_written", "not_read"),
    [
        (whole, (2, 4), [(2, 2), (4, 4)], [1, 5, True, 2.0, "2"], [1, 5, True, 2.0, "2"]),
        (
            numbers,
            (1, 2, 3, 5),
            [((3,), [3]), ((5, 3), [5, 3])],
            [(), (3, 4, 5), (2,), (6,), (3.0,), [3], 3],
            [[], [3, 4, 5], [2], [6], [3.0], (3,), 3],
        ),
        (choice, (("on", "off"),), [("off", "off")], ["of", "", 1, None], ["of", "", 1, None]),
        (
            names,
            (("on", "off"),),
            [((), []), (("off", "on"), ["off", "on"])],
            [("of",), ["on"], "on"],
            [["of"], ("on",), "on"],
        ),
        (
            name,
            (2,),
            [("a", "a"), ("ab", "ab")],
            ["", "abc", "a\n", b"a", "\ud800"],
            ["", "abc", "a\n", 1, "\ud800"],
        ),
        (
            hexadecimal,
            (2,),
            [(b"\x0a\xff", "0aff")],
            [b"\x0a", bytes(3), bytearray(2), "0aff"],
            ["0a", "0aff00", "0AFF", "0a ff", "no", 10],
        ),
        (digits, (2, 40), [(2, "2"), (40, "40")], [1, 41, True, "2"], ["1", "41", "02", "+2", 2]),
    ],
)
def test_a_field_takes_what_its_rule_says_and_nothing_else(
    kind, bounds, pairs, not_written, not_read
):
    field = kind(*bounds)
    for value, written in pairs:
        assert (field.write(value), field.read(written)) == (written, value)
    for turn, wrong in ((field.write, not_written), (field.read, not_read)):
        for value in wrong:
            with pytest.raises((ValueError, TypeError, AttributeError)):
                turn(value)
    said = [str(bound) if type(bound) is int else ", ".join(bound) for bound in bounds]
    assert all(bound in field.rule for bound in said)


def test_texts_hold_no_floats_and_sorted_keys():
    for text in (encode_manifest(MANIFESTS[3]), encode_round(ROUND)):
        fields = json.loads(text, parse_float=pytest.fail)
        assert list(fields) == sorted(fields)
        assert text.isascii()
        assert b" " not in text.replace(b'", "', b"")
    assert json.loads(encode_round(ROUND))["portion"] == "18446744073709551616"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"box": (0, 0, 0, 1)}, "lower-left"),
        ({"box": (0, 5, 9, 5)}, "lower-left"),
        ({"n_states": 50}, "n_states must be 67"),
        ({"gap": 3}, "gap must be"),
        ({"unit": "transition", "window": 3, "gap": 4}, "gap must be"),
        ({"strata": ("move",)}, "strata"),
        ({"strata": ()}, "strata"),
        ({"strata": ("move", "enter", "quit")}, "flags"),
        ({"presence": "flags"}, "flags"),
        ({"n_states": 49, "strata": ("move", "enter", "quit"), "presence": "flags"}, "nobody"),
        ({"presence": "hidden"}, "hidden"),
        ({"size_source": "estimated"}, "hidden"),
        (
            {
                "presence": "hidden",
                "size_source": "estimated",
                "strata": ("transition", "older"),
                "ages": (2,),
                "other_shares": (5,),
            },
            "hidden",
        ),
        ({"other_shares": (5,)}, "one share for each of older, present, faster and cell"),
        ({"strata": ("transition", "older"), "ages": (2,)}, "one share for each"),
        ({"strata": ("transition", "cell")}, "one share for each"),
        ({"strata": ("transition", "cell"), "other_shares": (5, 5)}, "one share for each"),
        (
            {
                "strata": ("move", "enter", "quit", "cell"),
                "presence": "flags",
                "other_shares": (5, 5, 5, 5),
            },
            "0 to 3 numbers",
        ),
        (
            {
                "strata": ("transition", "older", "cell"),
                "ages": (2,),
                "other_shares": (500_000, 500_000),
            },
            "below 1,000,000 in sum",
        ),
        ({"strata": ("transition", "cell"), "other_shares": (0,)}, "other_shares must be"),
        ({"strata": ("transition", "cell"), "other_shares": (MICRO,)}, "other_shares must be"),
        ({"strata": ("transition", "cell"), "other_shares": 5}, "other_shares must be"),
        ({"strata": ("cell",), "other_shares": (5,)}, "strata must be asked together"),
        ({"strata": ("cell", "transition"), "other_shares": (5,)}, "strata must be asked"),
        ({"strata": ("transition", "older"), "other_shares": (5,)}, "ages must"),
        ({"strata": ("transition", "older"), "other_shares": (5,), "ages": (6, 2)}, "ages must"),
        ({"strata": ("transition", "older"), "other_shares": (5,), "ages": (9,)}, "ages must"),
        ({"ages": (2,)}, "ages must"),
        (FASTER | {"speeds": ()}, "speeds must ascend, and they and public_map be there iff"),
        (FASTER | {"public_map": b""}, "speeds must ascend, and they and public_map be"),
        (FASTER | {"speeds": (6, 2)}, "speeds must ascend"),
        (FASTER | {"speeds": (2, 2)}, "speeds must ascend"),
        (FASTER | {"speeds": (0, 2)}, "1 to 16 numbers"),
        (FASTER | {"speeds": tuple(range(1, 18))}, "1 to 16 numbers"),
        (FASTER | {"public_map": bytes(31)}, "public_map must be 32 bytes"),
        (FASTER | {"strata": ("faster",)}, "strata must be asked together"),
        (FASTER | {"strata": ("transition", "cell", "faster")}, "strata must be asked together"),
        (
            FASTER | {"presence": "hidden", "size_source": "estimated"},
            "hidden presence goes with an estimated size, no ages and no speeds",
        ),
        ({"speeds": (2,), "public_map": bytes(32)}, "there iff faster is asked"),
        ({"public_map": bytes(32)}, "there iff faster is asked"),
        ({"lifetime_cap": 999_999}, "lifetime_cap"),
        ({"name": ""}, "name must be"),
        ({"name": "two\nlines"}, "name must be"),
        ({"name": "\ud800"}, "name must be"),
        ({"name": "x" * 65}, "name must be"),
        ({"key": bytes(31)}, "key must be"),
        ({"key": "00" * 32}, "key must be"),
        ({"box": (0, 0, 1.5, 1)}, "box must be"),
        ({"box": [0, 0, 1, 1]}, "box must be"),
        ({"box": (0, 0, 1)}, "box must be"),
        ({"side": True}, "side must be"),
        ({"side": 65}, "side must be"),
        ({"state_order": 2}, "state_order must be"),
        ({"period": 0}, "period must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"oracle": "rappor"}, "oracle must be"),
        ({"oracle": 3}, "oracle must be"),
        ({"strata": "transition"}, "strata must be"),
        ({"strata": ("transition", "speed")}, "strata must be"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(changes, why):
    with pytest.raises(WireError, match=why):
        encode_manifest(manifest_of(**changes))


def test_a_decoder_refuses_a_contradiction_as_the_encoder_does():
    fields = json.loads(encode_manifest(manifest_of()))
    with pytest.raises(WireError, match="gap must be"):
        decode_manifest(write_canonical(fields | {"gap": 3}))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"t": -1}, "t must be"),
        ({"t": 1.0}, "not canonical"),
        ({"t": "1"}, "t must be"),
        ({"portion": 5}, "portion must be"),
        ({"portion": "05"}, "portion must be"),
        ({"portion": "18446744073709551617"}, "portion must be"),
        ({"portion": "many"}, "portion must be"),
        ({"manifest": "00"}, "manifest must be"),
        ({"manifest": "AA" * 8}, "manifest must be"),
        ({"manifest": 7}, "manifest must be"),
        ({"previous": "zz" * 32}, "previous must be"),
        ({"close": 0}, "closes before it opens"),
        ({"more": 1}, "too many fields"),
    ],
)
def test_a_round_that_nobody_writes_is_refused(changes, why):
    fields = json.loads(encode_round(ROUND)) | changes
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(WireError, match=why):
        decode_round(text)


@pytest.mark.parametrize(
    "fields", [{"box": 3}, {"box": [1, 2]}, {"strata": 3}, {"name": 3}, {"ages": {"1": 2}}]
)
def test_a_manifest_with_a_field_of_another_kind_is_refused(fields):
    honest = json.loads(encode_manifest(manifest_of()))
    with pytest.raises(WireError, match="must be"):
        decode_manifest(write_canonical(honest | fields))


def test_a_manifest_without_a_map_has_no_field_for_it_and_one_with_a_map_has_both():
    without, fields = (json.loads(encode_manifest(manifest_of(**c))) for c in ({}, FASTER))
    assert fields.keys() - without.keys() == OPTIONAL
    for empty in ({"speeds": []}, {"public_map": ""}, {"speeds": [], "public_map": ""}):
        with pytest.raises(WireError, match="must be"):
            decode_manifest(write_canonical(without | empty))
    for lacking in OPTIONAL:
        rest = {label: value for label, value in fields.items() if label != lacking}
        with pytest.raises(WireError, match="there iff faster is asked"):
            decode_manifest(write_canonical(rest))


def test_a_round_that_closes_before_it_opens_is_not_written():
    with pytest.raises(WireError, match="closes"):
        encode_round(dataclasses.replace(ROUND, close=ROUND.open))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"3",
        b'{"a": 1}',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b'{"a":1.0}',
        b'{"a":NaN}',
        b'{"a":1e3}',
        '{"a":"ö"}'.encode(),
        b'{"a":"\\u0061"}',
        b'{"a":1}\n',
        b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}",
        b'{"a":' + b"[" * 128 + b"]" * 128 + b"}",
        b'{"a":' + b'{"a":' * 128 + b"1" + b"}" * 129,
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":9007199254740992}',
        b'{"a":-9007199254740992}',
        b'{"a":"' + b"x" * MAX_TEXT + b'"}',
    ],
    ids=range(19),
)
def test_anything_but_canonical_json_is_refused(text):
    with pytest.raises(WireError):
        read_canonical(text, "text")


def test_the_longest_text_is_read_and_what_has_no_text_is_not_written():
    longest = b'{"a":"' + b"x" * (MAX_TEXT - 8) + b'"}'
    assert len(longest) == MAX_TEXT
    assert read_canonical(longest, "text")["a"] == "x" * (MAX_TEXT - 8)
    with pytest.raises(WireError, match="text of 8193 bytes is longer"):
        read_canonical(longest + b" ", "text")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_canonical({"a": math.nan})


def test_a_refusal_names_what_was_read_and_the_fields_that_are_odd():
    fields = json.loads(encode_manifest(manifest_of()))
    del fields["gap"]
    with pytest.raises(WireError, match=r"manifest lacks or has too many fields \(gap, speed\)"):
        decode_manifest(write_canonical(fields | {"speed": 1}))
    with pytest.raises(WireError, match=r"^manifest: gap must be a whole number"):
        decode_manifest(write_canonical(fields | {"gap": 0}))
    with pytest.raises(WireError, match=r"^round: t must be a whole number"):
        decode_round(write_canonical(json.loads(encode_round(ROUND)) | {"t": -1}))
    with pytest.raises(WireError, match=r"^round: t must be a whole number"):
        encode_round(dataclasses.replace(ROUND, t=-1))
    with pytest.raises(WireError, match=r"^manifest: side must be a whole number"):
        encode_manifest(manifest_of(side=65))
    with pytest.raises(WireError, match=r"^manifest is not canonical"):
        decode_manifest(b"[]")


def test_a_cap_of_one_report_and_as_many_brackets_as_allowed_are_fine():
    assert b'"lifetime_cap":1000000' in encode_manifest(manifest_of(lifetime_cap=MICRO))
    deep = b'{"a":' + b"[" * 127 + b"]" * 127 + b"}"
    assert write_canonical(read_canonical(deep, "text")) == deep
    with pytest.raises(WireError, match="text opens 129 brackets"):
        read_canonical(deep[:5] + b"[" + deep[5:-1] + b"]}", "text")


def test_what_is_refused_does_not_depend_on_what_the_interpreter_can_read():
    import sys

    depth, n_digits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    try:
        sys.setrecursionlimit(100_000)
        sys.set_int_max_str_digits(0)
        for inner in (b"[" * 1000 + b"]" * 1000, b"9" * 5000):
            with pytest.raises(WireError):
                read_canonical(b'{"a":' + inner + b"}", "text")
    finally:
        sys.setrecursionlimit(depth)
        sys.set_int_max_str_digits(n_digits)


def test_the_manifest_with_the_most_brackets_is_read():
    widest = manifest_of(
        name="[" * 64,
        strata=("transition", "older", "faster"),
        other_shares=(100_000, 50_000),
        ages=(2, 6),
        speeds=SPEEDS,
        public_map=bytes(32),
    )
    text = encode_manifest(widest)
    assert text.count(b"[") + text.count(b"{") == 70
    assert decode_manifest(text) == widest


def test_the_largest_whole_numbers_are_read():
    text = b'{"a":9007199254740991,"b":-9007199254740991}'
    assert write_canonical(read_canonical(text, "text")) == text


def test_an_envelope_comes_apart_as_it_was_put_together():
    assert unseal(seal(b'{"a":1}', bytes(range(64)))) == (b'{"a":1}', bytes(range(64)))


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_signature_of_another_length_is_refused(length):
    with pytest.raises(WireError, match="64"):
        seal(b"{}", bytes(length))


def test_every_change_to_an_envelope_shows():
    envelope = seal(b"{}", bytes([0xAB]) * 64)
    assert b"abab" in envelope
    for text in (envelope[1:], envelope[:-1], envelope + b" ", envelope.upper(), b"", b"{}"):
        with pytest.raises(WireError, match="no envelope"):
            unseal(text)


def test_the_fields_of_a_message_are_those_of_its_table():
    from retrasyn.messages import Manifest, Round
    from retrasyn.wire.texts import MANIFEST_FIELDS, ROUND_FIELDS

    assert MANIFEST_FIELDS.keys() == get_type_hints(Manifest).keys()
    assert ROUND_FIELDS.keys() == get_type_hints(Round).keys()
