"""A device in twenty lines: it trusts nobody, keeps its own ledger and decides what it sends.

`take_part` is all that a phone runs. Beyond Python's standard library it needs a check of
signatures (`pip install "retrasyn[device]"`). `open_rounds` plays the curator; a real one is
`retrasyn serve`. Run it with `python examples/one_device.py`.
"""

import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retrasyn.device import Answer, Instant, Refusal, Reporter, SQLiteStore, Tracker
from retrasyn.device.signatures import verify_ed25519
from retrasyn.messages import Manifest, Round
from retrasyn.wire import encode_manifest, encode_round, manifest_id, round_hash
from retrasyn.wire.canonical import seal, signed_part

EPOCH, PERIOD = 1_700_000_000, 60  # seconds
SILENT = {6: "q", 7: "."}  # by the rules of docs/device.md
TERMS = dict(  # noqa: C408
    name="city", box=(0, 0, 6_000_000, 6_000_000), side=6, state_order=1,
    n_states=328, period=PERIOD, epoch=EPOCH, window=10, unit="position", gap=11, epsilon=1_000_000,
    division="population", sampling="phase", oracle="oue", presence="count", jump="clamp", ages=(),
    size_source="counted", strata=("transition",), other_shares=(), lifetime_cap=10**9, retention=9,
)  # fmt: skip


def take_part(campaign: bytes, rounds: Iterable[bytes], folder: Path) -> Iterator[Answer | Refusal]:
    """Answer every round of a campaign, or refuse it."""
    store = SQLiteStore(folder / "ledger")  # what is spent is on disk before a byte is sent
    phone = Reporter(secrets.token_bytes(16), secrets.token_bytes(32), store, verify_ed25519)
    tracker = Tracker(phone.pin(campaign, Instant(wall=1000 * EPOCH, boot=0)))  # its owner agrees
    for t, asked in enumerate(rounds):  # a real device calls read_clocks() for the instant
        now = Instant(wall=1000 * (EPOCH + PERIOD * t), boot=1000 * PERIOD * t)
        tracker.observe(t, (3.2, 0.5 + t / 10), boot=now.boot)  # never leaves this object
        yield phone.answer(asked, now, tracker)
    store.close()


def open_rounds() -> Iterator[bytes]:
    """Play the curator: a signed campaign, then signed rounds, each chained to the one before."""
    curator = Ed25519PrivateKey.generate()
    text = encode_manifest(Manifest(key=curator.public_key().public_bytes_raw(), **TERMS))
    yield seal(text, curator.sign(signed_part("manifest", text)))
    about = {"manifest": manifest_id(text), "grace": 5, "epsilon": 1_000_000, "portion": 1 << 64}
    for t, at in enumerate(range(EPOCH, EPOCH + 50 * PERIOD, PERIOD)):
        about |= {"t": t, "open": at, "close": at + PERIOD, "previous": round_hash(text)}
        text = encode_round(Round(**about))
        yield seal(text, curator.sign(signed_part("round", text)))


if __name__ == "__main__":
    campaign, *rounds = open_rounds()
    with tempfile.TemporaryDirectory() as place:
        for said in take_part(campaign, rounds, Path(place)):
            print("#" if isinstance(said, Answer) else SILENT[said.rule], end="")
    print("\nq: quarantine, nobody knows what was sent before; #: a report of 93 bytes; .: silence")
