"""A program that sends requests it is given over connections kept open, and counts statuses.

A process of its own, so that the server has its interpreter for itself.
"""

from __future__ import annotations

import json
import queue
import socket
import sys
import threading
from collections import Counter

N_LINES = 8
DEPTH = 8  # requests sent before their answers are read


class Line:
    """A connection kept open."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def close(self) -> None:
        self.reader.close()
        self.socket.close()

    def exchange(self, requests: list[bytes], statuses: Counter[int]) -> int:
        """Send requests one behind the other; return how many were answered before a hang-up."""
        n = 0
        try:
            self.socket.sendall(b"".join(requests))
            for _ in requests:
                status, closes = self._answer()
                statuses[status] += 1
                n += 1
                if closes:
                    break
        except (OSError, EOFError):
            pass
        return n

    def _answer(self) -> tuple[int, bool]:
        line = self.reader.readline()
        if not line:
            raise EOFError
        length, closes = 0, False
        while (header := self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = header.lower().partition(b":")
            if name == b"content-length":
                length = int(value)
            closes |= name == b"connection" and value.strip() == b"close"
        if len(self.reader.read(length)) < length:
            raise EOFError
        return int(line[9:12]), closes


def work(
    address: tuple[str, int], groups: queue.Queue[list[bytes]], statuses: Counter[int]
) -> None:
    """Send groups of requests until an empty one comes."""
    line = Line(address)
    while group := groups.get():
        left = group
        while left:
            n = line.exchange(left, statuses)
            left = left[max(n, 1) :]
            if n < len(group):
                line.close()
                line = Line(address)
    line.close()


def main() -> None:
    address = sys.argv[1], int(sys.argv[2])
    groups: queue.Queue[list[bytes]] = queue.Queue(4 * N_LINES)
    counted: list[Counter[int]] = [Counter() for _ in range(N_LINES)]
    threads = [threading.Thread(target=work, args=(address, groups, one)) for one in counted]
    for thread in threads:
        thread.start()
    group: list[bytes] = []
    while size := sys.stdin.buffer.read(4):
        group.append(sys.stdin.buffer.read(int.from_bytes(size, "little")))
        if len(group) == DEPTH:
            groups.put(group)
            group = []
    if group:
        groups.put(group)
    for _ in threads:
        groups.put([])
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps(sum(counted, Counter())))


if __name__ == "__main__":
    main()
