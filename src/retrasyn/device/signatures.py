"""Verifies the curator's signature with `cryptography`, behind the extra `device`."""

from collections.abc import Callable

from retrasyn.errors import MissingExtra

Verify = Callable[[bytes, bytes, bytes], bool]
"""Tells whether a signature is valid, given (public key, message, signature)."""


def verify_ed25519(key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether an Ed25519 signature is valid."""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )
    except ImportError:
        raise MissingExtra(
            'cryptography is not installed: pip install "retrasyn[device]"'
        ) from None
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
