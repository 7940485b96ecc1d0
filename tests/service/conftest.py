"""Settings that the tests of the service share."""

import pytest

from retrasyn.service.store.sqlite import SQLiteConnection


@pytest.fixture(autouse=True)
def every_store_lets_its_file_go(monkeypatch):
    """Close what a test left open: from Python 3.13 on a forgotten connection is a warning."""
    made, begin = [], SQLiteConnection.__init__

    def begin_and_note(store, *arguments, **options):
        begin(store, *arguments, **options)
        made.append(store)

    monkeypatch.setattr(SQLiteConnection, "__init__", begin_and_note)
    yield
    for store in made:
        store.close()
