"""``retrasyn demo --devices``: a campaign and a fleet of made-up devices, on a fast clock."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from retrasyn.errors import OutputError, ServerError

_COMMAND = (sys.executable, "-m", "retrasyn")
_LAST_LINE = "Stop with Ctrl-C"


def run_campaign(devices: int, rounds: int, port: int, folder: Path | None) -> None:
    """Run a service and the devices of the built-in city; keep everything in a folder, if any."""
    from retrasyn.data.writing_roads import write_roads
    from retrasyn.simulation.city import city_roads

    # The two below must end as well, also where a script's background ignores Ctrl-C: they inherit.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    with ExitStack() as stack:
        place = Path(folder or stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            place.mkdir(parents=True, exist_ok=True)
            log = stack.enter_context((place / "service.log").open("a"))
        except OSError as error:
            raise OutputError(f"{place} cannot be used ({error.strerror}); name another") from None
        roads = place / "roads.geojson"
        write_roads(city_roads(), roads)
        service = _start_service(place, port, roads, log)
        stack.callback(_end, service)
        url = _wait_until_ready(service, place)
        kept = f"everything is kept in {folder}" if folder else "nothing is kept without --out"
        print(f"Stop with Ctrl-C; {kept}.", flush=True)
        city = subprocess.Popen(  # noqa: S603 - our own command
            [
                *(*_COMMAND, "fleet", "--server", url, "--devices", str(devices)),
                *("--rounds", str(rounds), "--folder", str(place / "fleet")),
                *("--operator-token", str(place / "service" / "operator.token")),
            ]
        )
        stack.callback(_end, city)
        try:
            code = city.wait()
        except KeyboardInterrupt:
            print("\nstopping both", flush=True)
            raise
        if code:
            raise ServerError(f"the fleet ended with code {code}; {place} has what is left")


def _start_service(place: Path, port: int, roads: Path, log: IO[str]) -> subprocess.Popen[str]:
    # Made-up devices have no home to hide, so they do not stop before the demo does.
    campaign = ("period=1", "window=5", "name=demo", "lifetime_cap=100000")
    settings = (*campaign, "box=0,0,10,10", f"campaign.roads={roads}")
    words = [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(  # noqa: S603 - our own command
        [*_COMMAND, "serve", "--port", str(port), "--folder", str(place / "service"), *words],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


def _wait_until_ready(service: subprocess.Popen[str], place: Path) -> str:
    """Print the service's output until it is ready; return its address."""
    lines: Iterable[str] = service.stdout or ()
    for line in lines:
        if line.startswith(_LAST_LINE):
            break
        print(line, end="", flush=True)
    else:
        said = (place / "service.log").read_text(errors="replace").strip().splitlines() or [""]
        raise ServerError(f"the service did not start: {said[-1].removeprefix('error: ')}")
    threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()
    return (place / "service" / "address").read_text().strip()


def _end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Stop a child process as Ctrl-C does; it may have received that already."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
