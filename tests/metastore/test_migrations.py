"""Migrations up and down, and what is refused, on both databases."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from sqlalchemy import inspect, text

from cachemgr.errors import MetastoreError, SchemaVersionError
from cachemgr.metastore import migrate, open_metastore
from cachemgr.metastore.database import make_engine
from cachemgr.metastore.database import metastore_url as parse_url
from cachemgr.metastore.models import VERSION_TABLE, Base
from cachemgr.metastore.records import JoinRecord, JoinSide, Publication, SnapshotTableRecord
from cachemgr.metastore.statement_records import StatementRequest
from tests.processes import ROOT


def tables_of(url: str) -> set[str]:
    engine = make_engine(parse_url(url))
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def execute(url: str, *statements: str) -> None:
    engine = make_engine(parse_url(url))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def contents(url: str) -> dict[str, list]:
    engine = make_engine(parse_url(url))
    with engine.connect() as connection:
        found = {
            name: sorted(map(repr, connection.execute(text(f'SELECT * FROM "{name}"'))))
            for name in inspect(connection).get_table_names()
        }
    engine.dispose()
    return found


def test_there_is_exactly_one_head():
    assert len(migrate.heads()) == 1
    assert migrate.main() == 0


def test_up_down_and_up_again(empty_metastore_url):
    assert migrate.upgrade(empty_metastore_url) == migrate.expected()
    assert migrate.current(empty_metastore_url) == migrate.expected()
    assert tables_of(empty_metastore_url) == {*Base.metadata.tables, VERSION_TABLE}
    assert migrate.downgrade(empty_metastore_url, "base") is None
    assert tables_of(empty_metastore_url) <= {VERSION_TABLE}
    assert migrate.current(empty_metastore_url) is None
    assert migrate.upgrade(empty_metastore_url) == migrate.expected()
    migrate.check(empty_metastore_url)


def test_the_models_describe_what_the_migrations_make(empty_metastore_url):
    migrate.upgrade(empty_metastore_url)
    migrate.check(empty_metastore_url)


def test_check_finds_a_table_that_differs(empty_metastore_url):
    migrate.upgrade(empty_metastore_url)
    execute(empty_metastore_url, "ALTER TABLE grants ADD COLUMN surprise INTEGER")
    with pytest.raises(MetastoreError, match="surprise") as caught:
        migrate.check(empty_metastore_url)
    assert caught.value.code == "SCHEMA_DRIFT"


def test_tables_of_other_applications_are_left_alone(empty_metastore_url):
    execute(
        empty_metastore_url, "CREATE TABLE orders (id INTEGER)", "INSERT INTO orders VALUES (7)"
    )
    with open_metastore(empty_metastore_url) as store:
        assert store.caches.all() == ()
    migrate.check(empty_metastore_url)
    migrate.downgrade(empty_metastore_url, "base")
    assert contents(empty_metastore_url)["orders"] == ["(7,)"]


@pytest.mark.parametrize("other", ["0000", "9999_from_the_future"])
def test_another_schema_version_is_refused_and_nothing_is_touched(empty_metastore_url, other):
    migrate.upgrade(empty_metastore_url)
    execute(empty_metastore_url, f"UPDATE {VERSION_TABLE} SET version_num = '{other}'")
    before = contents(empty_metastore_url)
    with pytest.raises(SchemaVersionError) as caught:
        open_metastore(empty_metastore_url)
    message = str(caught.value)
    assert caught.value.code == "SCHEMA_VERSION"
    assert (caught.value.current, caught.value.expected) == (other, migrate.expected())
    assert other in message
    assert migrate.expected() in message
    assert "cachemgr db upgrade --metastore " in message
    with pytest.raises(SchemaVersionError):
        migrate.upgrade(empty_metastore_url)
    assert contents(empty_metastore_url) == before


def test_a_refused_sqlite_file_keeps_every_byte(tmp_path):
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32))")
        connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES ('0000')")
        connection.execute("CREATE TABLE caches (id TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError):
        open_metastore(f"sqlite:///{path}")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["old.db"]


def test_tables_of_our_names_without_a_version_are_refused(empty_metastore_url):
    execute(empty_metastore_url, "CREATE TABLE leases (flat TEXT)")
    with pytest.raises(MetastoreError) as caught:
        open_metastore(empty_metastore_url)
    assert caught.value.code == "NOT_A_METASTORE"
    assert tables_of(empty_metastore_url) == {"leases"}
    with pytest.raises(MetastoreError):
        migrate.upgrade(empty_metastore_url)
    assert tables_of(empty_metastore_url) == {"leases"}


def test_a_failed_migration_leaves_nothing(empty_metastore_url, monkeypatch):
    from alembic import op

    real = op.create_table

    def fails_at_runs(name, *columns):
        if name == "refresh_runs":
            raise RuntimeError("the power is gone")
        return real(name, *columns)

    monkeypatch.setattr(op, "create_table", fails_at_runs)
    with pytest.raises(RuntimeError):
        migrate.upgrade(empty_metastore_url)
    assert tables_of(empty_metastore_url) == set()


_KILLED = """
import os, signal, sys
from alembic import op
from cachemgr.metastore import migrate

real, calls = op.batch_alter_table, []

def dies(*words, **options):
    calls.append(words)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*words, **options)

op.batch_alter_table = dies
migrate.upgrade(sys.argv[1])
"""


@pytest.mark.parametrize("change", [1, 4])
def test_an_upgrade_that_was_killed_half_way_is_done_again(empty_metastore_url, change):
    migrate.upgrade(empty_metastore_url, "0001")
    before = contents(empty_metastore_url)
    command = [sys.executable, "-c", _KILLED, empty_metastore_url, str(change)]
    assert subprocess.run(command, cwd=ROOT).returncode == -signal.SIGKILL
    assert migrate.current(empty_metastore_url) == "0001"
    assert contents(empty_metastore_url) == before
    assert migrate.upgrade(empty_metastore_url) == migrate.expected()
    migrate.check(empty_metastore_url)


def test_unknown_revision_to_go_to(empty_metastore_url):
    migrate.upgrade(empty_metastore_url)
    with pytest.raises(MetastoreError, match="0001") as caught:
        migrate.downgrade(empty_metastore_url, "nowhere")
    assert caught.value.code == "UNKNOWN_REVISION"
    assert migrate.current(empty_metastore_url) == migrate.expected()


def test_not_created_unless_asked(empty_metastore_url):
    with pytest.raises(MetastoreError, match="cachemgr db upgrade") as caught:
        open_metastore(empty_metastore_url, create=False)
    assert caught.value.code == "METASTORE_MISSING"
    migrate.upgrade(empty_metastore_url)
    with open_metastore(empty_metastore_url, create=False) as store:
        assert store.registry.revision() == 0


def test_joins_of_before_find_each_row_and_no_older_release_sees_another(empty_metastore_url, now):
    sides = (JoinSide("a", "file:/a", "ia"), JoinSide("b", "file:/b", "ib"))
    inner = JoinRecord("inner", "…", *sides, (("x", "y"),))
    with open_metastore(empty_metastore_url) as store:
        store.joins.create(inner, now=now)
        store.joins.create(replace(inner, name="left", id="l", finds_each=False), now=now)
        assert [j.kind for j in store.joins.all()] == ["INNER", "LEFT"]
    migrate.downgrade(empty_metastore_url, "0011")
    migrate.upgrade(empty_metastore_url)
    with open_metastore(empty_metastore_url) as store:
        assert [(j.name, j.finds_each) for j in store.joins.all()] == [("inner", True)]


def test_what_refers_to_a_table_that_is_changed_stays(empty_metastore_url, new_cache, now):
    """SQLite makes a table anew to change it, and dropped what refers to the old one."""
    table = SnapshotTableRecord("s", "file:/s", "id", 1, 2, None)
    with open_metastore(empty_metastore_url) as store:
        cache = store.caches.create(new_cache(), now=now)
        run = store.refreshes.start(
            cache.id, "old", now=now, lease_seconds=60, mode="FULL", reason="r"
        )
        told = Publication(cache_version=1, rows=1, bytes=1, tables=[table])
        store.refreshes.publish(run.id, run.fencing_token, told, now=now)
    migrate.downgrade(empty_metastore_url, "0001")
    migrate.upgrade(empty_metastore_url)
    with open_metastore(empty_metastore_url) as store:
        (kept,) = store.snapshots.published(cache.id).tables
        assert (kept.location, kept.version) == ("file:/s", 1)


def test_caches_from_before_the_queue_get_a_schedule(empty_metastore_url, new_cache, now):
    with open_metastore(empty_metastore_url) as store:
        cache = store.caches.create(new_cache(), now=now)
        store.refreshes.start(cache.id, "old", now=now, lease_seconds=60, mode="FULL", reason="r")
    migrate.downgrade(empty_metastore_url, "0001")
    migrate.upgrade(empty_metastore_url)
    with open_metastore(empty_metastore_url) as store:
        (found,) = store.schedules.all()
        assert (found.cache.id, found.failures, found.busy) == (cache.id, 0, True)
        assert found.last.origin == "STATEMENT" and not found.last.cancel_requested


@pytest.mark.parametrize(
    ("because", "resumes"),
    [
        ("it cannot succeed until this is mended: [DEFINITION_BROKEN] … [COLUMNS_CHANGED] …", True),
        ("it cannot succeed until this is mended: [BASE_COLUMN_CHANGED] column k …", True),
        ("5 scheduled refreshes failed in a row: [REFRESH_FAILED] the disk is full", False),
    ],
)
def test_caches_that_paused_for_other_columns_try_again(
    empty_metastore_url, new_cache, now, because, resumes
):
    with open_metastore(empty_metastore_url) as store:
        cache = store.caches.create(new_cache(), now=now)
        by_hand = store.caches.create(new_cache("other"), now=now)
        store.caches.update(by_hand.id, by_hand.version, now=now, paused=True)
        store.schedules.note_failure(cache.id, failures=1, retry_at=None, paused_because=because)
        before = store.registry.revision()
    migrate.downgrade(empty_metastore_url, "0012")
    migrate.upgrade(empty_metastore_url)
    with open_metastore(empty_metastore_url) as store:
        assert store.caches.get(by_hand.id).paused
        found = store.schedules.of(cache.id)
        assert found.cache.paused is not resumes
        assert (found.paused_because is None, found.retry_at is not None) == (resumes, resumes)
        assert (store.registry.revision() > before) is resumes


def test_an_older_release_has_one_mark_a_place(empty_metastore_url):
    with open_metastore(empty_metastore_url) as store:
        first = store.tables.restrict("hr.pay", "file:/pay", "id-1", by="root")
        store.tables.restrict("hr.pay", "file:/pay", "id-2", by="root")
    migrate.downgrade(empty_metastore_url, "0012")
    migrate.upgrade(empty_metastore_url)
    with open_metastore(empty_metastore_url) as store:
        assert store.tables.restricted() == (first,)


def test_an_older_release_knows_no_statements_and_keeps_all_else(
    empty_metastore_url, new_cache, now
):
    request = StatementRequest("ann", "r", "SELECT 1", timeout_seconds=60, keep_seconds=60)
    with open_metastore(empty_metastore_url) as store:
        cache = store.caches.create(new_cache(), now=now)
        store.statements.submit(request, most_waiting=1)
        store.select_grants.add("file:/pay", "ann", "hr.pay")
    migrate.downgrade(empty_metastore_url, "0015")
    assert tables_of(empty_metastore_url).isdisjoint({"statements", "select_grants"})
    migrate.upgrade(empty_metastore_url)
    migrate.check(empty_metastore_url)
    with open_metastore(empty_metastore_url) as store:
        assert store.caches.get(cache.id) == cache
        assert store.statements.of(None, limit=9) == () and store.select_grants.all() == ()
        assert store.statements.submit(request, most_waiting=1)[1]
