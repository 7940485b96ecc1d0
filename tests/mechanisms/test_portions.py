"""Portions against plain loops, and the dialogue of one ask."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import naive
from retrasyn.errors import SettingError
from retrasyn.interpretation import SAFE
from retrasyn.mechanisms.base import ReleasedMemory, View, drive
from retrasyn.mechanisms.one_ask import Adaptive, Everything, OneAsk, Sample, Uniform
from retrasyn.messages import Estimate
from retrasyn.mobility.model import select_significant

N_STATES = 4
vectors = hnp.arrays(np.float64, N_STATES, elements=st.floats(0, 1))
histories = st.lists(vectors, min_size=2, max_size=9)


def view_of(history, ratios, *, reading=SAFE, window=20, t=9):
    memory = ReleasedMemory(
        released=history[-1] if history else None,
        history=deque(history, maxlen=32),
        significant=deque(ratios, maxlen=32),
        n_collections=len(history),
    )
    gap = reading.gap(window)
    return View(t=t, first_t=0, window=window, gap=gap, reading=reading, memory=memory)


@given(histories, st.integers(1, 6), st.booleans(), st.booleans(), st.data())
def test_the_adaptive_portion_is_equations_9_and_10(history, lookback, signed, extra, data):
    ratios = data.draw(st.lists(st.floats(0, 1), min_size=len(history), max_size=len(history)))
    reading = SAFE.answer(
        deviation="signed" if signed else "absolute",
        deviation_terms="kappa-plus-one" if extra else "kappa",
    )
    view = view_of(history, ratios, reading=reading)
    part = Adaptive(lookback=lookback)
    past = [vector.tolist() for vector in history]
    deviation = naive.deviation(past, lookback, signed, extra)
    assert part.deviation(view) == pytest.approx(deviation, abs=1e-12)
    if not extra:  # the plain loop averages the last kappa ratios only
        expected = naive.portion(
            deviation, ratios, gain=8.0, window=20, lookback=lookback, max_portion=0.6
        )
        assert part.portion(view) == pytest.approx(expected, abs=1e-12)


def test_the_ratio_floor_can_be_lifted():
    history, ratios = [np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0])], [1.0, 1.0]
    assert Adaptive().portion(view_of(history, ratios)) > 0
    assert Adaptive().portion(view_of(history, ratios, reading=SAFE.answer(ratio_floor=0.0))) == 0


def test_the_first_two_collections_ask_for_one_part_in_w():
    assert Adaptive().ask(view_of([], [])).share == pytest.approx(1 / 20)
    assert Adaptive().ask(view_of([np.ones(4)], [0.0])).share == pytest.approx(1 / 20)


def test_a_stream_that_does_not_change_is_asked_again_after_a_window():
    calm = view_of([np.ones(4)] * 3, [0.0] * 3, t=20)
    assert Adaptive().ask(calm) is None
    silent = view_of([np.ones(4)] * 3, [0.0] * 3, t=21)
    assert Adaptive().ask(silent).share == pytest.approx(1 / 20)


def test_uniform_asks_for_one_part_in_gap():
    ask = Uniform().ask(view_of([], []))
    assert (ask.share, ask.of) == (pytest.approx(1 / 21), "whole")


def test_sample_asks_for_everything_every_gap():
    times = [t for t in range(45) if Sample().ask(view_of([], [], t=t)) is not None]
    assert times == [0, 21, 42]


@pytest.mark.parametrize(
    "wrong", [{"gain": 0.0}, {"lookback": 0}, {"lookback": 32}, {"max_portion": 1.5}]
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(SettingError):
        Adaptive(**wrong)


def test_without_reports_the_previous_release_stands():
    previous = np.array([0.5, 0.5, 0, 0])
    outcome = drive(
        OneAsk(Everything(), select_significant).dialogue(view_of([previous] * 3, [0.0] * 3)),
        lambda ask: None,
    )
    assert outcome.released is previous
    assert not outcome.fresh


def test_an_empty_night_does_not_freeze_the_portion():
    memory = ReleasedMemory()
    mechanism = OneAsk(Adaptive(), select_significant)
    random = np.random.default_rng(0)
    shares = []

    def collect(ask, n):
        shares.append(ask.share)
        if n == 0:
            return None
        return Estimate(frequencies=random.random(N_STATES), variance=1e-4, n=n)

    for t, n in enumerate([9] * 6 + [0] * 30 + [9] * 3):
        view = View(t=t, first_t=0, window=20, gap=21, reading=SAFE, memory=memory)
        memory = drive(mechanism.dialogue(view), lambda ask, n=n: collect(ask, n)).memory
    assert len(shares) == 39
    assert min(shares) > 0
    assert memory.n_collections == 9
