"""I7: mutated requests, none of which is a fault of the server's or changes anything."""

import hashlib
import random
import socket
from collections import Counter

import pytest

from support.enrolling import asking
from support.living import living
from support.mutants import mutant, mutate, originals, send_all
from support.stores import n_tokens

pytestmark = pytest.mark.system

QUICK = {"header_seconds": 0.5, "body_seconds": 0.5, "allowed_hosts": "a"}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A service in whose first round eight devices have said all they will say."""
    with living(tmp_path_factory.mktemp("target") / "folder", **QUICK) as live:
        (token,) = live.run(live.service.runtime.devices.mint(1))
        asked = asking(live.service.runtime.campaign, token)
        assert live.tell("POST", "/v1/enrolments", asked).status == 200
        live.devices = live.enrol(20)
        live.open_round(0)
        live.right = originals(live, token)
        for request in live.right:
            if request.path == "/v1/reports":
                assert live.send(request.body) == "accepted"
        yield live


def state(live):
    """Return all that a request could have changed."""

    async def stored():
        run, store = live.service.runtime.write_queue.run, live.service.runtime.store
        blobs = await run(store.frames, 0)
        accepted = live.service.runtime.admission.accepted(0)
        return (
            hashlib.sha256(b"".join(blobs)).hexdigest(),
            {
                code: (bits.tobytes(), keys.tolist())
                for code, (bits, keys) in accepted.answers.items()
            },
            {code: bits.sum(axis=0).tolist() for code, (bits, _) in accepted.answers.items()},
            (accepted.kinds.tolist(), accepted.keys.tolist(), accepted.marks),
            await run(n_tokens, store),
            await run(store.n_ever_enrolled),
            live.service.runtime.devices.n,
            live.service.runtime.admission.n_devices,
        )

    return live.run(stored())


def test_the_state_that_is_compared_shows_a_single_report(target):
    before = state(target)
    assert [len(part) for part in before[1].values()] == [2]
    assert target.send(target.report(target.devices[19], 0)) == "accepted"
    changed = [old != new for old, new in zip(before, state(target), strict=True)]
    assert changed == [True, True, True, True, False, False, False, False]


def mutants(live, n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        yield mutant(rng, rng.choice(live.right)).wire()


def check(live, n, seed):
    before = state(live)
    statuses = send_all(live.address, mutants(live, n, seed))
    assert sum(statuses.values()) > 0.9 * n
    assert not [status for status in statuses if status >= 500], statuses
    assert state(live) == before
    assert live.ask("GET", "/readyz").status == 200
    return statuses


def test_thousands_of_mutated_requests_change_nothing_and_break_nothing(target):
    statuses = check(target, 6000, seed=1)
    assert {200, 401, 404, 405, 422} <= statuses.keys()


@pytest.mark.long
def test_a_million_mutated_requests_change_nothing_and_break_nothing(target):
    total = Counter()
    for seed in range(10):
        total += check(target, 100_000, seed=100 + seed)
    assert sum(total.values()) > 900_000


def test_bytes_that_are_hardly_http_change_nothing_and_break_nothing(target):
    rng = random.Random(2)
    before = state(target)
    statuses = Counter()
    for _ in range(300):
        sent = mutate(rng, rng.choice(target.right).wire())
        with target.connect() as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1 << 16)
            statuses[answer[9:12]] += 1
    assert not [status for status in statuses if status.startswith(b"5")], statuses
    assert state(target) == before
