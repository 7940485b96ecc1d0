"""One campaign: its manifest, its signing key, and the curator that keeps to them.

The settings behind the manifest are kept in the folder. The same settings mean the same manifest
at every start; others mean a new one, which devices refuse until their owners have agreed.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from retrasyn.curator import Curator
from retrasyn.engines.base import Engine
from retrasyn.errors import InputError, SettingError
from retrasyn.files import is_there, write_durably
from retrasyn.messages import MICRO, Manifest, Round
from retrasyn.methods import Method
from retrasyn.privacy.selection import age_thresholds
from retrasyn.run_settings import RunSettings
from retrasyn.service.secrets import Secrets, Signer
from retrasyn.service.settings import CampaignSettings, Settings
from retrasyn.space import Box, Grid
from retrasyn.wire import encode_manifest, encode_round, manifest_id

Sampling = Literal["phase", "self", "curator"]
_FREE = {"close_after", "grace", "epoch"}
"""Settings that may change within a campaign: rounds state the first two, the epoch is kept."""
_log = logging.getLogger(__name__)


def run_settings_of(settings: CampaignSettings) -> RunSettings:
    """Return the settings of the campaign's run, if real devices can answer its method."""
    run = RunSettings.of(
        settings.method,
        grid=grid_of(settings),
        epsilon=settings.epsilon,
        window=settings.window,
        unit=settings.unit,
        settings={name: _text(value) for name, value in settings.settings.items()},
        oracle=settings.oracle,
        fewest=settings.fewest,
    )
    method = run.method
    if not method.division.private:
        raise SettingError(f"{method.name} is not private; no device answers it")
    if not method.mechanism.asks_once:
        raise SettingError(
            f"{method.name} asks twice at a timestamp; the service runs methods that ask once, "
            "such as steered or retrasyn-p"
        )
    if run.interpretation.ledger != "user" or run.interpretation.unit != settings.unit:
        raise SettingError("a device has one ledger and one unit; leave both out of the settings")
    if settings.seconds_open > settings.period:
        raise SettingError(
            f"close_after={settings.seconds_open} is longer than the period of {settings.period} s"
        )
    return run


def sampling_of(settings: CampaignSettings, method: Method) -> Sampling:
    """Return who decides which devices report."""
    wish = settings.sampling
    if wish == "auto":
        return method.division.sampling
    if method.division.sampling == "phase":
        raise SettingError(
            f"sampling={wish!r}: with {method.name} every device has a slot of its own; use auto"
        )
    if wish == "curator" and not method.division.splits_users:
        raise SettingError(
            f"sampling={wish!r}: {method.name} asks everybody, so nobody is drawn; use auto"
        )
    return wish


def grid_of(settings: CampaignSettings) -> Grid:
    """Return the grid with its box in whole millionths, as devices read it."""
    Grid(Box(*settings.box), settings.grid)  # says what is wrong with a box
    return Grid(Box(*(corner / MICRO for corner in _micro(settings))), settings.grid)


def manifest_of(
    settings: CampaignSettings, run: RunSettings, *, key: bytes, epoch: int
) -> Manifest:
    """Return the manifest that devices agree to."""
    method = run.method
    fields: dict[str, Any] = {
        "division": method.division.name,
        "oracle": run.chosen_oracle,
        "jump": run.interpretation.jump,
    }
    return Manifest(
        name=settings.name,
        key=key,
        box=_micro(settings),
        side=settings.grid,
        state_order=1,
        n_states=run.states.n_states,
        period=settings.period,
        epoch=epoch,
        window=settings.window,
        unit=settings.unit,
        gap=run.gap,
        epsilon=run.budget,
        sampling=sampling_of(settings, method),
        presence=method.presence,
        size_source="estimated" if method.presence == "hidden" else "counted",
        strata=method.topics,
        other_share=round(method.division.other_share * MICRO),
        ages=age_thresholds(run.gap) if method.ages else (),
        lifetime_cap=int(settings.lifetime_cap * MICRO),
        retention=settings.retention,
        **fields,
    )


def _micro(settings: CampaignSettings) -> tuple[int, int, int, int]:
    x0, y0, x1, y1 = (round(corner * MICRO) for corner in settings.box)
    return x0, y0, x1, y1


def _text(value: str | float | bool) -> str:  # noqa: FBT001 - a switch of a method is a value
    """Write a setting as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A signed manifest, with the method, grid, seed and key behind it."""

    settings: CampaignSettings  # with the epoch as a number
    manifest: Manifest
    text: bytes
    id: bytes
    envelope: bytes
    run_settings: RunSettings
    signer: Signer = field(repr=False)

    @classmethod
    def open(cls, settings: Settings, secrets: Secrets, now: float) -> Campaign:
        """Continue the campaign in the folder if its settings are the same, or begin a new one."""
        wanted = settings.campaign
        kept = _read(secrets)
        same = kept is not None and _binding(kept) == _binding(wanted)
        if same and kept is not None and wanted.epoch in ("next", kept.epoch):
            return cls.of(wanted.model_copy(update={"epoch": kept.epoch}), secrets)
        campaign = cls.of(_dated(wanted, kept, now), secrets)
        if kept is not None:
            if campaign.id == cls.of(kept, secrets).id:
                raise SettingError(
                    "the method or the seed changed, and the manifest does not show it; give the "
                    'campaign another name, or set epoch = "next"'
                )
            _log.warning("campaign changed manifest=%s", campaign.id.hex())
        return campaign

    def keep(self, secrets: Secrets) -> None:
        """Write the settings that the next start continues with."""
        text = self.settings.model_dump_json(indent=2)
        write_durably(_place(secrets), text.encode() + b"\n", private=True)

    @classmethod
    def of(cls, settings: CampaignSettings, secrets: Secrets) -> Campaign:
        """Build a campaign whose epoch is known."""
        signer = secrets.signer()
        run = run_settings_of(settings)
        if not isinstance(settings.epoch, int):
            raise AssertionError("the epoch is decided first")  # noqa: TRY004 - our mistake
        manifest = manifest_of(settings, run, key=signer.public, epoch=settings.epoch)
        text = encode_manifest(manifest)
        return cls(
            settings=settings,
            manifest=manifest,
            text=text,
            id=manifest_id(text),
            envelope=signer.sign("manifest", text),
            run_settings=dataclasses.replace(
                run,
                seed=secrets.seed() if settings.seed == "random" else settings.seed,
                seed_is_secret=True,
            ),
            signer=signer,
        )

    @staticmethod
    def kept(secrets: Secrets) -> Campaign | None:
        """Return the campaign that was run last in a folder."""
        settings = _read(secrets)
        return None if settings is None else Campaign.of(settings, secrets)

    @property
    def grid(self) -> Grid:
        """The public grid."""
        return self.run_settings.grid

    def sign(self, kind: str, text: bytes) -> bytes:
        """Return a text in a signed envelope."""
        return self.signer.sign(kind, text)

    def make_curator(self, engine: Engine | None = None) -> Curator:
        """Return a curator that has seen nothing yet; an engine serves one at a time."""
        return Curator(self.run_settings, engine=engine)

    def round_at(self, now: float) -> int:
        """Return the timestamp of the round at a time; negative before the first."""
        return int((now - self.manifest.epoch) // self.manifest.period)

    def opening_of(self, t: int) -> int:
        """Return the time at which round t opens."""
        return self.manifest.epoch + t * self.manifest.period

    def closing_of(self, t: int) -> int:
        """Return the time at which round t closes."""
        return self.opening_of(t) + self.settings.seconds_open

    def write_round(self, t: int, *, epsilon: int, portion: int, previous: bytes) -> bytes:
        """Return the text of a round."""
        return encode_round(
            Round(
                manifest=self.id,
                t=t,
                open=self.opening_of(t),
                close=self.closing_of(t),
                grace=self.settings.seconds_of_grace,
                epsilon=epsilon,
                portion=portion,
                previous=previous,
            )
        )


def _binding(settings: CampaignSettings) -> CampaignSettings:
    """Return settings without those that may change within a campaign."""
    return settings.model_copy(update=dict.fromkeys(_FREE, 0))


def _dated(wanted: CampaignSettings, kept: CampaignSettings | None, now: float) -> CampaignSettings:
    """Decide when round 0 opens: at the next whole period, and never at an epoch used before."""
    if wanted.epoch != "next":
        return wanted
    epoch = (int(now) // wanted.period + 1) * wanted.period
    if kept is not None and kept.epoch == epoch:
        epoch += wanted.period
    return wanted.model_copy(update={"epoch": epoch})


def _place(secrets: Secrets) -> Path:
    return secrets.folder / "campaign.json"


def _read(secrets: Secrets) -> CampaignSettings | None:
    """Return the settings of the campaign in a folder, if there is one."""
    path = _place(secrets)
    try:
        if not is_there(path):
            return None
        return CampaignSettings.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        raise InputError(
            f"{path} is damaged; put it back from a copy, or remove it to begin a new campaign"
        ) from None
