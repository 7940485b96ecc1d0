"""The settings of a service: a table each for the campaign, the server, its limits, map and alerts.

Everything has a default, so that a campaign can be started with no file at all. Values come from
a TOML file, and single ones from the command line.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from retrasyn.client.curator_client import is_loopback
from retrasyn.errors import InputError, MissingExtra, SettingError
from retrasyn.files import is_there
from retrasyn.oracles.registry import CHOICES, ORACLES, PAPER_ORACLE, OracleWish
from retrasyn.roads import NOT_PUBLIC
from retrasyn.service.viewing.frames import MAX_TRAVELLERS
from retrasyn.simulation.city import CITY_BOX

try:
    from pydantic import (
        AfterValidator,
        BaseModel,
        ConfigDict,
        Field,
        PlainValidator,
        ValidationError,
    )
except ImportError:  # pragma: no cover - the tests have every extra
    raise MissingExtra('pydantic is not installed: pip install "retrasyn[serve]"') from None

Coordinates = Literal["plain", "degrees", "mercator"]
_ORIGIN = r"https?://(\*\.)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?"
DAY = 86_400
QUICK = 10
"""Periods shorter than this many seconds have no grace unless one is set."""
_WIDTH = 88


class SettingsTable(BaseModel):
    """A table of a configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def origin_of(address: str) -> str | None:
    """Return the origin of a URL; None if it is no web address.

    >>> origin_of("https://tiles.example.org/v1/{z}"), origin_of("style.json")
    ('https://tiles.example.org', None)
    """
    found = re.match(rf"{_ORIGIN}(?=[/?#]|$)", address)
    return found[0] if found else None


def _check_origin(host: str) -> str:
    # It becomes a part of a header, so nothing but an origin may pass.
    if not re.fullmatch(_ORIGIN, host):
        raise ValueError("a host is written like https://tiles.example.org, without a path")
    return host


def _check_style(style: str) -> str:
    is_address = style.startswith(("http:", "https:"))
    if is_address and (origin_of(style) is None or re.search(r"[^!-~]", style)):
        raise ValueError(
            "a style is a JSON file, or an address like https://example.org/style.json"
        )
    return style


def _check_webhook(address: str) -> str:
    parts = urlsplit(address)
    open_here = parts.scheme == "http" and is_loopback(address)
    if not parts.hostname or parts.port == 0 or not (parts.scheme == "https" or open_here):
        raise ValueError(
            "a webhook is an address like https://example.org/alerts; http is for this machine only"
        )
    return address


def _absolute(place: Path) -> Path:
    # A start from another folder has to find the same file.
    return place.absolute()


def _absolute_prior(prior: str) -> str:
    try:
        is_file = is_there(Path(prior))
    except OSError:  # a name too long for a file
        is_file = False
    return str(Path(prior).absolute()) if is_file else prior


def _check_oracle(wish: str) -> str:
    # Rows that were added to the registry count, so this is no plain Literal.
    if wish not in (known := (*ORACLES, *CHOICES)):
        *most, last = map(repr, known)
        raise ValueError(f"input should be {', '.join(most)} or {last}")
    return wish


class MapSettings(SettingsTable):
    """What lies under the synthetic data."""

    style: Annotated[str, AfterValidator(_check_style)] | None = Field(
        default=None,
        description="Base map: a MapLibre style, as an address or a JSON file.",
    )
    tiles: Path | None = Field(
        default=None,
        description="Base map: a PMTiles file, raster or vector; a quiet style comes with it "
        "unless `style` names one.",
    )
    roads: Path | None = Field(
        default=None,
        description="GeoJSON file of lines to be drawn under the data, in its coordinates. "
        "Without it, the public roads of the campaign are drawn.",
    )
    coordinates: Literal["auto", "plain", "degrees", "mercator"] = Field(
        default="auto",
        description="What box and positions are measured in: any unit (plain), longitude and "
        "latitude (degrees), or metres of Web Mercator (mercator). auto: by the box.",
    )
    hosts: tuple[Annotated[str, AfterValidator(_check_origin)], ...] = Field(
        default=(),
        description="Other servers from which the page may fetch tiles, sprites and glyphs, such "
        "as https://tiles.example.org. They see who looks at the map.",
    )
    zones: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        default=None,
        description="File of zones in the coordinates of the data (GeoJSON, GeoPackage or "
        "Shapefile). /v1/ask and alerts know them by the name of the file without its ending.",
    )
    attribution: str = Field(
        default="", description="Whom to thank for the base map, in plain text.", max_length=500
    )
    travellers: int = Field(
        default=3000,
        description="Synthetic streams shown moving, about, unless the page asks otherwise.",
        ge=0,
        le=MAX_TRAVELLERS,
    )


class CampaignSettings(SettingsTable):
    """What devices agree to. Most of it stands in the manifest; changing that is a new campaign."""

    name: str = Field(default="retrasyn", description="Name of the campaign, shown at consent.")
    box: tuple[float, float, float, float] = Field(
        default=CITY_BOX,
        description="x0, y0, x1, y1 in the unit of the positions (longitude and latitude, say). "
        "Public: never take it from positions. The default is the built-in city's.",
    )
    grid: int = Field(default=6, description="Side K of the grid, 1 to 64.", ge=1, le=64)
    method: str = Field(
        default="steered", description="A row of `retrasyn methods` that asks once."
    )
    roads: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        default=None,
        description="Public roads within the box, which synthetic streams drive on. "
        f"{NOT_PUBLIC[:1].upper()}{NOT_PUBLIC[1:]}.",
    )
    prior: Annotated[str, AfterValidator(_absolute_prior)] | None = Field(
        default=None,
        description="Where people are likely to be: between, class or length (of roads), "
        "centre:x,y,scale, or a file of public population.",
    )
    settings: dict[str, str | int | float | bool] = Field(
        default={}, description="Further settings of the method, such as alpha."
    )
    epsilon: float = Field(default=1.0, description="Privacy budget over any window.", gt=0)
    window: int = Field(
        default=20, description="Length w of the protected window, in rounds.", ge=1, le=1 << 20
    )
    unit: Literal["position", "transition"] = Field(
        default="position", description="What a window protects."
    )
    oracle: Annotated[OracleWish, PlainValidator(_check_oracle)] = Field(
        default=PAPER_ORACLE, description="How devices hide their state."
    )
    fewest: int = Field(
        default=50,
        description="Reports on a question that are estimated at least; fewer wait and are added "
        "to the next round's.",
        ge=1,
        le=1 << 20,
    )
    period: int = Field(default=60, description="Seconds from one round to the next.", ge=1, le=DAY)
    close_after: int | None = Field(
        default=None,
        description="Seconds a round is open; the whole period if not set.",
        ge=1,
        le=DAY,
    )
    grace: int | None = Field(
        default=None,
        description="Seconds after closing in which reports still count; a tenth of the period "
        "if not set, none for periods below 10 s.",
        ge=0,
        le=DAY,
    )
    sampling: Literal["auto", "self", "curator"] = Field(
        default="auto",
        description="Who decides which devices report, for methods without slots: each device by "
        "its own coin (auto, self), or a drawn subset (curator).",
    )
    seed: int | Literal["random"] = Field(
        default="random",
        description="Of the synthesis. random: drawn once and kept in the folder, never shown.",
    )
    epoch: int | Literal["next"] = Field(
        default="next",
        description="Unix seconds at which round 0 opens. next: the next whole period at the "
        "first start.",
    )
    lifetime_cap: float | None = Field(
        default=None,
        description="Most that one device ever spends, in nats. If not set: as much as keeps its "
        "usual place from being guessed right more often than not.",
        gt=0,
    )
    retention: int = Field(
        default=100,
        description="Rounds for which it is remembered who reported (never what).",
        ge=0,
        le=1 << 20,
    )
    replicates: int = Field(
        default=20,
        description="Replicas of the synthesis beside each release, from which its errors follow; "
        "0: none. A method that knows no errors, such as retrasyn-p, has none. Each takes the time "
        "of one synthesis and the disk of one release. Devices agree to nothing more, so it may "
        "change; for more of them all rounds are stepped through anew.",
        ge=0,
        le=100,
    )

    @property
    def seconds_open(self) -> int:
        """How long a round is open."""
        return self.period if self.close_after is None else self.close_after

    @property
    def seconds_of_grace(self) -> int:
        """How long after closing reports still count."""
        if self.grace is not None:
            return self.grace
        return 0 if self.period < QUICK else self.period // 10


class ServerSettings(SettingsTable):
    """Where the service lives."""

    folder: Path = Field(
        default=Path("retrasyn-service"), description="Folder of everything the service keeps."
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8700, description="Port to listen on; 0: any free one.", ge=0, le=65_535
    )
    store: str = Field(
        default="sqlite",
        description="sqlite (a file in the folder) or postgresql://USER@HOST/DATABASE.",
    )
    tls_certificate: Path | None = Field(
        default=None, description="PEM file with the certificate chain."
    )
    tls_key: Path | None = Field(default=None, description="PEM file with the certificate's key.")
    operator_token_file: Path | None = Field(
        default=None, description="File with the operator's token; made in the folder if not set."
    )
    public_url: str | None = Field(
        default=None,
        description="Address that devices use, if it is not host and port (a proxy, say).",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Other host names it answers to, such as curator.example.org.",
    )
    engine: Literal["local", "ray"] = Field(
        default="local", description="Where synthetic streams live: in this process, or on Ray."
    )
    address: str | None = Field(
        default=None,
        description="The Ray cluster: auto or an address; one on this machine if not set.",
    )
    shards: int | None = Field(
        default=None, description="Workers on Ray; one per processor if not set.", ge=1, le=10_000
    )


class LimitSettings(SettingsTable):
    """What protects the service from too much."""

    max_body: int = Field(default=2 << 20, description="Bytes of a request's body.", ge=1024)
    max_batch: int = Field(default=10_000, description="Frames of a batch.", ge=1, le=10_000)
    header_seconds: float = Field(default=6.0, description="Seconds to send the headers in.", gt=0)
    body_seconds: float = Field(default=10.0, description="Seconds to send the body in.", gt=0)
    queue_frames: int = Field(
        default=200_000, description="Frames that may wait to be written; beyond it: busy.", ge=1
    )
    rate_per_second: float = Field(
        default=0.0, description="Requests a second from one address; 0: no limit.", ge=0
    )
    burst: int = Field(default=100, description="Requests at once from one address.", ge=1)
    snapshot_every: int = Field(
        default=20, description="Rounds from one snapshot to the next.", ge=1
    )
    feed_clients: int = Field(default=100, description="Readers of the live feed at once.", ge=0)
    readers: int = Field(
        default=256, description="Readers of long answers at once, feeds included.", ge=1
    )
    reader_seconds: float = Field(
        default=60.0, description="Seconds until a reader that takes nothing is cut.", gt=0
    )
    max_points: int = Field(default=10_000_000, description="Points of one answer.", ge=1)


class AlertSettings(SettingsTable):
    """When somebody is told that a zone is unusual."""

    webhook: Annotated[str, AfterValidator(_check_webhook)] | None = Field(
        default=None,
        description="Address that alerts are posted to: https, or http on this machine. No alerts "
        "if not set.",
    )
    secret_file: Path | None = Field(
        default=None,
        description="File with the secret that signs alerts, as whsec_ and base64; made in the "
        "folder (webhook.secret) if not set.",
    )
    watch: str = Field(
        default="cells",
        description="Zones to watch: cells, grid:K, h3:RES, or the name of the map's zones.",
    )
    band: float = Field(
        default=0.5,
        description="How far from usual is still usual, as a share of the usual count. What "
        "chance allows comes on top of it.",
        ge=0,
        le=100,
    )
    days: int = Field(
        default=7,
        description="Earlier days whose mean at the same time is usual, as far as there are any.",
        ge=0,
        le=60,
    )
    rounds: int = Field(
        default=60,
        description="Last rounds whose mean is usual where no earlier day is known.",
        ge=1,
        le=1000,
    )
    level: float = Field(
        default=0.01,
        description="Probability that chance alone sends an alert in a round, over all zones.",
        gt=0,
        lt=1,
    )
    cooldown: int = Field(
        default=3600,
        description="Seconds after an alert of a zone in which it sends no other.",
        ge=0,
        le=30 * DAY,
    )


class Settings(SettingsTable):
    """All settings, validated once.

    >>> Settings.load(None, {"window": "5", "port": "0"}).campaign.window
    5
    """

    campaign: CampaignSettings = Field(
        default=CampaignSettings(), description="What devices agree to."
    )
    server: ServerSettings = Field(default=ServerSettings(), description="Where the service lives.")
    limits: LimitSettings = Field(
        default=LimitSettings(), description="What protects it from too much."
    )
    map: MapSettings = Field(default=MapSettings(), description="What lies under the data.")
    alerts: AlertSettings = Field(
        default=AlertSettings(), description="When somebody is told that a zone is unusual."
    )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str] | None = None, changes: Mapping[str, str] | None = None
    ) -> Settings:
        """Read a TOML file, then apply single changes by name, as the command line gives them."""
        values = {} if path is None else _read(Path(path))
        for name, text in (changes or {}).items():
            section, field = _place(name)
            table = values.setdefault(section, {})
            if not isinstance(table, dict):
                raise SettingError(f"setting {section} must be a table; write [{section}]")
            if field in _SECTIONS[section].model_fields:
                table[field] = _value(section, field, text)
            else:
                table.setdefault("settings", {})[field] = text
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SettingError(_explain(error)) from None


_SECTIONS: dict[str, type[SettingsTable]] = {
    "campaign": CampaignSettings,
    "server": ServerSettings,
    "limits": LimitSettings,
    "map": MapSettings,
    "alerts": AlertSettings,
}


def _read(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"configuration {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"configuration {path} is not TOML: {error}") from None


def _place(name: str) -> tuple[str, str]:
    """Return the table and the field of a setting; a field alone is enough."""
    section, dot, field = name.rpartition(".")
    if section == "campaign.settings":
        return "campaign", field
    if section in _SECTIONS and field in _SECTIONS[section].model_fields:
        return section, field
    for table, fields in _SECTIONS.items():
        if not dot and name in fields.model_fields:
            return table, name
    raise SettingError(_unknown(name))


def _unknown(name: str) -> str:
    """Return the message for an unknown setting, with the nearest known name."""
    known = [field for fields in _SECTIONS.values() for field in fields.model_fields]
    close = difflib.get_close_matches(name.rpartition(".")[2], known, n=1)
    hint = f"did you mean {close[0]}?" if close else "see: retrasyn serve --print-config"
    return f"unknown setting {name!r}; {hint}"


def _value(section: str, field: str, text: str) -> Any:
    """Read a value as the command line gives it: numbers separated by commas are a list."""
    kind = str(_SECTIONS[section].model_fields[field].annotation)
    if "tuple" in kind:
        return text.split(",")
    if field == "settings":
        raise SettingError("give a method's settings one by one: campaign.settings.alpha=8")
    return text


def _explain(error: ValidationError) -> str:
    """Return the first problem in one line."""
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"][:2])
    if first["type"] == "extra_forbidden":
        return _unknown(".".join(str(part) for part in first["loc"]))
    given = first.get("input")
    shown = f"={str(given)[:60]!r}" if isinstance(given, str | int | float) else ""
    rule = str(first["msg"]).removeprefix("Value error, ")
    return f"setting {name}{shown}: {rule[:1].lower()}{rule[1:]}; correct it"


def config_text() -> str:
    """Return the TOML of all default settings."""
    parts = []
    for section, table in Settings.model_fields.items():
        lines = [f"# {table.description}", f"[{section}]"]
        for name, field in type(table.default).model_fields.items():
            lines += textwrap.wrap(
                field.description or "", _WIDTH, initial_indent="# ", subsequent_indent="# "
            )
            # What is not set has no value in TOML; it is shown as a line to be completed.
            lines += [
                f"# {name} =" if field.default is None else f"{name} = {_toml_value(field.default)}"
            ]
            lines += [""]
        parts.append("\n".join(lines))
    return "\n".join(parts).rstrip() + "\n"


def _toml_value(value: Any) -> str:
    """Write a value in TOML.

    >>> _toml_value((1.0, True, "x")), _toml_value({})
    ('[1.0, true, "x"]', '{}')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_toml_value(item)}' for name, item in value.items())}}}"
    return json.dumps(str(value)) if isinstance(value, str | Path) else repr(value)
