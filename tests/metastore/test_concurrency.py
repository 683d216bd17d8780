"""Several threads and several processes on one metastore."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from cachemgr.errors import AlreadyExistsError, ConflictError, LeaseLostError, MetastoreError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import CacheRecord, Publication

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def take_numbers(url: str, cache_id: str, count: int) -> list[int]:
    with open_metastore(url) as store:
        return [store.commit_numbers.next(cache_id) for _ in range(count)]


def try_start(url: str, cache_id: str, holder: str, now: datetime = NOW) -> int | None:
    with open_metastore(url) as store:
        try:
            run = store.refreshes.start(
                cache_id, holder, now=now, lease_seconds=60, mode="FULL", reason="r"
            )
        except ConflictError:
            return None
        return run.fencing_token


def try_create(url: str, name: str) -> bool:
    with open_metastore(url) as store:
        record = CacheRecord("ns", name, "SELECT 1", "h", "/x")
        try:
            store.caches.create(record, now=NOW)
        except AlreadyExistsError:
            return False
        return True


@pytest.fixture(scope="module")
def processes():
    # spawn: a forked child would inherit the parent's open connections.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


@pytest.fixture(params=["threads", "processes"])
def pool(request):
    if request.param == "processes":
        yield request.getfixturevalue("processes")
        return
    with ThreadPoolExecutor(4) as threads:
        yield threads


def test_each_commit_number_is_given_once(pool, store, cache, metastore_url):
    jobs = [pool.submit(take_numbers, metastore_url, cache.id, 25) for _ in range(4)]
    taken = [job.result() for job in jobs]
    assert all(numbers == sorted(numbers) for numbers in taken)
    assert sorted(n for numbers in taken for n in numbers) == list(range(1, 101))


def test_one_of_many_starts_a_refresh(pool, store, cache, metastore_url):
    jobs = [pool.submit(try_start, metastore_url, cache.id, f"h{i}") for i in range(6)]
    assert sorted(filter(None, (job.result() for job in jobs))) == [1]
    # Expired: again exactly one of them takes it over.
    later = NOW + timedelta(seconds=60)
    jobs = [pool.submit(try_start, metastore_url, cache.id, f"h{i}", later) for i in range(6)]
    assert sorted(filter(None, (job.result() for job in jobs))) == [2]


def test_one_of_many_creates_a_name(pool, store, metastore_url):
    jobs = [pool.submit(try_create, metastore_url, name) for name in ["Cube", "CUBE", "cube"] * 2]
    assert sorted(job.result() for job in jobs) == [False] * 5 + [True]


def test_many_open_an_empty_metastore_at_once(pool, empty_metastore_url):
    jobs = [pool.submit(try_create, empty_metastore_url, f"c{i}") for i in range(6)]
    assert all(job.result() for job in jobs)
    with open_metastore(empty_metastore_url) as store:
        assert len(store.caches.all()) == 6


def test_publishing_and_dropping_at_once_never_deadlock(store, new_cache, now):
    for turn in range(10):
        cache = store.caches.create(new_cache(f"c{turn}"), now=now)
        run = store.refreshes.start(
            cache.id, "h", now=now, lease_seconds=60, mode="FULL", reason="r"
        )
        gate = threading.Barrier(2)

        def publish(gate=gate, run=run):
            gate.wait()
            try:
                store.refreshes.publish(
                    run.id, 1, Publication(cache_version=0, rows=0, bytes=0, tables=()), now=now
                )
            except LeaseLostError:
                return False
            return True

        def drop(gate=gate, cache=cache):
            gate.wait()
            store.caches.drop(cache.id, now=now)

        with ThreadPoolExecutor(2) as threads:
            published, dropped = threads.submit(publish), threads.submit(drop)
            dropped.result()
            assert published.result() is (store.snapshots.published(cache.id) is not None)
        assert store.caches.get(cache.id).dropped_at == now


def test_a_reader_sees_one_moment_while_another_writes(store, cache, now):
    stop = threading.Event()

    def write():
        version = 1
        while not stop.is_set():
            version += 1
            store.caches.update(cache.id, version - 1, now=now, properties={"v": str(version)})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(50):
            state = store.registry.state()
            (entry,) = state.entries
            assert entry.cache.revision == state.revision
            assert entry.cache.spec.properties.get("v", "1") == str(entry.cache.version)
    finally:
        stop.set()
        thread.join()


def test_a_held_write_lock_is_waited_for(tmp_path):
    path = tmp_path / "m.db"
    with open_metastore(f"sqlite:///{path}") as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, other.rollback)
        started = time.monotonic()
        timer.start()
        store.caches.create(CacheRecord("ns", "c", "SELECT 1", "h", "/x"), now=NOW)
        assert time.monotonic() - started >= 0.4
        timer.join()
        other.close()
        assert len(store.caches.all()) == 1


def test_a_write_lock_held_for_too_long_is_a_clear_error(tmp_path):
    path = tmp_path / "m.db"
    with open_metastore(f"sqlite:///{path}", busy_seconds=0.2) as store:
        kept = store.caches.create(CacheRecord("ns", "c", "SELECT 1", "h", "/x"), now=NOW)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MetastoreError, match="another process is writing") as caught:
            store.caches.drop(kept.id, now=NOW)
        assert caught.value.code == "METASTORE_BUSY"
        # Readers do not wait for a writer.
        assert store.caches.all() == (kept,)
        other.rollback()
        other.close()
        store.caches.drop(kept.id, now=NOW)


@pytest.mark.postgres
def test_a_locked_row_of_postgresql_is_a_clear_error_too(postgres_url):
    import psycopg

    with open_metastore(postgres_url, busy_seconds=0.2) as store:
        kept = store.caches.create(CacheRecord("ns", "c", "SELECT 1", "h", "/x"), now=NOW)
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT * FROM registry_revision FOR UPDATE")
            with pytest.raises(MetastoreError) as caught:
                store.caches.drop(kept.id, now=NOW)
            assert caught.value.code == "METASTORE_BUSY"
        assert store.caches.all() == (kept,)


def test_a_killed_writer_leaves_nothing_half_done(store, cache, now, monkeypatch):
    from cachemgr.metastore import refreshes

    run = store.refreshes.start(cache.id, "h", now=None, lease_seconds=60, mode="FULL", reason="r")
    before = store.registry.state()

    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(refreshes, "table_rows", killed)
    with pytest.raises(KeyboardInterrupt):
        store.refreshes.publish(
            run.id, 1, Publication(cache_version=1, rows=1, bytes=1, tables=()), now=now
        )
    assert store.registry.state() == before
    assert store.refreshes.get(run.id) == run


@pytest.mark.postgres
def test_a_request_that_is_taken_holds_up_nobody_who_gives_its_run_up(postgres_url, new_cache, now):
    """Who takes it waits for the lease that the other holds: both would wait for each other."""
    import psycopg

    with open_metastore(postgres_url, busy_seconds=0.5) as store:
        cache = store.caches.create(new_cache("c"), now=now)
        store.queue.request(cache.id, why="asked", now=now)
        store.queue.claim("w1", lease_seconds=20, now=now)
        store.queue.request(cache.id, why="again", now=now + timedelta(seconds=1))
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT * FROM refresh_requests FOR UPDATE")
            assert store.queue.requeue_abandoned(now=now + timedelta(seconds=30)) == 1


def test_a_second_opening_in_a_process_keeps_the_locks_of_the_first(processes, tmp_path) -> None:
    """A process that closes a file itself loses what SQLite has locked of it: the next process to
    leave the metastore would remove the journal that is still written to."""
    url = f"sqlite:///{tmp_path}/m.db"
    with open_metastore(url) as store:
        assert store.caches.all() == ()
        open_metastore(url).close()
        for name in ("theirs", "theirs_too"):
            assert processes.submit(try_create, url, name).result()
            assert store.caches.create(
                CacheRecord("ns", f"mine_after_{name}", "SELECT 1", "h", "/x"), now=NOW
            )
        found = [c.name for c in store.caches.all()]
    assert found == ["mine_after_theirs", "mine_after_theirs_too", "theirs", "theirs_too"]
    with open_metastore(url) as store:
        assert [c.name for c in store.caches.all()] == found
