"""A device stored in a folder: its identity, enrolment, consent and leaving."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from retrasyn.bounded_json import parse_json
from retrasyn.client.curator_client import CuratorClient, check_url
from retrasyn.device import DeviceStatus, Reporter, SQLiteStore, read_clocks
from retrasyn.device.signatures import Verify, verify_ed25519
from retrasyn.errors import ConsentError, InputError, LedgerError, ServerError, WireError
from retrasyn.files import is_there
from retrasyn.messages import Manifest
from retrasyn.wire.canonical import signed_part, unseal
from retrasyn.wire.frames import MIN_KEY_BYTES, tag_of
from retrasyn.wire.layout import DEVICE_BYTES
from retrasyn.wire.texts import decode_manifest, manifest_id

FILE = "identity.json"
_LEAVING = b"retrasyn/1/leave\n"


@dataclass(frozen=True, slots=True)
class Identity:
    """A device's identity as issued at enrolment: server, id and key."""

    server: str
    device: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def leave_tag(self, manifest: bytes) -> bytes:
        """Return the tag that authenticates this device's deletion request."""
        return tag_of(self.key, _LEAVING + manifest + self.device)


def read_link(link: str) -> tuple[str, str]:
    """Return the URL and the token of an enrolment link.

    >>> read_link("http://127.0.0.1:8700/#enrol=abc")
    ('http://127.0.0.1:8700', 'abc')
    """
    address, _, fragment = link.strip().partition("#")
    what, _, token = fragment.partition("=")
    if what != "enrol" or not token or not token.isascii() or not token.isprintable():
        raise InputError(
            "this is no enrolment link; it looks like http://HOST:PORT/#enrol=TOKEN, in quotation "
            "marks"
        )
    return check_url(address), token


def read_identity(folder: Path) -> Identity | None:
    """Return the identity stored in a folder, or None."""
    path = folder / FILE
    try:
        given = parse_json(path.read_bytes())
        identity = Identity(
            check_url(given["server"]), bytes.fromhex(given["device"]), bytes.fromhex(given["key"])
        )
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise LedgerError(
            f"{path} cannot be read ({fault.strerror}); make it readable or name another --folder"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, ServerError):
        raise _damaged(path) from None
    if len(identity.device) != DEVICE_BYTES or len(identity.key) < MIN_KEY_BYTES:
        raise _damaged(path)
    return identity


def write_identity(folder: Path, identity: Identity) -> None:
    """Store an identity atomically, readable by its owner only."""
    text = json.dumps(
        {"server": identity.server, "device": identity.device.hex(), "key": identity.key.hex()}
    )
    write_privately(folder / FILE, text.encode())


def write_privately(path: Path, content: bytes) -> None:
    """Write a file durably and atomically, readable by its owner only."""
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as fault:
        raise LedgerError(
            f"{path} cannot be written ({fault.strerror}); make its folder writable or name "
            "another --folder"
        ) from None


def open_folder(folder: Path) -> Path:
    """Create a device's folder, private to its owner, and check that it is writable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        raise LedgerError(
            f"folder {folder} cannot be made ({fault.strerror}); name another with --folder"
        ) from None
    probe = folder / ".probe"
    write_privately(probe, b"")
    probe.unlink(missing_ok=True)
    return folder


def _damaged(path: Path) -> LedgerError:
    return LedgerError(
        f"{path} is damaged; delete it and enrol again with a new link (the ledger beside it stays)"
    )


LEDGER = "ledger"
Agree = Callable[[Manifest], bool]
"""Shows a manifest to the owner and returns whether they agree to it."""


@dataclass(slots=True)
class Owned:
    """A device's folder: its identity, its ledger and the ledger's witness."""

    folder: Path
    verify: Verify = field(default=verify_ed25519, repr=False)
    _store: SQLiteStore | None = field(default=None, repr=False)

    @property
    def store(self) -> SQLiteStore:
        """The ledger, open in one process at a time."""
        if self._store is None:
            self._store = SQLiteStore(self.folder / LEDGER)
        return self._store

    @property
    def identity(self) -> Identity:
        """The identity of this device; an error if it never enrolled."""
        found = read_identity(self.folder)
        if found is None:
            raise LedgerError(
                f"folder {self.folder} holds no device; enrol one with: retrasyn device enrol LINK"
            )
        return found

    def reporter(self) -> Reporter:
        """Return the device's reporter."""
        who = self.identity
        return Reporter(who.device, who.key, self.store, self.verify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger."""
        if self._store is not None:
            self._store.close()

    def enrol(self, link: str, agree: Agree) -> Manifest:
        """Show the campaign's terms, and enrol if the owner agrees."""
        url, token = read_link(link)
        open_folder(self.folder)
        if read_identity(self.folder) is not None:
            raise LedgerError(
                f"folder {self.folder} already holds a device; leave first (retrasyn device "
                "leave) or name another with --folder"
            )
        self.store.load()  # fails on an unreadable ledger before the token is used up
        with CuratorClient(url) as server:
            envelope = server.campaign()
            manifest = read_campaign(envelope, self.verify)
            if not agree(manifest):
                raise ConsentError("you did not agree, so nothing was sent and nothing is kept")
            (enrolled,) = server.enrol([token])
        write_identity(self.folder, Identity(url, enrolled.device, enrolled.key))
        return self.reporter().pin(envelope, read_clocks())

    def accept(self, envelope: bytes, agree: Agree) -> Manifest:
        """Pin the campaign's current manifest if the owner agrees; a change causes quarantine."""
        manifest = read_campaign(envelope, self.verify)
        if not agree(manifest):
            raise ConsentError("you did not agree, so this device stays silent")
        return self.reporter().pin(envelope, read_clocks())

    def pinned(self) -> bytes:
        """Return the manifest text the owner agreed to, empty if there is none."""
        found = self.store.load()
        return getattr(found, "pinned", b"")

    def agreed_to(self, envelope: bytes) -> Manifest:
        """Return a campaign's manifest; an error if the owner agreed to a different one."""
        manifest = read_campaign(envelope, self.verify)
        text, _ = unseal(envelope)
        if text == self.pinned():
            return manifest
        raise ConsentError(
            f"campaign {manifest.name!r} now promises something else than you agreed to; see it "
            f"and agree with: retrasyn device accept --folder {self.folder}"
        )

    def status(self) -> tuple[Identity | None, DeviceStatus]:
        """Return the device's status; removes the ledger of a device that left, once it may go."""
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
        """Ask the curator to delete this device; return whether it still knew it."""
        who, text = self.identity, self.pinned()
        with CuratorClient(who.server) as server:
            known = server.leave(who.device, who.leave_tag(manifest_id(text)))
        # The window starts now: the ledger may be deleted only after it has passed.
        self.reporter().quarantine("the owner left", read_clocks())
        (self.folder / FILE).unlink()
        return known

    def _remove(self) -> None:
        """Remove the ledger, and the folder if it is then empty."""
        self.close()
        for path in self.folder.glob(LEDGER + "*"):
            path.unlink()
        with suppress(OSError):  # the folder may hold other files of the owner
            self.folder.rmdir()


def read_campaign(envelope: bytes, verify: Verify) -> Manifest:
    """Parse a sealed manifest and verify that it is signed with its own key."""
    text, signature = unseal(envelope)
    manifest = decode_manifest(text)
    if not verify(manifest.key, signed_part("manifest", text), signature):
        raise WireError(f"campaign {manifest.name!r} is not signed by its own key; refuse it")
    return manifest
