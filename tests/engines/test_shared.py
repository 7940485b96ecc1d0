"""An engine that several users share holds a worker of each, and saves them together."""

from retrasyn.engines.base import LocalEngine, Workers
from retrasyn.engines.shared import shares_of
from support.adder import Adder


def shared(n_workers, n_users):
    engine = LocalEngine(n_workers, n_threads=1)
    return engine, [Workers.open(share, Adder) for share in shares_of(engine, n_users)]


def test_every_user_has_workers_of_its_own():
    engine, (first, second) = shared(2, 2)
    assert first.each(Adder.add, 5) == [5, 5]
    assert second.each(Adder.add, 1) == [1, 1]
    assert first.spread(Adder.add, [(1,), (2,), (3,)]) == [6, 7, 9]
    share = first.engine
    assert (share.n_workers, share.n_threads) == (engine.n_workers, engine.n_threads) == (2, 1)


def test_workers_are_saved_with_those_of_all_users_and_only_when_all_are_whole():
    engine, users = shared(1, 12)  # more than nine: numbers of two digits
    for number, user in enumerate(users):
        user.each(Adder.add, number)
    group, other = engine.workers[0], shared(1, 12)[0].workers[0]
    users[3].each(Adder.begin_half)
    assert not group.whole
    users[3].each(Adder.end_half)
    assert group.whole
    other.load_arrays(group.to_arrays())
    assert [member.total for member in other.members] == list(range(12))


def test_closing_drops_the_workers_of_all():
    engine, (first, _) = shared(1, 2)
    first.engine.close()
    assert engine.workers == []
