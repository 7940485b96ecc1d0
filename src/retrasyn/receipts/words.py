"""What a receipt says in words, written again from its figures."""

from __future__ import annotations

from retrasyn.errors import SettingError
from retrasyn.methods import METHODS, parts_of, settings_of
from retrasyn.privacy.left_open import describe_presence, left_open
from retrasyn.privacy.receipt import Receipt, state_guarantee
from retrasyn.reading import SAFE, Reading
from retrasyn.receipts.check import Check, judge


def check_method(receipt: Receipt) -> Check:
    """Compare the method with its row in the table."""
    fields = ["method", "summary", "private", "division", "presence", "door"]
    row = METHODS.get(receipt.method)
    if row is None:
        return judge("method", fields, [f"there is no method {receipt.method!r}"], "")
    faults = [
        f"{name} is {stated!r}, that of {row.name} is {right!r}"
        for name, stated, right in (
            ("summary", receipt.summary, row.summary),
            ("private", receipt.private, row.division.private),
            ("division", receipt.division, row.division.name),
            (
                "presence",
                receipt.presence,
                describe_presence(row.presence, clipped=receipt.n_points_dropped > 0),
            ),
        )
        if stated != right
    ]
    doors = ("counts", "reports", "rounds") if row.division.private else ("truth",)
    if receipt.door not in doors:
        faults.append(f"door is {receipt.door!r}, {row.name} knows {', '.join(doors)}")
    return judge("method", fields, faults, f"{row.name} divides the {row.division.name}")


def check_reading(receipt: Receipt) -> Check:
    """Compare the reading and the settings with what the other fields say."""
    fields = ["reading", "settings", "jump", "ledger", "length_scale", "length_scale_from_data"]
    row = METHODS.get(receipt.method)
    faults = []
    try:
        reading = _reading_of(receipt)
    except (SettingError, KeyError, TypeError) as error:
        return judge("reading", fields, [f"the reading is none: {error}"], "")
    named = receipt.worst_window.person_position.per == "person"
    for name, stated, right in (
        ("unit", receipt.unit, reading.unit),
        ("jump", receipt.jump, reading.jump),
        ("ledger", receipt.ledger, reading.ledger if named else "stream"),
        ("length_scale_from_data", receipt.length_scale_from_data, reading.length_scale == "data"),
    ):
        if stated != right:
            faults.append(f"{name} is {stated!r}, the reading says {right!r}")
    if row is not None:
        names = {name for part in parts_of(row) for name in settings_of(part)}
        if set(receipt.settings) != names:
            faults.append(f"{row.name} has the settings {', '.join(sorted(names)) or 'none'}")
        scale: str | float = reading.length_scale
        if scale == "released" and not row.uses_length_scale:
            scale = "not used"
        known = not isinstance(receipt.length_scale, str) if scale == "data" else None
        if not (known or receipt.length_scale == scale):
            faults.append(f"length_scale is {receipt.length_scale!r}, the reading says {scale!r}")
        if receipt.faithful and not row.of_paper:
            faults.append(f"{row.name} is not a method of the paper, so it cannot be faithful")
    if reading.length_scale == "data" and not receipt.faithful:
        faults.append("a length scale from the data goes with faithful only")
    return judge("reading", fields, faults, f"unit {reading.unit}, jump {reading.jump}")


def _reading_of(receipt: Receipt) -> Reading:
    """Return the reading, refusing unknown answers."""
    return Reading(**receipt.reading) and SAFE.answer(**receipt.reading)


def check_guarantee(receipt: Receipt) -> Check:
    """Write the guarantee again."""
    stated = state_guarantee(
        private=receipt.private,
        epsilon=receipt.epsilon,
        window=receipt.window,
        unit=receipt.unit,
        ledger=receipt.ledger,
        presence=receipt.presence.partition(":")[0],
    )
    faults = [] if receipt.guarantee == stated else [f"it should read: {stated}"]
    return judge("guarantee", ["guarantee"], faults, stated)


def check_left_open(receipt: Receipt) -> Check:
    """Write the list of what is not protected again."""
    fields = ["not_protected", "seed", "box_inferred_from_data"]
    presence = receipt.presence.partition(":")[0]
    named = receipt.worst_window.person_position.per == "person"
    lists = [
        left_open(
            private=receipt.private,
            presence=presence,
            unit=receipt.unit,
            ledger=receipt.ledger,
            jump=receipt.jump,
            seeded=receipt.seed is not None,
            has_users=named,
            box_inferred=receipt.box_inferred_from_data,
            length_from_data=receipt.length_scale_from_data,
            enrols_on_sight=on_sight,
            clipped=receipt.n_points_dropped > 0,
        )
        for on_sight in (False, True)
    ]
    right = next((one for one in lists if one == receipt.not_protected), lists[0])
    missing = [line for line in right if line not in receipt.not_protected]
    faults = [f"it does not say: {line}" for line in missing]
    if not missing and receipt.not_protected != right:
        faults = ["it says more, or in another order, than this run calls for"]
    return judge("not protected", fields, faults, f"{len(right)} things, all stated")
