"""The state of a campaign, which its folded rounds move on, and its snapshots on the disk."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn._version import __version__
from retrasyn.arrays import check_seal, load_arrays, save_arrays
from retrasyn.curator import Curator
from retrasyn.engines.shared import shares_of
from retrasyn.errors import CheckpointError, OutputError
from retrasyn.files import make_durable
from retrasyn.messages import MICRO, Flags, Release
from retrasyn.poisoning import EvidencePool
from retrasyn.privacy.receipt import Holds, Receipt
from retrasyn.service.aggregation import HERE, Engines
from retrasyn.service.campaign import Campaign
from retrasyn.service.enrolment import Presence
from retrasyn.service.folded_round import FoldedRound
from retrasyn.simulation.accounting import receipt_of
from retrasyn.simulation.replicas import Replicas
from retrasyn.simulation.rounds import Folded, Recorded

_KEPT = 2  # snapshots
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class CampaignState:
    """The curator, its ledgers and totals: a function of the folded rounds and nothing else."""

    campaign: Campaign
    engines: Engines = HERE
    recorded: Recorded = field(init=False)
    evidence: EvidencePool = field(init=False)  # of the last rounds; the store keeps it
    presence: Presence = field(default_factory=Presence)
    size: int = 0  # of the last round that was folded
    last: int | None = None  # timestamp of the last round that was folded
    n_enrolled: int = 0  # then

    def __post_init__(self) -> None:
        self.evidence = EvidencePool(self.campaign.manifest.gap)
        engine, n = self.engines.streams, self.n_replicas
        shares = shares_of(engine, 1 + n) if engine is not None and n else []
        curator = self.campaign.make_curator(shares[0] if shares else engine)
        replicas = Replicas.of(curator, n, shares[1:]) if n else None
        self.recorded = Recorded(curator, replicas=replicas)

    @property
    def t(self) -> int | None:
        """The last timestamp stepped through."""
        return self.curator.state.t

    @property
    def curator(self) -> Curator:
        """The curator that the folded rounds move on."""
        return self.recorded.curator

    @property
    def n_replicas(self) -> int:
        """How many replicas there are of every release."""
        return self.campaign.n_replicas

    @property
    def replicas(self) -> Sequence[Release]:
        """What the replicas released at the last timestamp."""
        return () if self.recorded.replicas is None else self.recorded.replicas.releases

    @property
    def n_reports(self) -> int:
        """How many reports were counted so far."""
        return self.curator.state.n_reports

    def step(self, round_: FoldedRound) -> Release:
        """Move on by a folded round, and return what is released."""
        folded = round_.folded
        self.presence.follow(folded.t, round_.changes)
        self.recorded.n_users = round_.n_ever
        self.size, self.last, self.n_enrolled = folded.size, folded.t, folded.n_enrolled
        return self.recorded.step(folded)

    def step_missed(self, t: int) -> Release:
        """Step through a round that never opened: nobody was asked, and nobody counted.

        For one gap the last known size stands; after that nobody is taken to be there.
        """
        fresh = self.last is not None and t - self.last <= self.campaign.manifest.gap
        flags = Flags(n_entering=0, ages_of_quitters=np.empty(0, np.int64))
        missed = Folded(
            t=t,
            epsilon=0,
            size=self.size if fresh else 0,
            n_enrolled=self.n_enrolled if fresh else 0,
            answers={},
            flags=flags if self.campaign.manifest.presence == "flags" else None,
        )
        return self.recorded.step(missed)

    def receipt(self, release: Release) -> Receipt:
        """Return the receipt of one release: what the campaign cost so far."""
        manifest = self.campaign.manifest
        first = release.t - max(manifest.gap, manifest.window + 1)
        receipt = receipt_of(
            self.recorded,
            after=first,
            period=manifest.period,
            lifetime_cap=manifest.lifetime_cap / MICRO,
        )
        n = release.n_points
        return receipt.holding(Holds(first_t=release.t, last_t=release.t, n_points=n, n_streams=n))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        last = -1 if self.last is None else self.last
        recorded = self.recorded
        totals = [recorded.n_points_in, recorded.n_points_out, self.size, last, self.n_enrolled]
        replicas = {} if recorded.replicas is None else recorded.replicas.to_arrays()
        return {
            **replicas,
            "replicas": np.array([self.n_replicas]),
            **recorded.curator.state.to_arrays(),
            **recorded.declared.to_arrays("declared"),
            **recorded.personal.to_arrays("personal"),
            **self.presence.to_arrays(),
            "account": np.array([*totals, recorded.n_users], np.int64),
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Load everything from plain arrays."""
        recorded = self.recorded
        recorded.curator.state.load_arrays(arrays)
        if recorded.replicas is not None:
            recorded.replicas.load_arrays(arrays)
        recorded.declared.load_arrays("declared", arrays)
        recorded.personal.load_arrays("personal", arrays)
        self.presence.load_arrays(arrays)
        totals = arrays["account"].tolist()
        recorded.n_points_in, recorded.n_points_out, self.size, last, self.n_enrolled = totals[:5]
        self.last = None if last < 0 else last
        recorded.n_users = totals[5]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The folder with the latest saved states of one campaign."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Snapshots:
        """Make the folder if need be."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OutputError(f"folder {folder} cannot be made: {error.strerror}") from None
        return cls(folder)

    def save(self, state: CampaignState) -> None:
        """Save the state; the two newest snapshots are kept."""
        if state.t is None:
            return
        arrays = state.to_arrays() | {"made_by": _maker(state.campaign)}
        save_arrays(self.folder / f"{state.t:010d}.npz", arrays)
        make_durable(self.folder)
        for path in self._newest_first()[_KEPT:]:
            path.unlink(missing_ok=True)

    def load(self, campaign: Campaign, *, until: int, engines: Engines = HERE) -> CampaignState:
        """Return the newest state that is whole and not ahead of the store; else a fresh one.

        The store has folded rounds up to `until`; one put back from a copy may have fewer.
        """
        for path in self._newest_first():
            state = CampaignState(campaign, engines)
            try:
                arrays = load_arrays(path)
                check_seal(path, arrays)
                fits = arrays.pop("made_by").tobytes() == _maker(campaign).tobytes()
                fits = fits and arrays["replicas"][0] >= state.n_replicas
                if fits:
                    state.load_arrays(arrays)
            except (CheckpointError, KeyError, ValueError, IndexError):
                _log.warning("snapshot damaged file=%s", path.name)
                continue
            if fits and state.last is not None and state.last <= until:
                return state
            _log.warning("snapshot passed over file=%s", path.name)
        return CampaignState(campaign, engines)

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob("??????????.npz"), reverse=True)


def _maker(campaign: Campaign) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the campaign id and version that a snapshot must have been made with."""
    return np.frombuffer(campaign.id + __version__.encode(), np.uint8)
