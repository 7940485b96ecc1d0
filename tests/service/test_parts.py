"""The small parts of the service, each by itself."""

import asyncio
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data.reading_files import read
from retrasyn.errors import StoreError
from retrasyn.messages import ENTERING, MOVING, QUITTING, Aggregate, Flags, Question
from retrasyn.service.campaign_folder import choose
from retrasyn.service.enrolment import Presence, RoundHeartbeats
from retrasyn.service.folded_round import FoldedRound, from_bytes, to_bytes
from retrasyn.service.releases import Releases
from retrasyn.service.scheduler import rehearse
from retrasyn.service.secrets import Secrets
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.service.viewing.source import Feed
from retrasyn.simulation.rounds import Answers, Folded
from support.campaigns import manifest_of
from support.crowd import Crowd, SetClock, finish, play, settings_in

numbers = st.integers(0, 2**32 - 1)


@st.composite
def folded_rounds(draw):
    """Return any folded round of a manifest with ages."""
    questions = [Question(), *(Question(about="older", threshold=age) for age in (2, 6))]
    answers = {}
    for question in draw(st.lists(st.sampled_from(questions), unique=True)):
        n = draw(st.integers(0, 4))
        keys = sorted(draw(st.lists(numbers, min_size=n, max_size=n, unique=True)))
        size = 1 if question.binary else manifest_of().n_states
        counts = draw(st.lists(st.integers(0, n), min_size=size, max_size=size))
        answers[question] = Answers(
            aggregate=Aggregate(counts=np.array(counts, np.int64), n=n),
            keys=np.array(keys, np.int64),
        )
    flags = None
    if draw(st.booleans()):
        ages = draw(st.lists(st.integers(1, 99), max_size=4))
        flags = Flags(n_entering=draw(st.integers(0, 9)), ages_of_quitters=np.array(ages, np.int64))
    changed = sorted(draw(st.lists(numbers, max_size=4, unique=True)))
    kinds = draw(st.lists(st.integers(0, 2), min_size=len(changed), max_size=len(changed)))
    return FoldedRound(
        folded=Folded(
            t=draw(st.integers(0, 2**31)),
            epsilon=draw(numbers),
            size=draw(numbers),
            n_enrolled=draw(numbers),
            answers=answers,
            flags=flags,
        ),
        n_ever=draw(numbers),
        changes=RoundHeartbeats(np.array(changed, np.int64), np.array(kinds, np.uint8)),
        alarms=tuple(draw(st.lists(st.sampled_from(["move/weights", "transition/bits"])))),
    )


@given(folded_rounds(), st.data())
def test_a_folded_round_is_read_back_as_it_was_and_never_from_other_bytes(round_, chance):
    manifest = manifest_of(strata=("transition", "older"), ages=(2, 6))
    body = to_bytes(round_, manifest)
    again = from_bytes(body, manifest)
    assert to_bytes(again, manifest) == body
    assert again.digest(manifest) == round_.digest(manifest)
    assert set(again.folded.answers) == set(round_.folded.answers)
    for question, found in round_.folded.answers.items():
        assert again.folded.answers[question].keys.tolist() == found.keys.tolist()
    cut = body[: chance.draw(st.integers(0, len(body) - 1))]
    with pytest.raises(StoreError, match="damaged"):
        from_bytes(cut, manifest)


def test_the_digest_is_of_the_sums_and_nothing_else():
    manifest = manifest_of()
    counts = np.arange(manifest.n_states)
    answers = {
        Question(): Answers(
            aggregate=Aggregate(counts=counts, n=2), keys=np.array([4, 9], np.int64)
        )
    }
    folded = Folded(t=3, epsilon=5, size=2, n_enrolled=9, answers=answers)
    one = FoldedRound(folded=folded, n_ever=9, changes=RoundHeartbeats.nothing(), alarms=())
    later = dataclasses.replace(one, folded=dataclasses.replace(folded, t=4, size=7))
    more = {
        Question(): Answers(
            aggregate=Aggregate(counts=counts + 1, n=2), keys=np.array([4, 9], np.int64)
        )
    }
    other = dataclasses.replace(one, folded=dataclasses.replace(folded, answers=more))
    assert one.digest(()) == later.digest(())
    assert one.digest(()) != other.digest(())


kinds = st.dictionaries(st.integers(0, 6), st.sampled_from([ENTERING, MOVING, QUITTING]))


@given(st.lists(kinds, max_size=12))
def test_changes_alone_tell_as_much_about_presence_as_all_heartbeats(rounds):
    whole, brief, plain = Presence(), Presence(), {}
    for t, told in enumerate(rounds):
        keys = sorted(told)
        heard = RoundHeartbeats(
            np.array(keys, np.int64), np.array([told[k] for k in keys], np.uint8)
        )
        expected = [t - plain[k] if k in plain else 1 for k in keys if told[k] == QUITTING]
        assert whole.flags(t, heard).ages_of_quitters.tolist() == expected
        assert brief.flags(t, heard).ages_of_quitters.tolist() == expected
        brief.follow(t, brief.changes(heard))
        whole.follow(t, heard)
        for key in keys:
            if told[key] == QUITTING:
                plain.pop(key, None)
            elif told[key] == ENTERING:
                plain[key] = t
            else:
                plain.setdefault(key, t)
        n = max(whole.entered.size, brief.entered.size)
        same = [
            np.pad(p.entered, (0, n - p.entered.size), constant_values=-1) for p in (whole, brief)
        ]
        assert np.array_equal(*same)


def test_the_feed_resumes_where_a_reader_was_and_ends_with_the_service():
    kept = {}

    def read(after, limit):
        return [(t, {"t": t}) for t in sorted(kept) if t > after][:limit]

    async def run():
        feed = Feed(read)
        for t in range(5):
            kept[t] = True
            feed.publish(t)
        seen, live = [], []

        async def follow(after, into):
            async for t, summary in feed.subscribe(after):
                assert summary == {"t": t}
                into.append(t)

        readers = [asyncio.create_task(follow(2, seen)), asyncio.create_task(follow(None, live))]
        await asyncio.sleep(0)
        for t in (5, 6):
            kept[t] = True
            feed.publish(t)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        feed.close()
        await asyncio.gather(*readers)
        return seen, live

    seen, live = asyncio.run(asyncio.wait_for(run(), 10))
    assert seen == [3, 4, 5, 6]
    assert live == [5, 6]


@pytest.mark.parametrize("method", ["steered", "steered-flags", "steered-hidden", "retrasyn-b"])
@pytest.mark.parametrize("changes", [{"grid": "1"}, {"oracle": "grr"}, {"oracle": "olh"}], ids=str)
def test_a_rehearsal_leaves_nothing_behind(method, changes, tmp_path):
    secrets = Secrets.open(tmp_path / "service")
    settings = Settings.load(None, {"method": method, "window": "1", **changes})
    campaign = choose(settings, secrets, 0.0).campaign
    before = sorted(path.name for path in tmp_path.rglob("*"))
    rehearse(campaign)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert campaign.make_curator().state.t is None
    secrets.close()


def test_releases_are_found_by_time_and_what_is_not_there_is_none(tmp_path):
    async def run():
        service = Service(settings_in(tmp_path / "service"), SetClock())
        await service.start(runs=False)
        crowd = await Crowd.enrol(service, 8, rounds=5, share=1.0)
        await play(service, crowd, 5)
        await finish(service)
        await service.stop()
        return service.runtime.releases

    releases = asyncio.run(run())
    assert [s["t"] for s in releases.summaries(1, 3, 9)] == [1, 2, 3]
    assert [s["t"] for s in releases.summaries(None, None, 2)] == [3, 4]
    assert releases.summaries(7, None, 9) == releases.summaries(None, None, 0) == []
    assert "cells" not in releases.summaries(0, 0, 1)[0]
    assert sum(releases.summary(2)["cells"]) == 8
    assert releases.summary(9) is releases.receipt(9) is None
    assert releases.receipt() == releases.receipt(4)
    assert releases.metadata().clock.period == 10.0
    for t in range(1, 4):
        alone, at = read(releases.path(t)), releases.points_at(t)
        assert (alone.first_t, alone.last_t, releases.n_points(t)) == (t, t, 8)
        assert at.ids.tolist() == alone.traj_id.tolist()
        assert [part.tolist() for part in releases.places_at(t)] == [at.x.tolist(), at.y.tolist()]
        cells = releases.grid.cells_of(at.x, at.y)
        assert np.bincount(cells, minlength=9).tolist() == releases.summary(t)["cells"]
    assert (releases.oldest, releases.newest, releases.has(4), releases.has(5)) == (
        0,
        4,
        True,
        False,
    )
    assert releases.points_at(9) is releases.places_at(9) is None
    releases.path(4).write_bytes(b"PAR1 cut short")
    assert releases.points_at(4) is releases.places_at(4) is None
    again = Releases.open(releases.folder, releases.campaign)
    assert again.timestamps == releases.timestamps
    assert again.summary(2) == releases.summary(2)
    assert [t for t, _ in again.after(1, 2)] == [2, 3]
    assert again.n_points(9) == 0
