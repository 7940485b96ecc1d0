"""A device in a folder, and what its owner does with it: enrol, agree, look, leave."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from retrasyn.client.http import Server
from retrasyn.client.identity import (
    FILE,
    Identity,
    open_folder,
    read_identity,
    read_link,
    write_identity,
)
from retrasyn.device import Reporter, SQLiteStore, Status, read_clocks
from retrasyn.device.signatures import Verify, verify_ed25519
from retrasyn.errors import ConsentError, LedgerError, WireError
from retrasyn.looking import is_there
from retrasyn.messages import Manifest
from retrasyn.wire.canonical import signed_part, unseal
from retrasyn.wire.texts import decode_manifest, manifest_id

LEDGER = "ledger"
Agree = Callable[[Manifest], bool]
"""Shows a manifest to the owner and returns whether they agree."""


@dataclass(slots=True)
class Owned:
    """A folder with an identity, a ledger and its witness."""

    folder: Path
    verify: Verify = field(default=verify_ed25519, repr=False)
    _store: SQLiteStore | None = field(default=None, repr=False)

    @property
    def store(self) -> SQLiteStore:
        """The ledger; one process at a time has it."""
        if self._store is None:
            self._store = SQLiteStore(self.folder / LEDGER)
        return self._store

    @property
    def identity(self) -> Identity:
        """Who this device is; an error where it never enrolled."""
        found = read_identity(self.folder)
        if found is None:
            raise LedgerError(
                f"folder {self.folder} holds no device; enrol one with: retrasyn device enrol LINK"
            )
        return found

    def reporter(self) -> Reporter:
        """Open the device itself."""
        who = self.identity
        return Reporter(who.device, who.key, self.store, self.verify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the ledger go."""
        if self._store is not None:
            self._store.close()

    def enrol(self, link: str, agree: Agree) -> Manifest:
        """Show what the campaign promises, and enrol if the owner agrees."""
        url, token = read_link(link)
        open_folder(self.folder)
        if read_identity(self.folder) is not None:
            raise LedgerError(
                f"folder {self.folder} already holds a device; leave first (retrasyn device "
                "leave) or name another with --folder"
            )
        self.store.load()  # an unreadable ledger is found before the token is used up
        with Server(url) as server:
            envelope = server.campaign()
            manifest = read_campaign(envelope, self.verify)
            if not agree(manifest):
                raise ConsentError("you did not agree, so nothing was sent and nothing is kept")
            (enrolled,) = server.enrol([token])
        write_identity(self.folder, Identity(url, enrolled.device, enrolled.key))
        return self.reporter().pin(envelope, read_clocks())

    def accept(self, envelope: bytes, agree: Agree) -> Manifest:
        """Pin what the campaign promises now, if the owner agrees; a change means quarantine."""
        manifest = read_campaign(envelope, self.verify)
        if not agree(manifest):
            raise ConsentError("you did not agree, so this device stays silent")
        return self.reporter().pin(envelope, read_clocks())

    def pinned(self) -> bytes:
        """Return the text of the manifest the owner agreed to; nothing if there is none."""
        found = self.store.load()
        return getattr(found, "pinned", b"")

    def agreed_to(self, envelope: bytes) -> Manifest:
        """Return the manifest of a campaign, or refuse it where the owner agreed to another."""
        manifest = read_campaign(envelope, self.verify)
        text, _ = unseal(envelope)
        if text == self.pinned():
            return manifest
        raise ConsentError(
            f"campaign {manifest.name!r} now promises something else than you agreed to; see it "
            f"and agree with: retrasyn device accept --folder {self.folder}"
        )

    def status(self) -> tuple[Identity | None, Status]:
        """Return what the owner may see; once a device has left, its ledger goes in time."""
        who, now = read_identity(self.folder), read_clocks()
        if who is None and not is_there(self.folder / LEDGER):
            raise LedgerError(
                f"folder {self.folder} holds no device; enrol one with: retrasyn device enrol LINK"
            )
        who_or_nobody = who or Identity("", bytes(16), bytes(16))
        reporter = Reporter(who_or_nobody.device, who_or_nobody.key, self.store, self.verify)
        status = reporter.status(now)
        if who is None and not status.rounds_left:
            self._remove()
        return who, status

    def leave(self) -> bool:
        """Have the curator forget this device; tell whether it still knew it."""
        who, text = self.identity, self.pinned()
        with Server(who.server) as server:
            known = server.leave(who.device, who.leave_tag(manifest_id(text)))
        # Its window counts from now: only when it has passed may the ledger be forgotten.
        self.reporter().quarantine("the owner left", read_clocks())
        (self.folder / FILE).unlink()
        return known

    def _remove(self) -> None:
        """Remove the ledger of a device that has left, once nothing needs it any more."""
        self.close()
        for path in self.folder.glob(LEDGER + "*"):
            path.unlink()
        with suppress(OSError):  # other files of the owner's stay
            self.folder.rmdir()


def read_campaign(envelope: bytes, verify: Verify) -> Manifest:
    """Read a sealed manifest and check that its own key signed it."""
    text, signature = unseal(envelope)
    manifest = decode_manifest(text)
    if not verify(manifest.key, signed_part("manifest", text), signature):
        raise WireError(f"campaign {manifest.name!r} is not signed by its own key; refuse it")
    return manifest
