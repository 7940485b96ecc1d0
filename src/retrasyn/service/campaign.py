"""One campaign: what its manifest promises, and the curator that keeps to it.

The settings behind the manifest are kept in the folder. The same settings mean the same manifest
at every start; others mean a new one, which devices refuse until their owners have agreed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.curator import Curator
from retrasyn.engines.base import Engine
from retrasyn.errors import InputError, SettingError
from retrasyn.looking import is_there
from retrasyn.messages import MICRO, Manifest, Round
from retrasyn.service.durable import write_durably
from retrasyn.service.promise import grid_of, manifest_of, plan_of
from retrasyn.service.settings import CampaignSettings, Settings
from retrasyn.service.vault import Signer, Vault
from retrasyn.simulation.plan import Plan
from retrasyn.space import Grid
from retrasyn.wire import encode_manifest, encode_round, manifest_id

_log = logging.getLogger(__name__)
_FREE = {"close_after", "grace", "epoch"}
"""Settings that do not bind: rounds state the first two anew, and an epoch is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A manifest, its signature, and what is behind it."""

    settings: CampaignSettings  # with the epoch as a number
    manifest: Manifest
    text: bytes
    id: bytes
    envelope: bytes
    plan: Plan
    grid: Grid
    seed: int = field(repr=False)
    signer: Signer = field(repr=False)

    @classmethod
    def open(cls, settings: Settings, vault: Vault, now: float) -> Campaign:
        """Go on with the campaign in the folder if its settings are still the same, or begin."""
        wanted = settings.campaign
        kept = _read(vault)
        same = kept is not None and _binding(kept) == _binding(wanted)
        if same and kept is not None and wanted.epoch in ("next", kept.epoch):
            return cls.of(wanted.model_copy(update={"epoch": kept.epoch}), vault)
        campaign = cls.of(_dated(wanted, kept, now), vault)
        if kept is not None:
            if campaign.id == cls.of(kept, vault).id:
                raise SettingError(
                    "the method or the seed changed, and the manifest does not show it; give the "
                    'campaign another name, or set epoch = "next"'
                )
            _log.warning("campaign changed manifest=%s", campaign.id.hex())
        return campaign

    def keep(self, vault: Vault) -> None:
        """Write down what the next start has to go on with."""
        text = self.settings.model_dump_json(indent=2)
        write_durably(_place(vault), text.encode() + b"\n", private=True)

    @classmethod
    def of(cls, settings: CampaignSettings, vault: Vault) -> Campaign:
        """Build a campaign whose epoch is known."""
        signer = vault.signer()
        plan, grid = plan_of(settings), grid_of(settings)
        if not isinstance(settings.epoch, int):
            raise AssertionError("the epoch is decided first")  # noqa: TRY004 - our mistake
        manifest = manifest_of(settings, plan, key=signer.public, epoch=settings.epoch)
        text = encode_manifest(manifest)
        return cls(
            settings=settings,
            manifest=manifest,
            text=text,
            id=manifest_id(text),
            envelope=signer.sign("manifest", text),
            plan=plan,
            grid=grid,
            seed=vault.seed() if settings.seed == "random" else settings.seed,
            signer=signer,
        )

    @staticmethod
    def kept(vault: Vault) -> Campaign | None:
        """Return the campaign that was run last in a folder."""
        settings = _read(vault)
        return None if settings is None else Campaign.of(settings, vault)

    def sign(self, kind: str, text: bytes) -> bytes:
        """Return a text in its signed envelope."""
        return self.signer.sign(kind, text)

    def make_curator(self, engine: Engine | None = None) -> Curator:
        """Return a curator that has seen nothing yet; an engine serves one at a time."""
        return self.plan.curator(
            self.grid,
            epsilon=self.manifest.epsilon / MICRO,
            window=self.manifest.window,
            seed=self.seed,
            engine=engine,
        )

    def round_at(self, now: float) -> int:
        """Return the timestamp that an instant belongs to; negative before the first."""
        return int((now - self.manifest.epoch) // self.manifest.period)

    def opening_of(self, t: int) -> int:
        """Return the instant at which round t opens."""
        return self.manifest.epoch + t * self.manifest.period

    def closing_of(self, t: int) -> int:
        """Return the instant at which round t closes."""
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


def _place(vault: Vault) -> Path:
    return vault.folder / "campaign.json"


def _read(vault: Vault) -> CampaignSettings | None:
    """Return the settings of the campaign in a folder, if there is one."""
    path = _place(vault)
    try:
        if not is_there(path):
            return None
        return CampaignSettings.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        raise InputError(
            f"{path} is damaged; put it back from a copy, or remove it to begin a new campaign"
        ) from None
