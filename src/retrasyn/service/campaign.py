"""One campaign: its manifest, its signing key, and the curator that keeps to them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from retrasyn.curator import Curator
from retrasyn.engines.base import Engine
from retrasyn.errors import SettingError
from retrasyn.messages import MICRO, SPEEDS, Manifest, Round
from retrasyn.methods import Method
from retrasyn.privacy.selection import age_thresholds
from retrasyn.roads.opening import open_map
from retrasyn.roads.public_map import PublicMap
from retrasyn.run_settings import RunSettings
from retrasyn.service.secrets import KeyRing, Secrets
from retrasyn.service.settings import CampaignSettings
from retrasyn.simulation.accounting import usual_place_of
from retrasyn.space import Box, Grid
from retrasyn.wire import encode_manifest, encode_round, manifest_id

Sampling = Literal["phase", "self", "curator"]
_CAP_OF_ONE_CELL = 1000  # reports; a single cell leaves no place to tell


def run_settings_of(settings: CampaignSettings) -> RunSettings:
    """Return the settings of the campaign's run, if real devices can answer its method."""
    run = RunSettings.of(
        settings.method,
        grid=grid_of(settings),
        epsilon=settings.epsilon,
        window=settings.window,
        unit=settings.unit,
        settings={name: setting_text(value) for name, value in settings.settings.items()},
        oracle=settings.oracle,
        fewest=settings.fewest,
        public_map=public_map_of(settings),
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


def public_map_of(settings: CampaignSettings) -> PublicMap | None:
    """Open the public map of a campaign, over the box as devices read it."""
    if settings.roads is None and settings.prior is None:
        return None
    return open_map(grid_of(settings).box, roads=settings.roads, prior=settings.prior)


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
    method, known = run.method, run.public_map
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
        other_shares=tuple(round(share * MICRO) for share in method.division.other_shares),
        ages=age_thresholds(run.gap) if method.ages else (),
        lifetime_cap=lifetime_cap_of(settings, run),
        retention=settings.retention,
        speeds=SPEEDS if method.speeds else (),
        public_map=b"" if known is None else bytes.fromhex(known.sha256),
        **fields,
    )


def lifetime_cap_of(settings: CampaignSettings, run: RunSettings) -> int:
    """Return the most that a device ever spends, in micro-nats.

    Unless it is set, it is one report less than what tells a usual place.
    """
    if settings.lifetime_cap is not None:
        return round(settings.lifetime_cap * MICRO)
    place = usual_place_of(run)
    if place is None:
        return _CAP_OF_ONE_CELL * run.budget
    if place.reports == 1:
        raise SettingError(
            f"epsilon={settings.epsilon:g} on {settings.grid} x {settings.grid} cells: one report "
            "tells a place more often than not, so there is no lifetime_cap that hides it; lower "
            "epsilon, or set lifetime_cap and let owners decide"
        )
    return (place.reports - 1) * run.budget


def _micro(settings: CampaignSettings) -> tuple[int, int, int, int]:
    x0, y0, x1, y1 = (round(corner * MICRO) for corner in settings.box)
    return x0, y0, x1, y1


def setting_text(value: str | float | bool) -> str:  # noqa: FBT001 - a switch of a method is a value
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
    ring: KeyRing = field(repr=False)

    @classmethod
    def of(cls, settings: CampaignSettings, secrets: Secrets) -> Campaign:
        """Build a campaign whose epoch is known."""
        ring = secrets.key_ring()
        run = run_settings_of(settings)
        if not isinstance(settings.epoch, int):
            raise AssertionError("the epoch is decided first")  # noqa: TRY004 - our mistake
        manifest = manifest_of(settings, run, key=ring.first, epoch=settings.epoch)
        text = encode_manifest(manifest)
        return cls(
            settings=settings,
            manifest=manifest,
            text=text,
            id=manifest_id(text),
            envelope=ring.signer.sign("manifest", text),
            run_settings=dataclasses.replace(
                run,
                seed=secrets.seed() if settings.seed == "random" else settings.seed,
                seed_is_secret=True,
            ),
            ring=ring,
        )

    @property
    def grid(self) -> Grid:
        """The public grid."""
        return self.run_settings.grid

    @property
    def n_replicas(self) -> int:
        """How many replicas a release has; none if they would say less than is chance."""
        knows = self.run_settings.method.mechanism.knows_errors
        return self.settings.replicates if knows else 0

    def sign(self, kind: str, text: bytes) -> bytes:
        """Return a text in a signed envelope."""
        return self.ring.signer.sign(kind, text)

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
