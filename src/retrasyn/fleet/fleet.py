"""A fleet of real devices that follows a server's rounds with recorded positions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.owner import open_folder, read_campaign
from retrasyn.client.rounds import Opened, RealClock, RoundFollower
from retrasyn.errors import LedgerError, ServerError, SettingError, WireError
from retrasyn.fleet.device_pool import DevicePool, Positions, remembered_verify
from retrasyn.fleet.ledger import FleetLedger, Recount, recount
from retrasyn.wire.canonical import unseal
from retrasyn.wire.keys import CuratorKeys, follow
from retrasyn.wire.texts import manifest_id

log = logging.getLogger(__name__)
MAX_BATCH = 10_000
_ENROL_AT_ONCE = 5_000
_AGAIN = ("busy", "early", "")
_FIRST_PAUSE = 50  # milliseconds
Record = Callable[[int, Sequence[bytes], Sequence[str]], None]
"""Callback that receives a round, the frames sent in it and the status of each."""


@dataclass(slots=True)
class Tally:
    """Counts of what a fleet has done so far."""

    n_devices: int = 0
    n_rounds: int = 0
    n_missed: int = 0  # rounds that passed while an earlier one was being answered
    n_reports: int = 0
    n_heartbeats: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0  # seconds from fetching a round to its last response


@dataclass(slots=True)
class Fleet:
    """Devices, their positions and the server they report to."""

    server: CuratorClient
    pool: DevicePool = field(repr=False)
    positions: Positions = field(repr=False)
    clock: RealClock = field(default_factory=RealClock, repr=False)
    record: Record | None = field(default=None, repr=False)
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def muster(
        cls,
        server: CuratorClient,
        positions: Positions,
        folder: Path,
        *,
        operator_token: str | None,
        record: Record | None = None,
    ) -> Fleet:
        """Open a fleet with one device per user in `positions`, keeping those enrolled earlier."""
        ledger = FleetLedger(open_folder(folder) / "fleet.sqlite")
        try:
            envelope = _enrol(server, ledger, positions.n_devices, operator_token)
            manifest = read_campaign(envelope, ledger.curator, remembered_verify)
            id_ = manifest_id(unseal(envelope)[0])
            pool = DevicePool.of(envelope, manifest, id_, ledger, positions.n_devices)
        except BaseException:
            ledger.close()
            raise
        return cls(server, pool, positions, record=record, tally=Tally(len(pool.members)))

    def wait_for_quarantine(self, tell: Callable[[int], None]) -> None:
        """Wait until the quarantine of every device is over."""
        rounds = self._rounds()
        while left := self.pool.rounds_left():
            tell(left)
            if not self.clock.wait_until(rounds.opening(max(rounds.own(), 0) + 1) + 1):
                return

    def run(self, n_rounds: int, progress: Callable[[int, int], None]) -> Tally:
        """Replay n_rounds timestamps, one per round, and one more round in which all stop."""
        rounds, first, last = self._rounds(), None, -1
        while first is None or last - first < n_rounds:
            opened = rounds.after(last)
            if opened is None:
                break
            first = opened.t if first is None else first
            self.tally.n_missed += 0 if last < 0 else opened.t - last - 1
            last = opened.t
            step = last - first
            self._answer(opened, self.positions.at(step) if step < n_rounds else {})
            self.tally.n_rounds += 1
            progress(min(step + 1, n_rounds), n_rounds)
        return self.tally

    def recount(self) -> Recount:
        """Recompute what every device spent, from the ledger's log."""
        return recount(self.pool.ledger, self.pool.manifest, self.pool.id)

    def close(self) -> None:
        """Close the ledger."""
        self.pool.ledger.close()

    def _rounds(self) -> RoundFollower:
        pool = self.pool
        return RoundFollower(self.server, pool.manifest, pool.id, self.clock, pool.trusts)

    def _answer(self, opened: Opened, places: dict[int, tuple[float, float]]) -> None:
        """Answer one round; all state is durable before anything is sent."""
        pool, t, began = self.pool, opened.t, self.clock.now().boot
        self._follow(opened.envelope)
        taking_part = pool.see(t, places)
        reports = pool.answer(opened.envelope, t, places, self._asked(t, taking_part))
        beats = pool.heartbeats(t, taking_part)
        frames = [*reports, *beats]  # reports have cost budget, so they go first
        statuses = self._send(frames, until=opened.close)
        self.tally.n_reports += len(reports)
        self.tally.n_heartbeats += len(beats)
        self.tally.statuses.update(status or "unproven" for status in statuses)
        self.tally.slowest = max(self.tally.slowest, (self.clock.now().boot - began) / 1000)
        if self.record is not None:
            self.record(t, frames, statuses)

    def _follow(self, envelope: bytes) -> None:
        """Look whether the curator has a new key, if a round is not signed by the one known."""
        if self.pool.trusts("round", *unseal(envelope), self.clock.now()):
            return
        try:
            self.pool.follow(self.server.keys())
        except (ServerError, WireError) as fault:
            log.warning("no new key of the curator: %s", fault)

    def _asked(self, t: int, numbers: Sequence[int]) -> Sequence[int]:
        """Return the devices that a drawn round selected; other rounds select all."""
        if self.pool.manifest.sampling != "curator" or not numbers:
            return numbers
        ids = [self.pool.members[number].reporter.device for number in numbers]
        meant = self.server.asked(t, ids)
        return [number for number, asked in zip(numbers, meant, strict=True) if asked]

    def _send(self, frames: Sequence[bytes], *, until: int) -> list[str]:
        """Send frames in batches, resending unsettled ones unchanged until the round closes."""
        statuses = ["busy"] * len(frames)
        waiting, pause = list(range(len(frames))), float(_FIRST_PAUSE)
        while waiting:
            for low in range(0, len(waiting), MAX_BATCH):
                places = waiting[low : low + MAX_BATCH]
                heard = self._send_batch([frames[place] for place in places])
                for place, status in zip(places, heard, strict=True):
                    statuses[place] = status
            waiting = [place for place in waiting if statuses[place] in _AGAIN]
            again = self.clock.now().wall + pause
            if waiting and (again >= until or not self.clock.wait_until(again)):
                break
            pause *= 2
        return statuses

    def _send_batch(self, frames: Sequence[bytes]) -> Sequence[str]:
        try:
            heard = self.server.send_batch(frames)
        except (ServerError, WireError) as fault:
            log.warning("a batch was not sent: %s", fault)
            heard = 0.0
        return (
            ["busy"] * len(frames) if isinstance(heard, float) else self.pool.proven(frames, heard)
        )


def _enrol(
    server: CuratorClient, ledger: FleetLedger, n_devices: int, operator_token: str | None
) -> bytes:
    """Enrol the devices that are missing, and return the campaign's sealed manifest."""
    if ledger.server not in ("", server.url):
        raise LedgerError(
            f"{ledger.path} holds a fleet of {ledger.server}; name another folder with --folder"
        )
    wanted = n_devices - len(ledger.devices())
    if wanted > 0 and operator_token is None:
        raise SettingError(
            f"{wanted:,} devices have to be enrolled; give --operator-token, the file that the "
            "server printed"
        )
    tokens, key = list[str](), b""
    while len(tokens) < wanted:
        n = min(wanted - len(tokens), _ENROL_AT_ONCE)
        minted, key = server.mint(n, operator_token=operator_token or "")
        tokens += minted
    known = ledger.curator if ledger.server else CuratorKeys(key)
    curator, agreement = follow(known, server.keys(), remembered_verify)
    ledger.trust(curator, server.url)
    envelope = server.campaign()
    id_ = manifest_id(unseal(envelope)[0])
    for low in range(0, len(tokens), _ENROL_AT_ONCE):
        some = tokens[low : low + _ENROL_AT_ONCE]
        ledger.add(server.enrol(some, agreement=agreement, manifest=id_))
    return envelope
