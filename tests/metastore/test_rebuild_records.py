"""Which records count in a rebuild, where several or damaged ones are found."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.delta.storage import LocalFiles
from cachemgr.errors import MetastoreError
from cachemgr.journal.journal import FOLDER, keep_journal
from cachemgr.journal.rebuild import look, rebuild
from cachemgr.metastore import open_metastore
from cachemgr.metastore.dumps import FORMAT
from cachemgr.metastore.records import CacheRecord, Publication


def make(store, folder, name="cube") -> CacheRecord:
    record = CacheRecord(
        namespace="default", name=name, definition="SELECT …", definition_hash="h", location=""
    )
    record = CacheRecord(**{**vars(record), "location": f"{folder}/{record.id}"})
    return store.caches.create(record, now=store.clock.now())


def find(*roots):
    return look([str(root) for root in roots], lambda root: LocalFiles())


@pytest.fixture
def kept(store, tmp_path):
    root = tmp_path / "caches"
    keep_journal(store, str(root))
    return root


def test_a_damaged_record_gives_way_to_the_one_before(store, kept):
    cache = make(store, kept)
    folder = kept / FOLDER / cache.id
    (folder / f"{10**6:020d}.json").write_text(f'{{"format": {FORMAT}, "ro')
    (folder / ".half.json").write_text("{}")
    (folder / "notes.txt").write_text("hello")
    found = find(kept)
    assert [(r.name, r.state) for r in found.restored] == [("default.cube", "NOT_PUBLISHED")]
    assert found.revision == store.registry.revision()


def test_a_record_of_a_later_format_stops_it(store, kept):
    cache = make(store, kept)
    (kept / FOLDER / cache.id / f"{10**6:020d}.json").write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(MetastoreError) as caught:
        find(kept)
    assert caught.value.code == "RECORD_FORMAT"


def test_of_two_metastores_the_last_change_of_a_name_counts(store, kept, tmp_path):
    first = make(store, kept)
    with open_metastore(f"sqlite:///{tmp_path / 'second.db'}") as second:
        keep_journal(second, str(kept))
        later = make(second, kept, "CUBE")
    found = find(kept)
    told = {r.id: (r.state, r.is_lost) for r in found.restored}
    assert told == {first.id: ("LEFT_OUT", True), later.id: ("NOT_PUBLISHED", False)}
    with open_metastore(f"sqlite:///{tmp_path / 'again.db'}") as again:
        rebuild(again, found)
        assert [c.id for c in again.caches.all()] == [later.id]


def test_several_roots_and_none(store, kept, tmp_path):
    make(store, kept)
    make(store, tmp_path / "own", "other")
    assert [r.name for r in find(kept, tmp_path / "own", kept).restored] == [
        "default.cube",
        "default.other",
    ]
    assert find(kept).has_shared and not find(tmp_path / "own").has_shared
    assert find(tmp_path / "nothing").restored == ()


def test_what_the_log_must_say(store, kept):
    """Each way in which the log does not bear the record out, and the one in which it does."""
    cache = make(store, kept)
    run = store.refreshes.start(
        cache.id, "me", now=None, lease_seconds=60, mode="FULL", reason="asked"
    )
    store.refreshes.publish(
        run.id,
        run.fencing_token,
        Publication(cache_version=4, rows=1, bytes=1, tables=[]),
        now=None,
    )
    log = kept / cache.id / "_delta_log"
    log.mkdir(parents=True)
    good = {"by": "relational-cache", "cache_id": cache.id, "fencing_token": run.fencing_token}

    def state_with(version: int, stamp) -> str:
        for old in log.iterdir():
            old.unlink()
        info = {"commitInfo": {"userMetadata": json.dumps(stamp) if stamp else None}}
        (log / f"{version:020d}.json").write_text(json.dumps(info) + "\n")
        (line,) = find(kept).restored
        return line.state

    assert state_with(4, good) == "PUBLISHED"
    assert state_with(3, good) == "NOT_PUBLISHED"
    assert state_with(4, None) == "NOT_PUBLISHED"
    assert state_with(4, {**good, "by": "somebody"}) == "NOT_PUBLISHED"
    assert state_with(4, {**good, "cache_id": "another"}) == "NOT_PUBLISHED"
    assert state_with(4, {**good, "fencing_token": run.fencing_token + 1}) == "NOT_PUBLISHED"


def test_a_metastore_begun_anew_leaves_its_own_shared_record(store, kept, tmp_path):
    for name in ("first", "second", "third"):
        make(store, kept, name)
    store.tables.restrict("t", "/old", None, by="ann")
    with open_metastore(f"sqlite:///{tmp_path / 'anew.db'}") as anew:
        keep_journal(anew, str(kept))
        anew.tables.restrict("t", "/new", None, by="ann")
    (restricted,) = find(kept).shared["restricted_tables"]
    assert restricted["location"] == "/new"


def db(command: str, url: str, root, *more: str, code: int = 0) -> str:
    words = ["db", command, "--metastore", url, "--location", str(root), *more]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(main, words)
    assert done.exit_code == code, done.output
    return done.output


def test_records_of_a_metastore_in_use_are_taken_over_with_consent_alone(
    store, kept, metastore_url, tmp_path, caplog
):
    cache = make(store, kept)
    (record,) = (kept / FOLDER / cache.id).iterdir()
    other = f"sqlite:///{tmp_path / 'again.db'}"
    told = db("rebuild", other, kept, "--dry-run")
    assert "another metastore's" in told and "nothing was changed" in told
    told = db("rebuild", other, kept, code=1)
    assert "NOT_CONFIRMED" in told and "--take-over" in told and "end its processes" in told
    assert list((kept / FOLDER / cache.id).iterdir()) == [record]
    assert not (tmp_path / "again.db").exists()
    assert "METASTORE_NOT_EMPTY" in db("rebuild", metastore_url, kept, code=1)
    db("check", metastore_url, kept)

    db("rebuild", other, kept, "--take-over")
    db("check", other, kept)
    told = db("check", metastore_url, kept, code=1)
    assert "TAKEN_OVER" in told and "cachemgr db records --take-over" in told
    store.grants.add(cache.id, "ann")
    assert [r for r in caplog.messages if "another metastore's now" in r]

    # and back again: what this metastore says is the newest then, the grant with it
    assert "--take-over" in db("records", metastore_url, kept, code=1)
    db("records", metastore_url, kept, "--take-over")
    db("check", metastore_url, kept)
    assert "TAKEN_OVER" in db("check", other, kept, code=1)
    (dump,) = find(kept).caches
    assert [g["principal"] for g in dump.rows["grants"]] == ["ann"]
    store.grants.add(cache.id, "bob")
    db("check", metastore_url, kept)


def test_records_that_are_missing_or_behind_are_written(store, metastore_url, tmp_path):
    root = tmp_path / "caches"
    first = make(store, root)
    told = db("check", metastore_url, root, code=1)
    assert "NO_RECORD" in told and "`cachemgr db records` writes" in told
    db("records", metastore_url, root)
    db("check", metastore_url, root)
    store.grants.add(first.id, "ann")
    assert "BEHIND" in db("check", metastore_url, root, code=1)
    db("records", metastore_url, root)
    db("check", metastore_url, root)


def test_a_metastore_put_back_from_a_copy_is_not_another(store, kept, metastore_url):
    cache = make(store, kept)
    (record,) = (kept / FOLDER / cache.id).iterdir()
    record.rename(record.with_name(f"{10**6:020d}.json"))
    told = db("check", metastore_url, kept, code=1)
    assert "AHEAD" in told and "put back from a copy" in told and "--take-over" not in told
