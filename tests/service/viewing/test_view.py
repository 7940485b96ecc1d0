"""What was needed lately is at hand, and no more than there is room for."""

import threading

import numpy as np

from retrasyn.service.viewing.view import CachedSource, LruCache
from support.recording import crowd


def test_a_map_that_plays_reads_every_timestamp_once():
    source = crowd(0, range(10))
    view = CachedSource(source)
    for t in range(10):
        assert view.frame(t, 100) is view.frame(t, 100)
    assert source.n_reads == 10


def test_what_was_used_longest_ago_goes_first():
    kept = LruCache(10, size=len)
    for key in ("a", "b", "c"):
        kept.get(key, lambda: bytes(4))
    assert kept.keys() == ["b", "c"]
    kept.get("b", lambda: None)
    kept.get("d", lambda: bytes(4))
    assert kept.keys() == ["b", "d"]


def test_what_is_larger_than_all_room_or_nothing_is_not_remembered():
    kept = LruCache(10, size=len)
    assert kept.get("large", lambda: bytes(11)) == bytes(11)
    assert kept.get("none", lambda: None) is None
    assert kept.keys() == []


def test_threads_share_what_is_remembered():
    kept, dice = LruCache(1000, size=len), np.random.default_rng(0)
    asked = dice.integers(1, 60, (8, 500)).tolist()
    wrong = []

    def ask(numbers):
        wrong.extend(n for n in numbers if kept.get(n, lambda n=n: bytes(n)) != bytes(n))

    threads = [threading.Thread(target=ask, args=(numbers,)) for numbers in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert kept._used == sum(kept.keys()) <= 1000
