"""From fixes to one state per timestamp, as the simulated devices have it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.device import Tracker
from retrasyn.device.tracker import NULL, Numbering, cell_of, numbering_of
from retrasyn.errors import EntropyError
from retrasyn.interpretation import SAFE
from retrasyn.messages import ABSENT, ENTERING, MICRO, MOVING, QUITTING, SPEEDS, Grant, Question
from retrasyn.simulation.population import Identities, SimulatedDevices, Step
from retrasyn.space import Box, Grid, StateSpace
from support.campaigns import manifest_of
from support.feeding import fed

MINUTE = 60_000
CLAMP = manifest_of(side=5, jump="clamp")
SPLIT = manifest_of(side=5, jump="split")


@pytest.mark.parametrize("side", range(1, 13))
@pytest.mark.parametrize("endpoints", [True, False])
def test_states_have_the_numbers_of_the_state_space(side, endpoints):
    states = StateSpace(Grid(Box(0, 0, 1, 1), side), endpoints=endpoints)
    ours = Numbering(side, endpoints=endpoints)
    cells = range(side * side)
    for origin in cells:
        theirs = states.moves(np.full(side * side, origin), np.arange(side * side))
        assert [ours.move(origin, goal) for goal in cells] == theirs.tolist()
        assert ours.enter(origin) == states.enters(origin)
        assert ours.quit(origin) == states.quits(origin)
    assert ours.n_moves == states.n_moves


@pytest.mark.parametrize("side", [1, 2, 5])
def test_a_jump_ends_in_the_neighbour_that_lies_nearest_to_its_goal(side):
    ours = Numbering(side, endpoints=True)

    def apart(one, other):
        rows, columns = np.subtract(divmod(one, side), divmod(other, side))
        return max(abs(rows), abs(columns)), abs(rows) + abs(columns)

    for origin in range(side * side):
        near = [cell for cell in range(side * side) if apart(origin, cell)[0] <= 1]
        for goal in range(side * side):
            assert ours.clamp(origin, goal) == min(near, key=lambda cell: apart(cell, goal)[1])


def test_a_manifest_says_whether_entering_and_quitting_are_states():
    assert numbering_of(manifest_of(side=3)).endpoints
    assert not numbering_of(manifest_of(side=3, n_states=49)).endpoints


@given(
    st.floats(-1, 8, allow_nan=False),
    st.floats(-1, 8, allow_nan=False),
    st.integers(1, 12),
)
def test_a_point_is_in_the_cell_of_the_grid(x, y, side):
    manifest = manifest_of(side=side, box=(100_000, -200_000, 6_300_000, 5 * MICRO))
    grid = Grid(Box(0.1, -0.2, 6.3, 5.0), side)
    theirs, n_outside = grid.locate(np.array([x]), np.array([y]))
    assert cell_of(x, y, manifest) == (None if n_outside else int(theirs[0]))


@pytest.mark.parametrize("side", [1, 3, 7])
def test_every_edge_and_corner_is_in_the_cell_of_the_grid(side):
    manifest = manifest_of(side=side)
    grid = Grid(Box(0, 0, 6, 6), side)
    lines = [6 * k / side for k in range(side + 1)]
    for x in lines:
        for y in lines:
            assert cell_of(x, y, manifest) == grid.cells_of([x], [y])[0]


def test_a_box_may_lie_far_from_the_origin():
    manifest = manifest_of(side=3, box=(2_000_000, -9_000_000, 8_000_000, -3_000_000))
    assert [cell_of(x, y, manifest) for x, y in ((2.1, -8.9), (7.9, -3.1))] == [0, 8]


def centre(cell, side=5):
    row, column = divmod(cell, side)
    return (column + 0.5) * 6 / side, (row + 0.5) * 6 / side


def simulated(manifest, cells):
    """Return the states of one simulated device; a cell of None is absence."""
    identities = Identities.none()
    keys = identities.add_keys(np.array([7], np.uint64), np.array([0]))
    identities.add_streams(keys)
    population = SimulatedDevices(
        identities=identities,
        states=StateSpace(Grid(Box(0, 0, 6, 6), manifest.side)),
        reading=SAFE.answer(jump=manifest.jump),
        gap=4,
        seed=0,
        everybody_reports=False,
    )
    for t, cell in enumerate(cells):
        here = [] if cell is None else [0]
        population.observe(
            Step(t, np.array(here, np.int32), np.array([cell] * len(here), np.uint16))
        )
        roster = population.roster()
        listed = roster.keys.size > 0
        state = population.answers_to(Grant(t=t, epsilon=1, reporters=np.array([0])))[0]
        yield state if listed else NULL, roster.kinds[0] if listed else ABSENT


def tracked(manifest, cells):
    """Return the states of one tracker that sees the same."""
    tracker = Tracker(manifest)
    for t, cell in enumerate(cells):
        if cell is None:
            tracker.stop(t, boot=t * MINUTE)
        else:
            tracker.observe(t, centre(cell), boot=t * MINUTE)
        yield tracker.answer(Question(), t), tracker.kind(t)


walks = st.lists(st.none() | st.integers(0, 24), min_size=1, max_size=30)


@given(walks)
def test_a_tracker_and_a_simulated_device_have_the_same_states(cells):
    assert list(tracked(CLAMP, cells)) == list(simulated(CLAMP, cells))


def test_who_stops_after_a_pause_quits_from_nowhere():
    tracker = Tracker(CLAMP)
    tracker.observe(1, centre(7), boot=MINUTE)
    tracker.stop(3, boot=3 * MINUTE)
    assert (tracker.answer(Question(), 3), tracker.kind(3)) == (NULL, ABSENT)


def test_a_question_is_answered_by_states_of_its_kind_and_of_its_timestamp_only():
    tracker = Tracker(CLAMP)
    tracker.observe(1, centre(0), boot=MINUTE)
    abouts = [Question(about=about) for about in ("move", "enter", "quit", "transition")]
    first = numbering_of(CLAMP).enter(0)
    assert [tracker.answer(about, 1) for about in abouts] == [NULL, 0, NULL, first]
    assert [tracker.answer(about, 2) for about in abouts] == [NULL] * 4
    tracker.stop(2, boot=2 * MINUTE)
    last = numbering_of(CLAMP).quit(0)
    assert [tracker.answer(about, 2) for about in abouts] == [NULL, NULL, 0, last]


def test_an_age_is_counted_from_the_timestamp_of_entering():
    tracker = Tracker(CLAMP)
    for t in range(5, 9):
        tracker.observe(t, centre(0), boot=t * MINUTE)
        found = [tracker.answer(Question(about="older", threshold=n), t) for n in (1, 2, 3)]
        assert found == [0 if t - 4 > n else NULL for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("boot", "kind"), [(MINUTE - 1, ENTERING), (MINUTE, MOVING), (150_000, ENTERING)]
)
def test_a_timestamp_follows_unless_the_boot_clock_went_back_or_too_far(boot, kind):
    tracker = Tracker(CLAMP)
    tracker.observe(1, centre(0), boot=MINUTE)
    tracker.observe(2, centre(0), boot=boot)
    assert tracker.kind(2) == kind


@given(walks)
def test_a_split_jump_is_a_quit_or_an_enter_and_never_both(cells):
    states = numbering_of(SPLIT)
    before = None
    for cell, (ours, kind), (theirs, their_kind) in zip(
        cells, tracked(SPLIT, cells), simulated(SPLIT, cells), strict=True
    ):
        assert kind == their_kind
        jumps = None not in (before, cell) and states.move(before, cell) == NULL
        either = {states.quit(before), states.enter(cell)} if jumps else {ours}
        assert {ours, theirs} <= either
        before = cell


def test_both_sides_of_a_split_jump_come_up():
    states = numbering_of(SPLIT)
    seen = set()
    for heads in (0, 1):
        tracker = Tracker(SPLIT, words=lambda n, heads=heads: bytes([heads]))
        tracker.observe(0, centre(0), boot=0)
        tracker.observe(1, centre(24), boot=MINUTE)
        seen.add(tracker.answer(Question(), 1))
    assert seen == {states.quit(0), states.enter(24)}


def test_without_entropy_a_split_jump_has_no_state():
    tracker = Tracker(SPLIT, words=fed([]))
    tracker.observe(0, centre(0), boot=0)
    with pytest.raises(EntropyError):
        tracker.observe(1, centre(24), boot=MINUTE)


def test_a_jump_without_endpoints_has_nothing_to_say():
    tracker = Tracker(manifest_of(side=5, n_states=169))
    tracker.observe(0, centre(0), boot=0)
    tracker.observe(1, centre(24), boot=MINUTE)
    assert tracker.answer(Question(), 1) == NULL
    assert tracker.kind(1) == MOVING


@pytest.mark.parametrize(
    "fix",
    [None, (7.0, 1.0), (-0.001, 1.0), (1.0, math.inf), (math.nan, 1.0), (1.0, math.nan)],
)
def test_a_device_without_a_place_in_the_box_is_present_and_says_nothing(fix):
    tracker = Tracker(CLAMP)
    tracker.observe(0, centre(3), boot=0)
    tracker.observe(1, fix, boot=MINUTE)
    assert tracker.kind(1) == MOVING, "crossing the border is no stop"
    assert tracker.answer(Question(), 1) == NULL
    tracker.observe(2, centre(3), boot=2 * MINUTE)
    assert tracker.kind(2) == MOVING, "and coming back no start"
    assert tracker.answer(Question(), 2) == NULL
    tracker.observe(3, centre(3), boot=3 * MINUTE)
    assert tracker.answer(Question(), 3) == numbering_of(CLAMP).move(3, 3)


def test_one_that_starts_outside_the_box_starts_all_the_same():
    tracker = Tracker(CLAMP)
    tracker.observe(0, None, boot=0)
    assert (tracker.kind(0), tracker.answer(Question(), 0)) == (ENTERING, NULL)


def test_a_later_fix_of_one_timestamp_replaces_the_earlier():
    tracker = Tracker(CLAMP)
    tracker.observe(0, centre(0), boot=0)
    tracker.observe(1, None, boot=MINUTE)
    tracker.observe(1, centre(1), boot=MINUTE + 5)
    assert tracker.answer(Question(), 1) == numbering_of(CLAMP).move(0, 1)
    assert tracker.sampled(1) == MINUTE + 5


def test_a_fix_that_comes_too_late_for_its_timestamp_is_not_linked_to_the_one_before():
    tracker = Tracker(CLAMP)
    tracker.observe(0, centre(0), boot=0)
    tracker.observe(1, centre(1), boot=MINUTE)
    tracker.observe(1, centre(1), boot=2 * MINUTE)
    assert tracker.kind(1) == MOVING
    assert tracker.answer(Question(), 1) == NULL


def test_a_clock_that_was_set_back_changes_nothing():
    tracker = Tracker(CLAMP)
    tracker.observe(5, centre(0), boot=0)
    tracker.observe(3, centre(9), boot=MINUTE)
    tracker.stop(5, boot=MINUTE)
    assert tracker.kind(5) == ENTERING
    assert tracker.kind(3) == ABSENT
    assert tracker.sampled(3) is None


@pytest.mark.parametrize("boot", [89_999, 90_000, -1])
def test_positions_are_linked_only_if_both_clocks_say_so(boot):
    tracker = Tracker(CLAMP)
    tracker.observe(0, centre(0), boot=0)
    tracker.observe(1, centre(0), boot=boot)
    assert tracker.kind(1) == (MOVING if boot == 89_999 else ENTERING)


def test_stopping_shows_once_and_then_the_device_is_absent():
    tracker = Tracker(CLAMP)
    tracker.observe(0, centre(4), boot=0)
    tracker.stop(1, boot=MINUTE)
    assert tracker.kind(1) == QUITTING
    assert tracker.answer(Question(), 1) == numbering_of(CLAMP).quit(4)
    tracker.observe(1, centre(4), boot=MINUTE)
    assert tracker.kind(1) == QUITTING, "a stop is not taken back within its timestamp"
    tracker.stop(2, boot=2 * MINUTE)
    assert tracker.kind(2) == ABSENT
    assert tracker.answer(Question(), 2) == NULL
    assert tracker.answer(Question(about="present"), 2) == NULL
    tracker.observe(3, centre(4), boot=3 * MINUTE)
    assert tracker.kind(3) == ENTERING


def test_answers_are_counted_from_the_first_one_of_their_question():
    tracker = Tracker(CLAMP)
    tracker.observe(0, centre(7), boot=0)
    assert tracker.answer(Question(about="enter"), 0) == 7
    assert tracker.answer(Question(about="move"), 0) == NULL
    tracker.observe(1, centre(8), boot=MINUTE)
    assert tracker.answer(Question(about="move"), 1) == numbering_of(CLAMP).move(7, 8)
    assert tracker.answer(Question(about="quit"), 1) == NULL
    tracker.stop(2, boot=2 * MINUTE)
    assert tracker.answer(Question(about="quit"), 2) == 8


def test_the_cell_told_is_the_true_one_and_nothing_outside_the_box_or_after_a_stop():
    cell, tracker = Question(about="cell"), Tracker(CLAMP)
    said = []
    for t, fix in enumerate([centre(7), centre(0), None, (99.0, 99.0), centre(8)]):
        tracker.observe(t, fix, boot=t * MINUTE)
        said.append(tracker.answer(cell, t))
    assert said == [7, 0, NULL, NULL, 8], "an entrant's too, and after a jump"
    assert tracker.answer(cell, 3) == tracker.answer(cell, 5) == NULL
    tracker.stop(5, boot=5 * MINUTE)
    assert tracker.answer(cell, 5) == NULL


FASTER = {
    "strata": ("transition", "faster"),
    "other_shares": (50_000,),
    "speeds": SPEEDS,
    "public_map": bytes(32),
}


def faster_than(tracker, t):
    """Return the thresholds beyond which a device says that it moved."""
    asked = {n: Question(about="faster", threshold=n) for n in SPEEDS}
    return [n for n, question in asked.items() if tracker.answer(question, t) == 0]


@pytest.mark.parametrize("box", [(5, 0, 6, 10), (0, 5, 10, 6)])
def test_how_far_a_device_moved_is_measured_by_the_longer_side_of_the_box(box):
    tracker = Tracker(manifest_of(box=tuple(MICRO * corner for corner in box), **FASTER))
    told, place = [], [5.5, 5.5]
    for t, way in enumerate([0.0, 0.02, 0.045, 0.3, 1.0]):
        place[box.index(0)] = way
        tracker.observe(t, tuple(place), boot=t * MINUTE)
        told.append(faster_than(tracker, t))
    assert told == [[], [], [2], [2, 3, 5, 8, 13, 20], list(SPEEDS)], "of 10"


def test_how_far_a_device_moved_does_not_depend_on_where_the_box_lies():
    corners = (200, 100, 201, 110), (100, 200, 110, 201)
    for x0, y0, x1, y1 in corners:
        box = tuple(MICRO * corner for corner in (x0, y0, x1, y1))
        tracker = Tracker(manifest_of(box=box, **FASTER))
        tracker.observe(0, (x0 + 0.1, y0 + 0.1), boot=0)
        tracker.observe(1, (x0 + 0.4, y0 + 0.1), boot=MINUTE)
        assert faster_than(tracker, 1) == [2, 3, 5, 8, 13, 20], "of 10"


@pytest.mark.parametrize("lost", [None, (99.0, 99.0)])
def test_without_two_places_in_the_box_a_device_says_it_did_not_move(lost):
    tracker, told = Tracker(manifest_of(**FASTER)), []
    for t, fix in enumerate([(1.0, 1.0), lost, (5.0, 5.0), (1.0, 1.0)]):
        tracker.observe(t, fix, boot=t * MINUTE)
        told.append(faster_than(tracker, t))
    assert told == [[], [], [], list(SPEEDS)]
    assert faster_than(tracker, 4) == []
    tracker.stop(4, boot=4 * MINUTE)
    assert faster_than(tracker, 4) == []
    tracker.observe(5, (5.0, 5.0), boot=5 * MINUTE)
    assert faster_than(tracker, 5) == [], "a new start"


def test_a_later_fix_of_one_timestamp_is_the_place_that_a_device_moved_to():
    tracker = Tracker(manifest_of(**FASTER))
    tracker.observe(0, (1.0, 1.0), boot=0)
    for fix, told in ((None, []), ((5.0, 5.0), list(SPEEDS)), ((1.0, 1.05), [2, 3, 5, 8])):
        tracker.observe(1, fix, boot=MINUTE)
        assert faster_than(tracker, 1) == told
    tracker.observe(2, (1.0, 1.05), boot=2 * MINUTE)
    assert faster_than(tracker, 2) == [], "from the last place of the timestamp before"


def test_places_that_only_their_numbers_put_side_by_side_are_no_distance():
    tracker = Tracker(manifest_of(**FASTER))
    tracker.observe(0, (1.0, 1.0), boot=0)
    tracker.observe(1, (5.0, 5.0), boot=MINUTE)
    assert faster_than(tracker, 1) == list(SPEEDS)
    tracker.observe(1, (5.0, 5.0), boot=2 * MINUTE)
    assert faster_than(tracker, 1) == [], "it came too late for its timestamp"
    tracker.observe(2, (1.0, 1.0), boot=9 * MINUTE)
    assert faster_than(tracker, 2) == []


places = st.none() | st.tuples(st.floats(0, 6), st.floats(0, 6))


@given(st.lists(places, min_size=1, max_size=20))
def test_a_tracker_and_a_simulated_device_moved_as_far(path):
    tracker, identities = Tracker(manifest_of(**FASTER)), Identities.none()
    identities.add_streams(identities.add_keys(np.array([7], np.uint64), np.array([0])))
    grid, before = Grid(Box(0, 0, 6, 6), 3), None
    simulated = SimulatedDevices(
        identities, StateSpace(grid), SAFE.answer(jump="split"), 4, 0, everybody_reports=False
    )
    for t, fix in enumerate(path):
        moved = np.float32(-1.0 if None in (fix, before) else math.dist(before, fix))
        here = [] if fix is None else [0]
        cells = grid.cells_of(*zip(*[fix] * len(here), strict=True)) if here else []
        simulated.observe(
            Step(t, np.array(here, np.int32), np.array(cells, np.uint16), moved[None][: len(here)])
        )
        if fix is None:
            tracker.stop(t, boot=t * MINUTE)
        else:
            tracker.observe(t, fix, boot=t * MINUTE)
        for threshold in SPEEDS:
            asked, least = Question(about="faster", threshold=threshold), threshold / 1000 * 6
            if abs(moved - least) > 1e-5:  # a simulated distance has 24 bits
                grant = Grant(t=t, epsilon=1, reporters=np.array([0]), question=asked)
                assert tracker.answer(asked, t) == simulated.answers_to(grant)[0]
        before = fix


def test_a_device_keeps_no_place_unless_it_may_be_asked_how_far_it_moved():
    for strata, kept in (({}, [None, None]), (FASTER, [(1.0, 1.0), (2.0, 2.0)])):
        tracker = Tracker(manifest_of(**strata))
        tracker.observe(0, (1.0, 1.0), boot=0)
        tracker.observe(1, (2.0, 2.0), boot=MINUTE)
        assert [tracker._place_before, tracker._place] == kept
        tracker.stop(2, boot=2 * MINUTE)
        assert [tracker._place_before, tracker._place] == [None, None]


def test_ages_count_from_the_first_timestamp_of_sharing():
    tracker = Tracker(CLAMP)
    older = Question(about="older", threshold=2)
    said = []
    for t in range(4):
        tracker.observe(t, None, boot=t * MINUTE)
        said.append(tracker.answer(older, t))
    assert said == [NULL, NULL, 0, 0], "the age at entry is 1"
    assert tracker.answer(Question(about="present"), 3) == 0
    assert tracker.answer(older, 99) == NULL


@pytest.mark.parametrize("manifest", [CLAMP, manifest_of(**FASTER)])
def test_a_tracker_never_shows_where_it_is(manifest):
    tracker = Tracker(manifest)
    tracker.observe(0, (1.2345, 2.3456), boot=0)
    tracker.observe(1, (1.2345, 2.3456), boot=MINUTE)
    assert "1.2345" not in repr(tracker)
    assert "_cell" not in repr(tracker)
