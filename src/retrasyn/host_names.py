"""The names a listener answers to.

A stranger's page can make its own name lead to this machine (DNS rebinding). The browser then takes
our answers for the stranger's, but it still sends the stranger's name as Host. So whoever asks for
a name that is not ours is refused.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from retrasyn.errors import SettingError

REFUSAL = b"Misdirected Request\n"
"""The body of every answer to a name that is not ours (421)."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class HostNames:
    """What may stand in the header Host of a listener's requests.

    >>> names = HostNames("127.0.0.1", ("127.0.0.1", 8700), more=["https://curator.example.org"])
    >>> asked = ("localhost:8700", "LOCALHOST:8700", "curator.example.org", "evil.example:8700")
    >>> [names.allow([name]) for name in asked]
    [True, True, True, False]
    >>> names.allow([]), names.allow(["localhost:8700", "localhost:8700"])
    (False, False)
    """

    def __init__(
        self,
        host: str,
        bound: tuple[str, int],  # the address and the port that the socket has
        *,
        more: Iterable[str] = (),  # names or URLs under which it is reached besides
        scheme: str = "http",
    ) -> None:
        address = ip_address(bound[0].partition("%")[0])
        self._port, self._wide = bound[1], address.is_unspecified
        names = set() if self._wide else {_bracketed(host), _bracketed(bound[0])}
        if self._wide or address.is_loopback:
            names |= {"localhost", "127.0.0.1", "[::1]"}
        self._allowed = {f"{name}:{self._port}".lower() for name in names}
        if self._port == _DEFAULT_PORTS[scheme]:
            self._allowed |= {name.lower() for name in names}
        for name in more:
            self._allowed |= self._forms(name)

    def allow(self, given: Sequence[str]) -> bool:
        """Return whether the headers Host of a request are a single name of ours."""
        if len(given) != 1:
            return False
        (host,) = given
        return host in self._allowed or host.lower() in self._allowed or self._is_own_address(host)

    def _forms(self, name: str) -> set[str]:
        """Return how a name, or the host of a URL, may be asked for: a proxy may drop the port."""
        parts = urlsplit(name if "://" in name else f"//{name}")
        try:
            host, port = _bracketed(parts.hostname or ""), parts.port
        except ValueError:
            host, port = "", None
        if not host or parts.username is not None:
            raise SettingError(
                f"{name!r} is no host name; write it like curator.example.org or 192.0.2.1:8700"
            )
        return {host, f"{host}:{self._port if port is None else port}"}

    def _is_own_address(self, host: str) -> bool:
        """Return whether a host is an address of this machine, for who listens on all of them.

        No name leads there, so no stranger's page can have it.
        """
        address, _, port = host.rpartition(":")
        if not self._wide or port != str(self._port):
            return False
        try:
            found = ip_address(address.strip("[]"))
        except ValueError:
            return False
        written = f"[{found}]" if found.version == 6 else str(found)  # noqa: PLR2004 - IPv6
        if written != address or found.is_unspecified or found.is_multicast:
            return False
        if _can_be_bound(str(found)):
            self._allowed.add(host)
            return True
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _can_be_bound(address: str) -> bool:
    """Return whether an address is one of this machine's: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return True
