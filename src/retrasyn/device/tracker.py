"""Turns fixes into one state per timestamp, in plain integers."""

import math
from dataclasses import dataclass, field

from retrasyn.device.ledger import MILLI
from retrasyn.messages import ABSENT, ENTERING, MICRO, MOVING, QUITTING, Manifest, Question
from retrasyn.randomness.words import Words, draw, system_bytes

NULL = -1


@dataclass(frozen=True, slots=True)
class Numbering:
    """The states of a grid with `side` cells a side, with or without entering and quitting.

    >>> states = Numbering(6, endpoints=True)
    >>> states.move(0, 7), states.move(0, 14), states.enter(0), states.quit(35)
    (3, -1, 256, 327)
    """

    side: int
    endpoints: bool

    @property
    def n_moves(self) -> int:
        """Number of reachable moves, staying included."""
        return (3 * self.side - 2) ** 2

    def move(self, origin: int, destination: int) -> int:
        """Return the state of a move, or NULL where the destination is not a neighbour."""
        row, column = divmod(origin, self.side)
        row_to, column_to = divmod(destination, self.side)
        if abs(row_to - row) > 1 or abs(column_to - column) > 1:
            return NULL
        before = _before(row) * (3 * self.side - 2) + self._around(row) * _before(column)
        down, right = row_to - max(row - 1, 0), column_to - max(column - 1, 0)
        return before + down * self._around(column) + right

    def clamp(self, origin: int, destination: int) -> int:
        """Return the neighbour of the origin that lies nearest to a destination."""
        row, column = divmod(origin, self.side)
        row_to, column_to = divmod(destination, self.side)
        near_row = min(max(row_to, row - 1), row + 1)
        near_column = min(max(column_to, column - 1), column + 1)
        return near_row * self.side + near_column

    def enter(self, cell: int) -> int:
        """Return the state of entering in a cell, or NULL where that is none."""
        return self.n_moves + cell if self.endpoints else NULL

    def quit(self, cell: int) -> int:
        """Return the state of quitting from a cell, or NULL where that is none."""
        return self.n_moves + self.side**2 + cell if self.endpoints else NULL

    def _around(self, line: int) -> int:
        """Return how many lines are at most one step away from a row or column, itself included."""
        return min(line + 1, self.side - 1) - max(line - 1, 0) + 1


def _before(line: int) -> int:
    """Return the sum of `_around` over all lines before one."""
    return max(3 * line - 1, 0)


def numbering_of(manifest: Manifest) -> Numbering:
    """Return the numbering of a manifest's states."""
    return Numbering(manifest.side, endpoints=manifest.n_states > (3 * manifest.side - 2) ** 2)


def cell_of(x: float, y: float, manifest: Manifest) -> int | None:
    """Return the cell of a point, None where it is outside the box or no point at all."""
    x0, y0, x1, y1 = (corner / MICRO for corner in manifest.box)
    if not (x0 <= x <= x1 and y0 <= y <= y1):  # false for NaN, too
        return None
    side = manifest.side
    column = min((x - x0) / (x1 - x0) * side, side - 1.0)
    row = min((y - y0) / (y1 - y0) * side, side - 1.0)
    return int(row) * side + int(column)


Fix = tuple[float, float]
_NEVER = -2


@dataclass(slots=True)
class Tracker:
    """The last two cells of a device, and where it is asked how far it moved, the last two places.

    It keeps no more, and nothing of it is written to disk.

    Call `observe` once per timestamp while the owner shares, at an instant that does not depend on
    whether there is a fix, and `stop` at the first timestamp at which sharing has ended (at every
    one, where presence is hidden). Both note what the boot-time clock shows, in milliseconds.
    """

    manifest: Manifest
    words: Words = field(default=system_bytes, repr=False)
    _t: int = field(default=_NEVER, repr=False)
    _boot: int = field(default=0, repr=False)
    _boot_before: int = field(default=0, repr=False)
    _kind: int = field(default=ABSENT, repr=False)
    _entered: int = field(default=_NEVER, repr=False)
    _before: int | None = field(default=None, repr=False)  # cell at the timestamp before
    _cell: int | None = field(default=None, repr=False)
    _state: int = field(default=NULL, repr=False)
    _place_before: Fix | None = field(default=None, repr=False)
    _place: Fix | None = field(default=None, repr=False)

    def observe(self, t: int, fix: Fix | None, *, boot: int) -> None:
        """Take the position of timestamp t, or note that there is none.

        A timestamp may be observed again, and then the later fix counts; one that lies before the
        last is ignored: a clock was set back, and what was reported stays so.
        """
        if t < self._t or (t == self._t and self._kind == QUITTING):
            return
        if t > self._t:
            follows = self._follows(t, boot)
            self._before = self._cell if follows else None
            self._place_before = self._place if follows else None
            self._kind = MOVING if follows else ENTERING
            self._entered = self._entered if follows else t
            self._boot_before = self._boot
        elif not self._near(self._boot_before, boot):
            self._before = self._place_before = None
        self._t, self._boot = t, boot
        self._cell = None if fix is None else cell_of(*fix, self.manifest)
        asked = "faster" in self.manifest.strata and self._cell is not None
        self._place = fix if asked else None
        self._state = self._state_now()

    def stop(self, t: int, *, boot: int) -> None:
        """Note that the owner does not share any more at t."""
        if t <= self._t:
            return
        states = numbering_of(self.manifest)
        follows = self._follows(t, boot)
        last = self._cell if follows else None
        self._state = NULL if last is None else states.quit(last)
        self._kind = QUITTING if follows else ABSENT
        self._t, self._boot, self._before, self._cell = t, boot, last, None
        self._place_before = self._place = None

    def kind(self, t: int) -> int:
        """Return whether the device enters, moves, quits or is absent: presence, never place."""
        return self._kind if t == self._t else ABSENT

    def sampled(self, t: int) -> int | None:
        """Return what the boot-time clock showed when the position of t was taken."""
        return self._boot if t == self._t else None

    def answer(self, question: Question, t: int) -> int:
        """Return the true answer at t, counted from the first one the question knows; or NULL."""
        present = self.kind(t) in (ENTERING, MOVING)
        match question.about:
            case "present":
                return 0 if present else NULL
            case "older":
                return 0 if present and t - self._entered + 1 > question.threshold else NULL
            case "cell":
                return self._cell if present and self._cell is not None else NULL
            case "faster":
                return 0 if present and self._moved_beyond(question.threshold) else NULL
        state = self._state if t == self._t else NULL
        n_moves, n_cells = numbering_of(self.manifest).n_moves, self.manifest.side**2
        first, last = {
            "move": (0, n_moves),
            "enter": (n_moves, n_moves + n_cells),
            "quit": (n_moves + n_cells, n_moves + 2 * n_cells),
        }.get(question.about, (0, n_moves + 2 * n_cells))
        return state - first if first <= state < last else NULL

    def _moved_beyond(self, threshold: int) -> bool:
        """Tell whether the last two places are farther apart than thousandths of the box.

        Of the longer side, as a straight line; false where there are no two places in the box.
        """
        if self._place is None or self._place_before is None:
            return False
        x0, y0, x1, y1 = (corner / MICRO for corner in self.manifest.box)
        least = threshold / 1000 * max(x1 - x0, y1 - y0)
        return math.dist(self._place_before, self._place) > least

    def _follows(self, t: int, boot: int) -> bool:
        """Tell whether t comes straight after the last timestamp, by both clocks.

        A wall clock that is set back or forth makes far positions look like neighbours in time.
        """
        moves_on = t == self._t + 1 and self._kind in (ENTERING, MOVING)
        return moves_on and self._near(self._boot, boot)

    def _near(self, earlier: int, later: int) -> bool:
        """Tell whether two positions were taken one period apart, to the nearest."""
        return 0 <= 2 * (later - earlier) < 3 * self.manifest.period * MILLI

    def _state_now(self) -> int:
        """Return the state of an observed timestamp from its last two cells."""
        states = numbering_of(self.manifest)
        if self._cell is None:
            return NULL
        if self._kind == ENTERING:
            return states.enter(self._cell)
        if self._before is None:
            return NULL
        move = states.move(self._before, self._cell)
        if move != NULL:
            return move
        if self.manifest.jump == "clamp":
            return states.move(self._before, states.clamp(self._before, self._cell))
        heads = draw(self.words, 1)[0] & 1  # one of the two, never both
        return states.enter(self._cell) if heads else states.quit(self._before)
