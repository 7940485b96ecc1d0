"""A webhook of somebody else's: messages signed and numbered as Standard Webhooks has it.

The signature is an HMAC-SHA256 over id, time and body (www.standardwebhooks.com), so that a
receiver needs no more than its language's own library to tell our messages from a stranger's.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
from dataclasses import dataclass, field

from retrasyn.client.curator_client import check_httpx2, is_loopback
from retrasyn.errors import InputError, ServerError

SECRET_MARK = "whsec_"  # noqa: S105 - what a secret begins with
SECRET_BYTES = 32
"""Bytes of a secret that is drawn."""
_FEWEST, _MOST = 24, 64  # bytes of a secret, as the standard has it
_SECONDS = 15.0


def read_secret(text: str, source: str) -> bytes:
    """Return the bytes of a secret.

    >>> read_secret("whsec_" + "QUJD" * 8, "a file")[:6]
    b'ABCABC'
    """
    try:
        secret = base64.b64decode(text.strip().removeprefix(SECRET_MARK), validate=True)
    except binascii.Error:
        secret = b""
    if not (text.strip().startswith(SECRET_MARK) and _FEWEST <= len(secret) <= _MOST):
        raise InputError(
            f"{source} holds no secret of a webhook; write {SECRET_MARK} and {_FEWEST} to {_MOST} "
            "random bytes in base64"
        )
    return secret


def write_secret(secret: bytes) -> str:
    """Return a secret as it is written into files and shown to receivers."""
    return SECRET_MARK + base64.b64encode(secret).decode()


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that takes messages, and the secret shared with whoever reads them."""

    url: str = field(repr=False)  # it may hold a token
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_httpx2()

    def headers(self, id_: str, body: bytes, now: float) -> dict[str, str]:
        """Return the headers that sign a message."""
        told = f"{id_}.{int(now)}.".encode() + body
        signature = base64.b64encode(hmac.digest(self.secret, told, "sha256")).decode()
        return {
            "Content-Type": "application/json",
            "webhook-id": id_,
            "webhook-timestamp": str(int(now)),
            "webhook-signature": f"v1,{signature}",
        }

    async def post(self, id_: str, body: bytes, now: float) -> None:
        """Post a message once; a ServerError says why it was not taken.

        Of the answer only the status is read. A redirect is not followed: it would carry a signed
        message to an address that nobody has set.
        """
        import httpx2  # noqa: PLC0415 - an extra, and slow to import

        try:
            async with (
                asyncio.timeout(_SECONDS),  # a server that drips is cut, too
                httpx2.AsyncClient(
                    follow_redirects=False,
                    trust_env=not is_loopback(self.url),  # no proxy between two local processes
                    headers={"User-Agent": "retrasyn"},
                ) as client,
                client.stream(
                    "POST", self.url, content=body, headers=self.headers(id_, body, now)
                ) as answer,
            ):
                code = answer.status_code
        except TimeoutError:
            raise ServerError(f"the webhook takes longer than {_SECONDS:.0f} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as fault:
            why = " ".join(str(fault).split()) or type(fault).__name__
            raise ServerError(f"the webhook cannot be reached ({why:.120})") from None
        if not answer.is_success:
            raise ServerError(f"the webhook answers {code}")
