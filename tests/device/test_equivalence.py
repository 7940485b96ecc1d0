"""Devices and simulated devices do the same: one ledger, one sum of reports."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.device import Answer, MemoryStore, Reporter, Tracker
from retrasyn.device import ledger as device_ledger
from retrasyn.device.ledger import LedgerEntry
from retrasyn.messages import MICRO, SPEEDS, TRANSITION, Grant, Question
from retrasyn.privacy.ledger import RoundLedger, UserLedger
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.simulation.report_sources import Reports
from retrasyn.wire import decode_report
from retrasyn.wire.frames import n_answers
from support.campaigns import DEVICE_KEY, Campaign, manifest_of, verify
from support.feeding import fed

steps = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), min_size=1, max_size=40)
KEY = np.array([0])


def entry_at(t, *, gap, epsilon=MICRO, lookback=1):
    return LedgerEntry(
        manifest=b"m" * 8,
        t=t,
        uptime=t * 60_000,
        epsilon=epsilon,
        lookback=lookback,
        gap=gap,
        period=60,
    )


@given(steps, st.integers(1, 8))
def test_a_device_may_report_whenever_the_ledger_of_all_users_says_so(steps, gap):
    simulated, entries, t = UserLedger(epsilon=MICRO, gap=gap), (), 0
    for pause, lookback in steps:
        t += pause
        wish = entry_at(t, gap=gap, lookback=lookback)
        fits = device_ledger.spent(entries, wish) + wish.epsilon <= MICRO
        assert fits == bool(simulated.available(t, KEY, lookback)[0])
        if fits:
            simulated.charge(t, KEY, lookback)
            furthest = entry_at(t, gap=gap, lookback=6)
            entries = (*device_ledger.kept(entries, furthest), wish)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, MICRO)), min_size=1, max_size=40),
    st.integers(1, 8),
)
def test_a_device_has_as_much_left_as_the_ledger_of_rounds(steps, gap):
    simulated, entries, t = RoundLedger(epsilon=MICRO, gap=gap), (), 0
    for pause, epsilon in steps:
        t += pause
        wish = entry_at(t, gap=gap, epsilon=epsilon)
        left = MICRO - device_ledger.spent(entries, wish)
        assert left == simulated.remaining(t)
        if epsilon <= left:
            simulated.charge(t, epsilon)
            entries = (*device_ledger.kept(entries, wish), wish)


FASTER = {
    "strata": ("transition", "faster"),
    "other_shares": (50_000,),
    "speeds": SPEEDS,
    "public_map": bytes(32),
}


@pytest.mark.parametrize(
    ("asked", "changes"),
    [(TRANSITION, {}), (Question(about="faster", threshold=60), FASTER)],
    ids=["transition", "faster"],
)
def test_devices_add_up_to_what_the_door_of_simulated_reports_counts(asked, changes):
    manifest = manifest_of(side=3, window=2, **changes)
    campaign = Campaign(manifest)
    n_states, n, t, seed = n_answers(asked, manifest), 40, 3, 11
    lots = [0, 0, 3, 0] if asked.binary else [0, 0, 0]  # slot, role, threshold, send instant
    dice = np.random.default_rng(5)
    addresses = dice.integers(0, 2**63, n).astype(np.uint64)
    noise = np.uint64(address(seed, t, "noise/publish"))
    counts, states = np.zeros(n_states, np.int64), []
    for number in range(n):
        own_key = words_at(noise, addresses[number : number + 1])[0]
        words = words_at(own_key, np.arange(n_states, dtype=np.uint64)).tolist()
        words = [int(own_key)] if asked.binary else words
        tracker = Tracker(manifest)
        reporter = Reporter(
            device=bytes([number]) * 16,
            key=DEVICE_KEY,
            store=MemoryStore(),
            verify=verify,
            words=fed([*lots, *words]),
        )
        reporter.pin(campaign.envelope, campaign.at(0))
        place = dice.uniform(-1, 7, (2, 2))
        for step in (0, 1):
            tracker.observe(t - 1 + step, tuple(place[step]), boot=campaign.at(t - 1 + step).boot)
        answer = reporter.answer(campaign.ask(t), campaign.at(t), tracker)
        assert isinstance(answer, Answer)
        bits = decode_report(answer.frame, DEVICE_KEY, oracle="oue").bits
        counts += np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:n_states]
        states.append(tracker.answer(asked, t))
    door = Reports(seed).collect(
        Grant(t=t, epsilon=MICRO, reporters=np.arange(n), question=asked, n_answers=n_states),
        np.array(states, np.int32),
        addresses,
        lane="publish",
    )
    assert door.n == n
    assert counts.tolist() == door.counts.tolist()
    assert -1 in states, "some were outside the box"
    assert set(states) > {-1}
