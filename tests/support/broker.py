"""A real Mosquitto on a free port of the loopback, open to anybody or guarded."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.components import need
from support.live_service import end, wait_for

OPEN = "allow_anonymous true\n"


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def broker(folder: Path, settings: str = OPEN, port: int | None = None) -> Iterator[int]:
    """Run Mosquitto and give its port."""
    port = port or free_port()
    program, file = need("mosquitto", package="mosquitto"), folder / "mosquitto.conf"
    file.write_text(f"listener {port} 127.0.0.1\npersistence false\nuser root\n{settings}")
    process = subprocess.Popen([program, "-c", file], stderr=subprocess.DEVNULL, text=True)

    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    try:
        wait_for(answers, "the broker")
        yield port
    finally:
        end(process)
