"""A metastore dumped and made again: every row of every cache, and numbers that go on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.storage import LocalFiles
from cachemgr.errors import MetastoreError
from cachemgr.journal.journal import FOLDER, keep_journal
from cachemgr.journal.rebuild import differences, look
from cachemgr.metastore import open_metastore
from cachemgr.metastore.dumps import GAP, CacheDump
from cachemgr.metastore.history import RUNS_KEPT
from cachemgr.metastore.records import (
    CacheRecord,
    ColumnRecord,
    JoinRecord,
    JoinSide,
    Publication,
    SnapshotTableRecord,
)
from cachemgr.vocabulary import RunState
from tests.worlds.records import cache_of

SALES = TableAt("default.sales", "/t", "id", 7, 8, columns='{"fields":[]}')


def make(store, name: str, location: str = "/caches", **changed) -> CacheRecord:
    record = cache_of(
        namespace="default",
        name=name,
        definition="SELECT …",
        definition_hash="h",
        location=f"{location}/{name}",
        columns=(ColumnRecord("a", "int", False),),
        properties={"k": "v"},
        **changed,
    )
    return store.caches.create(record, now=store.clock.now())


def refresh(store, cache, version: int, plan=None):
    run = store.refreshes.start(
        cache.id, "me", now=None, lease_seconds=60, mode="FULL", reason="asked"
    )
    number = store.commit_numbers.next(cache.id)
    store.refreshes.update(run.id, run.fencing_token, commit_number=number)
    return store.refreshes.publish(
        run.id,
        run.fencing_token,
        Publication(
            cache_version=version,
            rows=3,
            bytes=4,
            tables=[SnapshotTableRecord("t", "/t", "id", 7, 8, "txn:a", '{"x":1}')],
            facts={"spec": "x"},
            plan=plan,
        ),
        now=None,
    )


def again(dumped, url: str):
    """The dump through JSON, as a record keeps it, in a metastore of its own."""
    store = open_metastore(url)
    caches = [
        CacheDump(d.revision, d.location, json.loads(json.dumps(d.rows))) for d in dumped.caches
    ]
    shared = json.loads(json.dumps(dumped.shared))
    store.dumps.restore(caches, shared, dumped.revision)
    return store


def test_all_of_a_cache_comes_back(metastore_url, tmp_path):
    with open_metastore(metastore_url) as store:
        cache = make(store, "cube", comment="c", paused=True)
        other = make(store, "dropped")
        for version in range(3):
            refresh(store, cache, version, plan={"v": version})
        store.grants.add(cache.id, "ann")
        store.caches.drop(other.id, now=store.clock.now())
        side = JoinSide("t", "/t", "id")
        join = JoinRecord(
            "j",
            "ddl",
            side,
            side,
            (("a", "b"),),
            validated_versions={"/t": BaseState("id", 7, "txn:a", 8)},
            validated_under={"spark.sql.ansi.enabled": "true"},
        )
        store.joins.create(join, now=store.clock.now())
        store.tables.restrict("t", "/t", "id", by="ann")
        store.tables.note([SALES])
        before = store.dumps.take()
        known = store.caches.get(cache.id), store.snapshots.published(cache.id)
        token, revision = store.refreshes.lease(cache.id).token, store.registry.revision()
    with again(before, f"sqlite:///{tmp_path / 'again.db'}") as store:
        found = store.caches.get(cache.id)
        assert found.revision > revision
        same = {f: getattr(found, f) for f in vars(found) if f != "revision"}
        assert same == {f: getattr(known[0], f) for f in same}
        assert store.snapshots.published(cache.id) == known[1]
        assert store.grants.of(cache.id) == ("ann",)
        assert store.caches.get(other.id).dropped_at is not None
        [join] = store.joins.all()
        assert join.validated_versions == {"/t": BaseState("id", 7, "txn:a", 8)}
        assert join.validated_under == {"spark.sql.ansi.enabled": "true"}
        assert [m.location for m in store.tables.restricted()] == ["/t"]
        assert store.tables.noted() == (SALES,)
        assert [r.cache_version for r in store.refreshes.of(cache.id)] == [2, 1, 0]
        assert store.refreshes.lease(cache.id).token >= token + GAP
        assert store.commit_numbers.next(cache.id) > 3 + GAP
        after = refresh(store, cache, 9)
        assert after.fencing_token > token + GAP and after.state is RunState.PUBLISHED


def test_a_run_that_was_under_way_is_over(metastore_url, tmp_path):
    with open_metastore(metastore_url) as store:
        cache = make(store, "cube")
        store.refreshes.start(
            cache.id, "me", now=None, lease_seconds=60, mode="FULL", reason="asked"
        )
        dumped = store.dumps.take()
    with again(dumped, f"sqlite:///{tmp_path / 'again.db'}") as store:
        (run,) = store.refreshes.of(cache.id)
        assert run.state is RunState.SUPERSEDED and "lost" in run.error
        assert store.refreshes.lease(cache.id).holder is None


def test_only_what_changed_and_no_more_runs_than_needed(store):
    cube, _ = make(store, "cube"), make(store, "other")
    since = store.registry.revision()
    assert store.dumps.take(since).caches == ()
    for version in range(RUNS_KEPT + 5):
        refresh(store, cube, version)
    (dump,) = store.dumps.take(since).caches
    assert dump.cache["id"] == cube.id and len(dump.rows["refresh_runs"]) == RUNS_KEPT
    assert dump.published["cache_version"] == RUNS_KEPT + 4


def test_a_metastore_with_caches_is_not_overwritten(store):
    make(store, "cube")
    before = store.dumps.take()
    with pytest.raises(MetastoreError) as caught:
        store.dumps.restore(before.caches, before.shared, before.revision)
    assert caught.value.code == "METASTORE_NOT_EMPTY"
    assert store.dumps.take() == before


def test_a_dump_of_another_release_is_refused(store, tmp_path):
    make(store, "cube")
    dumped = store.dumps.take()
    del dumped.caches[0].rows["caches"][0]["definition"]
    with pytest.raises(MetastoreError) as caught:
        again(dumped, f"sqlite:///{tmp_path / 'again.db'}")
    assert caught.value.code == "DUMP_OF_ANOTHER_RELEASE"
    assert "definition" in caught.value.message


def names(root) -> list[str]:
    return sorted(p.name.partition("-")[0] for p in (root / FOLDER).iterdir())


def test_each_change_leaves_one_record(store, tmp_path):
    keep_journal(store, str(tmp_path))
    cube = make(store, "cube", str(tmp_path))
    folder = tmp_path / FOLDER / "cube"
    (first,) = folder.iterdir()
    store.grants.add(cube.id, "ann")
    (second,) = folder.iterdir()
    assert second.name > first.name and '"ann"' in second.read_text()
    make(store, "elsewhere", "s3a://bucket/caches")  # left to those who reach it
    assert names(tmp_path) == ["cube", "shared"]


def test_base_tables_that_only_moved_on_are_not_written_again(store, tmp_path):
    keep_journal(store, str(tmp_path))
    cube = make(store, "cube", str(tmp_path))
    store.tables.note([SALES])

    def shared() -> list[str]:
        return [p.name for p in (tmp_path / FOLDER).glob("shared-*/*")]

    before = shared()
    store.tables.note([replace(SALES, version=8)])
    store.grants.add(cube.id, "ann")
    assert shared() == before
    store.tables.note([replace(SALES, version=9, columns='{"fields":[1]}')])
    assert shared() > before and len(shared()) == 1


def test_a_record_that_cannot_be_written_costs_no_change(store, tmp_path):
    (tmp_path / FOLDER).write_text("in the way")
    keep_journal(store, str(tmp_path))
    cube = make(store, "cube", str(tmp_path))
    (tmp_path / FOLDER).unlink()
    make(store, "other", str(tmp_path))
    assert names(tmp_path) == ["cube", "other", "shared"] and store.caches.get(cube.id) is not None


def warned(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


def test_a_cache_whose_record_cannot_be_written_keeps_back_no_other(store, tmp_path, caplog):
    good_root, bad_root = tmp_path / "good", tmp_path / "bad"
    bad_root.write_text("no folder can be made below a file")
    keep_journal(store, str(good_root))
    good = make(store, "good", str(good_root))
    bad = make(store, "bad", str(bad_root))
    folder = good_root / FOLDER / "good"
    (before,) = folder.iterdir()
    for user in ("ann", "bob"):
        store.grants.add(good.id, user)
    later = make(store, "later", str(good_root))
    (record,) = folder.iterdir()
    assert record.name > before.name and '"bob"' in record.read_text()
    assert (good_root / FOLDER / "later").is_dir()
    (said,) = warned(caplog)
    assert "default.bad" in said and str(bad_root) in said and "[Errno" in said
    # it can be written now: with the next change of any cache, and once
    bad_root.unlink()
    store.grants.add(later.id, "ann")
    assert [p.name for p in (bad_root / FOLDER).iterdir()] == ["bad"]
    assert len(warned(caplog)) == 1 and store.caches.get(bad.id) is not None


def test_a_late_record_is_written_by_a_later_look(store, tmp_path, monkeypatch):
    root = tmp_path / "root"
    root.write_text("in the way")
    journal = keep_journal(store, str(tmp_path / "own"))
    make(store, "cube", str(root))
    root.unlink()
    journal.catch_up()
    assert not root.exists(), "not with each look: a storage that is away takes long to say so"
    monkeypatch.setattr("cachemgr.journal.journal.time.monotonic", lambda: 1e12)
    journal.catch_up()
    assert names(root) == ["cube"]


def test_a_dropped_cache_without_a_record_is_no_obstacle(store, tmp_path, caplog):
    root, own = tmp_path / "bad", tmp_path / "own"
    root.write_text("in the way")
    keep_journal(store, str(own))
    good, bad = make(store, "good", str(own)), make(store, "bad", str(root))
    store.caches.drop(bad.id, now=store.clock.now())
    store.grants.add(good.id, "ann")
    assert len(warned(caplog)) == 1
    assert differences(store, [str(own)], lambda root: LocalFiles()) == []


def test_a_dropped_cache_that_left_a_record_is_written_once_it_can_be(store, tmp_path):
    root = tmp_path / "root"
    keep_journal(store, str(tmp_path / "own"))
    cube = make(store, "cube", str(root))
    root.rename(tmp_path / "away")
    root.write_text("in the way")
    store.caches.drop(cube.id, now=store.clock.now())
    root.unlink()
    (tmp_path / "away").rename(root)
    make(store, "other", str(tmp_path / "own"))
    (line,) = look([str(root)], lambda root: LocalFiles()).restored
    assert line.state == "DROPPED"


def test_what_others_changed_is_written_too(store, metastore_url, tmp_path):
    with open_metastore(metastore_url) as other:
        make(other, "cube", str(tmp_path))
    journal = keep_journal(store, str(tmp_path), since=0)
    journal.catch_up()
    assert (tmp_path / FOLDER / "cube").is_dir()
