"""The folder of a service: its lock, its signing key, its seed and the operator's token.

Secrets are files that only their owner may read, made once and never shown.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.errors import InputError, MissingExtra, OutputError, SettingError
from retrasyn.files import is_there, write_durably
from retrasyn.wire.canonical import seal, signed_part

_KEY_BYTES = 32
_SHORTEST_TOKEN = 16


@dataclass(slots=True)
class Secrets:
    """The secrets in a folder that one process holds locked."""

    folder: Path
    _lock: int | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: Path) -> Secrets:
        """Make the folder if need be, and lock it until `close`."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OutputError(
                f"folder {folder} cannot be used ({error.strerror}); name another with --folder"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise SettingError(
                f"folder {folder} is held by another process; stop it, or name another folder"
            ) from None
        return cls(folder, handle)

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def signer(self) -> Signer:
        """Return the curator's signing key, drawn at the first start."""
        text = self._secret("curator.key", lambda: secrets.token_hex(_KEY_BYTES))
        try:
            return Signer(bytes.fromhex(text))
        except ValueError:
            raise InputError(
                f"{self.folder / 'curator.key'} is no signing key; put it back from a copy, or "
                "remove it and begin a new campaign"
            ) from None

    def seed(self) -> int:
        """Return the seed of the synthesis, drawn at the first start."""
        text = self._secret("seed", lambda: str(secrets.randbits(63)))
        if not text.isdecimal():
            raise InputError(f"{self.folder / 'seed'} is no number; put it back from a copy")
        return int(text)

    def operator_token(self, path: Path | None) -> str:
        """Return the operator's token, from a file of theirs or drawn at the first start."""
        if path is None:
            return self._secret("operator.token", lambda: secrets.token_urlsafe(32))
        token = _read(path).strip()
        if len(token) < _SHORTEST_TOKEN:
            raise InputError(f"the token in {path} has fewer than 16 characters; make it longer")
        return token

    def _secret(self, name: str, draw: Callable[[], str]) -> str:
        """Return the text of a secret file, drawing it the first time."""
        path = self.folder / name
        if is_there(path):
            return _read(path).strip()
        text = draw()
        write_durably(path, text.encode() + b"\n", private=True)
        return text


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} cannot be read; put it back from a copy") from None


class Signer:
    """An Ed25519 key that signs manifests and rounds."""

    __slots__ = ("_private", "public")

    def __init__(self, private: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - an extra
                Ed25519PrivateKey,
            )
        except ImportError:
            raise MissingExtra(
                'cryptography is not installed: pip install "retrasyn[serve]"'
            ) from None
        self._private = Ed25519PrivateKey.from_private_bytes(private)
        self.public: bytes = self._private.public_key().public_bytes_raw()

    def sign(self, kind: str, text: bytes) -> bytes:
        """Return a text in a signed envelope."""
        return seal(text, self._private.sign(signed_part(kind, text)))
