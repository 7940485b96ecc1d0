"""A device stored in a folder: its identity, enrolment, consent and leaving."""

from __future__ import annotations

import hmac
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from retrasyn.wire.keys import CuratorKeys, follow
from retrasyn.wire.layout import DEVICE_BYTES, PUBLIC_BYTES
from retrasyn.wire.texts import decode_manifest, manifest_id

FILE = "identity.json"


@dataclass(frozen=True, slots=True)
class Identity:
    """A device's identity since its enrolment: server, id, key and the curator's keys."""

    server: str
    device: bytes = field(repr=False)
    key: bytes = field(repr=False)
    curator: CuratorKeys

    def tag(self, kind: str) -> bytes:
        """Return the tag with which this device leaves, or the curator confirms that it left."""
        return tag_of(self.key, signed_part(kind, self.device))


def write_link(url: str, token: str, key: bytes) -> str:
    """Return the enrolment link of a token and the curator's key.

    >>> write_link("http://127.0.0.1:8700", "abc", bytes(32))
    'http://127.0.0.1:8700/#enrol=abc.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    return f"{url}/#enrol={token}.{_key_text(key)}"


def read_link(link: str) -> tuple[str, str, bytes]:
    """Return the URL and the token of an enrolment link, and the curator's key.

    >>> read_link(write_link("http://127.0.0.1:8700", "abc", bytes(32))) == (
    ...     "http://127.0.0.1:8700", "abc", bytes(32)
    ... )
    True
    """
    address, _, fragment = link.strip().partition("#")
    what, _, rest = fragment.partition("=")
    token, _, digits = rest.rpartition(".")
    try:
        key = urlsafe_b64decode(digits + "=")
    except ValueError:
        key = b""
    usable = len(key) == PUBLIC_BYTES and _key_text(key) == digits
    if what != "enrol" or not token or not token.isascii() or not token.isprintable() or not usable:
        raise InputError(
            "this is no enrolment link; it looks like https://HOST:PORT/#enrol=TOKEN.KEY, in "
            "quotation marks"
        )
    return check_url(address), token, key


def _key_text(key: bytes) -> str:
    return urlsafe_b64encode(key).decode().rstrip("=")


def read_identity(folder: Path) -> Identity | None:
    """Return the identity stored in a folder, or None."""
    path = folder / FILE
    try:
        given = parse_json(path.read_bytes())
        if given.keys() == {"server", "device", "key"}:
            raise LedgerError(
                f"{path} is of an earlier version, which sent its key openly; delete it and enrol "
                "again with a new link (the ledger beside it stays)"
            )
        identity = Identity(
            check_url(given["server"]),
            bytes.fromhex(given["device"]),
            bytes.fromhex(given["key"]),
            CuratorKeys.from_dict(given["curator"]),
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
    fields = {
        "server": identity.server,
        "device": identity.device.hex(),
        "key": identity.key.hex(),
        "curator": identity.curator.to_dict(),
    }
    write_privately(folder / FILE, json.dumps(fields).encode())


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
    insecure: bool = field(default=False, kw_only=True)  # plain http to another machine is allowed
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
        return Reporter(who.device, who.key, self.store, self.verify, curator=who.curator)

    def connect(self, url: str | None = None) -> CuratorClient:
        """Return a client of this device's curator."""
        return CuratorClient(url or self.identity.server, insecure=self.insecure)

    def keep(self, curator: CuratorKeys) -> None:
        """Remember the curator's new keys."""
        write_identity(self.folder, replace(self.identity, curator=curator))

    def campaign(self, server: CuratorClient) -> bytes:
        """Fetch the sealed manifest, after following the curator to its newest key."""
        known = self.identity.curator
        newest, _ = follow(known, server.keys(), self.verify)
        if newest != known:
            self.keep(newest)
        return server.campaign()

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
        url, token, key = read_link(link)
        open_folder(self.folder)
        if read_identity(self.folder) is not None:
            raise LedgerError(
                f"folder {self.folder} already holds a device; leave first (retrasyn device "
                "leave) or name another with --folder"
            )
        self.store.load()  # fails on an unreadable ledger before the token is used up
        with self.connect(url) as server:
            curator, agreement = follow(CuratorKeys(key), server.keys(), self.verify)
            envelope = server.campaign()
            manifest = read_campaign(envelope, curator, self.verify)
            if not agree(manifest):
                raise ConsentError("you did not agree, so nothing was sent and nothing is kept")
            id_ = manifest_id(unseal(envelope)[0])
            (agreed,) = server.enrol([token], agreement=agreement, manifest=id_)
        write_identity(self.folder, Identity(url, agreed.device, agreed.key, curator))
        return self.reporter().pin(envelope, read_clocks())

    def accept(self, envelope: bytes, agree: Agree) -> Manifest:
        """Pin the campaign's current manifest if the owner agrees; a change causes quarantine."""
        manifest = read_campaign(envelope, self.identity.curator, self.verify)
        if not agree(manifest):
            raise ConsentError("you did not agree, so this device stays silent")
        return self.reporter().pin(envelope, read_clocks())

    def pinned(self) -> bytes:
        """Return the manifest text the owner agreed to, empty if there is none."""
        found = self.store.load()
        return getattr(found, "pinned", b"")

    def agreed_to(self, envelope: bytes) -> Manifest:
        """Return a campaign's manifest; an error if the owner agreed to a different one."""
        manifest = read_campaign(envelope, self.identity.curator, self.verify)
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
        id_, key = (bytes(16), bytes(16)) if who is None else (who.device, who.key)
        reporter = Reporter(id_, key, self.store, self.verify)
        status = reporter.status(now)
        if who is None and not status.rounds_left:
            self._remove()
        return who, status

    def leave(self, *, force: bool = False) -> bool:
        """Have the curator delete this device, and return whether it confirms that.

        Unless forced, a device that is not confirmed to be deleted keeps its identity.
        """
        who = self.identity
        with self.connect() as server:
            confirmed = server.leave(who.device, who.tag("leave"))
        known = hmac.compare_digest(confirmed, who.tag("left"))
        if not known and not force:
            raise ServerError(
                f"{who.server} does not confirm that it has deleted this device: it does not know "
                "it, or somebody answers in its place; try again, or add --force"
            )
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


def read_campaign(envelope: bytes, curator: CuratorKeys, verify: Verify) -> Manifest:
    """Parse a sealed manifest and verify that the curator signed it."""
    text, signature = unseal(envelope)
    manifest, now = decode_manifest(text), read_clocks().wall // 1000
    if not curator.signed("manifest", text, signature, verify=verify, now=now):
        raise WireError(f"campaign {manifest.name!r} is not signed by the curator; refuse it")
    return manifest
