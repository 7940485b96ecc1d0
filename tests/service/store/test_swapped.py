"""A database that was swapped, emptied or deleted under its store takes no more writes."""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from retrasyn.errors import StoreError
from retrasyn.service.store import FoldedRow, RoundRow, open_store
from support import postgres

ROUND = RoundRow(t=0, epsilon=7, portion=0, ends=9, envelope=b"e")
FOLDED = FoldedRow(t=0, body=b"sums", digest=b"digest")
WRITES = {
    "reports": lambda store: store.append([(0, b"report")]),
    "a round": lambda store: store.add_round(ROUND),
    "a fold": lambda store: store.fold(FOLDED, marks=b"", forget_before=0),
    "tokens": lambda store: store.add_tokens([b"hash"]),
    "an enrolment": lambda store: store.enrol([], []),
    "a departure": lambda store: store.remove_device(b"device"),
    "a probe": lambda store: store.probe(10),
}


def opened(place):
    store = open_store(place)
    store.enter(b"campaign")
    store.append([(0, b"one")])
    return store


def copied(path):
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


SWAPS = {
    "deleted": os.remove,
    "replaced by a copy": lambda path: copied(path).rename(path),
    "overwritten by a copy": lambda path: shutil.copyfile(copied(path), path),
    "replaced by nothing": lambda path: path.write_bytes(b""),
    "its log deleted": lambda path: path.with_name("store.db-wal").unlink(),
    "its folder moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("swap", SWAPS)
def test_a_swapped_file_takes_no_more_writes(swap, write, tmp_path):
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "store.db"
    with closing(opened(path)) as store:
        SWAPS[swap](path)
        for _ in range(2):
            with pytest.raises(StoreError, match="while the service ran, and nothing is ack"):
                WRITES[write](store)
    assert path.exists() or swap in ("deleted", "its folder moved"), "and makes no file anew"


def test_a_file_that_goes_during_a_write_is_noticed_before_the_answer(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    with closing(opened(path)) as store:
        honest = type(store.engine).execute

        def execute(engine, statement, values=()):
            if statement == "COMMIT":
                path.unlink()
            return honest(engine, statement, values)

        monkeypatch.setattr(type(store.engine), "execute", execute)
        with pytest.raises(StoreError, match="was deleted"):
            store.append([(0, b"two")])


def test_a_copy_that_met_the_log_of_what_it_replaced_is_refused_at_the_next_start(tmp_path):
    path = tmp_path / "store.db"

    def fill(store, first, last):
        for t in range(first, last):
            store.add_round(replace(ROUND, t=t))
            store.append([(t, bytes(500))])
            store.fold(replace(FOLDED, t=t, body=bytes(4000)), marks=bytes(200), forget_before=0)
        store.append([(last, bytes(90_000))])

    with closing(opened(path)) as store:
        fill(store, 0, 20)
        copy = copied(path)
        fill(store, 20, 60)
        shutil.copyfile(copy, path)
        with pytest.raises(StoreError, match="was written to by another program"):
            store.append([(60, b"more")])
    with pytest.raises(StoreError, match=r"store\.db is damaged .*; restore a back-up"):
        open_store(path)


class FullDisk:
    """A connection whose next statement changes the file and then fails."""

    in_transaction = False

    def __init__(self, path):
        self.path = path

    def execute(self, *_):
        self.path.touch()
        raise sqlite3.OperationalError("database or disk is full")


def test_what_our_own_write_changed_before_it_failed_stops_nothing(tmp_path):
    path = tmp_path / "store.db"
    with closing(opened(path)) as store:
        honest, store.engine._connection = store.engine._connection, FullDisk(path)
        with pytest.raises(StoreError, match="disk is full"):
            store.append([(0, b"two")])
        store.engine._connection = honest
        store.append([(0, b"three")])
        assert store.frames(0) == [b"one", b"three"]


def test_the_very_file_put_back_is_written_to_again(tmp_path):
    path = tmp_path / "store.db"
    with closing(opened(path)) as store:
        path.rename(tmp_path / "away")
        with pytest.raises(StoreError):
            store.append([(0, b"two")])
        (tmp_path / "away").rename(path)
        store.append([(0, b"three")])
        assert store.frames(0) == [b"one", b"three"]


def test_readers_and_a_back_up_disturb_nobody(tmp_path):
    path = tmp_path / "store.db"
    with closing(opened(path)) as store:
        for number in range(3):
            with closing(sqlite3.connect(copied(path))) as copy:
                assert copy.execute("SELECT COUNT(*) FROM frames").fetchone() == (number + 1,)
            store.append([(0, b"more")])
            store.probe()


def test_a_file_of_an_earlier_session_is_not_taken_for_that_of_a_later_one(tmp_path):
    path = tmp_path / "store.db"
    with closing(opened(path)) as store:
        copy = copied(path)
    with closing(opened(path)) as store:
        store.engine.close()
        shutil.copyfile(copy, path)  # the same inode: only what it holds tells
        with pytest.raises(StoreError, match="an older copy was put in its place"):
            store.append([(0, b"two")])


@pytest.mark.parametrize("fault", ["before", "after"])
def test_after_a_write_whose_end_is_unknown_the_next_one_works(fault, tmp_path, monkeypatch):
    with closing(opened(tmp_path / "store.db")) as store:
        honest, left = type(store.engine).execute, [3]

        def execute(engine, statement, values=()):
            if statement != "COMMIT" or not left[0]:
                return honest(engine, statement, values)
            left[0] -= 1
            honest(engine, "COMMIT" if fault == "after" else "ROLLBACK")
            raise StoreError("nobody knows")

        monkeypatch.setattr(type(store.engine), "execute", execute)
        for _ in range(3):
            with pytest.raises(StoreError, match="nobody knows"):
                store.append([(0, b"two")])
        store.append([(0, b"three")])
        assert len(store.frames(0)) == (5 if fault == "after" else 2)


@pytest.mark.system
@pytest.mark.parametrize("write", WRITES)
def test_a_postgres_database_that_was_emptied_takes_no_more_writes(write):
    place = postgres.server().database()
    with closing(opened(place)) as store:
        postgres.server().run("psql", "-q", "-d", place, "-c", "TRUNCATE small_values, frames")
        with pytest.raises(StoreError, match="does not hold what was written to it last"):
            WRITES[write](store)


@pytest.mark.system
def test_a_postgres_database_replaced_by_an_older_copy_takes_no_more_writes():
    server = postgres.server()
    place = server.database()
    opened(place).close()
    copy = server.database(template=place)
    with closing(open_store(place)) as store:
        store.enter(b"campaign")
        store.append([(0, b"two")])
        names = [address.split("/")[3].split("?")[0] for address in (place, copy)]
        address = ("-h", str(server.folder), "-U", postgres.USER, "-q", "-d", "postgres")
        server.run("psql", *address, "-c", f"DROP DATABASE {names[0]} WITH (FORCE)")
        with pytest.raises(StoreError, match="cannot be read or written"):
            store.append([(0, b"three")])
        server.run("psql", *address, "-c", f"ALTER DATABASE {names[1]} RENAME TO {names[0]}")
        with pytest.raises(StoreError, match="does not hold what was written to it last"):
            store.append([(0, b"three")])
