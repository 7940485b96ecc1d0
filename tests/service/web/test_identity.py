"""I9 over HTTP: forged, stolen, revoked or used-up identities are refused every time."""

import dataclasses
import os

import pytest

from retrasyn.device.signatures import draw_x25519
from retrasyn.service.enrolment import NewDevice
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.frames import tag_of
from support import enrolling
from support.living import round_in


def leave_tag(device, kind="leave"):
    return tag_of(device.key, signed_part(kind, device.device)).hex()


def asking(live, *tokens, **changes):
    """Return the body of an enrolment, or one with some fields changed."""
    return enrolling.asking(live.service.runtime.campaign, *tokens) | changes


def test_a_report_with_a_forged_tag_is_unauthenticated(live):
    frame = live.report(live.devices[0], 0)
    for place in range(len(frame) - 16, len(frame)):
        forged = bytearray(frame)
        forged[place] ^= 1
        assert live.send(bytes(forged)) == "unauthenticated"


def test_a_device_nobody_enrolled_is_unauthenticated(live):
    stranger = NewDevice(os.urandom(16), os.urandom(32))
    assert live.send(live.report(stranger, 0)) == "unauthenticated"
    assert live.send(live.heartbeat(stranger, 0)) == "unauthenticated"


def test_a_stolen_id_without_its_key_is_unauthenticated(live):
    thief = dataclasses.replace(live.devices[1], key=live.devices[2].key)
    assert live.send(live.report(thief, 0)) == "unauthenticated"


def test_a_captured_report_counts_once_however_often_it_is_sent(live):
    frame = live.report(live.devices[3], 0)
    assert live.send(frame) == "accepted"
    assert [live.send(frame) for _ in range(3)] == ["duplicate"] * 3


def test_a_device_that_says_two_things_is_heard_once(live):
    first, second = (live.report(live.devices[4], 0) for _ in range(2))
    assert live.send(first) == "accepted"
    assert live.send(second) == "conflict"
    assert live.send(first) == "duplicate"


def test_a_revoked_device_is_refused_from_then_on(live):
    device = live.enrol(1)[0]
    assert live.send(live.heartbeat(device, 0)) == "accepted"
    assert live.ask_operator("DELETE", f"/v1/operator/devices/{device.device.hex()}").status == 204
    assert live.send(live.report(device, 0)) == "unauthenticated"
    assert live.ask_operator("DELETE", f"/v1/operator/devices/{device.device.hex()}").status == 404


def test_a_device_leaves_with_its_own_tag_only(live):
    device, other = live.enrol(2)
    path = f"/v1/devices/{device.device.hex()}"
    for wrong in (leave_tag(other), "00" * 16):
        assert live.ask("DELETE", path, Retrasyn_Tag=wrong).status == 401
    assert live.send(live.heartbeat(device, 0)) == "accepted"
    left = live.ask("DELETE", path, Retrasyn_Tag=leave_tag(device))
    assert (left.status, left.headers["retrasyn-tag"]) == (204, leave_tag(device, "left"))
    assert live.send(live.report(device, 0)) == "unauthenticated"
    assert live.ask("DELETE", path, Retrasyn_Tag=leave_tag(device)).status == 401


def test_a_token_enrols_one_device_once(live):
    (token,) = live.ask_operator("POST", "/v1/operator/tokens", {"n": 1}).json()["tokens"]
    given = live.tell("POST", "/v1/enrolments", asking(live, token))
    assert given.status == 200
    (credentials,) = given.json()["devices"]
    assert credentials.keys() == {"device", "tag"}
    assert live.tell("POST", "/v1/enrolments", asking(live, token)).status == 401


def test_keys_that_nobody_can_agree_with_use_no_token_up(live):
    (token,) = live.ask_operator("POST", "/v1/operator/tokens", {"n": 1}).json()["tokens"]
    zero, good = "00" * 32, draw_x25519()[1].hex()
    for keys in ([zero], [], [good, good], ["x" * 64], [good[2:]]):
        asked = asking(live, token, keys=keys)
        assert live.tell("POST", "/v1/enrolments", asked).status == 422
    wrong = asking(live, token, agreement=good)
    assert live.tell("POST", "/v1/enrolments", wrong).status == 409
    assert live.tell("POST", "/v1/enrolments", asking(live, token)).status == 200


def test_one_bad_token_enrols_nobody(live):
    tokens = live.ask_operator("POST", "/v1/operator/tokens", {"n": 2}).json()["tokens"]
    before = live.service.runtime.devices.n
    for bad in ("nonsense", tokens[0]):
        assert live.tell("POST", "/v1/enrolments", asking(live, *tokens, bad)).status == 401
    assert live.service.runtime.devices.n == before
    assert live.tell("POST", "/v1/enrolments", asking(live, *tokens)).status == 200


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic {token}",
        "Bearer {token}x",
        "{token}",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/operator/tokens"),
        ("GET", "/v1/operator/status"),
        ("DELETE", f"/v1/operator/devices/{'0' * 32}"),
    ],
)
def test_the_operators_doors_open_for_the_operators_token_only(live, given, method, path):
    headers = {"content_type": "application/json"}
    if given is not None:
        headers["authorization"] = given.format(token=live.service.operator_token)
    answer = live.ask(method, path, b'{"n": 1}', **headers)
    assert answer.status == 401


def test_reports_for_another_time_or_campaign_are_told_apart(live):
    device = live.devices[5]
    assert live.send(live.report(device, 1)) == "early"
    assert live.send(live.report(device, 1000)) == "unknown round"
    frame = bytearray(live.report(device, 0))
    frame[12] ^= 1  # the manifest's id
    assert live.send(bytes(frame)) == "bad manifest"
    assert round_in(live.ask("GET", "/v1/rounds/current").body)["t"] == 0
