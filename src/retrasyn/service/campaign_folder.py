"""Which campaign a start goes on with: the one in the folder, an earlier one, or a new one.

`campaign.json` keeps the settings behind every manifest of the folder, the latest last, so that a
start needs no settings at all. One that is given and differs is refused unless a new campaign is
asked for; the settings of an earlier campaign bring back its manifest, its rounds and its consents.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from retrasyn._version import __version__
from retrasyn.bounded_json import parse_json
from retrasyn.errors import InputError, SettingError
from retrasyn.files import is_there, write_durably
from retrasyn.messages import MICRO
from retrasyn.roads.opening import open_map
from retrasyn.service.campaign import Campaign, setting_text
from retrasyn.service.secrets import Secrets
from retrasyn.service.settings import CampaignSettings, Settings, SettingsTable
from retrasyn.wire.layout import VERSION

FILE = "campaign.json"
_FREE = ("close_after", "grace", "replicates")  # may change: devices are told, or not concerned
_WAY_OUT = "put it back from a copy, or begin another campaign with --new-campaign"


class KeptCampaign(SettingsTable):
    """One campaign of a folder."""

    manifest: str  # id in hexadecimal digits; empty in files of the first layout
    made_by: str  # version of RetraSyn
    wire: int = 2  # version of the wire; files of version 2 do not say it
    settings: CampaignSettings  # with the epoch as a number
    lifetime_cap: int | None = None  # micro-nats, as it was found where settings leave it open
    public_map: str = ""  # SHA-256 of its files in hexadecimal digits; empty if there is none

    @property
    def in_force(self) -> CampaignSettings:
        """The settings with what was found, which another version might find otherwise."""
        if self.lifetime_cap is None:
            return self.settings
        return self.settings.model_copy(update={"lifetime_cap": self.lifetime_cap / MICRO})

    @property
    def date(self) -> str:
        """When its round 0 opened."""
        return _date(int(self.settings.epoch))


class CampaignFile(SettingsTable):
    """What `campaign.json` holds."""

    store: str  # where the database is, without a password
    begun: bool  # whether the database knows the latest campaign
    campaigns: tuple[KeptCampaign, ...]  # the latest last, at least one

    @classmethod
    def read(cls, folder: Path) -> CampaignFile | None:
        """Return what a folder holds; None if it holds no campaign."""
        path = folder / FILE
        try:
            return cls._parse(path.read_bytes()) if is_there(path) else None
        except (OSError, ValueError, TypeError):
            raise InputError(
                f"{path} is damaged, or was written by a newer RetraSyn than {__version__}; put "
                "it back from a copy, or move it away and begin another campaign with "
                "--new-campaign"
            ) from None

    @classmethod
    def _parse(cls, text: bytes) -> CampaignFile:
        found = parse_json(text)
        if "campaigns" not in found:  # the first layout: settings and nothing else
            kept = {"manifest": "", "made_by": "an earlier version", "settings": found}
            found = {"store": "sqlite", "begun": True, "campaigns": [kept]}
        file = cls.model_validate_json(json.dumps(found))
        if not file.campaigns or any(one.settings.epoch == "next" for one in file.campaigns):
            raise ValueError("every campaign in a folder has an epoch")
        return file

    @property
    def latest(self) -> KeptCampaign:
        """The campaign that was run last."""
        return self.campaigns[-1]

    def write(self, folder: Path, *, begun: bool) -> None:
        """Write the file, durable when this returns."""
        text = self.model_copy(update={"begun": begun}).model_dump_json(indent=2)
        write_durably(folder / FILE, text.encode() + b"\n", private=True)


def store_of(settings: Settings, file: CampaignFile | None) -> str:
    """Return where the database is: as given, or else where the folder's campaigns have it."""
    given = "store" in settings.server.model_fields_set
    return settings.server.store if given or file is None else file.store


def settings_in_force(settings: Settings) -> CampaignSettings:
    """Return the settings given over those of the folder; nothing is opened or made."""
    file = CampaignFile.read(settings.server.folder)
    return settings.campaign if file is None else _over(file.latest.in_force, settings.campaign)


def over_roads(settings: Settings) -> Settings:
    """Give the first campaign of a folder the box of its roads, where no box is given."""
    given = settings.campaign
    begins = CampaignFile.read(settings.server.folder) is None
    if given.roads is None or "box" in given.model_fields_set or not begins:
        return settings
    x0, y0, x1, y1 = open_map(None, roads=given.roads).box
    low = (math.floor(corner * MICRO) / MICRO for corner in (x0, y0))
    high = (math.ceil(corner * MICRO) / MICRO for corner in (x1, y1))
    campaign = given.model_copy(update={"box": (*low, *high)})
    return settings.model_copy(update={"campaign": campaign})


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The campaign of a start, and how it was chosen."""

    campaign: Campaign
    how: Literal["first", "same", "other", "returned"]
    file: CampaignFile  # what the folder is to hold
    before: Campaign | None = None  # another one, which ends with this start
    needless: bool = False  # a new campaign was asked for, and nothing differs

    def beginning(self, *, newest: int | None, coming: int, n_devices: int) -> str:
        """Say what this start is, in words for the operator."""
        rounds = f"round {coming} comes next"
        if newest == coming:
            rounds = f"round {coming} is open"
        elif newest is not None:
            rounds += f", after {newest}"
        devices = f"{n_devices} enrolled device{'' if n_devices == 1 else 's'}"
        if self.how == "first":
            return f"A new campaign, the first in this folder: {rounds}."
        if self.how == "other":
            return (
                f"A new campaign in place of the one before: {rounds}; {devices} stay silent "
                "until their owners agree to it."
            )
        if self.how == "returned":
            return (
                f"It returns to the campaign of {_date(self.campaign.manifest.epoch)}: {rounds}; "
                f"of {devices}, those that agreed to it last go on, others ask their owners."
            )
        nothing = "--new-campaign changed nothing, since no setting differs. "
        return f"{nothing if self.needless else ''}It goes on where it was: {rounds}."


def choose(
    settings: Settings,
    secrets: Secrets,
    now: float,
    *,
    known: Collection[bytes] = (),
    new_campaign: bool = False,
) -> Chosen:
    """Choose the campaign of a start; `known` are the manifest ids in the database."""
    folder, given = secrets.folder, settings.campaign
    file = CampaignFile.read(folder)
    store = _without_password(store_of(settings, file))
    if file is None or not file.begun:
        left = _left_behind(folder, known) if file is None else ""
        if left and not new_campaign:
            raise InputError(f"{folder / FILE} is missing, and {left}; {_WAY_OUT}")
        if file is not None:  # the first start ended before any device could see the campaign
            given = _over(file.latest.settings, given).model_copy(update={"epoch": given.epoch})
        campaign = Campaign.of(_dated(given, (), now), secrets)
        kept = CampaignFile(store=store, begun=False, campaigns=(_entry(campaign, given),))
        return Chosen(campaign=campaign, how="other" if left else "first", file=kept)
    file = file.model_copy(update={"store": store})
    merged = _over(file.latest.settings, given)
    if file.latest.wire != VERSION and not new_campaign:
        raise SettingError(
            f"folder {folder} holds {_named(file.latest)}, of wire version {file.latest.wire}, and "
            f"this RetraSyn speaks version {VERSION}; --new-campaign begins another, to which the "
            "owner of every device has to agree"
        )
    lost, differ = _lost(file, secrets, known), _differences(file.latest.in_force, given)
    if lost and not new_campaign:
        raise InputError(f"folder {folder} holds {_named(file.latest)}, and {lost}; {_WAY_OUT}")
    if differ and not new_campaign:
        raise SettingError(
            f"folder {folder} holds {_named(file.latest)}, and other settings are given: "
            f"{'; '.join(differ)}. Leave them out to go on with it; --new-campaign "
            f"{_offer(file, merged, given)}"
        )
    if not lost and not differ:
        campaign = Campaign.of(_over(file.latest.in_force, given), secrets)
        kept = _with(file.campaigns[:-1], _entry(campaign, merged, file.latest), file)
        return Chosen(campaign=campaign, how="same", file=kept, needless=new_campaign)
    before = None if lost else Campaign.of(file.latest.in_force, secrets)
    if not is_there(folder / "seed"):  # lost, and what was made with it cannot go on
        whole = tuple(one for one in file.campaigns if one.settings.seed != "random")
        file = file.model_copy(update={"campaigns": whole})
    return _returned(file, merged, given, secrets, known, before) or _begun(
        file, merged, given, secrets, now, before
    )


def _returned(
    file: CampaignFile,
    merged: CampaignSettings,
    given: CampaignSettings,
    secrets: Secrets,
    known: Collection[bytes],
    before: Campaign | None,
) -> Chosen | None:
    """Return to an earlier campaign that had these settings, if there was one."""
    earlier = _earlier(file, merged, given)
    if earlier is None:
        return None
    free = {name: getattr(given, name) for name in given.model_fields_set.intersection(_FREE)}
    campaign = Campaign.of(earlier.in_force.model_copy(update=free), secrets)
    if campaign.id.hex() != earlier.manifest or campaign.id not in known:
        return None
    others = [one for one in file.campaigns if one is not earlier]
    kept = _with(others, _entry(campaign, earlier.settings, earlier), file)
    return Chosen(campaign=campaign, how="returned", file=kept, before=before)


def _begun(
    file: CampaignFile,
    merged: CampaignSettings,
    given: CampaignSettings,
    secrets: Secrets,
    now: float,
    before: Campaign | None,
) -> Chosen:
    """Begin a new campaign."""
    wanted = merged.model_copy(update={"epoch": given.epoch})
    campaign = Campaign.of(_dated(wanted, file.campaigns, now), secrets)
    if campaign.id.hex() in {one.manifest for one in file.campaigns}:
        raise SettingError(
            "the method or the seed changed, and the manifest does not show it; give the "
            'campaign another name, or set epoch = "next"'
        )
    kept = _with(file.campaigns, _entry(campaign, wanted), file)
    return Chosen(campaign=campaign, how="other", file=kept, before=before)


def _over(kept: CampaignSettings, given: CampaignSettings) -> CampaignSettings:
    """Return kept settings with those that were given in their place."""
    names = given.model_fields_set - {"settings"}
    if given.epoch == "next":
        names -= {"epoch"}
    changes: dict[str, Any] = {name: getattr(given, name) for name in names}
    # The settings of a method mean nothing to another one.
    inherited = kept.settings if changes.get("method", kept.method) == kept.method else {}
    return kept.model_copy(update={**changes, "settings": inherited | given.settings})


def _differences(kept: CampaignSettings, given: CampaignSettings) -> list[str]:
    """Return each setting that was given and differs from what is kept, in words."""
    found = []
    for name in CampaignSettings.model_fields:
        there, now = getattr(kept, name), getattr(given, name)
        if name not in given.model_fields_set or name in (*_FREE, "settings"):
            continue
        if now != there and (name, now) != ("epoch", "next"):
            found.append("seed is another" if name == "seed" else _difference(name, there, now))
    for name, now in given.settings.items():
        there = kept.settings.get(name)
        if there is None or setting_text(there) != setting_text(now):
            found.append(_difference(f"settings.{name}", there, now))
    return found


def _difference(name: str, there: Any, now: Any) -> str:
    def shown(value: Any) -> str:
        return ",".join(f"{one:g}" for one in value) if isinstance(value, tuple) else str(value)

    return f"{name} is {'not set' if there is None else shown(there)} there and {shown(now)} now"


def _earlier(
    file: CampaignFile, wanted: CampaignSettings, given: CampaignSettings
) -> KeptCampaign | None:
    """Return the latest campaign of the folder that had these settings."""

    def bound(settings: CampaignSettings) -> CampaignSettings:
        texts = {name: setting_text(value) for name, value in settings.settings.items()}
        free = dict.fromkeys((*_FREE, "epoch"))
        return settings.model_copy(update={**free, "settings": texts})

    for one in reversed(file.campaigns):
        if bound(one.settings) == bound(wanted) and given.epoch in ("next", one.settings.epoch):
            return one
    return None


def _offer(file: CampaignFile, merged: CampaignSettings, given: CampaignSettings) -> str:
    """Say what --new-campaign would do."""
    earlier = _earlier(file, merged, given)
    if earlier is None:
        return "begins another, to which the owner of every device has to agree"
    return f"returns to the campaign of {earlier.date}, which had these"


def _lost(file: CampaignFile, secrets: Secrets, known: Collection[bytes]) -> str:
    """Say why the latest campaign of a folder cannot go on; empty if it can."""
    latest, folder = file.latest, secrets.folder
    for name in ("curator.key", "seed"):
        needed = name == "curator.key" or latest.settings.seed == "random"
        if needed and not is_there(folder / name):
            return f"{name} is missing"
    try:
        campaign = Campaign.of(latest.in_force, secrets)
    except (InputError, SettingError) as error:
        if not latest.public_map:
            raise
        return f"its public map cannot be opened: {error}"
    id_, digest = campaign.id, campaign.manifest.public_map.hex()
    if latest.public_map != digest:
        settings = latest.settings
        named = " and ".join(str(part) for part in (settings.roads, settings.prior) if part)
        return (
            f"its public map ({named}) has changed: sha256 {latest.public_map} there and {digest} "
            "now"
        )
    if latest.manifest != id_.hex():
        return (
            f"RetraSyn {__version__} makes manifest {id_.hex()} of it, with the curator.key that "
            f"is there, where RetraSyn {latest.made_by} made {latest.manifest}"
        )
    if id_ not in known:
        return f"its database ({file.store}) does not know it: it is another, or an older copy"
    return ""


def _left_behind(folder: Path, known: Collection[bytes]) -> str:
    """Say what a campaign left in a folder that has lost its settings; empty if there was none."""
    if known:
        return "the database knows a campaign"
    left = [name for name in ("releases", "snapshots") if is_there(folder / name)]
    return f"{left[0]} is there" if left else ""


def _entry(
    campaign: Campaign, asked: CampaignSettings, kept: KeptCampaign | None = None
) -> KeptCampaign:
    """Return what is kept of a campaign, with what was asked for as it was asked for."""
    left_open = asked.lifetime_cap is None
    return KeptCampaign(
        manifest=campaign.id.hex(),
        made_by=__version__ if kept is None else kept.made_by,
        wire=VERSION,
        settings=campaign.settings.model_copy(update={"lifetime_cap": asked.lifetime_cap}),
        lifetime_cap=campaign.manifest.lifetime_cap if left_open else None,
        public_map=campaign.manifest.public_map.hex(),
    )


def _with(others: Sequence[KeptCampaign], latest: KeptCampaign, file: CampaignFile) -> CampaignFile:
    return file.model_copy(update={"campaigns": (*others, latest)})


def _named(kept: KeptCampaign) -> str:
    return f"campaign {kept.settings.name!r} of {kept.date}"


def _date(epoch: int) -> str:
    return f"{dt.datetime.fromtimestamp(epoch, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def _dated(wanted: CampaignSettings, kept: Sequence[KeptCampaign], now: float) -> CampaignSettings:
    """Decide when round 0 opens: at the next whole period, and never at an epoch used before."""
    if wanted.epoch != "next":
        return wanted
    epoch = (int(now) // wanted.period + 1) * wanted.period
    while epoch in {one.settings.epoch for one in kept}:
        epoch += wanted.period
    return wanted.model_copy(update={"epoch": epoch})


def _without_password(store: str) -> str:
    """Return the address of a database without its password.

    >>> _without_password("postgresql://ada:secret@db:5432/x?password=secret&sslmode=require")
    'postgresql://ada@db:5432/x?sslmode=require'
    >>> _without_password("sqlite"), _without_password("postgresql:///retrasyn")
    ('sqlite', 'postgresql:///retrasyn')
    """
    store = re.sub(r"(?<=//)([^/?@:]*):[^/?@]*@", r"\1@", store)
    return re.sub(r"(?<=[?&])password=[^&]*&?", "", store).rstrip("?&")
