"""Settings that the tests of a device share."""

import pytest

from retrasyn.device import SQLiteStore


@pytest.fixture(autouse=True)
def every_store_lets_its_file_go(monkeypatch):
    """Close what a test left open: from Python 3.13 on a forgotten connection is a warning."""
    made, begin = [], SQLiteStore.__post_init__

    def begin_and_note(store):
        begin(store)
        made.append(store)

    monkeypatch.setattr(SQLiteStore, "__post_init__", begin_and_note)
    yield
    for store in made:
        store.close()
