"""What phone apps send, in their own public formats, and what is no message of theirs."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.client.gateway.messages import (
    name_of_topic,
    read_json,
    read_owntracks,
    read_parameters,
)
from retrasyn.errors import InputError
from support.phone_messages import OWNTRACKS, TRACCAR

NOW = 1_700_000_000_000


def test_owntracks_is_named_by_its_topic_and_says_x_before_y():
    heard = read_json(json.dumps(OWNTRACKS).encode(), now=0)
    assert (heard.phone, heard.fix, heard.taken) == ("anna/phone", (2.352222, 48.856613), NOW)


def test_owntracks_without_a_topic_is_named_by_its_headers_or_its_initials():
    body = json.dumps({k: v for k, v in OWNTRACKS.items() if k != "topic"}).encode()
    assert read_json(body, "anna/phone", now=0).phone == "anna/phone"
    assert read_json(body, now=0).phone == "an"


@pytest.mark.parametrize("kind", ["lwt", "waypoint", "transition", "encrypted", "status"])
def test_what_owntracks_says_besides_places_is_passed_over(kind):
    assert read_owntracks(json.dumps({"_type": kind, "tst": 1}).encode()) is None
    assert read_owntracks(b"") is None


def test_traccar_json_is_named_by_its_identifier():
    heard = read_json(json.dumps(TRACCAR).encode(), now=0)
    assert (heard.phone, heard.fix, heard.taken) == ("48241179", (2.352222, 48.856613), NOW)


@pytest.mark.parametrize(
    "time", ["1700000000", "1700000000000", "2023-11-14T22:13:20Z", "2023-11-14 22:13:20", None]
)
def test_osmand_times_may_be_seconds_milliseconds_dates_or_missing(time):
    text = "id=123456&lat=48.856613&lon=2.352222&speed=1.5&bearing=90&altitude=57&batt=80"
    heard = read_parameters(text + (f"&timestamp={time}" if time else ""), now=NOW)
    assert (heard.phone, heard.fix, heard.taken) == ("123456", (2.352222, 48.856613), NOW)


def test_osmand_may_give_a_place_in_one_piece_and_call_its_device_otherwise():
    heard = read_parameters("deviceid=7&location=48.5,2.5&timestamp=1700000000", now=0)
    assert (heard.phone, heard.fix) == ("7", (2.5, 48.5))


def test_a_place_that_is_not_valid_is_passed_over():
    assert read_parameters("id=7&lat=1&lon=2&valid=false", now=0) is None


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b"nothing",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b'{"_type":"location"}',
        b'{"_type":"location","lat":1,"lon":2,"tid":"a"}',
        b'{"_type":"location","lat":"north","lon":2,"tst":1,"tid":"a"}',
        b'{"_type":"location","lat":91,"lon":2,"tst":1,"tid":"a"}',
        b'{"_type":"location","lat":NaN,"lon":2,"tst":1,"tid":"a"}',
        b'{"_type":"location","lat":1,"lon":1e999,"tst":1,"tid":"a"}',
        b'{"_type":"location","lat":true,"lon":2,"tst":1,"tid":"a"}',
        b'{"_type":"location","lat":1,"lon":2,"tst":-1,"tid":"a"}',
        b'{"_type":"location","lat":1,"lon":2,"tst":1,"tid":""}',
        b'{"_type":"location","lat":1,"lon":2,"tst":1}',
        b'{"location":{}}',
        b'{"location":{"coords":{}},"device_id":"1"}',
        b'{"location":{"coords":{"latitude":1,"longitude":2},"timestamp":"soon"},"device_id":"1"}',
    ],
)
def test_what_is_no_position_is_refused_without_repeating_it(body):
    with pytest.raises(InputError) as refusal:
        read_json(body, now=0)
    assert "north" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["", "lat=1&lon=2", "id=1&lat=1", "id=1&lat=x&lon=2", "id=1&lat=1&lon=181", "&&&", "=a"]
)
def test_parameters_that_are_no_position_are_refused(text):
    with pytest.raises(InputError):
        read_parameters(text, now=0)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_being_refused(body):
    try:
        heard = read_json(body, now=0)
    except InputError:
        return
    assert heard is None


@given(st.text(max_size=100))
def test_no_parameters_do_more_than_being_refused(text):
    try:
        heard = read_parameters(text, now=0)
    except InputError:
        return
    assert heard is None or abs(heard.fix[0]) <= 180


@given(st.datetimes(min_value=dt.datetime(1970, 1, 2), max_value=dt.datetime(2100, 1, 1)))  # noqa: DTZ001 - the test adds the zone
def test_dates_are_read_to_the_millisecond(moment):
    moment = moment.replace(tzinfo=dt.UTC, microsecond=moment.microsecond // 1000 * 1000)
    text = json.dumps(TRACCAR | {"location": TRACCAR["location"] | {"timestamp": str(moment)}})
    heard = read_json(text.encode(), now=0)
    assert abs(heard.taken - moment.timestamp() * 1000) < 1


def test_topics_of_other_depth_name_nobody():
    assert name_of_topic("owntracks/anna/phone/event") == ""
