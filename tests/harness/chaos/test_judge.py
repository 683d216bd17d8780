"""What judges the chaos must be able to find fault: each kind of damage is done once by hand."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import delete, insert, text

from cachemgr.cache_spec import RefreshPolicy
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import (
    CacheRecord,
    Publication,
    RefreshRunRecord,
    SnapshotTableRecord,
    new_id,
)
from scheduler.triggers import Every
from tests.flaky import Flaky
from tests.harness.chaos.client import Client
from tests.harness.chaos.damage import _copy
from tests.harness.chaos.judge import Restored, Verdict, check_turns, judge
from tests.harness.chaos.stages import StageTail
from tests.harness.chaos.storage import Storage, harmed, states
from tests.harness.chaos.world import (
    CLOCK_AHEAD,
    BaseTable,
    CacheSpec,
    cache_specs,
    expected,
    version_of,
)
from tests.worlds.records import cache_of

SPEC = CacheSpec("c00", "t0", 0, "EVERY 30 SECONDS", "STRICT")


@dataclass
class Made:
    """One cache with a Delta log that is written by hand."""

    store: Metastore
    cache: CacheRecord
    folder: Path
    version: int = -1

    def commit(self, refresh_id: str, token: int, base: int, **stamp: object) -> int:
        """Replace the rows with those of a base version."""
        parent, self.version = self.version, self.version + 1
        name = f"v{self.version}.parquet"
        rows = ", ".join(map(str, expected(base))) if base else "(0, 0, 0, 0, 0)"
        where = "" if base else " WHERE false"
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * FROM (VALUES {rows}) AS r(grp, n, up, down, newest){where}) "
                f"TO '{self.folder / name}' (FORMAT parquet)"
            )
        ours = {"kind": "FULL", "refresh_id": refresh_id, "fencing_token": token}
        ours |= {"parent_version": parent, **stamp}
        actions = [
            {"commitInfo": {"userMetadata": json.dumps(ours)}},
            {"txn": {"appId": self.cache.id, "version": self.version + 1}},
            {"add": {"path": name}},
        ]
        if parent >= 0:
            actions.append({"remove": {"path": f"v{parent}.parquet"}})
        log = self.folder / "_delta_log" / f"{self.version:020d}.json"
        log.write_text("\n".join(map(json.dumps, actions)))
        return self.version

    def start(self) -> RefreshRunRecord:
        """Ask for a refresh and take it."""
        self.store.queue.request(self.cache.id, why="due", mode="FULL")
        run = self.store.queue.claim("w1", lease_seconds=20)
        assert run is not None
        return run

    def publish(self, run: RefreshRunRecord, version: int, base: int) -> RefreshRunRecord:
        """Publish a version as computed at a base version."""
        table = SnapshotTableRecord("t0", "/t0", "id", base, 0)
        return self.store.refreshes.publish(
            run.id,
            run.fencing_token,
            Publication(cache_version=version, rows=3, bytes=1, tables=[table]),
            now=None,
        )

    def refresh(self, base: int) -> RefreshRunRecord:
        """A whole refresh as it should be."""
        run = self.start()
        return self.publish(run, self.commit(run.id, run.fencing_token, base), base)

    def problems(self, *asked: str, **kills: float) -> list[str]:
        """What the judge says."""
        return judge(self.store, [SPEC], set(asked), kills, 60.0).problems


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as store:
        folder = tmp_path / "c00"
        (folder / "_delta_log").mkdir(parents=True)
        record = cache_of(
            namespace="default",
            name="c00",
            definition="SELECT …",
            definition_hash="h",
            location=str(folder),
            refresh=RefreshPolicy(Every(30)),
        )
        cache = store.caches.create(record, now=store.clock.now())
        yield Made(store, cache, folder)


def test_nothing_is_wrong_with_what_is_right(made: Made):
    asked = [made.refresh(base).id for base in (0, 3, 7)]
    dead = made.start()
    made.commit(dead.id, dead.fencing_token, 9)
    made.store.queue.hand_over(dead.id, by="w1")
    heir = made.store.queue.claim("w2", lease_seconds=20)
    made.store.refreshes.update(heir.id, heir.fencing_token, mode="ADOPT")
    made.publish(heir, made.version, 9)
    killed = {dead.id: heir.started_at.timestamp() - 9}
    assert made.problems(*asked, dead.id, heir.id, **killed) == []


def _put_back(made: Made) -> tuple[list[str], Restored]:
    """The metastore's rows of before a refresh, which was asked for, committed and published."""
    copied = time.time()
    rows = _copy(made.store.engine)
    lost = made.refresh(6).id
    with made.store.engine.begin() as connection:
        for table in reversed(rows):
            connection.execute(delete(table))
        for table, mine in rows.items():
            if mine:
                connection.execute(insert(table), mine)
    return [lost], Restored(copied, time.time(), frozenset([lost]))


def test_what_a_metastore_put_back_has_forgotten_is_not_lost(made: Made):
    made.refresh(4)
    waiting = made.store.queue.request(made.cache.id, why="due", mode="FULL")
    asked, restored = _put_back(made)
    assert asked == [waiting.id], "it is carried out again, under the same id"
    time.sleep(0.01)
    again = made.refresh(7)
    assert again.id == waiting.id
    after = made.refresh(8)

    def problems(*known: Restored) -> list[str]:
        ids = {*asked, after.id, "0" * 32}
        return judge(made.store, [SPEC], ids, {}, 60.0, known).problems

    assert problems(restored) == [f"refresh {'0' * 32} was asked for and is lost"]
    assert any("committed versions" in said for said in problems())


def test_a_refresh_that_was_lost_after_the_metastore_was_put_back_is_found(made: Made):
    made.refresh(4)
    asked, restored = _put_back(made)
    time.sleep(0.01)
    run = made.start()
    made.commit(run.id, run.fencing_token, 7)
    made.publish(run, made.commit(run.id, run.fencing_token, 8), 8)
    found = judge(made.store, [SPEC], {*asked, "later"}, {}, 60.0, [restored]).problems
    assert any("committed versions" in said for said in found)
    assert "refresh later was asked for and is lost" in found


def test_deleted_files_are_known_to_be_gone(made: Made):
    run = made.refresh(4)
    (made.folder / f"v{made.version}.parquet").unlink()
    with pytest.raises(duckdb.IOException):
        made.problems()
    gone = {(SPEC.name, run.cache_version)}
    assert judge(made.store, [SPEC], set(), {}, 60.0, (), gone).problems == []


def _lost_request(made: Made) -> list[str]:
    return made.problems("0" * 32)


def _waits(made: Made) -> list[str]:
    made.store.queue.request(made.cache.id, why="due")
    return made.problems()


def _never_ended(made: Made) -> list[str]:
    made.start()
    return made.problems()


def _failed(made: Made) -> list[str]:
    run = made.start()
    made.store.refreshes.fail(run.id, run.fencing_token, "disk full", now=None)
    return made.problems()


def _paused(made: Made) -> list[str]:
    made.store.schedules.note_failure(
        made.cache.id, failures=5, retry_at=None, paused_because="five in a row"
    )
    return made.problems()


def _two_commits(made: Made) -> list[str]:
    run = made.start()
    made.commit(run.id, run.fencing_token, 5)
    made.publish(run, made.commit(run.id, run.fencing_token, 6), 6)
    return made.problems()


def _published_twice(made: Made) -> list[str]:
    run = made.start()
    made.publish(run, made.version, 4)
    return made.problems()


def _not_above_its_parent(made: Made) -> list[str]:
    run = made.start()
    version = made.commit(run.id, run.fencing_token, 5, parent_version=made.version - 2)
    made.publish(run, version, 5)
    return made.problems()


def _of_another(made: Made) -> list[str]:
    run = made.start()
    made.publish(run, made.commit(new_id(), run.fencing_token, 5), 5)
    return made.problems()


def _adopted_and_published(made: Made) -> list[str]:
    first = made.refresh(5)
    run = made.start()
    made.store.refreshes.update(run.id, run.fencing_token, mode="ADOPT")
    made.publish(run, made.commit(first.id, run.fencing_token, 6), 6)
    return made.problems()


def _old_rows(made: Made) -> list[str]:
    run = made.start()
    made.publish(run, made.commit(run.id, run.fencing_token, 5), 6)
    return made.problems()


def _torn_rows(made: Made) -> list[str]:
    run = made.start()
    version = made.commit(run.id, run.fencing_token, 5)
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT 0 AS grp, 5 AS n, 15 AS up, 4 AS down, 5 AS newest) "
            f"TO '{made.folder / f'v{version}.parquet'}' (FORMAT parquet)"
        )
    made.publish(run, version, 5)
    return made.problems()


def _late(made: Made) -> list[str]:
    dead = made.start()
    made.store.queue.hand_over(dead.id, by="w1")
    heir = made.store.queue.claim("w2", lease_seconds=20)
    made.publish(heir, made.commit(heir.id, heir.fencing_token, 5), 5)
    handed = made.store.refreshes.get(dead.id).finished_at
    return made.problems(**{dead.id: (handed - timedelta(seconds=31)).timestamp()})


def _not_refreshed(made: Made) -> list[str]:
    made.refresh(5)
    with made.store.engine.begin() as connection:
        connection.execute(
            text("UPDATE refresh_runs SET finished_at = '2020-01-01 00:00:00' WHERE reason = 'due'")
        )
    made.refresh(6)
    return made.problems()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_lost_request, "is lost"),
        (_waits, "still waits"),
        (_never_ended, "never ended"),
        (_failed, "FAILED disk full"),
        (_paused, "is paused: five in a row"),
        (_two_commits, "committed versions"),
        (_published_twice, "was published by"),
        (_not_above_its_parent, "whose parent is"),
        (_of_another, "published a commit of"),
        (_adopted_and_published, "which had published"),
        (_old_rows, "says base version 6 and holds 5"),
        (_torn_rows, "torn rows"),
        (_late, "taken over 31"),
        (_not_refreshed, "no cache at all was refreshed for"),
    ],
    ids=lambda value: getattr(value, "__name__", "").strip("_") or None,
)
def test_damage_is_found(made: Made, damage: Callable[[Made], list[str]], said: str):
    made.refresh(4)
    assert made.problems() == []
    assert any(said in problem for problem in damage(made))


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([10, 20, 30, 200, 260, 320], None),  # those before it was due do not count
        ([200, 240, 280, 320], "was not refreshed for 400.0 s, while c01 was 4 times"),
        ([], "no cache at all was refreshed for 400.0 s"),
    ],
)
def test_who_waits_is_overtaken_by_few(others, said):
    """The machine may be slow, but it must serve one after the other."""
    another = CacheSpec("c01", "t0", 1, "EVERY 30 SECONDS", "STRICT")
    verdict = Verdict(allowance=200.0)
    check_turns(verdict, {SPEC: [0.0, 400.0], another: [float(moment) for moment in others]})
    assert [p for p in verdict.problems if said is None or said not in p] == []
    assert bool(verdict.problems) == (said is not None)
    assert verdict.longest_gap["c00"] == 400.0


def test_rows_say_their_version():
    for version in (0, 1, 2, 50):
        rows = expected(version) if version else []
        assert version_of(reversed(rows)) == version
    torn = [*expected(7)[:2], *expected(8)[2:]]
    assert version_of(torn) is None and version_of(expected(7)[:2]) is None


def test_the_base_tables_hold_what_is_expected(tmp_path: Path):
    table = BaseTable("t0", tmp_path, parts=2)
    (table.path / "_delta_log").mkdir(parents=True)
    for version in (1, 2, 3):
        assert table.append() == version
    query = (
        "SELECT grp, count(*)::BIGINT, sum(up)::BIGINT, sum(down)::BIGINT, max(v) "
        f"FROM read_parquet('{table.path}/*.parquet') WHERE part = 1 GROUP BY grp"
    )
    with duckdb.connect() as connection:
        assert version_of(connection.execute(query).fetchall()) == 3
    with pytest.raises(FileExistsError):
        BaseTable("t0", tmp_path, parts=2).append()


def test_a_writers_clock_may_be_ahead(tmp_path: Path):
    table = BaseTable("t0", tmp_path, parts=1, ahead=CLOCK_AHEAD)
    (table.path / "_delta_log").mkdir(parents=True)
    table.append()
    [commit] = (table.path / "_delta_log").glob("*.json")
    assert commit.stat().st_mtime > time.time() + CLOCK_AHEAD / 2
    assert table.at(time.monotonic()) == 1, "the judge goes by a clock of its own"


def test_each_query_has_a_cache_of_its_own():
    specs = cache_specs(20, 4)
    assert len({(s.table, s.part) for s in specs}) == 20
    assert all(5 <= s.period <= 30 for s in specs)
    assert {s.period for s in specs} >= {5, 10, 30}


class FakeSession:
    """Answers with rows given beforehand, as hits."""

    def __init__(self, rows: list[tuple[int, ...]]) -> None:
        self.rows = rows

    def sql(self, text: str) -> FakeSession:
        return self

    def collect(self) -> list[tuple[int, ...]]:
        return self.rows


@pytest.mark.parametrize(
    ("base", "answer", "hit", "freshness", "said"),
    [
        (5, expected(5), True, "STRICT", None),
        (5, expected(4), True, "MAX STALENESS UNLIMITED", None),
        (5, expected(4), True, "STRICT", "STRICT"),
        (5, expected(4), False, "MAX STALENESS UNLIMITED", "a miss read"),
        (5, expected(6), True, "MAX STALENESS UNLIMITED", "does not exist"),
        (5, expected(5)[:2], True, "MAX STALENESS UNLIMITED", "torn"),
        (5, expected(3), True, "MAX STALENESS INTERVAL 60 SECONDS", "staler"),
    ],
)
def test_the_client_notices(base, answer, hit, freshness, said, tmp_path: Path, monkeypatch):
    table = BaseTable("t0", tmp_path, parts=1, version=base)
    table.made = {v: float(v) for v in range(1, base + 1)}
    counts = iter([{"hits": 0}, {"hits": int(hit)}])
    monkeypatch.setattr("cachemgr.counters", lambda session: next(counts))
    spec = CacheSpec("c", "t0", 0, "EVERY 30 SECONDS", freshness)
    client = Client(FakeSession(answer), [spec], {"t0": table}, seed=1, pause=0)
    client.ask(spec)
    wrong = client.seen.wrong
    assert wrong == [] if said is None else said in wrong[0]


def test_the_log_says_where_a_refresh_stands(tmp_path: Path):
    log = tmp_path / "replica.log"
    tail = StageTail(log)
    assert tail.now() is None

    def write(*events: str) -> None:
        with log.open("a") as file:
            for event in events:
                file.write(json.dumps({"event": event, "level": "info"}) + "\n")

    write("refresh of default.c00 asked for: every 30 s [abc]", "refresh r1: step started")
    assert tail.now() == ("r1", "started") and tail.asked == {"abc"}
    with log.open("a") as file:
        file.write('{"event": "refresh r1: step wri')
    assert tail.now() == ("r1", "started"), "half a line is not read"
    with log.open("a") as file:
        file.write('ting"}\n')
    assert tail.now() == ("r1", "writing")
    write("refresh r0 of cache c: PUBLISHED")
    assert tail.now() == ("r1", "writing")
    write("refresh r1 of cache c: PUBLISHED")
    assert tail.now() is None


def test_a_poisoned_table_takes_no_commit_and_excuses_its_queries_alone(tmp_path: Path):
    tables = {name: BaseTable(name, tmp_path, parts=1) for name in ("t0", "t1")}
    for table in tables.values():
        (table.path / "_delta_log").mkdir(parents=True)
        table.append()
    specs = [CacheSpec(f"c{i}", f"t{i}", 0, "EVERY 30 SECONDS", "STRICT") for i in (0, 1)]
    client = Client(None, specs, tables, seed=1, pause=0)
    before = time.monotonic()
    tables["t0"].poison()
    log = tables["t0"].path / "_delta_log"
    assert "ofTomorrow" in (log / f"{2:020d}.json").read_text()
    assert tables["t0"].append() == 1 and tables["t1"].append() == 2
    for spec in specs:
        client._failed(spec, before, OSError("cannot be read"))
    assert client.seen.unreadable == 1 and len(client.seen.errors) == 1
    tables["t0"].mend()
    assert not tables["t0"].was_unreadable(time.monotonic()) and tables["t0"].append() == 2
    client._failed(specs[0], time.monotonic(), OSError("cannot be read"))
    assert len(client.seen.errors) == 2


def test_one_query_may_run_into_deleted_files(tmp_path: Path):
    client = Client(None, [SPEC], {"t0": BaseTable("t0", tmp_path, parts=1)}, seed=1, pause=0)
    client.damaged(SPEC)
    error = OSError("no file part-0")
    error.add_note("cache default.c00 is damaged: run it again")
    for _ in range(2):
        client._failed(SPEC, time.monotonic(), error)
    assert client.seen.damaged == 1 and len(client.seen.errors) == 1


def test_a_cache_that_a_storage_away_changed_is_found(made: Made):
    made.refresh(4)
    cache, store = made.cache, made.store
    before = states(made.store, [SPEC])
    assert harmed(before, states(made.store, [SPEC]), ()) == []
    run = made.store.snapshots.published(cache.id).run.id
    store.snapshots.note_damage(cache.id, run, "its folder cannot be read")
    (said,) = harmed(before, states(made.store, [SPEC]), ())
    assert SPEC.name in said and "damaged=True" in said
    assert harmed(before, states(made.store, [SPEC]), [SPEC.name]) == []
    store.snapshots.lift_damage(cache.id, run, "its folder cannot be read")
    assert harmed(before, states(made.store, [SPEC]), ()) == []
    store.schedules.note_failure(cache.id, failures=5, retry_at=None, paused_because="denied")
    assert "paused=True" in harmed(before, states(made.store, [SPEC]), ())[0]


def test_one_query_may_run_into_a_storage_that_goes_away(tmp_path: Path):
    gone = Storage({"client": Flaky(tmp_path / "script")})
    table = BaseTable("t0", tmp_path, parts=1)
    client = Client(
        None,
        [SPEC],
        {"t0": table},
        seed=1,
        pause=0,
        was_away=lambda at: gone.was_away("client", at),
    )
    error = OSError("Access Denied")
    error.add_note("relational cache default.c00 could not be read: permission denied: x")
    client._failed(SPEC, time.monotonic(), error)
    assert len(client.seen.errors) == 1
    over = threading.Event()
    over.set()
    assert gone.go(random.Random(1), over) and (tmp_path / "script").read_text() == ""
    client._failed(SPEC, time.monotonic(), error)
    assert client.seen.away == 1 and len(client.seen.errors) == 1
    client._failed(SPEC, time.monotonic() + 60, error)
    assert len(client.seen.errors) == 2
