"""Which files are deleted and which stay, by logs written by hand: the disk stays flat, and nothing
that may be read goes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cachemgr.delta.log import stamp_text
from cachemgr.delta.storage import LocalFiles
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import CacheRecord, Publication, new_id
from cachemgr.statements.tidy import Tidy
from cachemgr.worker.housekeeping import Housekeeping

GRACE = 100
T0 = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Table:
    """A cache whose refreshes write their commits without Spark, as Delta would."""

    store: Metastore
    root: Path
    now: datetime = T0
    version: int = -1
    live: list[str] = field(default_factory=list)
    depends_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        cache_id = new_id()
        record = CacheRecord(
            namespace="default",
            name=f"c{cache_id[:5]}",
            definition="SELECT 1",
            definition_hash="h",
            location=str(self.root / cache_id),
            id=cache_id,
            depends_on=self.depends_on,
        )
        self.cache = self.store.writer.create_cache(record, now=self.now)

    @property
    def folder(self) -> Path:
        return Path(self.store.reader.cache_by_id(self.cache.id).location)

    def write(self, name: str) -> str:
        """A data file with its checksum, as old as the moment says."""
        path = self.folder / "k=a b" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for made, size in ((path, 1000), (path.with_name(f".{name}.crc"), 8)):
            made.write_bytes(b"x" * size)
            os.utime(made, (self.now.timestamp(), self.now.timestamp()))
        return f"k=a%20b/{name}"

    def commit(self, adds: list[str], kind: str = "FULL") -> int:
        self.version += 1
        actions = [{"commitInfo": {"userMetadata": stamp_text({"kind": kind})}}]
        actions += [{"remove": {"path": p}} for p in self.live]
        actions += [
            {"add": {"path": p, "partitionValues": {"k": "a b"}, "size": 1000}} for p in adds
        ]
        log = self.folder / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        text = "\n".join(map(json.dumps, actions))
        (log / f"{self.version:020d}.json").write_text(text)
        self.live = adds
        return self.version

    def start(self):
        return self.store.writer.start_refresh(
            self.cache.id, "w", now=self.now, lease_seconds=60, mode="FULL", reason="test"
        )

    def publish(self, run, version: int) -> None:
        self.store.writer.publish_refresh(
            run.id,
            run.fencing_token,
            Publication(cache_version=version, rows=1, bytes=1, tables=()),
            now=self.now,
        )

    def refresh(self, seconds: int = 10) -> None:
        self.now += timedelta(seconds=seconds)
        run = self.start()
        self.publish(run, self.commit([self.write(f"{self.version + 1}.parquet")]))

    def files(self) -> set[str]:
        return {p.name for p in self.folder.rglob("*.parquet")}

    def tidy(self) -> Tidy:
        local = LocalFiles()
        return Tidy(self.store, lambda place: local, lambda: GRACE, lambda: self.now)


@pytest.fixture
def table(tmp_path):
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as store:
        yield Table(store, tmp_path / "caches")


def data_bytes(table: Table) -> int:
    return sum(p.stat().st_size for p in (table.folder / "k=a b").iterdir())


def test_the_disk_is_flat_over_many_refreshes(table):
    tidy, sizes = table.tidy(), []
    for _ in range(25):
        table.refresh()
        tidy.look()
        sizes.append(data_bytes(table))
    kept = GRACE // 10 + 1
    assert set(sizes[kept:]) == {sizes[kept]} and sizes[kept] <= (kept + 1) * 1008
    assert not list(table.folder.rglob("*.crc"))[kept + 1 :], "sums go with their files"


def test_what_was_served_within_the_grace_stays_and_goes_after_it(table):
    tidy = table.tidy()
    table.refresh()
    table.refresh(1000)
    table.now += timedelta(seconds=GRACE - 1)
    assert tidy.look() == 0 and table.files() == {"0.parquet", "1.parquet"}
    table.now += timedelta(seconds=2)
    tidy.look()
    assert table.files() == {"1.parquet"}
    table.now += timedelta(days=365)
    assert tidy.look() == 0 and table.files() == {"1.parquet"}, "what serves stays for ever"


def test_files_of_failed_writes_go_once_nobody_writes(table):
    table.refresh()
    tidy = table.tidy()
    table.now += timedelta(seconds=10)
    run = table.start()
    table.write("torn.parquet")
    table.now += timedelta(seconds=GRACE * 2)
    tidy.look()
    assert "torn.parquet" in table.files(), "its refresh runs"
    table.store.writer.fail_refresh(run.id, run.fencing_token, "disk full", now=table.now)
    tidy.look()
    table.now += timedelta(seconds=GRACE + 1)
    tidy.look()
    assert table.files() == {"0.parquet"}
    # and again after the next failure, though all was swept once
    run = table.start()
    table.write("torn2.parquet")
    table.store.writer.fail_refresh(run.id, run.fencing_token, "again", now=table.now)
    table.now += timedelta(seconds=GRACE + 1)
    tidy.look()
    assert table.files() == {"0.parquet"}


def test_a_commit_that_was_never_published_stays_and_so_does_what_it_removed(table):
    table.refresh()
    table.now += timedelta(seconds=10)
    run = table.start()
    table.commit([table.write("unpublished.parquet")])
    table.store.writer.fail_refresh(run.id, run.fencing_token, "killed", now=table.now)
    table.now += timedelta(seconds=GRACE * 3)
    assert table.tidy().look() == 0
    assert table.files() == {"0.parquet", "unpublished.parquet"}


def test_what_a_restore_put_back_stays(table):
    table.refresh()
    tidy = table.tidy()
    tidy.look()
    table.refresh()
    first = ["k=a%20b/0.parquet"]
    table.now += timedelta(seconds=10)
    run = table.start()
    table.publish(run, table.commit(first, kind="RESTORE"))
    table.now += timedelta(seconds=GRACE * 3)
    tidy.look()
    assert table.files() == {"0.parquet"}
    table.tidy().look()  # and by a process that has seen nothing of it
    assert table.files() == {"0.parquet"}


def test_a_refresh_that_reads_a_cache_keeps_its_files(table):
    table.refresh()
    reader = Table(table.store, table.root, now=table.now, depends_on=(table.cache.id,))
    tidy = table.tidy()
    tidy.look()
    run = reader.start()
    table.refresh()
    table.now += timedelta(seconds=GRACE * 3)
    assert tidy.look() == 0 and "0.parquet" in table.files()
    table.store.writer.fail_refresh(run.id, run.fencing_token, "over", now=table.now)
    tidy.look()
    assert table.files() == {"1.parquet"}


def test_a_look_is_bounded_and_the_next_goes_on(table):
    tidy = table.tidy()
    table.refresh()
    tidy.look()
    for _ in range(9):
        table.refresh()
    table.now += timedelta(seconds=GRACE * 3)
    assert [tidy.look(4) for _ in range(4)] == [4, 4, 1, 0]
    assert table.files() == {"9.parquet"}


def test_a_log_that_was_cut_off_deletes_nothing_by_listing(table):
    table.refresh()
    table.refresh()
    (table.folder / "_delta_log" / f"{0:020d}.json").unlink()
    log = table.folder / "_delta_log" / f"{1:020d}.json"
    log.write_text(log.read_text().replace("FULL", "INCREMENTAL"))
    table.now += timedelta(seconds=GRACE * 3)
    assert table.tidy().look() == 0 and table.files() == {"0.parquet", "1.parquet"}


def test_a_folder_that_was_lost_and_those_of_dropped_caches_go(table):
    table.refresh()
    lost = table.folder
    table.now += timedelta(seconds=10)
    run = table.start()
    place = f"{lost}-{run.fencing_token}"
    table.store.writer.publish_refresh(
        run.id,
        run.fencing_token,
        Publication(cache_version=0, rows=1, bytes=1, tables=(), location=place),
        now=table.now,
    )
    table.version, table.live = -1, []
    table.commit([table.write("new.parquet")])
    first = Path(place) / "_delta_log" / f"{0:020d}.json"
    os.utime(first, (table.now.timestamp(), table.now.timestamp()))
    tidy = table.tidy()
    tidy.look()
    assert lost.exists()
    table.now += timedelta(seconds=GRACE + 1)
    table.tidy().look()
    assert not lost.exists() and table.files() == {"new.parquet"}
    table.store.writer.drop_cache(table.cache.id, now=table.now)
    assert tidy.purge() == 0
    table.now += timedelta(seconds=GRACE + 1)
    assert tidy.purge() == 1 and not Path(place).exists()


def test_a_worker_notices_files_that_are_gone(table):
    table.refresh()
    local = LocalFiles()
    house = Housekeeping(table.store, lambda place: local, GRACE)
    assert house.look_for_damage() == 0
    (table.folder / "k=a b" / "0.parquet").unlink()
    assert house.look_for_damage() == 1 and house.look_for_damage() == 0
    damaged = table.store.reader.cache_by_id(table.cache.id).damaged
    assert damaged == "its file k=a b/0.parquet is gone"
    table.refresh()
    assert table.store.reader.cache_by_id(table.cache.id).damaged is None
