"""A metastore dumped and made again: every row of every cache, and numbers that go on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cachemgr.base_state import BaseState
from cachemgr.errors import MetastoreError
from cachemgr.journal.journal import FOLDER, keep_journal
from cachemgr.metastore import open_metastore
from cachemgr.metastore.dump import GAP, CacheDump
from cachemgr.metastore.history import RUNS_KEPT
from cachemgr.metastore.records import (
    BaseTableRecord,
    CacheRecord,
    ColumnRecord,
    JoinRecord,
    JoinSide,
    RunState,
    SnapshotTableRecord,
)

SALES = BaseTableRecord("default.sales", "/t", "id", 7, 8, '{"fields":[]}')


def make(store, name: str, location: str = "/caches", **changed) -> CacheRecord:
    record = CacheRecord(
        namespace="default",
        name=name,
        definition="SELECT …",
        definition_hash="h",
        location=f"{location}/{name}",
        columns=(ColumnRecord("a", "int", False),),
        properties={"k": "v"},
        **changed,
    )
    return store.writer.create_cache(record, now=store.reader.now())


def refresh(store, cache, version: int, plan=None):
    run = store.writer.start_refresh(
        cache.id, "me", now=None, lease_seconds=60, mode="FULL", reason="asked"
    )
    number = store.writer.next_commit_number(cache.id)
    store.writer.update_refresh(run.id, run.fencing_token, commit_number=number)
    return store.writer.publish_refresh(
        run.id, run.fencing_token, now=None, cache_version=version, rows=3, bytes=4,
        tables=[SnapshotTableRecord("t", "/t", "id", 7, 8, "txn:a", '{"x":1}')],
        facts={"spec": "x"}, plan=plan,
    )  # fmt: skip


def again(dumped, url: str):
    """The dump through JSON, as a record keeps it, in a metastore of its own."""
    store = open_metastore(url)
    caches = [
        CacheDump(d.revision, d.location, json.loads(json.dumps(d.rows))) for d in dumped.caches
    ]
    shared = json.loads(json.dumps(dumped.shared))
    store.writer.restore(caches, shared, dumped.revision)
    return store


def test_all_of_a_cache_comes_back(metastore_url, tmp_path):
    with open_metastore(metastore_url) as store:
        cache = make(store, "cube", comment="c", paused=True)
        other = make(store, "dropped")
        for version in range(3):
            refresh(store, cache, version, plan={"v": version})
        store.writer.grant(cache.id, "ann")
        store.writer.drop_cache(other.id, now=store.reader.now())
        side = JoinSide("t", "/t", "id")
        join = JoinRecord(
            "j",
            "ddl",
            side,
            side,
            (("a", "b"),),
            validated_versions={"/t": BaseState("id", 7, "txn:a", 8)},
        )
        store.writer.create_join(join, now=store.reader.now())
        store.writer.restrict_table("t", "/t", "id", by="ann")
        store.writer.note_tables([SALES])
        before = store.reader.dump()
        known = store.reader.cache_by_id(cache.id), store.reader.published(cache.id)
        token, revision = store.reader.lease(cache.id).token, store.reader.revision()
    with again(before, f"sqlite:///{tmp_path / 'again.db'}") as store:
        found = store.reader.cache_by_id(cache.id)
        assert found.revision > revision
        same = {f: getattr(found, f) for f in vars(found) if f != "revision"}
        assert same == {f: getattr(known[0], f) for f in same}
        assert store.reader.published(cache.id) == known[1]
        assert store.reader.grants(cache.id) == ("ann",)
        assert store.reader.cache_by_id(other.id).dropped_at is not None
        assert store.reader.joins()[0].validated_versions == {"/t": BaseState("id", 7, "txn:a", 8)}
        assert [m.location for m in store.reader.restricted_tables()] == ["/t"]
        assert store.reader.base_tables() == (SALES,)
        assert [r.cache_version for r in store.reader.refreshes(cache.id)] == [2, 1, 0]
        assert store.reader.lease(cache.id).token >= token + GAP
        assert store.writer.next_commit_number(cache.id) > 3 + GAP
        after = refresh(store, cache, 9)
        assert after.fencing_token > token + GAP and after.state is RunState.PUBLISHED


def test_a_run_that_was_under_way_is_over(metastore_url, tmp_path):
    with open_metastore(metastore_url) as store:
        cache = make(store, "cube")
        store.writer.start_refresh(
            cache.id, "me", now=None, lease_seconds=60, mode="FULL", reason="asked"
        )
        dumped = store.reader.dump()
    with again(dumped, f"sqlite:///{tmp_path / 'again.db'}") as store:
        (run,) = store.reader.refreshes(cache.id)
        assert run.state is RunState.SUPERSEDED and "lost" in run.error
        assert store.reader.lease(cache.id).holder is None


def test_only_what_changed_and_no_more_runs_than_needed(store):
    cube, _ = make(store, "cube"), make(store, "other")
    since = store.reader.revision()
    assert store.reader.dump(since).caches == ()
    for version in range(RUNS_KEPT + 5):
        refresh(store, cube, version)
    (dump,) = store.reader.dump(since).caches
    assert dump.cache["id"] == cube.id and len(dump.rows["refresh_runs"]) == RUNS_KEPT
    assert dump.published["cache_version"] == RUNS_KEPT + 4


def test_a_metastore_with_caches_is_not_overwritten(store):
    make(store, "cube")
    before = store.reader.dump()
    with pytest.raises(MetastoreError) as caught:
        store.writer.restore(before.caches, before.shared, before.revision)
    assert caught.value.code == "METASTORE_NOT_EMPTY"
    assert store.reader.dump() == before


def test_a_dump_of_another_release_is_refused(store, tmp_path):
    make(store, "cube")
    dumped = store.reader.dump()
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
    store.writer.grant(cube.id, "ann")
    (second,) = folder.iterdir()
    assert second.name > first.name and '"ann"' in second.read_text()
    make(store, "elsewhere", "s3a://bucket/caches")  # left to those who reach it
    assert names(tmp_path) == ["cube", "shared"]


def test_base_tables_that_only_moved_on_are_not_written_again(store, tmp_path):
    keep_journal(store, str(tmp_path))
    cube = make(store, "cube", str(tmp_path))
    store.writer.note_tables([SALES])

    def shared() -> list[str]:
        return [p.name for p in (tmp_path / FOLDER).glob("shared-*/*")]

    before = shared()
    store.writer.note_tables([replace(SALES, version=8)])
    store.writer.grant(cube.id, "ann")
    assert shared() == before
    store.writer.note_tables([replace(SALES, version=9, columns='{"fields":[1]}')])
    assert shared() > before and len(shared()) == 1


def test_a_record_that_cannot_be_written_costs_no_change(store, tmp_path):
    (tmp_path / FOLDER).write_text("in the way")
    keep_journal(store, str(tmp_path))
    cube = make(store, "cube", str(tmp_path))
    (tmp_path / FOLDER).unlink()
    make(store, "other", str(tmp_path))
    assert (
        names(tmp_path) == ["cube", "other", "shared"]
        and store.reader.cache_by_id(cube.id) is not None
    )


def test_what_others_changed_is_written_too(store, metastore_url, tmp_path):
    with open_metastore(metastore_url) as other:
        make(other, "cube", str(tmp_path))
    journal = keep_journal(store, str(tmp_path), since=0)
    journal.catch_up()
    assert (tmp_path / FOLDER / "cube").is_dir()
