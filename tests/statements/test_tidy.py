"""Which files are deleted and which stay, by logs written by hand: the disk stays flat, and nothing
that may be read goes."""

from __future__ import annotations

import json
import os
import random
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
        self.cache = self.store.caches.create(record, now=self.now)

    @property
    def folder(self) -> Path:
        return Path(self.store.caches.get(self.cache.id).location)

    def write(self, name: str) -> str:
        """A data file with its checksum, as old as the moment says."""
        path = self.folder / "k=a b" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for made, size in ((path, 1000), (path.with_name(f".{name}.crc"), 8)):
            made.write_bytes(b"x" * size)
            os.utime(made, (self.now.timestamp(), self.now.timestamp()))
        return f"k=a%20b/{name}"

    def commit(self, adds: list[str], kind: str = "FULL", removes: list[str] | None = None) -> int:
        """Add files, and remove some; all that are there, unless `removes` says which."""
        self.version += 1
        gone = self.live if removes is None else removes
        actions = [{"commitInfo": {"userMetadata": stamp_text({"kind": kind})}}]
        actions += [{"remove": {"path": p}} for p in gone]
        actions += [
            {"add": {"path": p, "partitionValues": {"k": "a b"}, "size": 1000}} for p in adds
        ]
        log = self.folder / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        text = "\n".join(map(json.dumps, actions))
        (log / f"{self.version:020d}.json").write_text(text)
        self.live = [p for p in self.live if p not in gone] + adds
        return self.version

    def start(self):
        return self.store.refreshes.start(
            self.cache.id, "w", now=self.now, lease_seconds=60, mode="FULL", reason="test"
        )

    def publish(self, run, version: int) -> None:
        self.store.refreshes.publish(
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
    table.store.refreshes.fail(run.id, run.fencing_token, "disk full", now=table.now)
    tidy.look()
    table.now += timedelta(seconds=GRACE + 1)
    tidy.look()
    assert table.files() == {"0.parquet"}
    # and again after the next failure, though all was swept once
    run = table.start()
    table.write("torn2.parquet")
    table.store.refreshes.fail(run.id, run.fencing_token, "again", now=table.now)
    table.now += timedelta(seconds=GRACE + 1)
    tidy.look()
    assert table.files() == {"0.parquet"}


def test_a_commit_that_was_never_published_stays_and_so_does_what_it_removed(table):
    table.refresh()
    table.now += timedelta(seconds=10)
    run = table.start()
    table.commit([table.write("unpublished.parquet")])
    table.store.refreshes.fail(run.id, run.fencing_token, "killed", now=table.now)
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
    table.store.refreshes.fail(run.id, run.fencing_token, "over", now=table.now)
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
    table.store.refreshes.publish(
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
    table.store.caches.drop(table.cache.id, now=table.now)
    assert tidy.purge() == 0
    table.now += timedelta(seconds=GRACE + 1)
    assert tidy.purge() == 1 and not Path(place).exists()


def test_a_dropped_cache_whose_files_cannot_be_deleted_keeps_no_other(table, monkeypatch):
    """Nor the statement after which it is tried, which has been carried out."""
    other = Table(table.store, table.root)
    for one in (table, other):
        one.refresh()
        one.store.caches.drop(one.cache.id, now=one.now)
    table.now += timedelta(seconds=GRACE + 1)
    delete = LocalFiles.delete_folder

    def refused(files: LocalFiles, folder: str) -> None:
        if table.cache.id in folder:
            raise PermissionError(folder)
        delete(files, folder)

    with monkeypatch.context() as until:
        until.setattr(LocalFiles, "delete_folder", refused)
        assert table.tidy().purge() == 1
    assert (table.root / table.cache.id).exists() and not (table.root / other.cache.id).exists()
    assert table.tidy().purge() == 1 and not (table.root / table.cache.id).exists()


def test_two_who_delete_the_same_folder_leave_nothing_of_it(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / "gone" / name).mkdir(parents=True)
        (tmp_path / "gone" / name / "x").write_text("x")
    unlink, quicker = os.unlink, []

    def unlinked(path, *args, **where):
        unlink(path, *args, **where)
        if not quicker:
            quicker.append(path)
            raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", unlinked)
    LocalFiles().delete_folder(str(tmp_path / "gone"))
    assert quicker and not (tmp_path / "gone").exists()
    LocalFiles().delete_folder(str(tmp_path / "gone"))


def test_a_worker_notices_files_that_are_gone(table):
    table.refresh()
    local = LocalFiles()
    house = Housekeeping(table.store, lambda place: local, GRACE)
    assert house.look_for_damage() == 0
    (table.folder / "k=a b" / "0.parquet").unlink()
    assert house.look_for_damage() == 1 and house.look_for_damage() == 0
    damaged = table.store.caches.get(table.cache.id).damaged
    assert damaged == "its file k=a b/0.parquet is gone"
    table.refresh()
    assert table.store.caches.get(table.cache.id).damaged is None


SETS = ("0", "1", "2")


class Chain:
    """A cube whose refreshes add to what is stored, and what each of its versions holds.

    Args:
        table: Its table; a file is named after its set and its version.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.held: dict[int, set[str]] = {}

    def add(self, kind: str, replaced: str = "", *, dies: bool = False) -> int:
        """A refresh that replaces some sets and appends to the others."""
        table = self.table
        table.now += timedelta(seconds=10)
        run = table.start()
        adds = [table.write(f"{n}-{table.version + 1}.parquet") for n in SETS]
        gone = [p for p in table.live if kind == "FULL" or p.rpartition("/")[2][0] in replaced]
        version = table.commit(adds, "FULL" if kind == "FULL" else "INCREMENTAL", gone)
        return self._end(run, version, dies)

    def restore(self, version: int, *, dies: bool = False) -> int:
        table = self.table
        table.now += timedelta(seconds=10)
        run = table.start()
        wanted = [f"k=a%20b/{name}" for name in sorted(self.held[version])]
        adds = [p for p in wanted if p not in table.live]
        restored = table.commit(adds, "RESTORE", [p for p in table.live if p not in wanted])
        return self._end(run, restored, dies)

    def _end(self, run, version: int, dies: bool) -> int:
        self.held[version] = {p.rpartition("/")[2] for p in self.table.live}
        if dies:
            store = self.table.store
            store.refreshes.fail(run.id, run.fencing_token, "killed", now=self.table.now)
        else:
            self.table.publish(run, version)
        return version


def holding(chain: Chain, *versions: int) -> set[str]:
    return {name for version in versions for name in chain.held[version]}


def test_a_chain_of_commits_keeps_what_each_served_version_holds(table):
    chain, tidy = Chain(table), table.tidy()
    chain.add("FULL")
    tidy.look()
    for replaced in ("", "2", "12", "", "012", "0", ""):
        chain.add("PARTIALS", replaced)
        tidy.look()
        table.tidy().look()  # and one that has seen nothing of it
        assert table.files() == holding(chain, *chain.held), "all are within the grace"
    last = chain.add("FULL")
    for version in range(last):
        # one after the other leaves the grace
        table.now = T0 + timedelta(seconds=10 * (version + 2) + GRACE)
        tidy.look()
        served = [v for v in chain.held if v > version]
        assert table.files() == holding(chain, *served), version


@pytest.mark.parametrize("is_new", [False, True], ids=["from the start", "a new process"])
@pytest.mark.parametrize("replaced", ["", "2", "12", "012"])
def test_nothing_but_what_is_held_stays_of_a_chain(table, is_new, replaced):
    """Of a version far above the last whole one: a file that a commit in between replaced goes,
    also where a process begins that has not followed the log."""
    chain, tidy = Chain(table), table.tidy()
    chain.add("FULL")
    if not is_new:
        tidy.look()
    chain.add("PARTIALS", "2")
    chain.add("PARTIALS", replaced)
    last = chain.add("PARTIALS", "0")
    table.now += timedelta(seconds=GRACE * 3)
    tidy.look()
    assert table.files() == holding(chain, last)
    table.now += timedelta(days=365)
    table.tidy().look()
    assert table.files() == holding(chain, last), "what serves stays for ever"


@pytest.mark.parametrize("kind", ["FULL", "PARTIALS"])
@pytest.mark.parametrize("is_new", [False, True], ids=["from the start", "a new process"])
def test_commits_that_were_undone_go_and_what_they_removed_stays(table, kind, is_new):
    chain, tidy = Chain(table), table.tidy()
    chain.add("FULL")
    served = chain.add("PARTIALS", "1")
    if not is_new:
        tidy.look()
    dead = chain.add(kind, "02", dies=True)
    table.now += timedelta(seconds=GRACE * 3)
    tidy.look()
    assert table.files() >= holding(chain, served)
    restored = chain.restore(served)
    table.now += timedelta(seconds=GRACE * 3)
    tidy.look()
    assert table.files() == holding(chain, restored) == holding(chain, served)
    assert not table.files() & (chain.held[dead] - chain.held[served])
    last = chain.add("PARTIALS", "2")
    table.now += timedelta(seconds=GRACE * 3)
    tidy.look()
    assert table.files() == holding(chain, last)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_a_chain_does_tidying_keeps_what_is_served_and_nothing_else(table, seed):
    """Random refreshes, deaths, restores and looks by processes old and new."""
    rng = random.Random(seed)
    chain, tidy = Chain(table), table.tidy()
    served = [(chain.add("FULL"), table.now)]
    for _ in range(25):
        chance = rng.random()
        replaced = "".join(n for n in SETS if rng.random() < 0.4)
        kind = "FULL" if chance < 0.1 else "PARTIALS"
        if chance < 0.3:
            chain.add(kind, replaced, dies=True)
            version = chain.restore(served[-1][0])
        else:
            version = chain.add(kind, replaced)
        served.append((version, table.now))
        if rng.random() < 0.2:
            tidy = table.tidy()
        if rng.random() < 0.6:
            tidy.look(rng.choice((2, 5, 1000)))
        table.now += timedelta(seconds=rng.choice((0, 0, GRACE // 2, GRACE)))
        moment = table.now - timedelta(seconds=GRACE)
        followed = zip(served, [*served[1:], (0, table.now)], strict=True)
        kept = [v for (v, _), (_, until) in followed if until > moment] or [served[-1][0]]
        assert table.files() >= holding(chain, *kept), f"seed {seed}"
    table.now += timedelta(seconds=GRACE * 3)
    (tidy if rng.random() < 0.5 else table.tidy()).look()
    assert table.files() == holding(chain, served[-1][0]), f"seed {seed}"
