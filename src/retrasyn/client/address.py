"""Addresses of servers."""

import ipaddress
from urllib.parse import urlsplit

from retrasyn.errors import ServerError


def check_url(url: str) -> str:
    """Return an address without its end, or refuse what is none.

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
    """Tell whether an address stays on this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """Tell whether a host can be reached from this machine only.

    >>> hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1")
    >>> [is_loopback_host(host) for host in hosts]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
