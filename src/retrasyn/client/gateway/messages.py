"""Parses messages of phone apps to a phone name, position and time (x: longitude, y: latitude).

OwnTracks sends JSON with `_type`; Traccar Client sends JSON with `location` since version 9, and
query or form parameters before, as OsmAnd does. Error messages never repeat the input.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from retrasyn.bounded_json import parse_json
from retrasyn.device.tracker import Fix
from retrasyn.errors import InputError

MAX_NAME = 200
_LAST_SECOND = 1 << 31  # larger values are milliseconds
_TOPIC_PARTS = 3


@dataclass(frozen=True, slots=True)
class PhonePosition:
    """One position of one phone."""

    phone: str = field(repr=False)
    fix: Fix = field(repr=False)
    taken: int = field(repr=False)  # milliseconds since 1970


def read_owntracks(body: bytes, name: str = "") -> PhonePosition | None:
    """Parse an OwnTracks message; None if it contains no position.

    `name` is the phone's name from the MQTT topic, if any.

    >>> heard = read_owntracks(b'{"_type":"location","lat":1,"lon":2,"tst":3,"tid":"an"}')
    >>> heard.phone, heard.fix, heard.taken
    ('an', (2.0, 1.0), 3000)
    """
    return None if not body.strip() else _owntracks(_object(body), name)


def read_json(body: bytes, name: str = "", *, now: int) -> PhonePosition | None:
    """Parse a JSON body from either OwnTracks or Traccar Client."""
    if not body.strip():
        return None
    given = _object(body)
    if "_type" in given:
        return _owntracks(given, name)
    if isinstance(given.get("location"), dict):
        return _traccar(given, now)
    raise InputError("JSON without _type or location is neither OwnTracks' nor Traccar's")


def read_parameters(text: str, *, now: int) -> PhonePosition | None:
    """Parse query parameters of OsmAnd or Traccar Client; None if they contain no position.

    >>> heard = read_parameters("id=7&lat=1&lon=2&timestamp=3000", now=0)
    >>> heard.phone, heard.fix, heard.taken
    ('7', (2.0, 1.0), 3000000)
    """
    try:
        lists = parse_qs(text, max_num_fields=100, strict_parsing=True)
    except ValueError:
        raise InputError("these are no parameters; send id, lat, lon and timestamp") from None
    given = {key: values[-1] for key, values in lists.items()}
    if given.get("valid", "true").lower() not in ("true", "1"):
        return None
    lat, lon = given.get("lat"), given.get("lon")
    if "location" in given:
        lat, _, lon = given["location"].partition(",")
    phone = _name(given.get("id", given.get("deviceid")))
    return PhonePosition(phone, _place(lat, lon), _instant(given.get("timestamp"), now))


def name_of_topic(topic: str) -> str:
    """Return the name of the phone that publishes to an MQTT topic.

    >>> name_of_topic("owntracks/anna/phone"), name_of_topic("elsewhere")
    ('anna/phone', '')
    """
    parts = topic.split("/")
    return "/".join(parts[1:]) if len(parts) == _TOPIC_PARTS and parts[0] == "owntracks" else ""


def _owntracks(given: Mapping[str, Any], name: str) -> PhonePosition | None:
    if given.get("_type") != "location":
        return None
    topic = given.get("topic")
    named = name or (name_of_topic(topic) if isinstance(topic, str) else "") or given.get("tid")
    taken = given.get("tst")
    if type(taken) not in (int, float):
        raise InputError("an OwnTracks location needs tst, its time in seconds")
    return PhonePosition(
        _name(named), _place(given.get("lat"), given.get("lon")), _instant(taken, 0)
    )


def _traccar(given: Mapping[str, Any], now: int) -> PhonePosition:
    location = given["location"]
    place = location.get("coords")
    if not isinstance(place, dict):
        raise InputError("a Traccar location needs coords with latitude and longitude")
    fix = _place(place.get("latitude"), place.get("longitude"))
    return PhonePosition(
        _name(given.get("device_id")), fix, _instant(location.get("timestamp"), now)
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = parse_json(body)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InputError("the body is no JSON object")
    return given


def _name(given: Any) -> str:
    if type(given) is int:
        given = str(given)
    if not isinstance(given, str) or not 0 < len(given) <= MAX_NAME or not given.isprintable():
        raise InputError("the phone does not say which it is; set its name or identifier")
    return given


def _place(latitude: Any, longitude: Any) -> Fix:
    """Validate latitude and longitude and return them as (x, y)."""
    try:
        if isinstance(latitude, bool) or isinstance(longitude, bool):
            raise TypeError  # noqa: TRY301 - float() would accept them
        y, x = float(latitude), float(longitude)
    except (TypeError, ValueError, OverflowError):
        x = y = math.nan
    if not (abs(x) <= 180 and abs(y) <= 90):  # noqa: PLR2004 - degrees; false for NaN
        raise InputError("latitude and longitude must be numbers of degrees")
    return x, y


def _instant(given: Any, now: int) -> int:
    """Convert seconds, milliseconds or a date to milliseconds since 1970; none means now."""
    if given is None:
        return now
    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        return _date(given)
    if not 0 <= seconds < 1 << 53:
        raise InputError("the time of a position is no time")
    return int(seconds * 1000 if seconds < _LAST_SECOND else seconds)


def _date(given: Any) -> int:
    try:
        read = datetime.fromisoformat(given)
        known = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        return int(known.timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        raise InputError("the time of a position is no time; send seconds or ISO 8601") from None
