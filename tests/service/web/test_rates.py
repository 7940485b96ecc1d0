"""Token buckets per address."""

import pytest

from retrasyn.service.web import front
from retrasyn.service.web.front import Rates, bucket_of


class Hand:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_rate_of_nothing_is_no_limit():
    assert not any(Rates(0, 1).wait("192.0.2.1") for _ in range(1000))


def test_a_bucket_fills_up_to_its_burst_and_no_further():
    clock = Hand()
    limited = Rates(2, 3, clock)
    assert [limited.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now = 1000
    assert [limited.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_addresses_do_not_share_but_a_network_of_64_bits_does():
    limited = Rates(1, 1, Hand())
    assert limited.wait("192.0.2.1") == 0
    assert limited.wait("192.0.2.2") == 0
    assert limited.wait("[2001:db8::1]") == 0
    assert limited.wait("[2001:db8::2]") > 0
    assert limited.wait("[2001:db8:0:1::2]") == 0


def test_whoever_asks_too_fast_does_not_wait_longer_for_asking():
    clock = Hand()
    limited = Rates(1, 1, clock)
    limited.wait("a")
    for _ in range(10):
        assert limited.wait("a") == 1
    clock.now = 1
    assert limited.wait("a") == 0


def test_the_table_of_addresses_is_bounded(monkeypatch):
    monkeypatch.setattr(front, "MAX_ADDRESSES", 50)
    limited = Rates(1, 1, Hand())
    for number in range(500):
        limited.wait(str(number))
    assert len(limited._known) == 50


@pytest.mark.parametrize("address", ["", "x", "::ffff:192.0.2.1", "not:an:address"])
def test_odd_addresses_have_a_bucket_of_their_own(address):
    assert bucket_of(address) == address
