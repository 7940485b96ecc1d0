"""The list of survivors is about code that is still there, and gives a reason for each."""

from collections import Counter
from pathlib import Path

from mutation.run import read_listed

SRC = Path(__file__).parents[2] / "src"


def file_of(place):
    """Return the file of a module or of something in it."""
    *parents, _ = Path(*place.split(".")).parents
    return next(
        path for path in (SRC / parent.with_suffix(".py") for parent in parents) if path.is_file()
    )


def test_every_listed_survivor_has_a_reason_and_changes_a_line_that_is_still_there():
    for entry in read_listed():
        assert entry.keys() == {"place", "change", "reason"}
        lines = {line.strip() for line in file_of(entry["place"]).read_text().splitlines()}
        old = [line for line in entry["change"].strip().splitlines() if line.startswith("- ")]
        assert old
        assert {line[2:] for line in old} <= lines, entry["place"]


def test_no_survivor_is_listed_twice():
    listed = Counter((entry["place"], entry["change"].strip()) for entry in read_listed())
    assert not [one for one, n in listed.items() if n > 1]
