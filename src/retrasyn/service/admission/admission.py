"""Judges frames before they are written: sender, round, and whether a report is due.

Length and header come before any cryptography. Whole batches are judged at once, in columns. Not
for two threads: the service calls it from its event loop only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Manifest
from retrasyn.service.admission.headers import SHORTEST, Header, Headers, groups
from retrasyn.service.admission.open_rounds import AcceptedReports, OpenRound, OpenRounds
from retrasyn.service.admission.records import Chunk, write_chunk
from retrasyn.service.admission.tags import TagKeys
from retrasyn.service.store import RoundRow
from retrasyn.wire.batches import MAX_FRAMES, split_frames
from retrasyn.wire.layout import CODE_AT, FIRST_KIND, LENGTH_BYTES, TAG_BYTES
from retrasyn.wire.statuses import STATUSES

Codes = npt.NDArray[np.uint8]
"""Numbers of `wire.statuses.STATUSES`, one for each frame."""
_CODE = {status: code for code, status in enumerate(STATUSES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """The status of each frame, valid once the blobs are durable."""

    codes: Codes  # [n_frames], numbers of `wire.statuses.STATUSES`
    blobs: Sequence[tuple[int, bytes]] = field(repr=False)  # (t, what to append)

    @property
    def statuses(self) -> list[str]:
        """The names of the codes."""
        return [STATUSES[code] for code in self.codes.tolist()]


class Admission:
    """Judges frames by the devices and the rounds that are open or not yet folded."""

    def __init__(self, manifest: Manifest, id: bytes) -> None:  # noqa: A002 - the wire's name
        self.manifest = manifest
        self._headers = Headers(manifest, id)
        self._tag_keys = TagKeys()
        self._open_rounds = OpenRounds(manifest)

    @property
    def marks_kept(self) -> int:
        """For how many timestamps marks matter; `forget_before` is t less this."""
        manifest = self.manifest
        rest = manifest.gap + max((1, *manifest.ages))
        return max(manifest.window + manifest.retention, rest)

    @property
    def n_devices(self) -> int:
        """How many devices may report."""
        return len(self._tag_keys)

    def add_device(self, key: int, device: bytes, secret: bytes) -> None:
        """Accept frames of a device from now on."""
        self._tag_keys.add(key, device, secret)

    def remove_device(self, device: bytes) -> None:
        """Refuse a device from now on; what it sent before still counts."""
        self._tag_keys.remove(device)

    def key_of(self, device: bytes) -> int | None:
        """Return a device's number; None if it is not let in."""
        return self._tag_keys.key_of(device)

    def acknowledge(self, code: int, frame: bytes) -> bytes:
        """Return the tag that proves the status of a frame to its device."""
        return self._tag_keys.acknowledge(bytes([code]), [frame]).tobytes()

    def acknowledge_batch(self, codes: bytes, body: bytes) -> bytes:
        """Return the answer to a `wire.batches` body: for each frame its code and the tag."""
        rows = _same_lengths(body)
        if rows is None or (beats := rows[:, CODE_AT] >= FIRST_KIND).any() != beats.all():
            tags = self._tag_keys.acknowledge(codes, split_frames(body))
        else:
            device_at = self._headers.head_bytes(int(rows[0, CODE_AT]))
            tags = self._tag_keys.acknowledge_rows(codes, rows, device_at)
        return np.column_stack((np.frombuffer(codes, np.uint8), tags)).tobytes()

    def open_round(self, row: RoundRow) -> None:
        """Accept reports for a round from its opening to its end."""
        self._open_rounds.open(row)

    def close_round(self, t: int) -> None:
        """Accept nothing more for a round, whatever the clock says."""
        self._open_rounds.rounds[t].closed = True

    def forget_round(self, t: int) -> None:
        """Drop a folded round; who reported in it is remembered for the gap."""
        self._open_rounds.forget(t)

    def unfolded(self) -> list[int]:
        """Return the timestamps of the rounds that were not forgotten."""
        return sorted(self._open_rounds.rounds)

    def restore(self, t: int, blobs: Iterable[bytes]) -> None:
        """Reset a round to exactly what the store holds of it."""
        self._open_rounds.restore(t, blobs)

    def restore_marks(self, t: int, marks: bytes) -> None:
        """Remember who reported in a round that was folded before a restart."""
        self._open_rounds.restore_marks(t, marks)

    def accepted(self, t: int) -> AcceptedReports:
        """Return what a round has accepted."""
        return self._open_rounds.rounds[t].accepted()

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
        rows = _same_lengths(body)
        if rows is None:
            return self.judge(split_frames(body), now)
        written: list[tuple[int, bytes]] = []
        return Verdicts(codes=self._judge_rows(rows, now, written), blobs=written)

    def _judge_rows(
        self, rows: npt.NDArray[np.uint8], now: float, written: list[tuple[int, bytes]]
    ) -> Codes:
        """Judge frames of one length, those with the same header together."""
        codes = np.empty(len(rows), np.uint8)
        beats = rows[:, CODE_AT] >= FIRST_KIND
        for second, chosen in ((0, ~beats), (FIRST_KIND, beats)):
            places = np.flatnonzero(chosen)
            if places.size:
                some = rows if places.size == len(rows) else rows[places]
                heads = np.ascontiguousarray(some[:, : self._headers.head_bytes(second)])
                for head, own in groups(heads):
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
        round_ = header if isinstance(header, str) else self._open_rounds.find(header, now)
        if isinstance(header, str) or isinstance(round_, str):
            return np.full(len(rows), _CODE[str(round_)], np.uint8)
        codes = np.full(len(rows), _CODE["bad length"], np.uint8)
        possible = np.flatnonzero(
            self._headers.possible(header, rows[:, header.bits_at : -TAG_BYTES])
        )
        if possible.size:
            some = rows if possible.size == len(rows) else rows[possible]
            keys = self._tag_keys.authenticate(header, some)
            genuine = np.flatnonzero(keys >= 0)
            found = np.full(len(some), _CODE["unauthenticated"], np.uint8)
            if genuine.size:
                if genuine.size < len(some):
                    some, keys = some[genuine], keys[genuine]
                found[genuine] = self._admit(header, round_, keys, some, written)
            codes[possible] = found
        return codes

    def _admit(
        self,
        header: Header,
        round_: OpenRound,
        keys: npt.NDArray[np.int64],
        rows: npt.NDArray[np.uint8],
        written: list[tuple[int, bytes]],
    ) -> Codes:
        """Judge the first frame of each device, then all others, none of which is new."""
        firsts = np.unique(keys, return_index=True)[1]
        if firsts.size == len(keys):
            return self._admit_distinct(header, round_, keys, rows, written)
        codes = np.empty(len(keys), np.uint8)
        others = np.ones(len(keys), np.bool_)
        others[firsts] = False
        for places in (np.sort(firsts), np.flatnonzero(others)):
            codes[places] = self._admit_distinct(
                header, round_, keys[places], rows[places], written
            )
        return codes

    def _admit_distinct(
        self,
        header: Header,
        round_: OpenRound,
        keys: npt.NDArray[np.int64],
        rows: npt.NDArray[np.uint8],
        written: list[tuple[int, bytes]],
    ) -> Codes:
        """Accept frames that are new and not too soon."""
        codes = np.full(len(keys), _CODE["accepted"], np.uint8)
        tags = rows[:, -TAG_BYTES:]
        heard = round_.marks_for(header.code).lookbacks_of(keys) > 0
        if heard.any():
            same = round_.marks_for(header.code).same(keys, tags)
            codes[heard] = np.where(same, _CODE["duplicate"], _CODE["conflict"])[heard]
        if header.is_report:
            codes[~heard & self._open_rounds.too_soon(header, round_, keys)] = _CODE["too soon"]
        accepted = np.flatnonzero(codes == _CODE["accepted"])
        if accepted.size:
            chunk = Chunk(
                header.code,
                keys[accepted],
                tags[accepted],
                rows[accepted, header.bits_at : -TAG_BYTES],
            )
            round_.add(chunk, header.lookback)
            written.append((header.t, write_chunk(chunk)))
        return codes


def _same_lengths(body: bytes) -> npt.NDArray[np.uint8] | None:
    """Return the frames of a batch as rows, if all have one length: [n, length]."""
    length = int.from_bytes(body[:LENGTH_BYTES], "little")
    n, rest = divmod(len(body), length + LENGTH_BYTES)
    if rest == 0 and n <= MAX_FRAMES and length >= SHORTEST:
        rows = np.frombuffer(body, np.uint8).reshape(n, -1)
        if rows[:, :LENGTH_BYTES].tobytes() == body[:LENGTH_BYTES] * n:
            return rows[:, LENGTH_BYTES:]
    return None
