"""What every store promises, over both of them; and what each does in its own way."""

import hashlib
import sqlite3
import stat

import pytest

from retrasyn.errors import StoreError, UnknownToken
from retrasyn.service.store import EvidenceRow, FoldedRow, RoundRow, open_store
from retrasyn.service.store.sql import STEPS
from support import postgres
from support.stores import n_tokens

CAMPAIGN = b"campaign"
SECRET_BITS = hashlib.sha512(b"bits").digest() * 3


def hashes(*tokens):
    return [hashlib.sha256(token.encode()).digest() for token in tokens]


def devices(*numbers):
    return [(b"device%10d" % number, b"secret%26d" % number) for number in numbers]


def round_of(t, **changes):
    fields = {"epsilon": 7, "portion": 1 << 64, "ends": 100 + t, "envelope": b"e", "drawn": None}
    return RoundRow(t=t, **(fields | changes))


def folded_of(t, body=b"sums"):
    return FoldedRow(t=t, body=body, digest=hashlib.sha256(body).digest())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
def place(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "store.db"
    return postgres.server().database()


@pytest.fixture
def opened(place):
    stores = []

    def again():
        for store in stores:
            store.close()
        stores.append(open_store(place))
        stores[-1].enter(CAMPAIGN)
        return stores[-1]

    yield again
    for store in stores:
        store.close()


def test_small_values_are_kept_and_replaced(opened):
    store = opened()
    assert store.get("seed") is None
    store.put("seed", b"one")
    store.put("seed", b"\0two")
    assert opened().get("seed") == b"\0two"


def test_a_token_enrols_one_device_and_keys_ascend_from_zero(opened):
    store = opened()
    store.add_tokens(hashes("a", "b", "c"))
    assert list(store.enrol(hashes("b", "a"), devices(1, 2))) == [0, 1]
    assert n_tokens(store) == 1
    with pytest.raises(UnknownToken, match="unknown or was used"):
        store.enrol(hashes("a"), devices(3))
    found = [(row.key, row.device, row.secret) for row in opened().devices()]
    assert found == [(0, *devices(1)[0]), (1, *devices(2)[0])]


def test_of_many_tokens_one_that_is_unknown_or_there_twice_enrols_nobody(opened):
    store = opened()
    store.add_tokens(hashes("a", "b"))
    for wrong in (("a", "x"), ("a", "a")):
        with pytest.raises(UnknownToken):
            store.enrol(hashes(*wrong), devices(1, 2))
    assert (n_tokens(store), store.n_ever_enrolled(), list(store.devices())) == (2, 0, [])
    assert list(store.enrol(hashes("a", "b"), devices(1, 2))) == [0, 1]


def test_thousands_enrol_at_once(opened):
    store = opened()
    names = [str(number) for number in range(2500)]
    store.add_tokens(hashes(*names))
    store.add_tokens(hashes(*names[:10]))  # asking again changes nothing
    assert n_tokens(store) == 2500
    assert list(store.enrol(hashes(*names), devices(*range(2500)))) == list(range(2500))
    assert [row.key for row in store.devices()] == list(range(2500))


def test_the_key_of_a_device_that_left_is_never_given_again(opened):
    store = opened()
    store.add_tokens(hashes("a", "b"))
    store.enrol(hashes("a"), devices(1))
    assert store.remove_device(devices(1)[0][0])
    assert not store.remove_device(devices(1)[0][0])
    store = opened()
    assert list(store.devices()) == []
    assert store.n_ever_enrolled() == 1
    assert list(store.enrol(hashes("b"), devices(2))) == [1]


def test_rounds_are_kept_as_they_were_opened(opened):
    store = opened()
    rows = [round_of(0), round_of(1, portion=0), round_of(3, drawn=b"\1\0\0\0")]
    for row in rows:
        store.add_round(row)
    store.add_round(rows[1])  # the same again
    with pytest.raises(StoreError, match="round 1 was opened otherwise"):
        store.add_round(round_of(1, epsilon=8))
    assert opened().rounds() == rows
    assert opened().rounds(1) == rows[1:]


def test_blobs_come_back_in_their_order(opened):
    store = opened()
    store.append([(0, b"one"), (1, b"other")])
    store.append([])
    store.append([(0, b"two")])
    store = opened()
    store.append([(0, b"three")])
    assert store.frames(0) == [b"one", b"two", b"three"]
    assert (store.frames(1), store.frames(2)) == ([b"other"], [])


def test_a_fold_leaves_sums_and_marks_and_no_frames(opened):
    store = opened()
    for t in range(4):
        store.add_round(round_of(t))
        store.append([(t, b"frames")])
    for t in range(3):
        store.fold(folded_of(t), marks=b"marks%d" % t, forget_before=t - 1)
    store = opened()
    assert [store.frames(t) for t in range(4)] == [[], [], [], [b"frames"]]
    assert store.unfolded() == [3]
    assert list(store.folded()) == [folded_of(0), folded_of(1), folded_of(2)]
    assert list(store.folded(2)) == [folded_of(2)]
    assert list(store.marks()) == [(1, b"marks1"), (2, b"marks2")]


def test_evidence_is_replaced_by_its_timestamp_and_goes_when_it_is_old(opened):
    store = opened()
    for t, first, oldest in [(0, 0, -2), (1, 0, -1), (2, 2, 0), (3, 2, 1)]:
        evidence = EvidenceRow(t=first, body=b"evidence%d" % t, oldest=oldest)
        for _ in range(2):  # the same again changes nothing
            store.fold(folded_of(t), marks=b"", forget_before=0, evidence=evidence)
        kept = list(opened().evidence())
        store = opened()
        assert kept[-1] == (first, b"evidence%d" % t)
    assert kept == [(2, b"evidence3")]
    store.fold(folded_of(4), marks=b"", forget_before=0)
    assert list(store.evidence()) == kept
    store.enter(b"another!")
    assert list(store.evidence()) == []
    store.fold(folded_of(0), marks=b"", forget_before=0, evidence=evidence)
    store.enter(CAMPAIGN)
    assert list(store.evidence()) == []  # of one campaign only


def test_a_round_is_folded_once_and_the_same_again_changes_nothing(opened):
    store = opened()
    store.append([(0, b"frames")])
    store.fold(folded_of(0), marks=b"m", forget_before=0)
    store.fold(folded_of(0), marks=b"m", forget_before=0)
    with pytest.raises(StoreError, match="round 0 was folded otherwise"):
        store.fold(folded_of(0, b"other sums"), marks=b"m", forget_before=0)
    assert list(store.folded()) == [folded_of(0)]


@pytest.mark.parametrize("at", ["INSERT INTO marks", "DELETE FROM frames", "COMMIT"])
def test_a_fold_that_fails_half_way_has_changed_nothing(opened, monkeypatch, at):
    store = opened()
    store.append([(0, b"frames")])
    honest = type(store.engine).execute

    def failing(engine, statement, values=()):
        if statement.startswith(at):
            raise StoreError("no")
        return honest(engine, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(type(store.engine), "execute", failing)
        with pytest.raises(StoreError, match="no"):
            store.fold(folded_of(0), marks=b"m", forget_before=0)
    assert (store.frames(0), list(store.folded()), list(store.marks())) == ([b"frames"], [], [])
    store.fold(folded_of(0), marks=b"m", forget_before=0)
    assert store.frames(0) == []


def test_campaigns_do_not_mix_and_raw_frames_of_an_old_one_go(opened):
    store = opened()
    store.add_round(round_of(0))
    store.append([(0, b"frames"), (1, b"frames")])
    store.fold(folded_of(0), marks=b"m", forget_before=0)
    store.enter(b"another")
    assert (store.rounds(), list(store.folded()), list(store.marks())) == ([], [], [])
    store.add_round(round_of(0, epsilon=8))
    store = opened()
    assert (store.rounds(), list(store.folded())) == ([round_of(0)], [folded_of(0)])
    assert store.frames(1) == [], "they would never be folded"


def test_nothing_of_a_campaign_is_touched_before_one_is_entered(place):
    store = open_store(place)
    with pytest.raises(ValueError, match="entered"):
        store.append([(0, b"frames")])
    store.close()


def test_a_probe_writes(opened):
    store = opened()
    store.probe(100_000)
    assert opened().get("probe") == b"", "and leaves nothing behind"


def test_tables_of_a_newer_version_are_refused_with_one_line(opened, place):
    opened().engine.execute("UPDATE version SET number = ?", (len(STEPS) + 1,))
    opened_again = pytest.raises(StoreError, match=f"version {len(STEPS) + 1}.*newer RetraSyn")
    with opened_again as caught:
        opened()
    assert "\n" not in str(caught.value)


def test_a_step_of_migration_happens_whole_or_not_at_all(place, monkeypatch):
    from retrasyn.service.store import sql

    open_store(place).close()
    steps = (*STEPS, "CREATE TABLE later (x BYTES); CREATE TABLE later (x BYTES)")
    monkeypatch.setattr(sql, "STEPS", steps)
    with pytest.raises(StoreError):
        open_store(place)
    monkeypatch.setattr(sql, "STEPS", (*STEPS, "CREATE TABLE later (x BYTES)"))
    store = open_store(place)
    assert store.engine.execute("SELECT number FROM version") == [(len(STEPS) + 1,)]
    assert store.engine.execute("SELECT * FROM later") == []
    store.close()


# SQLite


def test_only_its_owner_reads_the_file_and_every_commit_is_synced(tmp_path):
    store = open_store(tmp_path / "store.db")
    store.put("a", b"b")
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    pragmas = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}
    for name, value in pragmas.items():
        assert store.engine.execute(f"PRAGMA {name}") == [(value,)]
    store.close()


def test_no_raw_bit_is_left_in_any_file_after_the_fold(tmp_path):
    store = open_store(tmp_path / "store.db")
    store.enter(CAMPAIGN)
    store.append([(0, SECRET_BITS * 50), (1, b"another round")])
    store.put("after", bytes(100_000))

    def left():
        return [file.name for file in tmp_path.iterdir() if SECRET_BITS[:32] in file.read_bytes()]

    assert left()
    store.fold(folded_of(0), marks=b"", forget_before=0)
    assert left() == []
    store.close()


def test_a_reader_that_holds_the_log_delays_the_tidying_and_no_more(tmp_path, caplog):
    store = open_store(tmp_path / "store.db")
    store.engine.execute("PRAGMA busy_timeout = 50")
    store.enter(CAMPAIGN)
    store.append([(0, SECRET_BITS)])
    with sqlite3.connect(tmp_path / "store.db") as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM frames").fetchall()
        store.fold(folded_of(0), marks=b"", forget_before=0)
        assert "tidying failed" in caplog.text
        reader.rollback()
    reader.close()
    store.fold(folded_of(1), marks=b"", forget_before=0)
    assert all(SECRET_BITS[:32] not in file.read_bytes() for file in tmp_path.iterdir())
    store.close()


def test_a_folder_that_is_missing_or_a_file_that_is_no_database_is_one_line(tmp_path):
    (tmp_path / "text").write_text("no database" * 1000)
    for path in (tmp_path / "missing" / "store.db", tmp_path / "text"):
        with pytest.raises(StoreError, match="cannot be read or written") as caught:
            open_store(path)
        assert "\n" not in str(caught.value)


# PostgreSQL


@pytest.mark.system
def test_no_raw_bit_is_left_in_the_tables_of_postgres_after_the_fold():
    server = postgres.server()
    store = open_store(server.database())
    store.enter(CAMPAIGN)
    store.append([(0, SECRET_BITS), (1, b"another round")])  # short: stored as it is

    def left():
        store.engine.execute("CHECKPOINT")
        files = [file for file in (server.data / "base").rglob("*") if file.is_file()]
        return [file for file in files if SECRET_BITS[:32] in file.read_bytes()]

    assert left()
    store.fold(folded_of(0), marks=b"", forget_before=0)
    assert left() == []
    assert store.frames(1) == [b"another round"]
    store.close()


@pytest.mark.system
def test_a_second_service_on_the_same_database_is_refused():
    url = postgres.server().database()
    store = open_store(url)
    with pytest.raises(StoreError, match="in use by another service"):
        open_store(url)
    store.close()
    open_store(url).close()


@pytest.mark.system
def test_after_a_restart_of_the_server_calls_work_again():
    server = postgres.server()
    store = open_store(server.database())
    store.enter(CAMPAIGN)
    store.append([(0, b"before")])
    server.stop()
    with pytest.raises(StoreError, match="cannot be read or written"):
        store.append([(0, b"lost")])
    server.start()
    store.append([(0, b"after")])
    assert store.frames(0) == [b"before", b"after"]
    store.close()


@pytest.mark.system
def test_a_connection_that_was_lost_while_nobody_asked_goes_unnoticed():
    server = postgres.server()
    url = server.database()
    store = open_store(url)
    store.enter(CAMPAIGN)
    for act in (store.n_ever_enrolled, lambda: store.add_tokens(hashes("a"))):
        server.cut(url)
        act()
    server.cut(url)
    assert n_tokens(store) == 1
    store.close()


@pytest.mark.system
def test_a_transaction_whose_connection_is_lost_is_not_finished_on_another():
    server = postgres.server()
    store = open_store(server.database())

    def interrupted():
        with store.engine.transaction():
            store.put("first", b"half")
            store.engine.close()
            store.put("second", b"half")

    with pytest.raises(StoreError, match="lost within a transaction"):
        interrupted()
    assert (store.get("first"), store.get("second")) == (None, None)
    store.close()


def test_a_server_that_is_not_there_is_one_line_without_the_password(tmp_path):
    url = f"postgresql://someone:hunter2@/name?host={tmp_path}&password=hunter2"
    with pytest.raises(StoreError, match="see that the server runs") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
