"""Rate limits per address: a token bucket each, in a table of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from time import monotonic

MAX_ADDRESSES = 65_536
_IPV6_HOST_BITS = 64


@dataclass(slots=True)
class Rates:
    """Lets every address make `rate` requests per second, and `burst` at once.

    >>> now = [0.0]
    >>> rates = Rates(rate=1, burst=2, clock=lambda: now[0])
    >>> [rates.wait("192.0.2.1") for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] += 1
    >>> rates.wait("192.0.2.1")
    0.0
    """

    rate: float  # 0: no limit
    burst: float
    clock: Callable[[], float] = monotonic
    _known: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, address: str, cost: float = 1.0) -> float:
        """Take tokens and return 0, or return the seconds until there are enough.

        A request that costs more than the burst needs a full bucket, so that it can be made at all.
        """
        if self.rate <= 0:
            return 0.0
        cost, now, name = min(cost, self.burst), self.clock(), bucket_of(address)
        tokens, seen = self._known.pop(name, (self.burst, now))
        tokens = min(self.burst, tokens + (now - seen) * self.rate)
        short = cost - tokens
        self._known[name] = (tokens if short > 0 else tokens - cost, now)
        if len(self._known) > MAX_ADDRESSES:
            self._known.popitem(last=False)  # seen longest ago, so its bucket is the fullest
        return max(0.0, short / self.rate)


def bucket_of(address: str) -> str:
    """Return what an address is counted under: IPv6 networks of 64 bits have one bucket.

    >>> bucket_of("192.0.2.1"), bucket_of("2001:db8::1:2:3"), bucket_of("")
    ('192.0.2.1', '2001:db8::', '')
    """
    if ":" not in address:
        return address
    try:
        found = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address) or found.ipv4_mapped is not None:
        return address
    return str(IPv6Address(int(found) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS))
