"""What the guarantee of a run leaves out: for every method, and for this run's own settings."""

from __future__ import annotations

PRESENCE = {
    "count": "count: the number of active devices is used as it is, nothing else about presence",
    "flags": "flags: that a device starts, moves or stops is treated as public, and the release "
    "copies how long real devices stay",
    "hidden": "hidden: everybody enrolled reports at a slot of their own, null while absent; the "
    "number of active devices is estimated",
}
"""How each way to treat presence reads in a receipt."""
_CLIPPED = "; it depends on the box, outside of which points were dropped"
_PRESENT = (
    "that a device takes part, and when it starts and stops",
    "the exact number of active devices at each timestamp",
)
_COPIED = "how long real devices stay: the release shows their exact numbers by duration"
_ENROLLED = "who is enrolled"
_ALWAYS = (
    "facts about groups: what most people do is what the release is meant to show",
    "long-run repetition: a position held for k windows is reported up to k times",
    "two devices of one person",
)
_NOTHING = "anything: this method is for simulation only and NOT PRIVATE"
_SEEDED = (
    "anything against a reader who knows the seed or tries all likely ones: the simulated noise "
    "can be drawn again from it; before you publish, use --seed random"
)


def describe_presence(presence: str, *, clipped: bool) -> str:
    """Say how presence is treated, and whether dropped points make it depend on place."""
    return PRESENCE[presence] + (_CLIPPED if clipped else "")


def left_open(
    *,
    private: bool,
    presence: str,
    unit: str,
    ledger: str,
    jump: str,
    seeded: bool,
    has_users: bool,
    box_inferred: bool,
    length_from_data: bool,
    enrols_on_sight: bool,
    clipped: bool,
) -> tuple[str, ...]:
    """List what is not protected, this run's own weaknesses first."""
    if not private:
        return (_NOTHING,)
    weaknesses = {
        "the outermost positions: the bounding box was taken from the raw data": box_inferred,
        "when a device is first seen: it is enrolled then": (
            presence == "hidden" and enrols_on_sight
        ),
        "the mean stream length: it was taken from the raw data": length_from_data,
        "crossing the edge of the box: points outside were dropped, which shows": clipped,
        "a jump: it shows in whether, or how often, its stream reports afterwards": (
            jump == "authors"
        ),
        "one position in each window of positions may be reported twice": unit == "transition",
        "a person with several streams: each stream has a budget of its own": (
            ledger == "stream" and has_users
        ),
        "a person behind several streams: the data names no users": not has_users,
        _SEEDED: seeded,
    }
    own = [weakness for weakness, holds in weaknesses.items() if holds]
    return (*own, *_left_open_by(presence), *_ALWAYS)


def _left_open_by(presence: str) -> tuple[str, ...]:
    """List what a way to treat presence does not protect."""
    if presence == "hidden":
        return (_ENROLLED,)
    return (_COPIED, *_PRESENT) if presence == "flags" else _PRESENT
