"""The names a listener answers to.

A stranger's page can make its own name lead to this machine (DNS rebinding). The browser then takes
our answers for the stranger's, but it still sends the stranger's name as Host. So whoever asks for
a name that is not ours is refused.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from retrasyn.errors import SettingError

REFUSAL = b"Misdirected Request\n"
"""The body of every answer to a name that is not ours (421)."""
_PORT = re.compile(r":([1-9][0-9]{0,4})")
_LARGEST_PORT = 65_535


class HostNames:
    """What may stand in the header Host of a listener's requests.

    Any port may follow, since the listener may be reached through another: a page cannot choose the
    name that leads here, whatever the port.

    >>> names = HostNames("127.0.0.1", "127.0.0.1", more=["https://curator.example.org"])
    >>> asked = ("localhost:8700", "LOCALHOST:9000", "curator.example.org", "evil.example:8700")
    >>> [names.allow([name]) for name in asked]
    [True, True, True, False]
    >>> names.allow([]), names.allow(["localhost:8700", "localhost:8700"])
    (False, False)
    """

    def __init__(
        self,
        host: str,
        bound: str,  # the address that the socket has
        *,
        more: Iterable[str] = (),  # names or URLs under which it is reached besides
    ) -> None:
        address = ip_address(bound.partition("%")[0])
        self._wide = address.is_unspecified
        self._names = set() if self._wide else {_bracketed(host).lower(), _bracketed(bound)}
        if self._wide or address.is_loopback:
            self._names |= {"localhost", "127.0.0.1", "[::1]"}
        self._names |= set(map(_name_in, more))
        self._last: str | None = None  # allowed last: most requests ask for the same

    def allow(self, given: Sequence[str]) -> bool:
        """Return whether the headers Host of a request are a single name of ours."""
        if len(given) != 1:
            return False
        (host,) = given
        if host != self._last:
            name = _without_port(host.lower())
            if name not in self._names and not self._is_own_address(name):
                return False
            self._last = host
        return True

    def _is_own_address(self, name: str) -> bool:
        """Return whether a host is an address of this machine, for who listens on all of them.

        No name leads there, so no stranger's page can have it.
        """
        try:
            found = ip_address(name.strip("[]"))
        except ValueError:
            return False
        if not self._wide or _bracketed(str(found)) != name:
            return False
        if found.is_unspecified or found.is_multicast or not _can_be_bound(str(found)):
            return False
        self._names.add(name)
        return True


def _without_port(host: str) -> str:
    """Return a host without its port; a port that is none stays where it is.

    >>> [_without_port(host) for host in ("here:80", "[::1]:80", "[::1]", "here:0", "here:99999")]
    ['here', '[::1]', '[::1]', 'here:0', 'here:99999']
    """
    name, colon, port = host.rpartition(":")
    found = _PORT.fullmatch(colon + port)
    return name if found and int(found[1]) <= _LARGEST_PORT else host


def _name_in(text: str) -> str:
    """Return the name that a setting means: a host, with a port or not, or a URL."""
    parts = urlsplit(text if "://" in text else f"//{text}")
    try:
        host = _bracketed(parts.hostname or "")
        known = bool(host) and parts.username is None and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise SettingError(f"{text!r} is no host name; write it like curator.example.org")
    return host


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
