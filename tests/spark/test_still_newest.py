"""One look at a table's log in place of a listing: only where the snapshot that Delta loaded last
is the newest for sure; see `StillNewest.java`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cachemgr.jvm.classes import class_on_path
from cachemgr.spark import hook
from tests.worlds.hook_star import Star, StarDecider, reads_cache, rows

QUERY = "SELECT region, sum(amount) AS total FROM sales JOIN shops ON shop = id GROUP BY region"
WANTED = [("north", 22), (None, 4)]
_LIMIT = "spark.databricks.delta.stalenessLimit"


def _text(star: Star) -> str:
    return QUERY.replace("sales", f"{star.schema}.sales").replace("shops", f"{star.schema}.shops")


def _query(star: Star) -> Any:
    return star.spark.sql(_text(star))


def _strict(star: Star) -> StarDecider:
    decider = StarDecider(star, strict=True)
    hook.install(star.spark, decider)
    return decider


def _listed(star: Star, ask: Callable[[], Any]) -> tuple[Any, int]:
    """What a question gives, and how many logs were listed for it by us."""
    before = hook.counters(star.spark)
    given = ask()
    after = hook.counters(star.spark)
    assert after["looked_up"] > before["looked_up"], "no version was asked for"
    return given, after["listed"] - before["listed"]


def _commit(star: Star, version: int) -> Path:
    return Path(star.sales.removeprefix("file:")) / "_delta_log" / f"{version:020}.json"


def _touch(commit: Path) -> None:
    """Another time, as a copy or a restored backup has it."""
    then = commit.stat()
    os.utime(commit, ns=(then.st_atime_ns, then.st_mtime_ns + 5_000_000_000))


def _log(star: Star) -> Any:
    logs = class_on_path(star.spark._jvm, "org.apache.spark.sql.delta.DeltaLog")
    return logs.forTable(star.spark._jsparkSession, star.sales)


def test_a_table_that_did_not_move_is_not_listed(star: Star) -> None:
    _strict(star)
    frame = _query(star)
    given, listed = _listed(star, lambda: rows(frame))
    assert (given, listed) == (WANTED, 0)
    assert reads_cache(frame, star)


def _analysed_before_a_commit_of_another(star: Star) -> Any:
    """A query that was analysed before an application that shares nothing with this one wrote."""
    star.append(2, "c", 100)
    commit = _commit(star, _log(star).unsafeVolatileSnapshot().version())
    hidden = commit.with_suffix(".hidden")
    commit.rename(hidden)
    class_on_path(star.spark._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
    frame = _query(star)
    frame.schema  # noqa: B018 - it is analysed now
    hidden.rename(commit)
    return frame


def test_a_commit_of_another_application_since_analysis_is_seen(own_star: Star) -> None:
    decider = _strict(own_star)
    frame = _analysed_before_a_commit_of_another(own_star)
    given, listed = _listed(own_star, lambda: rows(frame))
    assert (given, listed) == ([("north", 122), (None, 4)], 1)
    seen = decider.asked[-1].seen()[own_star.sales]
    assert [table.version for table in seen] == [decider.versions[own_star.sales] + 1]


def test_a_commit_of_our_own_since_analysis_needs_no_listing(own_star: Star) -> None:
    _strict(own_star)
    frame = _query(own_star)
    frame.schema  # noqa: B018
    own_star.append(2, "c", 100)
    assert _listed(own_star, lambda: rows(frame)) == ([("north", 122), (None, 4)], 0)


def test_other_columns_than_were_analysed_are_told_by_delta(own_star: Star) -> None:
    _strict(own_star)
    frame = _query(own_star)
    frame.schema  # noqa: B018
    own_star.spark.sql(f"ALTER TABLE {own_star.schema}.sales ADD COLUMN note STRING")
    assert _listed(own_star, lambda: rows(frame)) == (WANTED, 1)


@pytest.mark.parametrize("changed", ["its time", "its length"])
def test_another_file_in_the_place_of_the_commit_is_listed(own_star: Star, changed: str) -> None:
    decider = _strict(own_star)
    frame = _query(own_star)
    frame.schema  # noqa: B018
    commit = _commit(own_star, decider.versions[own_star.sales])
    if changed == "its time":
        _touch(commit)
    else:
        then = commit.stat()
        commit.write_text(commit.read_text() + "\n")
        commit.with_name(f".{commit.name}.crc").unlink()  # Hadoop's own, of the bytes
        os.utime(commit, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert _listed(own_star, lambda: rows(frame)) == (WANTED, 1)


def test_a_log_put_back_to_fewer_commits_is_listed(own_star: Star) -> None:
    decider = _strict(own_star)
    own_star.append(2, "c", 100)
    frame = _query(own_star)
    frame.schema  # noqa: B018
    last = _commit(own_star, decider.versions[own_star.sales] + 1)
    last.rename(last.with_suffix(".gone"))
    last.with_suffix(".crc").unlink(missing_ok=True)
    before = hook.counters(own_star.spark)["listed"]
    given = rows(frame)
    assert hook.counters(own_star.spark)["listed"] == before + 1
    assert given == WANTED


def test_a_version_that_only_a_checkpoint_has_is_known_by_its_time(own_star: Star) -> None:
    decider = _strict(own_star)
    _log(own_star).checkpoint()
    class_on_path(own_star.spark._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
    frame = _query(own_star)
    assert _listed(own_star, lambda: rows(frame)) == (WANTED, 0)
    frame = _query(own_star)
    frame.schema  # noqa: B018
    commit = _commit(own_star, decider.versions[own_star.sales])
    _touch(commit)
    assert _listed(own_star, lambda: rows(frame)) == (WANTED, 1)


def test_where_old_answers_are_allowed_delta_is_asked(star: Star) -> None:
    _strict(star)
    star.spark.conf.set(_LIMIT, "1h")
    try:
        assert _listed(star, lambda: rows(_query(star)))[1] == 2
    finally:
        star.spark.conf.unset(_LIMIT)
    assert _listed(star, lambda: rows(_query(star)))[1] == 0


def test_a_version_that_the_query_fixed_is_not_looked_at(star: Star) -> None:
    decider = _strict(star)
    version = decider.versions[star.sales]
    before = hook.counters(star.spark)
    text = f"SELECT sum(amount) FROM {star.schema}.sales VERSION AS OF {version}"
    assert star.spark.sql(text).collect()[0][0] == 26
    after = hook.counters(star.spark)
    assert after["asked"] == before["asked"] + 1
    assert (after["looked_up"], after["listed"]) == (before["looked_up"], before["listed"])


def test_a_frame_that_was_analysed_some_time_ago_is_listed(star: Star) -> None:
    _strict(star)
    frame = _query(star)
    frame.schema  # noqa: B018
    time.sleep(1.2)
    assert _listed(star, lambda: rows(frame)) == (WANTED, 2)


def test_a_file_system_that_hadoop_does_not_keep_is_not_opened_for_a_look(star: Star) -> None:
    _strict(star)
    session = star.spark.newSession()
    session.conf.set("spark.hadoop.fs.file.impl.disable.cache", "true")
    session.conf.set("fs.file.impl.disable.cache", "true")
    hook.install(session, StarDecider(star, strict=True))
    try:
        frame = session.sql(_text(star))
        assert _listed(star, lambda: rows(frame)) == (WANTED, 2)
    finally:
        hook.uninstall(session)


@pytest.fixture
def object_store(own_star: Star) -> Iterator[Star]:
    """The star in a storage whose log store is that of an object store."""
    jvm = own_star.spark._jvm
    conf = class_on_path(jvm, "org.apache.spark.SparkEnv").get().conf()
    logs = class_on_path(jvm, "org.apache.spark.sql.delta.DeltaLog")
    key = "spark.delta.logStore.file.impl"
    conf.set(key, "io.delta.storage.S3SingleDriverLogStore")
    logs.clearCache()
    yield own_star
    conf.remove(key)
    logs.clearCache()


def test_an_object_store_is_listed_once_from_the_version_on(object_store: Star) -> None:
    _strict(object_store)
    store = _log(object_store).store().getDelegate(_log(object_store).logPath())
    assert store.logStoreImpl().getClass().getSimpleName() == "S3SingleDriverLogStore"
    frame = _query(object_store)
    assert _listed(object_store, lambda: rows(frame)) == (WANTED, 0)
    frame = _analysed_before_a_commit_of_another(object_store)
    assert _listed(object_store, lambda: rows(frame)) == ([("north", 122), (None, 4)], 1)
    commit = _commit(object_store, _log(object_store).unsafeVolatileSnapshot().version())
    after_next = commit.with_name(f"{int(commit.stem) + 2:020}.json")
    frame = _query(object_store)
    frame.schema  # noqa: B018
    after_next.write_text("")  # which two statuses would not see, and Delta refuses
    with pytest.raises(Exception, match="DELTA_VERSIONS_NOT_CONTIGUOUS"):
        rows(frame)
    after_next.unlink()
    frame = _query(object_store)
    frame.schema  # noqa: B018
    _touch(commit)
    assert _listed(object_store, lambda: rows(frame))[1] == 1
