"""The folder of a service: its lock, its keys, its seed and the operator's token.

Secrets are files that only their owner may read, made once and never shown.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrasyn.bounded_json import parse_json
from retrasyn.client.webhook import SECRET_BYTES, read_secret, write_secret
from retrasyn.errors import InputError, MissingExtra, OutputError, SettingError, WireError
from retrasyn.files import is_there, write_durably
from retrasyn.wire.canonical import seal, signed_part
from retrasyn.wire.keys import MAX_SUCCESSIONS, agreed_key, write_agreement, write_succession
from retrasyn.wire.layout import SUCCESSION, VERSION

_KEYS = "curator.key"
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

    def key_ring(self) -> KeyRing:
        """Return the curator's keys, drawn at the first start."""
        text = self._secret(_KEYS, lambda: json.dumps(_fresh_keys()))
        if len(text) == 2 * _KEY_BYTES:
            raise self._outdated()
        try:
            ring = KeyRing.of(parse_json(text))
        except (ValueError, KeyError, TypeError, struct.error):
            raise InputError(
                f"{self.folder / _KEYS} holds no keys; put it back from a copy, or remove it and "
                "begin a new campaign"
            ) from None
        if any(one[0] != VERSION for one in ring.successions):
            raise self._outdated()
        return ring

    def _outdated(self) -> SettingError:
        return SettingError(
            f"folder {self.folder} holds keys of an earlier wire version than {VERSION}, which "
            "devices do not follow; begin a campaign with another --folder, where they enrol again"
        )

    def rotate(self, now: float, *, overlap: float) -> KeyRing:
        """Draw new keys, which the old one vouches for; it counts on for `overlap` seconds."""
        if not is_there(self.folder / _KEYS):
            raise SettingError(
                f"folder {self.folder} holds no keys of a curator; name that of a service"
            )
        ring, until, kept = self.key_ring(), int(now + overlap), _fresh_keys()
        if len(ring.successions) == MAX_SUCCESSIONS:
            raise SettingError(f"{MAX_SUCCESSIONS:,} keys are enough; begin a new campaign")
        new = Signer(bytes.fromhex(kept["signing"]))
        body = write_succession(before=ring.signer.public, key=new.public, until=until)
        newest = body + ring.signer.signature("succession", body)
        kept["successions"] = [one.hex() for one in (*ring.successions, newest)]
        kept["before"] = {"agreement": ring.agreement.private.hex(), "until": until}
        self._keep(kept)
        return KeyRing.of(kept)

    def forget_old_keys(self, now: float) -> None:
        """Delete the agreement key before the last succession, if it counts no more."""
        if not is_there(self.folder / _KEYS):
            return
        ring = self.key_ring()
        if ring.before is not None and ring.before[1] <= now:
            self._keep(parse_json(_read(self.folder / _KEYS)) | {"before": None})

    def _keep(self, keys: dict[str, Any]) -> None:
        write_durably(self.folder / _KEYS, json.dumps(keys).encode() + b"\n", private=True)

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
            raise InputError(
                f"the operator's token in {path} has fewer than 16 characters; make it longer"
            )
        return token

    def webhook_secret(self, path: Path | None) -> bytes:
        """Return the secret that signs alerts, from a file of the operator's or drawn once."""
        if path is not None:
            return read_secret(_read(path), str(path))
        name = "webhook.secret"
        text = self._secret(name, lambda: write_secret(secrets.token_bytes(SECRET_BYTES)))
        return read_secret(text, str(self.folder / name))

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


def _fresh_keys() -> dict[str, Any]:
    """Draw keys, in the form in which they are kept."""
    return {
        "signing": secrets.token_hex(_KEY_BYTES),
        "agreement": secrets.token_hex(_KEY_BYTES),
        "before": None,  # the agreement key before, and until when it counts
        "successions": [],
    }


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

    def signature(self, kind: str, text: bytes) -> bytes:
        """Return the signature of a text of some kind."""
        return self._private.sign(signed_part(kind, text))

    def sign(self, kind: str, text: bytes) -> bytes:
        """Return a text in a signed envelope."""
        return seal(text, self.signature(kind, text))


class Agreement:
    """An X25519 key with which devices agree on theirs."""

    __slots__ = ("_private", "private", "public")

    def __init__(self, private: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import (  # noqa: PLC0415 - an extra
            X25519PrivateKey,
        )

        self._private = X25519PrivateKey.from_private_bytes(private)
        self.private = private
        self.public: bytes = self._private.public_key().public_bytes_raw()

    def key_for(self, public: bytes, *, manifest: bytes, device: bytes) -> bytes:
        """Return the key agreed on with a device by its public key; `WireError` if it is none."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import (  # noqa: PLC0415 - an extra
            X25519PublicKey,
        )

        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise WireError("a device's public key is none; draw it anew") from None
        return agreed_key(
            shared, agreement=self.public, public=public, manifest=manifest, device=device
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """All keys of a curator: those in use, those that count for a while, and how they followed."""

    signer: Signer = field(repr=False)
    agreement: Agreement = field(repr=False)
    before: tuple[Agreement, int] | None = field(repr=False)  # and the Unix seconds of its end
    successions: tuple[bytes, ...]  # signed, oldest first

    @classmethod
    def of(cls, kept: dict[str, Any]) -> KeyRing:
        """Read keys in the form in which they are kept."""
        before = kept["before"]
        return cls(
            signer=Signer(bytes.fromhex(kept["signing"])),
            agreement=Agreement(bytes.fromhex(kept["agreement"])),
            before=before and (Agreement(bytes.fromhex(before["agreement"])), before["until"]),
            successions=tuple(bytes.fromhex(one) for one in kept["successions"]),
        )

    @property
    def first(self) -> bytes:
        """The first key of the curator, by which its manifests name it."""
        if not self.successions:
            return self.signer.public
        first: bytes = SUCCESSION.unpack_from(self.successions[0])[2]
        return first

    @property
    def statement(self) -> bytes:
        """What devices are told of the keys."""
        body = write_agreement(self.agreement.public)
        return b"".join((body, self.signer.signature("agreement", body), *self.successions))

    def agreement_of(self, public: bytes, now: float) -> Agreement | None:
        """Return the agreement key that a device used, if it counts."""
        if public == self.agreement.public:
            return self.agreement
        if self.before is not None and public == self.before[0].public and now < self.before[1]:
            return self.before[0]
        return None
