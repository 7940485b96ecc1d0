"""A worker on another machine: questions answered once, saves, and what a loss leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.engines import host as hosts
from retrasyn.engines.base import LocalEngine, Workers, total
from retrasyn.engines.host import Host
from retrasyn.errors import CheckpointError
from support.adder import Adder


def host_in(folder):
    return Host.open(Adder, 0, 1, str(folder))


def eager(host):
    """Let a host save after every question."""
    host._last_save = -1.0
    return host


def test_a_question_asked_twice_is_answered_once(tmp_path):
    host = host_in(tmp_path)
    assert host.ask(1, "add", 5)[0] == 5
    assert host.ask(1, "add", 5)[0] == 5
    assert host.ask(2, "add", 5)[0] == 10


@pytest.mark.parametrize("number", [0, 2, 7])
def test_a_host_that_lost_its_state_says_so_instead_of_beginning_from_nothing(tmp_path, number):
    with pytest.raises(CheckpointError, match="what it held is lost"):
        host_in(tmp_path).ask(number + (number == 0) * 3, "add", 5)


def test_a_host_goes_on_from_what_it_saved(tmp_path):
    host = host_in(tmp_path)
    for number in (1, 2, 3):
        eager(host).ask(number, "add", number)
    again = host_in(tmp_path)
    assert again.restore(4) == 3
    assert again.ask(4, "add", 0)[0] == 6


def test_the_newest_saves_are_kept(tmp_path):
    host = host_in(tmp_path)
    for number in range(1, 6):
        _, saved = eager(host).ask(number, "add", 1)
    assert saved == [4, 5]
    assert len(list(tmp_path.iterdir())) == hosts.KEPT


def test_a_save_that_holds_an_answer_nobody_got_is_passed_over_and_removed(tmp_path):
    host = host_in(tmp_path)
    for number in (1, 2):
        eager(host).ask(number, "add", 1)
    again = host_in(tmp_path)
    assert again.restore(2) == 1
    assert again.saves.numbers() == [1]
    assert again.ask(2, "add", 1)[0] == 2


def test_a_damaged_save_is_passed_over(tmp_path):
    host = host_in(tmp_path)
    for number in (1, 2):
        eager(host).ask(number, "add", 1)
    newest = max(tmp_path.iterdir())
    newest.write_bytes(newest.read_bytes()[:-30])
    assert host_in(tmp_path).restore(9) == 1


def test_nothing_is_saved_while_something_is_half_done(tmp_path):
    host = host_in(tmp_path)
    eager(host).ask(1, "begin_half")
    assert eager(host).ask(2, "add", 1)[1] == []
    assert eager(host).ask(3, "end_half")[1] == [3]


def test_saving_takes_a_small_part_of_the_time(tmp_path, monkeypatch):
    clock = iter(float(second) for second in range(10_000))  # a second for everything
    monkeypatch.setattr(hosts.time, "perf_counter", lambda: next(clock))
    host = host_in(tmp_path)
    n_saved = 0
    for number in range(1, 211):
        before = host.saves.numbers()
        n_saved += host.ask(number, "add", 1)[1] != before
    assert n_saved == 10


@given(st.lists(st.integers(-9, 9), max_size=30), st.integers(1, 5), st.data())
def test_a_host_lost_anywhere_ends_up_with_the_same_sum(tmp_path_factory, numbers, every, data):
    folder = tmp_path_factory.mktemp("saves")
    host, asked, answers = host_in(folder), [], []
    for number, value in enumerate(numbers, start=1):
        asked.append(value)
        host._last_save = -1.0 if number % every == 0 else 1e9
        answers.append(host.ask(number, "add", value)[0])
        if data.draw(st.booleans()):
            host = host_in(folder)
            restored = host.restore(number + data.draw(st.integers(0, 1)))
            for later in range(restored + 1, number + 1):
                assert host.ask(later, "add", asked[later - 1])[0] == answers[later - 1]
    assert answers == [sum(numbers[: k + 1]) for k in range(len(numbers))]


def test_a_local_engine_asks_all_or_takes_turns():
    engine = LocalEngine(3)
    adders = Workers.open(engine, Adder)
    assert adders.each(Adder.add, 2) == [2, 2, 2]
    assert adders.spread(Adder.add, [(1,), (2,), (3,), (4,)]) == [3, 4, 5, 7]
    assert [worker.index for worker in engine.workers] == [0, 1, 2]
    engine.close()
    assert engine.workers == []


def test_whole_numbers_of_workers_add_up():
    import numpy as np

    assert total([np.array([1, 2]), np.array([3, 4]), np.array([0, 1])]).tolist() == [4, 7]
