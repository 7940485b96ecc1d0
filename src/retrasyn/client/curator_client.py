"""HTTP client of a curator: responses bounded in time and size, no redirects."""

from __future__ import annotations

import hmac
import importlib.util
import ipaddress
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from retrasyn.bounded_json import parse_json
from retrasyn.device.signatures import draw_x25519, share_x25519
from retrasyn.errors import MissingExtra, ServerError
from retrasyn.messages import Ack
from retrasyn.wire.batches import join_frames, read_acks
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.frames import tag_of
from retrasyn.wire.keys import agreed_key

if TYPE_CHECKING:
    import httpx2


def check_url(url: str) -> str:
    """Return a URL without its trailing slash; an invalid one is an error.

    >>> check_url("http://127.0.0.1:8700/")
    'http://127.0.0.1:8700'
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ServerError(f"{url!r:.80} is no address of a server; write http://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def check_encrypted(url: str, *, insecure: bool) -> None:
    """Refuse to speak openly with another machine, unless the owner wants that.

    >>> check_encrypted("http://127.0.0.1:8700", insecure=False)
    """
    if urlsplit(url).scheme in ("http", "mqtt") and not insecure and not is_loopback(url):
        raise ServerError(
            f"{url} is not encrypted: whoever listens in between learns what is sent and may "
            "answer in its place; use https:// (mqtts://), or add --insecure if you trust the "
            "whole way"
        )


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """Whether a host is a loopback address.

    >>> hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1")
    >>> [is_loopback_host(host) for host in hosts]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Answered:
    """An HTTP response: status code, full body and retry delay."""

    code: int
    body: bytes = field(repr=False)
    retry_after: float | None = None  # seconds, from the Retry-After header if present
    tag: bytes = field(default=b"", repr=False)  # from the Retrasyn-Tag header if present


@dataclass(frozen=True, slots=True)
class Agreed:
    """A new device's id and the key it has agreed on with the curator."""

    device: bytes = field(repr=False)
    key: bytes = field(repr=False)


MAX_ANSWER = 4 << 20
"""Maximum bytes read of a response; a curator sends far less."""
_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_OK, _NO_CONTENT, _UNAUTHORISED = 200, 204, 401
_LATER = (429, 503)
_MAX_WAIT = 60.0


@dataclass(slots=True)
class CuratorClient:
    """Client of one curator. Every failure is a `ServerError` with a one-line message."""

    url: str
    insecure: bool = field(default=False, kw_only=True)  # plain http to another machine is allowed
    _client: httpx2.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.url = check_url(self.url)
        check_encrypted(self.url, insecure=self.insecure)
        self._client = _open_client(self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def request(
        self,
        verb: str,
        path: str,
        *,
        content: bytes | None = None,
        fields: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send one request and read the response up to the size limit."""
        import httpx2  # noqa: PLC0415 - an extra, and slow to import

        body = bytearray()
        try:
            with self._client.stream(
                verb, "/v1" + path, content=content, json=fields, headers=dict(headers or {})
            ) as answer:
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER:
                        raise ServerError(
                            f"{self.url} sends more than {MAX_ANSWER:,} bytes; it is no curator"
                        )
        except httpx2.HTTPError as fault:
            why = " ".join(str(fault).split()) or type(fault).__name__
            raise ServerError(
                f"{self.url} cannot be reached ({why:.120}); check the address and that the "
                "server runs"
            ) from None
        if answer.is_redirect:
            raise ServerError(
                f"{self.url} wants to send us elsewhere; use the address it gives, if you trust it"
            )
        seconds, tag = _seconds(answer.headers), _tag(answer.headers)
        return Answered(answer.status_code, bytes(body), seconds, tag)

    def campaign(self) -> bytes:
        """Fetch the sealed manifest."""
        return self._expect(self.request("GET", "/campaign"), "a campaign")

    def keys(self) -> bytes:
        """Fetch the curator's statement of its keys."""
        return self._expect(self.request("GET", "/keys"), "its keys")

    def current_round(self) -> Answered:
        """Fetch the currently open sealed round, if there is one."""
        answered = self.request("GET", "/rounds/current")
        if answered.code not in (_OK, *_LATER):
            self._expect(answered, "a round")
        return answered

    def send(self, frame: bytes) -> Answered:
        """Send one report or heartbeat; the response body is an acknowledgement."""
        return self.request("POST", "/reports", content=frame, headers=_BINARY)

    def send_batch(self, frames: Sequence[bytes]) -> list[Ack] | float:
        """Send many frames; return an answer to each, or the seconds to wait before retrying."""
        answered = self.request(
            "POST", "/reports/batch", content=join_frames(frames), headers=_BINARY
        )
        if answered.code in _LATER:
            return 1.0 if answered.retry_after is None else answered.retry_after
        return read_acks(self._expect(answered, "statuses"), len(frames))

    def asked(self, t: int, devices: Sequence[bytes]) -> list[bool]:
        """Return which of the given devices a drawn round selected."""
        answered = self.request(
            "POST", f"/rounds/{t}/asked", content=b"".join(devices), headers=_BINARY
        )
        body = self._expect(answered, "who is asked")
        if len(body) != len(devices):
            raise ServerError(f"{self.url} names {len(body)} devices of {len(devices)}")
        return [byte == 1 for byte in body]

    def enrol(self, tokens: Sequence[str], *, agreement: bytes, manifest: bytes) -> list[Agreed]:
        """Exchange enrolment tokens for devices, one each; all succeed or none does.

        The key of each is agreed on with the curator's X25519 key. It is never sent.
        """
        pairs = [draw_x25519() for _ in tokens]
        fields = {
            "tokens": list(tokens),
            "keys": [public.hex() for _, public in pairs],
            "agreement": agreement.hex(),
        }
        answered = self.request("POST", "/enrolments", fields=fields)
        if answered.code == _UNAUTHORISED:
            raise ServerError(
                f"{self.url} does not know this link, or somebody has used it already; ask for a "
                "new one, and tell the operator if it was not you"
            )
        found = list[Agreed]()
        try:
            rows = _parse(self._expect(answered, "identities"))["devices"]
            for (private, public), row in zip(pairs, rows, strict=True):
                device, tag = bytes.fromhex(row["device"]), bytes.fromhex(row["tag"])
                shared = share_x25519(private, agreement)
                key = agreed_key(
                    shared, agreement=agreement, public=public, manifest=manifest, device=device
                )
                if not hmac.compare_digest(tag_of(key, signed_part("enrolled", device)), tag):
                    raise ServerError(
                        f"{self.url} cannot show that it has the curator's key; somebody answers "
                        "in its place, or the link was used under way: ask for a new one"
                    )
                found.append(Agreed(device, key))
        except (ValueError, KeyError, TypeError):
            raise ServerError(
                f"{self.url} did not give {len(tokens)} identities; ask its operator"
            ) from None
        return found

    def mint(self, n: int, *, operator_token: str) -> tuple[list[str], bytes]:
        """Request new enrolment tokens with the operator's token; also the curator's key."""
        answered = self.request(
            "POST",
            "/operator/tokens",
            fields={"n": n},
            headers={"Authorization": f"Bearer {operator_token}"},
        )
        if answered.code == _UNAUTHORISED:
            raise ServerError(f"{self.url} does not accept the operator's token; name its file")
        try:
            given = _parse(self._expect(answered, "tokens"))
            return [str(token) for token in given["tokens"]], bytes.fromhex(given["key"])
        except (ValueError, KeyError, TypeError):
            raise ServerError(f"{self.url} gave no enrolment tokens; ask its operator") from None

    def leave(self, device: bytes, tag: bytes) -> bytes:
        """Ask the curator to delete a device; return the tag with which it confirms, or nothing."""
        answered = self.request(
            "DELETE", f"/devices/{device.hex()}", headers={"Retrasyn-Tag": tag.hex()}
        )
        if answered.code not in (_NO_CONTENT, _UNAUTHORISED):
            self._expect(answered, "a farewell")
        return answered.tag

    def _expect(self, answered: Answered, what: str) -> bytes:
        if answered.code != _OK:
            raise ServerError(
                f"{self.url} answers {answered.code} instead of {what}; check that the address "
                "is a curator's"
            )
        return answered.body


_BINARY = {"Content-Type": "application/octet-stream"}


def check_httpx2() -> None:
    """Say how to get httpx2 if it is missing; quieten it, as it would log URLs and headers."""
    if importlib.util.find_spec("httpx2") is None:
        raise MissingExtra('httpx2 is not installed: pip install "retrasyn[device]"')
    for library in ("httpx2", "httpcore2"):
        logging.getLogger(library).setLevel(logging.WARNING)


def _open_client(url: str) -> httpx2.Client:
    check_httpx2()
    import httpx2  # noqa: PLC0415 - an extra, and slow to import

    return httpx2.Client(
        base_url=url,
        timeout=httpx2.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=not is_loopback(url),  # no proxy between two local processes
        headers={"User-Agent": "retrasyn", "Accept-Encoding": "identity"},
    )


def _seconds(headers: Mapping[str, str]) -> float | None:
    try:
        return min(max(float(headers["retry-after"]), 0.0), _MAX_WAIT)
    except (KeyError, ValueError):
        return None


def _tag(headers: Mapping[str, str]) -> bytes:
    try:
        return bytes.fromhex(headers.get("retrasyn-tag", ""))
    except ValueError:
        return b""


def _parse(body: bytes) -> Any:
    return parse_json(body)
