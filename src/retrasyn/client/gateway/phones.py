"""The phones of a gateway, each with its own device identity and ledger.

Only a phone's latest position is held, in memory only, and it is never logged.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.bounded_json import parse_json
from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.fixes import AHEAD, Latest
from retrasyn.client.gateway.messages import PhonePosition
from retrasyn.client.loop import Loop, Told
from retrasyn.client.owner import Agree, Owned, open_folder, write_privately
from retrasyn.client.rounds import RealClock
from retrasyn.errors import LedgerError, RetraSynError
from retrasyn.wire.canonical import unseal
from retrasyn.wire.texts import manifest_id

log = logging.getLogger(__name__)
_FILE = "phone.json"
Tell = Callable[[int, Told], None]


@dataclass(slots=True)
class Phone:
    """One phone; without a name, it is assigned to the first unknown phone that reports."""

    number: int
    owned: Owned = field(repr=False)
    name: str = field(default="", repr=False)
    latest: Latest = field(default_factory=Latest, repr=False)
    server: CuratorClient | None = field(default=None, repr=False)
    loop: Loop | None = field(default=None, repr=False)
    fault: RetraSynError | None = None
    thread: threading.Thread | None = field(default=None, repr=False)

    def remember(self, name: str) -> None:
        """Store the name of the phone that uses this identity."""
        write_privately(self.owned.folder / _FILE, json.dumps({"phone": name}).encode())
        self.name = name


@dataclass(slots=True)
class Phones:
    """All phones of one gateway, each with a thread that follows its rounds."""

    folder: Path
    clock: RealClock = field(default_factory=RealClock, repr=False)
    phones: list[Phone] = field(default_factory=list, repr=False)
    rounds: int | None = None
    insecure: bool = False  # plain http to a curator on another machine is allowed
    tell: Tell = field(default=lambda _number, _told: None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def open(self) -> None:
        """Load the phones stored in the folder."""
        open_folder(self.folder)
        for path in sorted(self.folder.glob("phone-*"), key=lambda path: (len(path.name), path)):
            owned = Owned(path, insecure=self.insecure)
            self.phones.append(Phone(len(self.phones) + 1, owned, _name_in(path)))

    def enrol(self, link: str, agree: Agree) -> None:
        """Enrol a phone; `NAME=LINK` names it, a bare link is for the first unknown phone."""
        name, equals, rest = link.partition("=")
        if not equals or "://" in name:
            name, rest = "", link
        if name and any(phone.name == name for phone in self.phones):
            raise LedgerError(f"phone {name!r} has an identity already; leave its link out")
        number = len(self.phones) + 1
        phone = Phone(number, Owned(self.folder / f"phone-{number}", insecure=self.insecure))
        with phone.owned:
            phone.owned.enrol(rest, agree)
        phone.remember(name)
        self.phones.append(phone)

    def start(self, agree: Agree | None) -> None:
        """Start the loops of all named phones; without consent, none is started."""
        for phone in self.phones:
            phone.loop = self._loop(phone, agree)
        for phone in self.phones:
            if phone.name:
                self._follow(phone)

    def hear(self, heard: PhonePosition) -> bool:
        """Store a phone's position; False if the phone is unknown."""
        with self._lock:
            phone = next((p for p in self.phones if p.name == heard.phone), None)
            if phone is None:
                phone = next((p for p in self.phones if not p.name), None)
                if phone is None:
                    return False
                phone.remember(heard.phone)
                self._follow(phone)
            if heard.taken <= self.clock.now().wall + AHEAD:  # a future fix would block others
                phone.latest.hear(heard.fix, heard.taken)
        return True

    def wait(self) -> None:
        """Wait until all loops have ended; raise if all of them failed."""
        while not self.clock.stopped.wait(0.2):
            busy = [p for p in self.phones if p.thread is None or p.thread.is_alive()]
            if not busy:
                break
        faults = [phone.fault for phone in self.phones if phone.fault is not None]
        if faults and len(faults) == len(self.phones):
            raise faults[0]

    def stop(self) -> None:
        """Stop all loops and close the ledgers."""
        self.clock.stopped.set()
        for phone in self.phones:
            if phone.thread is not None:
                phone.thread.join()
            if phone.server is not None:
                phone.server.close()

    def _loop(self, phone: Phone, agree: Agree | None) -> Loop:
        """Return the loop of a phone whose owner agreed to the campaign."""
        with phone.owned as owned:  # the loop's thread reopens the ledger
            server = phone.server = owned.connect()
            envelope = owned.campaign(server)
            if agree is not None:
                owned.accept(envelope, agree)
            manifest, id_ = owned.agreed_to(envelope), manifest_id(unseal(envelope)[0])
            reporter, fixes = owned.reporter(), phone.latest
            return Loop(server, reporter, manifest, id_, fixes, self.clock, keep=owned.keep)

    def _follow(self, phone: Phone) -> None:
        if phone.loop is not None:
            phone.thread = threading.Thread(target=self._run, args=(phone, phone.loop), daemon=True)
            phone.thread.start()

    def _run(self, phone: Phone, loop: Loop) -> None:
        try:
            for told in loop.run(self.rounds):
                self.tell(phone.number, told)
        except RetraSynError as fault:
            phone.fault = fault
            log.error("phone %d is silent: %s", phone.number, fault)  # noqa: TRY400 - one line
        finally:
            phone.owned.close()


def _name_in(folder: Path) -> str:
    try:
        name = parse_json((folder / _FILE).read_bytes())["phone"]
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str):
        raise LedgerError(f"{folder / _FILE} is damaged; delete it, and the next phone is taken")
    return name
