"""I13, on the device: no key, coordinate, state or bit in logs, errors or representations."""

import logging

import pytest

from retrasyn.device import Answer, Drawn, MemoryStore, Reporter, SQLiteStore, Tracker
from retrasyn.errors import RetraSynError
from retrasyn.messages import Question, Report
from retrasyn.oracles.single import report_binary, report_hash, report_symbol, report_unary
from retrasyn.wire import decode_report, encode_report, encode_round
from support.campaigns import Campaign, manifest_of, sign, verify

KEY = b"canary key, 32 bytes of secrets!"
DEVICE = b"canary device id"
FIX = (1.2345678, 4.7654321)


def spelled(secret: bytes) -> set[str]:
    return {secret.hex(), repr(secret)[2:-1], str(list(secret))}


def secrets_of(tracker, frame):
    bits = frame[36:-16]
    cell = tracker._cell
    return {
        *spelled(KEY),
        *spelled(DEVICE),
        *spelled(bits),
        *spelled(frame[-16:]),
        *(str(number) for number in FIX),
        f"cell={cell}",
        f"state={tracker.answer(Question(), tracker._t)}",
    }


def said(log, *things):
    texts = [record.getMessage() for record in log.records]
    return "\n".join([*texts, *map(repr, things), *map(str, things)])


FASTER = {
    "strata": ("transition", "faster"),
    "other_shares": (50_000,),
    "speeds": (2, 6),
    "public_map": bytes(32),
}


@pytest.mark.parametrize("changes", [{}, FASTER])
def test_nothing_secret_is_said_on_the_way_to_a_report_or_a_refusal(
    changes, tmp_path, caplog, capfd
):
    caplog.set_level(logging.DEBUG)
    campaign = Campaign(manifest_of(window=2, **changes))
    store = SQLiteStore(tmp_path / "ledger")
    reporter = Reporter(device=DEVICE, key=KEY, store=store, verify=verify)
    tracker = Tracker(campaign.manifest)
    things = [reporter, tracker, store]
    reporter.pin(campaign.envelope, campaign.at(0))
    frame = b""
    for t in range(1, 9):
        now = campaign.at(t)
        tracker.observe(t, FIX, boot=now.boot)
        drawn = reporter.draw(campaign.ask(t), now, tracker)
        things += [drawn, reporter, tracker]
        answer = (
            reporter.report(campaign.ask(t), now, tracker) if isinstance(drawn, Drawn) else drawn
        )
        things += [answer, reporter.status(now)]
        if isinstance(answer, Answer):
            frame = answer.frame
        odd = sign("round", encode_round(campaign.round_of(t, grace=9)))
        things.append(reporter.answer(odd, now, tracker))
    things.append(decode_report(frame, KEY, oracle="oue"))
    printed = capfd.readouterr()
    text = said(caplog, *things) + printed.out + printed.err
    assert frame
    assert not [secret for secret in secrets_of(tracker, frame) if secret in text]


def errors_of(report, frame):
    """Make every error that handles something secret."""
    attempts = [
        lambda: encode_report(report, b"short", oracle="oue"),
        lambda: decode_report(frame, bytes(32), oracle="oue"),
        lambda: decode_report(frame[:-1], KEY, oracle="oue"),
        lambda: decode_report(frame[:-1] + b"x", KEY, oracle="oue"),
        lambda: decode_report(frame, KEY, oracle="grr"),
        lambda: Reporter(device=DEVICE[1:], key=KEY, store=MemoryStore(), verify=verify),
        lambda: Reporter(device=DEVICE, key=KEY[:9], store=MemoryStore(), verify=verify),
        lambda: report_unary(4711, 67, epsilon=1_000_000),
        lambda: report_symbol(4711, 67, epsilon=1_000_000),
        lambda: report_hash(4711, 67, epsilon=1_000_000),
        lambda: report_binary(4711, epsilon=1_000_000),
    ]
    for attempt in attempts:
        with pytest.raises((RetraSynError, ValueError)) as raised:
            attempt()
        yield f"{raised.value!r} {raised.value}"


def test_errors_do_not_tell_what_they_were_about():
    report = Report(
        question=0,
        n_answers=67,
        t=3,
        epsilon=1_000_000,
        manifest=b"manifest",
        device=DEVICE,
        bits=b"canarybi\x00",
    )
    frame = encode_report(report, KEY, oracle="oue")
    text = "\n".join(errors_of(report, frame))
    secrets = {*spelled(KEY), *spelled(DEVICE), *spelled(report.bits), "4711", KEY[:9].hex()}
    assert not [secret for secret in secrets if secret in text]
    assert not [secret for secret in secrets if secret in repr(report)]


def test_the_store_names_no_place_and_no_key(tmp_path):
    campaign = Campaign(manifest_of(window=2))
    reporter = Reporter(
        device=DEVICE, key=KEY, store=SQLiteStore(tmp_path / "ledger"), verify=verify
    )
    tracker = Tracker(campaign.manifest)
    reporter.pin(campaign.envelope, campaign.at(0))
    tracker.observe(3, FIX, boot=campaign.at(3).boot)
    assert isinstance(reporter.answer(campaign.ask(3), campaign.at(3), tracker), Answer)
    on_disk = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for secret in (KEY, KEY.hex().encode(), str(FIX[0]).encode(), str(FIX[1]).encode()):
        assert secret not in on_disk
