"""HTTP client of a curator: responses bounded in time and size, no redirects."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from retrasyn.bounded_json import parse_json
from retrasyn.errors import MissingExtra, ServerError
from retrasyn.wire.batches import join_frames, read_statuses

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


@dataclass(frozen=True, slots=True)
class EnrolmentAnswer:
    """A new device's id and the key it shares with the curator."""

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
    _client: httpx2.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.url = check_url(self.url)
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
        return Answered(answer.status_code, bytes(body), _seconds(answer.headers))

    def campaign(self) -> bytes:
        """Fetch the sealed manifest."""
        return self._expect(self.request("GET", "/campaign"), "a campaign")

    def current_round(self) -> Answered:
        """Fetch the currently open sealed round, if there is one."""
        answered = self.request("GET", "/rounds/current")
        if answered.code not in (_OK, *_LATER):
            self._expect(answered, "a round")
        return answered

    def send(self, frame: bytes) -> Answered:
        """Send one report or heartbeat; the response body is an acknowledgement."""
        return self.request("POST", "/reports", content=frame, headers=_BINARY)

    def send_batch(self, frames: Sequence[bytes]) -> Sequence[str] | float:
        """Send many frames; return the status of each, or the seconds to wait before retrying."""
        answered = self.request(
            "POST", "/reports/batch", content=join_frames(frames), headers=_BINARY
        )
        if answered.code in _LATER:
            return 1.0 if answered.retry_after is None else answered.retry_after
        return read_statuses(self._expect(answered, "statuses"), len(frames))

    def asked(self, t: int, devices: Sequence[bytes]) -> list[bool]:
        """Return which of the given devices a drawn round selected."""
        answered = self.request(
            "POST", f"/rounds/{t}/asked", content=b"".join(devices), headers=_BINARY
        )
        body = self._expect(answered, "who is asked")
        if len(body) != len(devices):
            raise ServerError(f"{self.url} names {len(body)} devices of {len(devices)}")
        return [byte == 1 for byte in body]

    def enrol(self, tokens: Sequence[str]) -> list[EnrolmentAnswer]:
        """Exchange enrolment tokens for device identities, one each; all succeed or none does."""
        answered = self.request("POST", "/enrolments", fields={"tokens": list(tokens)})
        if answered.code == _UNAUTHORISED:
            raise ServerError(
                f"{self.url} does not know this link, or it was used already; ask for a new one"
            )
        try:
            rows = _parse(self._expect(answered, "identities"))["devices"]
            found = [
                EnrolmentAnswer(bytes.fromhex(row["device"]), bytes.fromhex(row["key"]))
                for row in rows
            ]
        except (ValueError, KeyError, TypeError):
            found = []
        if len(found) != len(tokens):
            raise ServerError(f"{self.url} did not give {len(tokens)} identities; ask its operator")
        return found

    def mint(self, n: int, *, operator_token: str) -> list[str]:
        """Request new enrolment tokens; requires the operator's token."""
        answered = self.request(
            "POST",
            "/operator/tokens",
            fields={"n": n},
            headers={"Authorization": f"Bearer {operator_token}"},
        )
        if answered.code == _UNAUTHORISED:
            raise ServerError(f"{self.url} does not accept the operator's token; name its file")
        try:
            return [str(token) for token in _parse(self._expect(answered, "tokens"))["tokens"]]
        except (ValueError, KeyError, TypeError):
            raise ServerError(f"{self.url} gave no tokens; ask its operator") from None

    def leave(self, device: bytes, tag: bytes) -> bool:
        """Ask the curator to delete a device; False if it no longer knows it."""
        answered = self.request(
            "DELETE", f"/devices/{device.hex()}", headers={"Retrasyn-Tag": tag.hex()}
        )
        if answered.code == _UNAUTHORISED:
            return False
        if answered.code != _NO_CONTENT:
            self._expect(answered, "a farewell")
        return True

    def _expect(self, answered: Answered, what: str) -> bytes:
        if answered.code != _OK:
            raise ServerError(
                f"{self.url} answers {answered.code} instead of {what}; check that the address "
                "is a curator's"
            )
        return answered.body


_BINARY = {"Content-Type": "application/octet-stream"}


def _open_client(url: str) -> httpx2.Client:
    try:
        import httpx2  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra('httpx2 is not installed: pip install "retrasyn[device]"') from None
    for library in ("httpx2", "httpcore2"):  # they would log URLs and headers
        logging.getLogger(library).setLevel(logging.WARNING)
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


def _parse(body: bytes) -> Any:
    return parse_json(body)
