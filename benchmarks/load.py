"""Load for a server: many connections kept open, one request under way on each.

Run as a process of its own, so that it does not share the server's interpreter. It reads from
standard input what to do as one JSON line, then the requests; it writes one JSON line of figures.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

_LENGTH = struct.Struct("<I")


@dataclass(slots=True)
class Connection:
    """One socket, what came of the answer so far, and when its request left."""

    socket: socket.socket
    came: bytearray = field(default_factory=bytearray)
    began: float = 0.0


def load(
    address: tuple[str, int], requests: list[bytes], *, n_connections: int
) -> tuple[list[float], Counter[int], float]:
    """Send all requests; return each one's seconds, how often each status came, and all seconds."""
    todo = iter(requests)
    taken: list[float] = []
    statuses: Counter[int] = Counter()
    waiting = selectors.DefaultSelector()
    for _ in range(min(n_connections, len(requests))):
        one = Connection(socket.create_connection(address))
        one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting.register(one.socket, selectors.EVENT_READ, one)
    began = time.perf_counter()
    for key in list(waiting.get_map().values()):
        _send(key.data, next(todo))
    while len(taken) < len(requests):
        for key, _ in waiting.select():
            one = key.data
            piece = one.socket.recv(1 << 16)
            if not piece:
                raise ConnectionError("the server hung up")
            one.came += piece
            if not _whole(one.came):
                continue
            taken.append(time.perf_counter() - one.began)
            statuses[int(one.came[9:12])] += 1
            one.came.clear()
            request = next(todo, None)
            if request is not None:
                _send(one, request)
    seconds = time.perf_counter() - began
    for key in list(waiting.get_map().values()):
        key.data.socket.close()
    return taken, statuses, seconds


def _send(one: Connection, request: bytes) -> None:
    one.began = time.perf_counter()
    one.socket.sendall(request)


def _whole(came: bytearray) -> bool:
    """Tell whether an answer is complete."""
    end = came.find(b"\r\n\r\n")
    if end < 0:
        return False
    place = came.find(b"content-length: ")
    length = int(came[place + 16 : came.index(b"\r", place)])
    return len(came) >= end + 4 + length


def request(path: str, body: bytes | None) -> bytes:
    """Write a request: a post with a body, or else a get."""
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def main() -> None:
    given = sys.stdin.buffer
    told = json.loads(given.readline())
    requests = []
    while size := given.read(_LENGTH.size):
        requests.append(given.read(_LENGTH.unpack(size)[0]))
    taken, statuses, seconds = load(
        (told["host"], told["port"]), requests, n_connections=told["n_connections"]
    )
    taken.sort()
    print(
        json.dumps(
            {
                "seconds": seconds,
                "per_second": len(taken) / seconds,
                "p50": taken[len(taken) // 2],
                "p99": taken[len(taken) * 99 // 100],
                "statuses": statuses,
            }
        )
    )


def pack(requests: list[bytes]) -> bytes:
    """Write requests for the process that sends them."""
    return b"".join(_LENGTH.pack(len(one)) + one for one in requests)


if __name__ == "__main__":
    main()
