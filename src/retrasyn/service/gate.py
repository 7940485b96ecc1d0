"""Judges frames before they are written: who sent them, for which round, and whether it is theirs.

Length and header come before any cryptography. Whole batches are judged at once, in columns. Not
for two threads: the service calls it from its event loop only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Manifest
from retrasyn.randomness.entropy import system_bytes
from retrasyn.service.headers import SHORTEST, Header, Headers
from retrasyn.service.marks import grown
from retrasyn.service.records import Chunk, keys_of_marks, read_chunks, write_chunk
from retrasyn.service.store import RoundRow
from retrasyn.service.taking import Taken, Taking
from retrasyn.service.verifying import Pads, matching, pads_of, tags_of
from retrasyn.wire.batches import MAX_FRAMES, split_frames
from retrasyn.wire.frames import DEVICE_BYTES, STATUSES, TAG_BYTES
from retrasyn.wire.heartbeats import FIRST_KIND

Codes = npt.NDArray[np.uint8]
_CODE = {status: code for code, status in enumerate(STATUSES)}
_NEVER = -(1 << 40)  # the timestamp of a report that was never made
_LENGTH_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What becomes of each frame once what is to be written is durable."""

    codes: Codes  # [n_frames], numbers of `wire.frames.STATUSES`
    blobs: Sequence[tuple[int, bytes]] = field(repr=False)  # (t, what to append)

    @property
    def statuses(self) -> list[str]:
        """The names of the codes."""
        return [STATUSES[code] for code in self.codes.tolist()]


class Gate:
    """Knows the devices and the rounds that are open or not yet folded."""

    def __init__(self, manifest: Manifest, id: bytes) -> None:  # noqa: A002 - the wire's name
        self.manifest = manifest
        self._headers = Headers(manifest, id)
        self._devices: dict[bytes, Pads] = {}
        self._nobody = pads_of(-1, system_bytes(32))  # unknown devices cost as much work
        self._rounds: dict[int, Taking] = {}
        self._newest = -1  # timestamp of the last round that was opened
        self._last = np.zeros(0, np.int64)  # [n_keys], newest folded timestamp of a report

    @property
    def marks_kept(self) -> int:
        """For how many timestamps marks matter; `forget_before` is t less this."""
        manifest = self.manifest
        rest = manifest.gap + max((1, *manifest.ages))
        return max(manifest.window + manifest.retention, rest)

    @property
    def n_devices(self) -> int:
        """How many devices are let in."""
        return len(self._devices)

    def add_device(self, key: int, device: bytes, secret: bytes) -> None:
        """Let a device in."""
        self._devices[device] = pads_of(key, secret)

    def remove_device(self, device: bytes) -> None:
        """Refuse a device from now on; what it sent before still counts."""
        self._devices.pop(device, None)

    def key_of(self, device: bytes) -> int | None:
        """Return a device's number; None if it is not let in."""
        found = self._devices.get(device)
        return None if found is None else found[0]

    def open_round(self, row: RoundRow) -> None:
        """Take reports for a round from its opening to its end."""
        self._rounds.setdefault(row.t, Taking(row))
        self._newest = max(self._newest, row.t)

    def close_round(self, t: int) -> None:
        """Take nothing more for a round, whatever the clock says."""
        self._rounds[t].closed = True

    def forget_round(self, t: int) -> None:
        """Drop a folded round; who reported in it is remembered for the gap."""
        self._remember(t, self._rounds.pop(t).reporters)

    def unfolded(self) -> list[int]:
        """Return the timestamps of the rounds that were not forgotten."""
        return sorted(self._rounds)

    def restore(self, t: int, blobs: Iterable[bytes]) -> None:
        """Set a round back to exactly what the store holds of it."""
        taking = self._rounds[t]
        taking.clear()
        for blob in blobs:
            for chunk in read_chunks(blob):
                taking.add_again(chunk, self._lookback(chunk.code))

    def restore_marks(self, t: int, marks: bytes) -> None:
        """Remember who reported in a round that was folded before a restart."""
        self._newest = max(self._newest, t)
        self._remember(t, keys_of_marks(marks))

    def taken(self, t: int) -> Taken:
        """Return what a round has accepted."""
        return self._rounds[t].taken()

    def judge(self, frames: Sequence[bytes], now: float) -> Verdicts:
        """Judge frames, and remember those that are accepted."""
        codes = np.full(len(frames), _CODE["bad length"], np.uint8)
        by_length: dict[int, list[int]] = {}
        for place, frame in enumerate(frames):
            by_length.setdefault(len(frame), []).append(place)
        written: list[tuple[int, bytes]] = []
        for length, places in by_length.items():
            if length >= SHORTEST:
                joined = b"".join([frames[place] for place in places])
                rows = np.frombuffer(joined, np.uint8).reshape(-1, length)
                codes[places] = self._judge_rows(rows, now, written)
        return Verdicts(codes=codes, blobs=written)

    def judge_batch(self, body: bytes, now: float) -> Verdicts:
        """Judge a `wire.batches` body; a `WireError` if it is none."""
        length = int.from_bytes(body[:_LENGTH_BYTES], "little")
        n, rest = divmod(len(body), length + _LENGTH_BYTES)
        if rest == 0 and n <= MAX_FRAMES and length >= SHORTEST:
            rows = np.frombuffer(body, np.uint8).reshape(n, -1)
            if rows[:, :_LENGTH_BYTES].tobytes() == body[:_LENGTH_BYTES] * n:
                written: list[tuple[int, bytes]] = []
                codes = self._judge_rows(rows[:, _LENGTH_BYTES:], now, written)
                return Verdicts(codes=codes, blobs=written)
        return self.judge(split_frames(body), now)

    def _judge_rows(
        self, rows: npt.NDArray[np.uint8], now: float, written: list[tuple[int, bytes]]
    ) -> Codes:
        """Judge frames of one length, those with the same header together."""
        codes = np.empty(len(rows), np.uint8)
        beats = rows[:, 1] >= FIRST_KIND
        for second, chosen in ((0, ~beats), (FIRST_KIND, beats)):
            places = np.flatnonzero(chosen)
            if places.size:
                some = rows if places.size == len(rows) else rows[places]
                heads = np.ascontiguousarray(some[:, : self._headers.head_bytes(second)])
                for head, own in _groups(heads):
                    group = some if own is None else some[own]
                    found = self._judge_group(head, group, now, written)
                    codes[places if own is None else places[own]] = found
        return codes

    def _judge_group(
        self,
        head: bytes,
        rows: npt.NDArray[np.uint8],
        now: float,
        written: list[tuple[int, bytes]],
    ) -> Codes:
        """Judge frames that share a header."""
        header = self._headers.read(head, rows.shape[1])
        taking = header if isinstance(header, str) else self._round_for(header, now)
        if isinstance(header, str) or isinstance(taking, str):
            return np.full(len(rows), _CODE[str(taking)], np.uint8)
        codes = np.full(len(rows), _CODE["bad length"], np.uint8)
        possible = np.flatnonzero(
            self._headers.possible(header, rows[:, header.bits_at : -TAG_BYTES])
        )
        if possible.size:
            some = rows if possible.size == len(rows) else rows[possible]
            keys = self._authenticate(header, some)
            genuine = np.flatnonzero(keys >= 0)
            found = np.full(len(some), _CODE["unauthenticated"], np.uint8)
            if genuine.size:
                if genuine.size < len(some):
                    some, keys = some[genuine], keys[genuine]
                found[genuine] = self._admit(header, taking, keys, some, written)
            codes[possible] = found
        return codes

    def _round_for(self, header: Header, now: float) -> Taking | str:
        """Return the round that a frame is for, or why there is none."""
        manifest, taking = self.manifest, self._rounds.get(header.t)
        opens = manifest.epoch + header.t * manifest.period
        if taking is None:
            if header.t <= self._newest:
                return "late"
            return "early" if opens <= now + manifest.period else "unknown round"
        if taking.closed or now >= taking.row.ends:
            return "late"
        if now < opens:
            return "early"
        if header.is_report and header.epsilon != taking.row.epsilon:
            return "bad manifest"
        return taking

    def _authenticate(self, header: Header, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Return the key of each sender; -1 where the tag is not that of the claimed device."""
        get, nobody = self._devices.get, self._nobody
        ids = _cells(rows[:, header.device_at : header.device_at + DEVICE_BYTES])
        pads = [get(device, nobody) for device in ids]
        tags = tags_of(pads, _cells(rows[:, :-TAG_BYTES]))
        right = matching(tags, rows[:, -TAG_BYTES:])
        keys = np.fromiter([key for key, _, _ in pads], np.int64, len(pads))
        return np.where(right, keys, -1)

    def _admit(
        self,
        header: Header,
        taking: Taking,
        keys: npt.NDArray[np.int64],
        rows: npt.NDArray[np.uint8],
        written: list[tuple[int, bytes]],
    ) -> Codes:
        """Take what is new and not too soon; of several from one device, the first."""
        codes = np.empty(len(keys), np.uint8)
        firsts = np.unique(keys, return_index=True)[1]
        if firsts.size < len(keys):
            others = np.ones(len(keys), np.bool_)
            others[firsts] = False
            for places in (np.sort(firsts), np.flatnonzero(others)):
                codes[places] = self._admit(header, taking, keys[places], rows[places], written)
            return codes
        tags = rows[:, -TAG_BYTES:]
        heard = taking.marks_for(header.code).lookbacks_of(keys) > 0
        codes[:] = _CODE["accepted"]
        if heard.any():
            same = taking.marks_for(header.code).same(keys, tags)
            codes[heard] = np.where(same, _CODE["duplicate"], _CODE["conflict"])[heard]
        if header.is_report:
            codes[~heard & self._too_soon(header, taking, keys)] = _CODE["too soon"]
        accepted = np.flatnonzero(codes == _CODE["accepted"])
        if accepted.size:
            chunk = Chunk(
                header.code,
                keys[accepted],
                tags[accepted],
                rows[accepted, header.bits_at : -TAG_BYTES],
            )
            taking.add(chunk, header.lookback)
            written.append((header.t, write_chunk(chunk)))
        return codes

    def _too_soon(
        self, header: Header, taking: Taking, keys: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Tell whose budget is not free at t, or who was not asked.

        Where epsilon is divided, what the rounds ask within a window is within epsilon already.
        """
        soon = taking.not_asked(keys)
        if self.manifest.division == "budget":
            return soon
        t, rest = header.t, self.manifest.gap + header.lookback - 1
        self._last = grown(self._last, int(keys.max()) + 1, _NEVER)
        soon |= t - self._last[keys] < rest
        for other in self._rounds.values():
            if other is taking:
                continue
            lookbacks, apart = other.reports.lookbacks_of(keys), abs(t - other.row.t)
            rests = self.manifest.gap + lookbacks - 1 if other.row.t > t else rest
            soon |= (lookbacks > 0) & (apart < rests)
        return soon

    def _remember(self, t: int, keys: npt.NDArray[np.int64]) -> None:
        self._last = grown(self._last, int(keys.max(initial=-1)) + 1, _NEVER)
        self._last[keys] = np.maximum(self._last[keys], t)

    def _lookback(self, code: int) -> int:
        question = self._headers.questions.get(code)
        return 1 if question is None else question.lookback


def _cells(columns: npt.NDArray[np.uint8]) -> list[bytes]:
    """Return each row as bytes."""
    rows = np.ascontiguousarray(columns)
    cells: list[bytes] = rows.view(f"V{rows.shape[1]}")[:, 0].tolist()
    return cells


def _groups(
    heads: npt.NDArray[np.uint8],
) -> list[tuple[bytes, npt.NDArray[np.int64] | None]]:
    """Return each header with the rows that have it; None for all."""
    first = heads[0].tobytes()
    if heads.tobytes() == first * len(heads):
        return [(first, None)]
    places: dict[bytes, list[int]] = {}
    for place, head in enumerate(_cells(heads)):
        places.setdefault(head, []).append(place)
    return [(head, np.array(own)) for head, own in places.items()]
