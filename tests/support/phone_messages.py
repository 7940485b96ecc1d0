"""What OwnTracks and Traccar Client send, as their public documents show it."""

OWNTRACKS = {
    "_type": "location",
    "acc": 13,
    "alt": 57,
    "batt": 86,
    "bs": 1,
    "conn": "w",
    "created_at": 1700000001,
    "lat": 48.856613,
    "lon": 2.352222,
    "m": 1,
    "tid": "an",
    "topic": "owntracks/anna/phone",
    "tst": 1700000000,
    "vac": 3,
    "vel": 0,
}
TRACCAR = {
    "location": {
        "timestamp": "2023-11-14T22:13:20.000Z",
        "coords": {
            "latitude": 48.856613,
            "longitude": 2.352222,
            "accuracy": 5,
            "speed": 0,
            "heading": 0,
            "altitude": 57,
        },
        "is_moving": False,
        "odometer": 0,
        "event": "motionchange",
        "battery": {"level": 1, "is_charging": False},
        "activity": {"type": "still"},
        "extras": {},
    },
    "device_id": "48241179",
}
