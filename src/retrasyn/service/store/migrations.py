"""The tables, as steps from one version to the next. A released step is never changed.

BYTES stands for the engine's type of bytes. A portion is text, since 2^64 exceeds 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn.errors import StoreError

if TYPE_CHECKING:
    from retrasyn.service.store.engine import Engine

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE small_values (name TEXT PRIMARY KEY, value BYTES NOT NULL);
    CREATE TABLE tokens (hash BYTES PRIMARY KEY);
    CREATE TABLE next_key (id INTEGER PRIMARY KEY CHECK (id = 1), value BIGINT NOT NULL);
    INSERT INTO next_key (id, value) VALUES (1, 0);
    CREATE TABLE devices (
        key BIGINT PRIMARY KEY, device BYTES NOT NULL UNIQUE, secret BYTES NOT NULL);
    CREATE TABLE campaigns (number BIGINT PRIMARY KEY, id BYTES NOT NULL UNIQUE);
    CREATE TABLE rounds (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, epsilon BIGINT NOT NULL, portion TEXT NOT NULL,
        ends BIGINT NOT NULL, envelope BYTES NOT NULL, drawn BYTES, PRIMARY KEY (campaign, t));
    CREATE TABLE frames (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, number BIGINT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY (campaign, t, number));
    CREATE TABLE folded (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, body BYTES NOT NULL, digest BYTES NOT NULL,
        PRIMARY KEY (campaign, t));
    CREATE TABLE marks (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY (campaign, t));
    """,
)


def migrate(engine: Engine) -> None:
    """Bring the tables to this version, one step in one transaction each."""
    engine.execute("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
    rows = engine.execute("SELECT number FROM version")
    found = int(rows[0][0]) if rows else 0
    if found > len(STEPS):
        raise StoreError(
            f"{engine.place} has tables of version {found}, and this RetraSyn knows version "
            f"{len(STEPS)}; use the newer RetraSyn that wrote them, or restore a back-up"
        )
    for number, step in enumerate(STEPS[found:], start=found + 1):
        with engine.transaction():
            for statement in filter(str.strip, step.split(";")):
                engine.execute(statement.replace("BYTES", engine.bytes_type))
            engine.execute("DELETE FROM version")
            engine.execute("INSERT INTO version (number) VALUES (?)", (number,))
