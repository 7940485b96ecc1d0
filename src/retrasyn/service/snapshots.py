"""Snapshots of an account: sealed arrays in files, of which the newest valid one is taken."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrasyn._version import __version__
from retrasyn.errors import CheckpointError, OutputError
from retrasyn.sealed import check_seal, load_arrays, save_arrays
from retrasyn.service.account import Account
from retrasyn.service.campaign import Campaign
from retrasyn.service.durable import make_durable
from retrasyn.service.engines import HERE, Engines

_log = logging.getLogger(__name__)
_KEPT = 2


@dataclass(frozen=True, slots=True)
class Snapshots:
    """A folder with the latest states of one campaign."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Snapshots:
        """Make the folder if need be."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OutputError(f"folder {folder} cannot be made: {error.strerror}") from None
        return cls(folder)

    def save(self, account: Account) -> None:
        """Write the state down; the two newest snapshots are kept."""
        if account.t is None:
            return
        arrays = account.to_arrays() | {"made_by": _maker(account.campaign)}
        save_arrays(self.folder / f"{account.t:010d}.npz", arrays)
        make_durable(self.folder)
        for path in self._newest_first()[_KEPT:]:
            path.unlink(missing_ok=True)

    def load(self, campaign: Campaign, *, until: int, engines: Engines = HERE) -> Account:
        """Return the newest state that is whole and not ahead of the store; else a fresh one.

        The store has folded rounds up to `until`; one put back from a copy may have fewer.
        """
        for path in self._newest_first():
            account = Account(campaign, engines)
            try:
                arrays = load_arrays(path)
                check_seal(path, arrays)
                fits = arrays.pop("made_by").tobytes() == _maker(campaign).tobytes()
                if fits:
                    account.load_arrays(arrays)
            except (CheckpointError, KeyError, ValueError, IndexError):
                _log.warning("snapshot damaged file=%s", path.name)
                continue
            if fits and account.last is not None and account.last <= until:
                return account
            _log.warning("snapshot passed over file=%s", path.name)
        return Account(campaign, engines)

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob("??????????.npz"), reverse=True)


def _maker(campaign: Campaign) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return what a snapshot has to agree with: campaign and version."""
    return np.frombuffer(campaign.id + __version__.encode(), np.uint8)
