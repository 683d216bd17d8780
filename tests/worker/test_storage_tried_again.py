"""What the schedule and housekeeping make of a storage that cannot be asked; what Spark says then,
tests/e2e/test_storage_away.py holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from cachemgr.base_state import BaseState, Unreadable
from cachemgr.cache_spec import CacheSpec, RefreshPolicy, trigger_of
from cachemgr.delta.log import stamp_text
from cachemgr.delta.storage import LocalFiles
from cachemgr.errors import CacheManagerError, ErrorCode, RefreshError
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import (
    CacheRecord,
    Publication,
    RefreshRunRecord,
    ScheduleRecord,
    SnapshotTableRecord,
)
from cachemgr.worker.housekeeping import Housekeeping
from cachemgr.worker.passing import is_of_storage
from cachemgr.worker.schedule import Watch, ask_for_due
from cachemgr.worker.worker import Worker

AWAY = RefreshError(
    ErrorCode.STORAGE_UNAVAILABLE,
    "the refresh of cache d.c could not use the storage: permission denied: x",
)
# As an earlier release told it, on a real storage and on this machine.
BEFORE = [
    "5 scheduled refreshes failed in a row: [REFRESH_FAILED] the refresh of cache d.c failed: "
    "permission denied: s3a://b/caches/x: getFileStatus on s3a://b/caches/x: The provided token "
    "has expired (Service: S3, Status Code: 403, Request ID: 1); its last snapshot is kept; remove "
    "the cause and refresh again",
    "5 scheduled refreshes failed in a row: [BASE_TABLE_UNREADABLE] base table s of cache d.c "
    "cannot be read: s3a://b/s: Slow Down (Service: S3, Status Code: 503); its last snapshot is "
    "kept; repair the log at s3a://b/s, or drop or replace the cache",
    "5 scheduled refreshes failed in a row: [REFRESH_FAILED] the refresh of cache d.c failed: the "
    "disk is full: No space left on device; its last snapshot is kept; remove the cause",
    "it cannot succeed until this is mended: [DEFINITION_BROKEN] the definition of cache d.c does "
    "not resolve here: java.net.SocketTimeoutException: Read timed out; its last snapshot is kept",
]
OTHERS = [
    "it cannot succeed until this is mended: [BASE_TABLE_LOST] base table s of cache d.c is gone",
    "5 scheduled refreshes failed in a row: [REFRESH_FAILED] the refresh of cache d.c failed: a "
    "CHECK constraint: pos violated",
    "its schedule cannot be read: no unit; ALTER RELATIONAL CACHE d.c SET REFRESH …, then RESUME",
]


class Fails:
    """Refreshes that fail as they are told to, and base tables of which nothing is known."""

    def __init__(self) -> None:
        self.says: CacheManagerError = AWAY
        self.head: BaseState | Unreadable | None = None

    def prepare(self) -> None:
        """Nothing."""

    def refresh(
        self, run: RefreshRunRecord, failing: Callable[[CacheManagerError], None]
    ) -> RefreshRunRecord:
        failing(self.says)
        raise self.says

    def heads(self, places: Collection[str]) -> Mapping[str, BaseState | Unreadable | None]:
        return dict.fromkeys(places, self.head)

    def places(self, names: Collection[str]) -> Mapping[str, str]:
        return {}

    def first_commit_after(self, place: str, version: int) -> None:
        return None


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Metastore]:
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as opened:
        yield opened


def made(store: Metastore, place: Path, kind: str = "ON_COMMIT") -> CacheRecord:
    spec = CacheSpec(refresh=RefreshPolicy(trigger_of({"kind": kind})))
    record = CacheRecord("d", "c", "SELECT", "h", str(place), spec=spec)
    return store.caches.create(record, now=store.clock.now())


def published(store: Metastore, cache: CacheRecord) -> RefreshRunRecord:
    """A refresh of one file, and of a base table at version 3."""
    place = Path(cache.location)
    (place / "_delta_log").mkdir(parents=True, exist_ok=True)
    (place / "a.parquet").write_bytes(b"x" * 10)
    add = {"path": "a.parquet", "partitionValues": {}, "size": 10}
    info = {"commitInfo": {"userMetadata": stamp_text({"kind": "FULL"})}}
    log = place / "_delta_log" / f"{0:020d}.json"
    log.write_text("\n".join(map(json.dumps, [info, {"add": add}])))
    run = store.refreshes.start(
        cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason="test"
    )
    table = SnapshotTableRecord("s", "s3a://b/s", "id-s", 3, 1, "txn:s")
    told = Publication(cache_version=0, rows=1, bytes=1, tables=(table,))
    return store.refreshes.publish(run.id, run.fencing_token, told, now=None)


def tried(store: Metastore, fails: Fails) -> ScheduleRecord:
    """What is due is asked for, and fails."""
    assert len(ask_for_due(store).wanted) == 1
    worker = Worker(store, fails, holder="w1")
    assert worker.take() == 1
    assert worker.stop(60) == ()
    (found,) = store.schedules.all()
    return found


def test_nothing_pauses_for_it_however_long_it_lasts(store, tmp_path, monkeypatch) -> None:
    made(store, tmp_path / "c")
    clock, ahead, fails = store.clock, timedelta(), Fails()
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + ahead)
    waits = []
    for after in (0, 30, 60, 300, 590, 700, 3600, 7200, 100_000):
        ahead = timedelta(seconds=after)
        found = tried(store, fails)
        assert not found.cache.paused and found.failures <= 3
        waits.append((found.retry_at - clock.now()).total_seconds())
    assert max(waits[:5]) <= 20, "as often as a table that is gone is looked for"
    assert waits[5] <= 88 and max(waits) <= 300
    # what is the cache's own counts as ever
    fails.says = RefreshError(ErrorCode.BASE_COLUMN_LOST, "base table s has no column x any more")
    ahead = timedelta(seconds=101_000)
    assert tried(store, fails).cache.paused


@pytest.mark.parametrize("because", BEFORE)
def test_what_an_earlier_release_paused_for_it_goes_on(store, tmp_path, because: str) -> None:
    cache = made(store, tmp_path / "c")
    assert is_of_storage(because)
    store.schedules.note_failure(cache.id, failures=5, retry_at=None, paused_because=because)
    ask_for_due(store)
    (found,) = store.schedules.all()
    assert (found.cache.paused, found.paused_because, found.failures) == (False, None, 0)
    assert len(ask_for_due(store).wanted) == 1


@pytest.mark.parametrize("because", OTHERS)
def test_what_was_paused_for_a_cause_of_its_own_stays_so(store, tmp_path, because: str) -> None:
    cache = made(store, tmp_path / "c")
    store.schedules.note_failure(cache.id, failures=5, retry_at=None, paused_because=because)
    assert ask_for_due(store).wanted == ()
    (found,) = store.schedules.all()
    assert found.cache.paused and found.paused_because == because


def test_what_a_person_paused_stays_so(store, tmp_path) -> None:
    cache = made(store, tmp_path / "c")
    store.caches.update(cache.id, cache.version, now=store.clock.now(), paused=True)
    assert ask_for_due(store).wanted == ()
    assert store.caches.get(cache.id).paused


@pytest.mark.parametrize(
    ("head", "behind"),
    [
        (Unreadable("permission denied: x", is_away=True), 0),
        (Unreadable("a feature of tomorrow"), 1),
        (None, 1),
        (BaseState("id-s", 3, "txn:s"), 0),
        (BaseState("id-s", 4, "txn:t"), 1),
    ],
)
def test_a_base_table_of_which_nothing_is_known_has_not_moved(
    store, tmp_path, head, behind: int
) -> None:
    published(store, made(store, tmp_path / "c"))
    fails = Fails()
    fails.head = head
    assert Watch(store, fails).look() == behind


class Says(LocalFiles):
    """The files of this machine, whose storage says no if told to."""

    says: Exception | None = None

    def exists(self, path: str) -> bool:
        if self.says is not None:
            raise self.says
        return super().exists(path)


def test_housekeeping_notes_what_is_gone_alone_and_takes_it_back(store, tmp_path, caplog) -> None:
    cache, files = made(store, tmp_path / "c", "ON_DEMAND"), Says()
    published(store, cache)
    housekeeping = Housekeeping(store, lambda place: files, 3600)

    def noted() -> str | None:
        housekeeping.look_for_damage()
        return store.caches.get(cache.id).damaged

    files.says = PermissionError(13, "Permission denied")
    assert noted() is None and noted() is None
    said = [r.getMessage() for r in caplog.records if "cannot be looked at" in r.getMessage()]
    assert len(said) == 1 and "d.c" in said[0] and "permission denied: " in said[0]
    files.says = None
    file = tmp_path / "c" / "a.parquet"
    file.write_bytes(b"x" * 9)
    assert noted() == "its file a.parquet has 9 bytes, not 10"
    files.says = TimeoutError(110, "Connection timed out")
    assert noted() == "its file a.parquet has 9 bytes, not 10", "nothing new is known"
    files.says = None
    file.write_bytes(b"x" * 10)
    assert noted() is None


def test_housekeeping_does_not_wait_for_a_storage_cache_after_cache(
    store, tmp_path, monkeypatch
) -> None:
    """Each of many may take minutes to say no; the next look goes on with the next ones."""
    for number in range(6):
        record = CacheRecord("d", f"c{number}", "SELECT", "h", str(tmp_path / f"c{number}"))
        published(store, store.caches.create(record, now=store.clock.now()))
    files, asked, now = Says(), [], [0.0]

    def of(place: str) -> Says:
        asked.append(place)
        now[0] += 12
        return files

    monkeypatch.setattr("cachemgr.worker.housekeeping.time.monotonic", lambda: now[0])
    files.says = TimeoutError(110, "Connection timed out")
    housekeeping = Housekeeping(store, of, 3600)
    for seen in (2, 4, 6):
        housekeeping.look_for_damage()
        assert len(asked) == len(set(asked)) == seen
