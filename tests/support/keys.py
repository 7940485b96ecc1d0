"""Statements of a curator's keys, honest or not, with the signatures of `campaigns.sign`."""

import hashlib

from retrasyn.wire.canonical import signed_part
from retrasyn.wire.keys import write_agreement, write_succession

ONE, TWO, THREE = (bytes([n]) * 32 for n in (1, 2, 3))


def signature_by(key: bytes, kind: str, body: bytes) -> bytes:
    """Return the signature that `campaigns.verify` takes for one by this key."""
    return hashlib.sha512(key + signed_part(kind, body)).digest()


def agreement_by(key: bytes, public: bytes = b"x" * 32) -> bytes:
    """Return an X25519 key for which a signing key vouches."""
    body = write_agreement(public)
    return body + signature_by(key, "agreement", body)


def succession(before: bytes, key: bytes, *, until: int, signer: bytes | None = None) -> bytes:
    """Return a succession, signed by the key before it or by somebody else."""
    body = write_succession(before=before, key=key, until=until)
    return body + signature_by(signer or before, "succession", body)


def statement(agreement: bytes, *successions: bytes) -> bytes:
    """Return what a curator says of its keys."""
    return b"".join((agreement, *successions))
