"""Checks the curator's signature and agrees on a key, with `cryptography`: the extra `device`."""

from retrasyn.errors import MissingExtra, WireError
from retrasyn.wire.keys import Verify

__all__ = ["Verify", "draw_x25519", "share_x25519", "verify_ed25519"]


def verify_ed25519(key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether an Ed25519 signature is valid."""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )
    except ImportError:
        raise _missing() from None
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def draw_x25519() -> tuple[bytes, bytes]:
    """Draw a private key for one agreement, and return it with its public key."""
    try:
        from cryptography.hazmat.primitives.asymmetric.x25519 import (  # noqa: PLC0415
            X25519PrivateKey,
        )
    except ImportError:
        raise _missing() from None
    private = X25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def share_x25519(private: bytes, public: bytes) -> bytes:
    """Return the secret that X25519 gives both sides; a public key that gives none is refused."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import (  # noqa: PLC0415
        X25519PrivateKey,
        X25519PublicKey,
    )

    try:
        other = X25519PublicKey.from_public_bytes(public)
        return X25519PrivateKey.from_private_bytes(private).exchange(other)
    except ValueError:
        raise WireError(
            "a public key is none that a secret can be agreed with; refuse it"
        ) from None


def _missing() -> MissingExtra:
    return MissingExtra('cryptography is not installed: pip install "retrasyn[device]"')
