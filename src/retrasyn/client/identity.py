"""Who a device is to its curator: an address, an id and a key, in a file only its owner reads."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.client.address import check_url
from retrasyn.errors import InputError, LedgerError, ServerError
from retrasyn.foreign import parse_json
from retrasyn.wire.frames import DEVICE_BYTES, MIN_KEY_BYTES, tag_of

FILE = "identity.json"
_LEAVING = b"retrasyn/1/leave\n"


@dataclass(frozen=True, slots=True)
class Identity:
    """What enrolment gave."""

    server: str
    device: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def leave_tag(self, manifest: bytes) -> bytes:
        """Return what proves that this device itself wants to be forgotten."""
        return tag_of(self.key, _LEAVING + manifest + self.device)


def read_link(link: str) -> tuple[str, str]:
    """Return the address and the token of an enrolment link.

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
    """Return the identity kept in a folder, None where there is none."""
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
    """Keep an identity, whole or not at all, readable by its owner only."""
    text = json.dumps(
        {"server": identity.server, "device": identity.device.hex(), "key": identity.key.hex()}
    )
    write_privately(folder / FILE, text.encode())


def write_privately(path: Path, content: bytes) -> None:
    """Write a file of the owner's, durably: beside its place first, then over it."""
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
    """Make a device's folder, for its owner only, and see that files can be made in it."""
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
